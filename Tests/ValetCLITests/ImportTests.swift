// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("Reading the secrets of other programs")
struct ImportTests {
    private func assignments(_ text: String) throws -> [String: String] {
        try withTemporaryDirectory { directory in
            try Data(text.utf8).write(to: URL(filePath: "\(directory)/file"))
            let parsed = try Dotenv(SourceFile(path: "\(directory)/file"), outcome: "nothing was stored")
            return Dictionary(parsed.assignments.map { ($0.name, $0.value) }) { first, _ in first }
        }
    }

    @Test(
        "Every form of a value in a .env file",
        arguments: [
            ("A=b", "b"), ("A = b ", "b"), ("\tA=b c", "b c"), ("A=b # c", "b"), ("A= # c", ""), ("A=''", ""), ("A=\"\"", ""),
            ("A='b # c'", "b # c"), ("A='b' # c", "b"), ("A=\"b\\nc\\t\\\"\\\\\\$\"", "b\nc\t\"\\$"), ("A=\"\\x\"", "\\x"),
            ("A='b\\n'", "b\\n"), ("A=b=c", "b=c"), ("A=$b", "$b"), ("A='${b}'", "${b}"), ("A=\"\\${b}\"", "${b}"), ("export A=b", "b"),
            ("A=b\\nc", "b\\nc"), ("A='b\r\nc'", "b\nc"), ("A=\"it's\"", "it's"), ("A='é 𐍈'", "é 𐍈"), ("A=e\u{301}", "e\u{301}"),
        ])
    func dotenvForms(line: String, value: String) throws {
        #expect(try assignments(line).map { [$0.key, $0.value] } == [["A", value]])
        #expect(try assignments("# comment\n\nZ=1\n\(line)\nY=2\n")["A"].map { Array($0.utf8) } == Array(value.utf8))
    }

    @Test("Any text is exported so that it is imported as it was")
    func dotenvRoundTrip() throws {
        var generator = SystemRandomNumberGenerator()
        let scalars = Array("aZ09 '\"\\$`#=\n\r\t{}()!&;|<>é𐍈".unicodeScalars)
        var text = ""
        var expected: [String: [UInt8]] = [:]
        for number in 0..<2_000 {
            var value = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...12, using: &generator) { value.append(scalars.randomElement(using: &generator)!) }
            text += try #require(Dotenv.line("A\(number)", String(value)))
            expected["A\(number)"] = Array(String(value).utf8)
        }
        #expect(try assignments(text).mapValues { Array($0.utf8) } == expected)
    }

    @Test("A program that does not end is stopped at the deadline, and too much output is refused")
    func stuckProgram() throws {
        func start(_ script: String) throws -> PipedProcess {
            try PipedProcess(path: "/bin/sh", arguments: ["-c", script], environment: [:], leadsSession: false, interruption: nil)
        }
        #expect(throws: Errno.timedOut) {
            _ = try start("printf x; exec sleep 600").readToEnd(byteLimit: 10, until: .after(milliseconds: 100))
        }
        #expect(try start("printf 12345678901").readToEnd(byteLimit: 10, until: .after(seconds: 60)) == nil)
        let failing = try start("printf partial; exit 3")
        #expect(try failing.readToEnd(byteLimit: 10, until: .after(seconds: 60)) == Array("partial".utf8))
        #expect(failing.exitCode == 3)
        let killed = try start("kill -KILL $$")
        #expect(try killed.readToEnd(byteLimit: 10, until: .after(seconds: 60)) == [])
        #expect(killed.exitCode == nil)
    }
}
