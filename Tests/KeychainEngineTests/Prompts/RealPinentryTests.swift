// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Asking through the pinentry programs of the system", .waitsForClock)
struct RealPinentryTests {
    private static let onTerminal = "/usr/bin/pinentry-tty"
    private static let onWholeScreen = "/usr/bin/pinentry-curses"
    private static let tidy = ["no descriptors left", "no children left", "exited 0", "terminal as before"]

    @Test("pinentry-tty shows the prompt and returns the input, including characters that need escapes")
    func terminal() throws {
        let job = try TerminalJob(pinentry: Self.onTerminal, expecting: "50% é")
        let text = try job.wait(for: "Passcode:")
        #expect(text.contains("/usr/bin/mytool wants to read an item that needs your passcode."))
        #expect(text.contains("It says: \"Open the safe\""))
        job.type("50% é\n")
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
        #expect(!job.remainder().contains("50%"))
    }

    @Test("pinentry-tty: empty input is an empty answer, no input a timeout, and a new password is entered twice")
    func terminalEndings() throws {
        let empty = try TerminalJob(pinentry: Self.onTerminal)
        try empty.wait(for: "Passcode:")
        empty.type("\n")
        #expect(try empty.report() == ["can ask true", "empty"] + Self.tidy)
        let unanswered = try TerminalJob(pinentry: Self.onTerminal, timeoutSeconds: 4)
        try unanswered.wait(for: "Passcode:")
        #expect(try unanswered.report() == ["can ask true", "timedOut"] + Self.tidy)
        let new = try TerminalJob(pinentry: Self.onTerminal, secret: "new", expecting: "new one")
        try new.wait(for: "New password:")
        new.type("new one\n")
        try new.wait(for: "Again:")
        new.type("new one\n")
        #expect(try new.report() == ["can ask true", "as expected"] + Self.tidy)
    }

    @Test("pinentry-tty: ^C reaches the program and the prompting process, and the terminal is restored")
    func terminalInterrupt() throws {
        let job = try TerminalJob(pinentry: Self.onTerminal)
        try job.wait(for: "Passcode:")
        job.type("\u{3}")
        #expect(try job.report() == ["can ask true", "killed by 2", "terminal as before"])
    }

