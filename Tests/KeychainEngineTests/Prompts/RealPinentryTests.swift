// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Asking through the pinentry programs of the system")
struct RealPinentryTests {
    private static let onTerminal = "/usr/bin/pinentry-tty"
    private static let onWholeScreen = "/usr/bin/pinentry-curses"
    private static let tidy = ["no descriptors left", "no children left", "exited 0", "terminal as before"]

    @Test("pinentry-tty shows the question and gives what is typed, signs that need escapes included")
    func terminal() throws {
        let job = try TerminalJob(pinentry: Self.onTerminal, expecting: "50% é")
        let text = try job.wait(for: "Passcode:")
        #expect(text.contains("/usr/bin/mytool wants to read an item that needs your passcode."))
        #expect(text.contains("It says: \"Open the safe\""))
        job.type("50% é\n")
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
        #expect(!job.remainder().contains("50%"))
    }

    @Test("pinentry-tty: nothing typed is an empty answer, nobody in time a timeout, a new password typed twice")
    func terminalEndings() throws {
        let empty = try TerminalJob(pinentry: Self.onTerminal)
        try empty.wait(for: "Passcode:")
        empty.type("\n")
        #expect(try empty.report() == ["can ask true", "empty"] + Self.tidy)
        let nobody = try TerminalJob(pinentry: Self.onTerminal, timeoutSeconds: 4)
        try nobody.wait(for: "Passcode:")
        #expect(try nobody.report() == ["can ask true", "timedOut"] + Self.tidy)
        let new = try TerminalJob(pinentry: Self.onTerminal, secret: "new", expecting: "new one")
        try new.wait(for: "New password:")
        new.type("new one\n")
        try new.wait(for: "Again:")
        new.type("new one\n")
        #expect(try new.report() == ["can ask true", "as expected"] + Self.tidy)
    }

    @Test("pinentry-tty: ^C reaches the program and whoever asks, and the terminal is put back")
    func terminalInterrupt() throws {
        let job = try TerminalJob(pinentry: Self.onTerminal)
        try job.wait(for: "Passcode:")
        job.type("\u{3}")
        #expect(try job.report() == ["can ask true", "killed by 2", "terminal as before"])
    }

    @Test("A signal that ends the process ends the program first, and the terminal is put back", arguments: [onTerminal, onWholeScreen])
    func termination(_ pinentry: String) throws {
        let job = try TerminalJob(pinentry: pinentry)
        try job.wait(for: "Passcode:")
        kill(try #require(job.askingProcess), SIGTERM)
        #expect(try job.report() == ["can ask true", "killed by 15", "terminal as before"])
    }

    @Test("A program that dies while the terminal is silent leaves it as it was")
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

    @Test("pinentry-curses draws the question on the terminal, gives what is typed, and clears up after itself")
    func wholeScreen() throws {
        let job = try TerminalJob(pinentry: Self.onWholeScreen, expecting: "12345")
        try job.wait(for: "mytool wants to read")
        try job.wait(for: "Passcode:")
        try job.wait(for: "OK")
        job.type("12345\r")
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
        #expect(!job.remainder().contains("12345"))
    }

    @Test("pinentry-curses: nobody in time is a timeout")
    func wholeScreenTimeout() throws {
        let job = try TerminalJob(pinentry: Self.onWholeScreen, timeoutSeconds: 4)
        try job.wait(for: "Passcode:")
        #expect(try job.report() == ["can ask true", "timedOut"] + Self.tidy)
    }

    @Test("Without a terminal and a display there is nobody to ask", arguments: [onTerminal, onWholeScreen])
    func nobody(_ pinentry: String) throws {
        try withTemporaryDirectory { home in
            try "".write(toFile: home + "/expected", atomically: true, encoding: .utf8)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["ask", "configured", "passcode", "600", home + "/expected", "own-session"],
                environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": pinentry, "TERM": "vt100"])
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(lines.first == "can ask true")
            #expect(lines.dropFirst().first?.hasPrefix("nobodyToAsk") == true, "\(lines)")
            #expect(lines.dropFirst(2) == Self.tidy.prefix(2))
        }
    }

    @Test("In the background of its terminal the process is not stopped: there is nobody to ask", arguments: [onTerminal, onWholeScreen])
    func background(_ pinentry: String) throws {
        let report = try TerminalJob(pinentry: pinentry, inForeground: false).report()
        #expect(report.dropFirst().first?.hasPrefix("nobodyToAsk") == true, "\(report)")
        #expect(Array(report.dropFirst(2)) == Self.tidy)
    }

    @Test("A process that ignores its children keeps no zombie and hangs on none")
    func ignoredChildren() throws {
        for (steps, outcome) in [
            ("say OK\nuntil GETPIN\nsay D x\nsay OK", "as expected"), ("say OK\nuntil GETPIN\nsleep 600000", "timedOut"),
        ] {
            let pinentry = try OddPinentry(steps)
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
