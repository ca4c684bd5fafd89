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
            let parsed = try Dotenv(SourceFile(path: "\(directory)/file"))
            return Dictionary(parsed.assignments.map { ($0.name, $0.value) }) { first, _ in first }
        }
    }

    @Test(
        "Every form of a value in a .env file",
        arguments: [
            ("A=b", "b"), ("A = b ", "b"), ("\tA=b c", "b c"), ("A=b # c", "b"), ("A= # c", ""), ("A=''", ""), ("A=\"\"", ""),
            ("A='b # c'", "b # c"), ("A='b' # c", "b"), ("A=\"b\\nc\\t\\\"\\\\\\$\"", "b\nc\t\"\\$"), ("A=\"\\x\"", "\\x"),
            ("A='b\\n'", "b\\n"), ("A=b=c", "b=c"), ("A=5$", "5$"), ("A=$ b", "$ b"), ("A='${b}'", "${b}"), ("A=\"\\${b}\"", "${b}"),
            ("export A=b", "b"),
            ("A=b # it's", "b"), ("A='b\r\nc'", "b\nc"), ("A=\"it's\"", "it's"), ("A='é 𐍈'", "é 𐍈"), ("A=e\u{301}", "e\u{301}"),
        ])
    func dotenvForms(line: String, value: String) throws {
        #expect(try assignments(line).map { [$0.key, $0.value] } == [["A", value]])
        #expect(try assignments("# comment\n\nZ=1\n\(line)\nY=2\n")["A"].map { Array($0.utf8) } == Array(value.utf8))
    }

    @Test(
        "A value that programs read differently is refused, and the message names its first line",
        arguments: [
            "a#b", "a\\b", "a\"b", "it's", "a`b`", "`a`", "$b", "${b}", "$(b)", "a$1", "a$$", "\"$b\"", "\"${b}\"", "\"`b`\"",
            "\"\n${b}\n\"",
        ])
    func readDifferently(_ value: String) {
        let failure = #expect(throws: CommandFailure.self) { try assignments("# comment\nZ=1\nA=\(value)\nY=2\n") }
        #expect(failure?.status == .usage && failure?.problem.contains("line 3") == true)
    }

    @Test("A line ends with a line feed, a carriage return, or both", arguments: ["\n", "\r", "\r\n"])
    func lineEnds(_ end: String) throws {
        let lines = ["# comment", "A=1", "", "B='2' # comment", "C=\"3\"", "D=", "E=5"]
        let expected = ["A": "1", "B": "2", "C": "3", "D": "", "E": "5"]
        #expect(try assignments(lines.joined(separator: end)) == expected)
        #expect(try assignments(lines.joined(separator: end) + end) == expected)
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
            // Some of the values begin like a reference.
            if number.isMultiple(of: 3) { value.insert(contentsOf: "valet:".unicodeScalars, at: value.startIndex) }
            do throws(Dotenv.Unwritable) {
                text += try Dotenv.line("A\(number)", String(value))
                expected["A\(number)"] = Array(String(value).utf8)
            } catch {
                #expect(error == .reference && value.contains { $0 == "'" || $0 == "\r" })
            }
        }
        #expect(try assignments(text).mapValues { Array($0.utf8) } == expected)
        let written = try TextSource.dotenv.withFile(Array(text.utf8)) { file in try Dotenv(file).assignments }
        #expect(written.allSatisfy { $0.referencedKey == nil })
    }

    @Test("A value that is text, and a reference")
    func references() throws {
        let text = "A=valet:a b # c\nB=\"valet:it's\"\nC='valet:c'\nD=Valet:d\nE=valet:\n"
        let assignments = try TextSource.dotenv.withFile(Array(text.utf8)) { file in try Dotenv(file).assignments }
        #expect(assignments.map(\.referencedKey) == ["a b", "it's", nil, nil, ""])
        let content = try TextSource.dotenv.read(Array(text.utf8))
        #expect(content.secrets.map(\.key) == ["C", "D"] && content.omissions.count == 3)
    }

    // MARK: Bad input

    /// A kind of source that is one file of text.
    enum TextSource: CaseIterable {
        case dotenv, json, netrc, docker, bitwarden, keePassXC

        func withFile<Result>(_ text: [UInt8], _ body: (SourceFile) throws -> Result) throws -> Result {
            try withTemporaryDirectory { directory in
                try Data(text).write(to: URL(filePath: "\(directory)/file"))
                return try body(SourceFile(path: "\(directory)/file"))
            }
        }

        func read(_ text: [UInt8]) throws -> SourceContent {
            try withFile(text) { file in
                switch self {
                case .dotenv: try DotenvSource(file: file).read()
                case .json: try JSONSource(file: file).read()
                case .netrc: try NetrcSource(file: file).read()
                case .docker: try DockerSource(file: file).read()
                case .bitwarden, .keePassXC: try PasswordTableSource(file: file).read()
                }
            }
        }

        /// Returns a source with these secrets, whose keys and values are letters and digits.
        func text(_ secrets: [(key: String, value: String)]) -> String {
            switch self {
            case .dotenv: secrets.map { "\($0.key)='\($0.value)' # comment\n" }.joined()
            case .json: "{" + secrets.map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",\n") + "}"
            case .netrc: secrets.map { "machine \($0.key)\n  login user # comment\n  password \"\($0.value)\"\n" }.joined()
            case .docker:
                "{\"auths\":{"
                    + secrets.map { "\"\($0.key)\":{\"auth\":\"\(Data("user:\($0.value)".utf8).base64EncodedString())\"}" }
                    .joined(separator: ",\n") + "}}"
            case .bitwarden:
                "folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n"
                    + secrets.map { ",,login,\($0.key),\"two\nlines\",,0,,user,\"\($0.value)\",\n" }.joined()
            case .keePassXC:
                "\"Group\",\"Title\",\"Username\",\"Password\",\"URL\"\n"
                    + secrets.map { "\"Root\",\"\($0.key)\",\"user\",\"\($0.value)\",\"\"\n" }.joined()
            }
        }

        func key(_ name: String) -> String { self == .dotenv || self == .json ? name : "\(name)/user" }
    }

    @Test("A byte-order mark and the line breaks of Windows change nothing", arguments: TextSource.allCases)
    func windows(_ source: TextSource) throws {
        let text = source.text([("ONE", "swordfish"), ("TWO", "druidia")])
        for bytes in [text, "\u{FEFF}" + text, text.replacing("\n", with: "\r\n"), "\u{FEFF}" + text.replacing("\n", with: "\r\n")] {
            let secrets = try source.read(Array(bytes.utf8)).secrets
            #expect(secrets.map(\.key) == [source.key("ONE"), source.key("TWO")])
            #expect(secrets.map(\.value) == [Data("swordfish".utf8), Data("druidia".utf8)])
        }
    }

    @Test("A key with two values is an error or left out, and the same secret twice is not", arguments: TextSource.allCases)
    func duplicateKeys(_ source: TextSource) throws {
        let text = Array(source.text([("ONE", "swordfish"), ("TWO", "druidia"), ("ONE", "marlin")]).utf8)
        let conflict = #expect(throws: CommandFailure.self) { try source.read(text).requireOneValueForEachKey(in: "the source") }
        #expect(conflict?.status == .usage && conflict?.problem.contains("ONE") == true)
        if source != .docker, source != .json {
            var content = try source.read(text)
            content.omitRepeatedKeys()
            #expect(content.secrets.map(\.key) == [source.key("TWO")] && !content.isComplete)
            try content.requireOneValueForEachKey(in: "the source")
        }
        // Of two members with one name in JSON, programs take the first or the last.
        guard source != .docker, source != .json else { return }
        #expect(try source.read(Array(source.text([("ONE", "swordfish"), ("ONE", "swordfish")]).utf8)).secrets.count == 1)
    }

    @Test("No damage to a source crashes the import, and no error shows a secret", arguments: TextSource.allCases)
    func damagedSources(_ source: TextSource) throws {
        let valid = Array(source.text([("ONE", "swordfish"), ("TWO", "druidia")]).utf8)
        var damaged = valid.indices.map { Array(valid[..<$0]) }
        for index in valid.indices {
            for byte in [0, 0x0A, 0x0D, 0x20, 0x22, 0x23, 0x27, 0x2C, 0x5C, 0x7B, 0x80, 0xFF] as [UInt8] {
                var bytes = valid
                bytes[index] = byte
                damaged.append(bytes)
            }
        }
        let step = Scale.pick(7, full: 1)
        for index in stride(from: 0, to: damaged.count, by: step) {
            do {
                _ = try source.read(damaged[index])
            } catch let failure as CommandFailure {
                let shown = failure.problem + failure.advice
                // What remains of a secret may be shorter than the secret.
                for part in ["rdfi", "fish", "drui", "idia"] { #expect(!shown.contains(part), "\(shown)") }
            }
        }
    }

    @Test("Arbitrary bytes do not crash the import", arguments: TextSource.allCases)
    func arbitraryBytes(_ source: TextSource) throws {
        var generator = SystemRandomNumberGenerator()
        let fragments = [
            "=", "\"", "'", "\n", "\r\n", ",", "#", " ", "\\", "${", "machine", "password", "macdef", "{", "}", "[", ":", "\"auths\":",
            "name,url,username,password\n", "A", "\u{FEFF}", "\0",
        ]
        for _ in 0..<Scale.pick(300, full: 20_000) {
            var text: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<30, using: &generator) { text += fragments.randomElement(using: &generator)!.utf8 }
            if Bool.random(using: &generator) { text.append(UInt8.random(in: .min ... .max, using: &generator)) }
            do {
                _ = try source.read(text)
            } catch is CommandFailure {}
        }
    }

    @Test("A name that a JSON object has twice is found")
    func repeatedNames() {
        func repeated(_ text: String) -> String? { JSONNames.firstRepeated(in: Array(text.utf8)) }
        #expect(repeated(#"{"a":1,"b":{"a":1,"c":["a","a",{"a":2}]},"c":"b"}"#) == nil)
        #expect(repeated(#"[[], {}, "a", {"a": "a\\\"a"}, {"a": 1}]"#) == nil)
        #expect(repeated(#"{"a":{"x":1,"x":2}}"#) == "x")
        #expect(repeated(#"{"a":[{}],"b":{},"\u0061":2}"#) == "a")
        #expect(repeated("{\"\u{E9}\":1,\"e\u{301}\":2}") != nil, "decoders of Swift take the two for one")
    }

    @Test("A source with many entries is read", arguments: TextSource.allCases)
    func manyEntries(_ source: TextSource) throws {
        // Up to 100,000, for which the sources take half a minute without optimization.
        let count = Scale.pick(5_000, full: 100_000)
        let content = try source.read(Array(source.text((0..<count).map { ("KEY\($0)", "value\($0)") }).utf8))
        #expect(Set(content.secrets.map(\.key)) == Set((0..<count).map { source.key("KEY\($0)") }))
    }

    @Test("A program that does not end is stopped at the deadline, and too much output is refused")
    func stuckProgram() throws {
        func start(_ script: String) throws -> PipedProcess {
            try PipedProcess(path: "/bin/sh", arguments: ["-c", script], environment: [:], leadsSession: false)
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