    @Test("A signal that ends the process ends the program first, and the terminal is restored", arguments: [onTerminal, onWholeScreen])
    func termination(_ pinentry: String) throws {
        let job = try TerminalJob(pinentry: pinentry)
        try job.wait(for: "Passcode:")
        kill(try #require(job.askingProcess), SIGTERM)
        #expect(try job.report() == ["can ask true", "killed by 15", "terminal as before"])
    }

    @Test("If the program dies while echo is off, the terminal is restored")
    func death() throws {
        let job = try TerminalJob(pinentry: Self.onTerminal)
        try job.wait(for: "Passcode:")
        let asking = try #require(job.askingProcess)
        let children = try String(contentsOfFile: "/proc/\(asking)/task/\(asking)/children", encoding: .utf8)
        kill(try #require(pid_t(children.split(separator: " ").first ?? "")), SIGKILL)
        let report = try job.report()
        #expect(report.dropFirst().first?.hasPrefix("failed") == true, "\(report)")
        #expect(report.dropFirst(2) == Self.tidy[...])
    }

    @Test("pinentry-curses draws the prompt on the terminal, returns the input, and restores the terminal")
    func wholeScreen() throws {
        let job = try TerminalJob(pinentry: Self.onWholeScreen, expecting: "12345")
        try job.wait(for: "mytool wants to read")
        try job.wait(for: "Passcode:")
        try job.wait(for: "OK")
        job.type("12345\r")
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
        #expect(!job.remainder().contains("12345"))
    }

    @Test("pinentry-curses: without input the prompt times out")
    func wholeScreenTimeout() throws {
        let job = try TerminalJob(pinentry: Self.onWholeScreen, timeoutSeconds: 4)
        try job.wait(for: "Passcode:")
        #expect(try job.report() == ["can ask true", "timedOut"] + Self.tidy)
    }

    @Test("Without a terminal and a display no prompt can be shown", arguments: [onTerminal, onWholeScreen])
    func noPromptPossible(_ pinentry: String) throws {
        try withTemporaryDirectory { home in
            try "".write(toFile: home + "/expected", atomically: true, encoding: .utf8)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["ask", "configured", "passcode", "600", home + "/expected", "own-session"],
                environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": pinentry, "TERM": "vt100"])
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(lines.first == "can ask true")
            #expect(lines.dropFirst().first?.hasPrefix("promptUnavailable") == true, "\(lines)")
            #expect(lines.dropFirst(2) == Self.tidy.prefix(2))
        }
    }

    @Test("A process in the background of its terminal is not stopped, and no prompt can be shown", arguments: [onTerminal, onWholeScreen])
    func background(_ pinentry: String) throws {
        let report = try TerminalJob(pinentry: pinentry, inForeground: false).report()
        #expect(report.dropFirst().first?.hasPrefix("promptUnavailable") == true, "\(report)")
        #expect(Array(report.dropFirst(2)) == Self.tidy)
    }

    @Test("A process that ignores SIGCHLD keeps no zombie and does not hang")
    func ignoredChildren() throws {
        for (steps, outcome) in [
            ("say OK\nuntil GETPIN\nsay D x\nsay OK", "as expected"), ("say OK\nuntil GETPIN\nsleep 600000", "timedOut"),
        ] {
            let pinentry = try MisbehavingPinentry(steps)
            try withTemporaryDirectory { home in
                try "x".write(toFile: home + "/expected", atomically: true, encoding: .utf8)
                let run = try ChildProcess.run(
                    BuiltProgram.path(of: "KeychainTestChild"),
                    ["ask", "configured", "passcode", "4", home + "/expected", "own-session", "ignore-children"],
                    environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": pinentry.path])
                let lines = run.output.split(separator: "\n").map(String.init)
                #expect(lines == ["can ask true", outcome] + Self.tidy.prefix(2))
            }
        }
    }
}

/// A program that prompts on a pseudo-terminal, and the person who answers it.
final class TerminalJob {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let deadlineSeconds = 60.0

    private let terminal: PseudoTerminal
    private let folder: TemporaryDirectory
    private let child: ChildProcess

    /// Asks on the terminal, as `KEYCHAIN_PINENTRY` says, or through the one program that is `listed`.
    init(
        pinentry: String? = nil, isPinentrySet: Bool = true, listed: String? = nil, secret: String = "passcode",
        timeoutSeconds: Int = 60, expecting expected: String = "",
        inForeground: Bool = true, typingAhead typed: String = "", environment: [String: String] = [:]
    ) throws {
        terminal = try PseudoTerminal()
        folder = try TemporaryDirectory()
        try expected.write(toFile: folder.path + "/expected", atomically: true, encoding: .utf8)
        // Echoed, because there is no prompt yet.
        if !typed.isEmpty { terminal.type(typed) }
        var variables = ["KEYCHAIN_HOME": folder.path, "TERM": "vt100", "LANG": "C.UTF-8"]
        if isPinentrySet { variables["KEYCHAIN_PINENTRY"] = pinentry ?? "" }
        child = try ChildProcess(
            BuiltProgram.path(of: "KeychainTestChild"),
            [
                "ask-on-terminal", terminal.name, inForeground ? "foreground" : "background", listed ?? "configured", secret,
                "\(timeoutSeconds)", folder.path + "/expected",
            ],
            environment: variables.merging(environment) { $1 })
    }

    /// The output that no call has waited for, without carriage returns.
    var shown: String { terminal.shown }

    /// Waits until `text` appears after the text of the previous wait, and returns the output before it.
    @discardableResult
    func wait(for text: String) throws -> String {
        guard let before = terminal.wait(for: text) else { throw Failure(description: "\(text) is not shown, but: \(shown)") }
        return before
    }

    func type(_ text: String) { terminal.type(text) }

    /// The remaining lines: the program's result, and the shell's report of the terminal.
    func report() throws -> [String] {
        let report = try child.readToEnd(withinSeconds: Self.deadlineSeconds)
        _ = try child.waitUntilEnded()
        return report.split(separator: "\n").map(String.init)
    }

    /// The next line of the output.
    func nextReport() throws -> String? { try child.readLine(withinSeconds: Self.deadlineSeconds) }

    /// The output that no call has waited for.
    func remainder() -> String {
        while terminal.readOutput(waitingMilliseconds: 0) == true {}
        return shown
    }

    /// The prompting process.
    var askingProcess: pid_t? {
        let children = "/proc/\(child.processID)/task/\(child.processID)/children"
        return (try? String(contentsOfFile: children, encoding: .utf8)).flatMap { pid_t($0.split(separator: " ").first ?? "") }
    }
}
