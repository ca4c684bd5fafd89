// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("Asking on the terminal", .waitsForClock)
struct TerminalPrompterTests {
    private static let tidy = ["no descriptors left", "no children left", "exited 0", "terminal as before"]

    @Test("The requester and the purpose are shown, input is not echoed, and the terminal is restored")
    func answer() throws {
        let job = try TerminalJob(expecting: "12345 é")
        let text = try job.wait(for: "Passcode: ")
        #expect(text == "/usr/bin/mytool wants to read an item that needs your passcode.\nIt says: \"Open the safe\"\n")
        job.type("12345 éx\u{7F}\n")
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
        #expect(job.remainder() == "\n")
    }

    @Test(
        "^C and ^D cancel, an empty line is an empty answer, and input that is too long is rejected",
        arguments: [
            ("\u{3}", "canceled"), ("abc\u{3}", "canceled"), ("\u{4}", "canceled"), ("\n", "empty"), ("abc\u{4}", "as expected"),
            (String(repeating: "x", count: 1_025), #"failed("more was typed than the 1024 bytes that are accepted")"#),
        ])
    func endings(_ typed: String, outcome: String) throws {
        let job = try TerminalJob(expecting: "abc")
        try job.wait(for: "Passcode: ")
        job.type(typed)
        #expect(try job.report() == ["can ask true", outcome] + Self.tidy)
    }

    @Test("Input typed before the prompt is discarded")
    func typedAhead() throws {
        let job = try TerminalJob(expecting: "later", typingAhead: "too early\n")
        try job.wait(for: "Passcode: ")
        job.type("later\n")
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
    }

    @Test("A new password is entered twice, and again if the entries differ")
    func newPassword() throws {
        let job = try TerminalJob(secret: "new", expecting: "new one")
        for (prompt, typed) in [("New password: ", "one"), ("Again: ", "another"), ("New password: ", "new one"), ("Again: ", "new one")] {
            try job.wait(for: prompt)
            job.type(typed + "\n")
        }
        #expect(try job.report() == ["can ask true", "as expected"] + Self.tidy)
        let never = try TerminalJob(secret: "new")
        for _ in 0..<3 {
            try never.wait(for: "New password: ")
            never.type("one\n")
            try never.wait(for: "Again: ")
            never.type("another\n")
        }
        #expect(try never.report() == ["can ask true", #"failed("the two entries differed every time")"#] + Self.tidy)
    }

    @Test("Without an answer in time the prompt times out, also during input")
    func timeout() throws {
        let job = try TerminalJob(timeoutSeconds: 2)
        try job.wait(for: "Passcode: ")
        job.type("12345")
        #expect(try job.report() == ["can ask true", "timedOut"] + Self.tidy)
    }

    @Test("A terminating signal ends the process after the terminal was restored", arguments: [SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1])
    func signal(_ number: Int32) throws {
        let job = try TerminalJob()
        try job.wait(for: "Passcode: ")
        job.type("123")
        kill(try #require(job.askingProcess), number)
        #expect(try job.report() == ["can ask true", "killed by \(number)", "terminal as before"])
    }

    @Test("^Z stops the process after the terminal was restored; when it continues, the prompt is shown again")
    func stop() throws {
        let job = try TerminalJob(expecting: "12345")
        try job.wait(for: "Passcode: ")
        job.type("123\u{1A}")
        try job.wait(for: "Passcode: ")
        job.type("12345\n")
        #expect(try job.report() == ["can ask true", "stopped, terminal as before", "as expected"] + Self.tidy)
    }

    /// A shell turns the echo on while the process is stopped.
    @Test("After SIGSTOP and SIGCONT the prompt is shown again, and the answer is not")
    func stopWithoutNotice() throws {
        let job = try TerminalJob(expecting: "12345")
        try job.wait(for: "Passcode: ")
        kill(try #require(job.askingProcess), SIGSTOP)
        try job.wait(for: "Passcode: ")
        job.type("12345\n")
        #expect(try job.report() == ["can ask true", "stopped, terminal changed", "as expected"] + Self.tidy)
        #expect(!job.remainder().contains("12345"))
    }

    @Test("In the background of a terminal, and without one, no prompt can be shown")
    func noPromptPossible() throws {
        let report = try TerminalJob(inForeground: false).report()
        let background = #"promptUnavailable("the process is in the background of its terminal")"#
        #expect(report == ["can ask false", background] + Self.tidy)
        try withTemporaryDirectory { home in
            try "".write(toFile: home + "/expected", atomically: true, encoding: .utf8)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["ask", "configured", "passcode", "600", home + "/expected", "own-session"],
                environment: ["KEYCHAIN_HOME": home])
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(lines == ["can ask false", #"promptUnavailable("the process has no terminal")"#] + Self.tidy.prefix(2))
        }
    }
}

@Suite("A line typed without echo")
struct TypedLineTests {
    private static let erase: UInt8 = 0x7F
    private static let kill: UInt8 = 0x15
    private static let endOfFile: UInt8 = 0x04
    private static let interrupt: UInt8 = 0x03

    private func line(_ text: String, limit: Int = 100) -> TypedLine {
        line(Array(text.utf8), limit: limit)
    }

    private func line(_ bytes: [UInt8], limit: Int = 100) -> TypedLine {
        var line = TypedLine(
            erase: Self.erase, kill: Self.kill, endOfFile: Self.endOfFile, interrupt: Self.interrupt, limit: limit)
        for byte in bytes where line.end == nil { line.append(byte) }
        return line
    }

    @Test("A line break ends the line and is not part of it", arguments: ["secret\n", "secret\r", "secret\nmore"])
    func lineBreak(_ typed: String) {
        #expect(line(typed).end == .complete)
        #expect(line(typed).bytes == Array("secret".utf8))
    }

    @Test("Erase removes a whole character, kill removes the whole line, and both accept an empty line")
    func editing() {
        #expect(line(Array("aé".utf8) + [Self.erase]).bytes == Array("a".utf8))
        #expect(line(Array("ab".utf8) + [0x08]).bytes == Array("a".utf8))
        #expect(line([Self.erase] + Array("a".utf8)).bytes == Array("a".utf8))
        #expect(line(Array("ab".utf8) + [Self.kill] + Array("c".utf8)).bytes == Array("c".utf8))
    }

    @Test("End of file cancels if the line is empty, and otherwise ends the line")
    func endOfFile() {
        #expect(line([Self.endOfFile]).end == .canceled)
        #expect(line(Array("a".utf8) + [Self.endOfFile]).end == .complete)
    }

    @Test("Interrupt cancels with any input")
    func interrupt() {
        #expect(line([Self.interrupt]).end == .canceled)
        #expect(line(Array("a".utf8) + [Self.interrupt]).end == .canceled)
    }

    @Test("Input that is too long is rejected, not truncated")
    func tooLong() {
        #expect(line("abcd", limit: 3).end == .tooLong)
        #expect(line("abc\n", limit: 3).end == .complete)
        #expect(line(String(repeating: "a", count: 10_000) + "\n", limit: 20_000).bytes.count == 10_000)
    }

    @Test("A line without a line break is incomplete")
    func unfinished() {
        #expect(line("abc").end == nil)
    }
}
