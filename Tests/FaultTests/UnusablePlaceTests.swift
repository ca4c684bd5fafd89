// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Directories without write or read permission", .blocking)
struct UnwritableTests {
    /// The user of the attempts: root ignores permissions, so root acts as another user.
    private struct Person {
        let number: UInt32?

        init() { number = geteuid() == 0 ? 65_534 : nil }

        func attempt(_ operations: [String], home: String) throws -> [Substring] {
            let asUser = number.map { ["--as-user", String($0)] } ?? []
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["attempt"] + asUser + operations, environment: ["KEYCHAIN_HOME": home])
            #expect(run.ending == .exited(0), "\(run.output)")
            return run.output.split(separator: "\n")
        }

        func makeDirectory(_ path: String) throws {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            guard let number else { return }
            try FileManager.default.setAttributes([.ownerAccountID: number, .groupOwnerAccountID: number], ofItemAtPath: path)
        }
    }

    private func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    /// Runs `body` with a directory that the user may only pass through, and `home` below it, which the user owns.
    private func withHome(_ body: (Person, _ directory: String, _ home: String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            try setMode(0o711, directory)
            let person = Person()
            let home = directory + "/home"
            try person.makeDirectory(home)
            try body(person, directory, home)
        }
    }

    @Test("In a read-only directory items can be read, and storing fails with readOnly")
    func readOnlyDirectory() throws {
        try withHome { person, _, home in
            #expect(try person.attempt(["add", "read"], home: home) == ["0 add", "0 read"])
            try setMode(0o500, home)
            let before = try FileSnapshot(of: home)
            let answers = try person.attempt(["read", "add", "read"], home: home)
            try #require(answers.count == 3)
            #expect(answers[0] == "0 read" && answers[2] == "0 read")
            #expect(answers[1].hasPrefix("-25292 ") && answers[1].contains("path=\(home)"), "\(answers[1])")
            #expect(try FileSnapshot(of: home) == before)
        }
    }

    @Test("If no keychain can be created, adding fails with the path, and reading finds nothing")
    func noPlaceForAKeychain() throws {
        try withHome { person, _, home in
            try setMode(0o500, home)
            let answers = try person.attempt(["read", "add"], home: home + "/below")
            try #require(answers.count == 2)
            #expect(answers[0].hasPrefix("-25300 "))
            #expect(answers[1].hasPrefix("-25292 ") && answers[1].contains("path=\(home)"), "\(answers[1])")
            #expect(try FileSnapshot(of: home).names.isEmpty)
        }
    }

    @Test("If the directory of key files is read-only, no store is created without its key")
    func unwritableKeyDirectory() throws {
        try withHome { person, _, home in
            try person.makeDirectory(home + "/keys")
            try setMode(0o500, home + "/keys")
            let answers = try person.attempt(["add", "read"], home: home)
            try #require(answers.count == 2)
            #expect(answers[0].hasPrefix("-2529") && answers[0].contains("path=\(home)/keys"), "\(answers[0])")
            #expect(answers[1].hasPrefix("-25300 "))
            #expect(try FileSnapshot(of: home).names == ["keys"])
        }
    }

    @Test("A directory of key files that cannot be read does not count as empty")
    func unreadableKeyDirectory() throws {
        try withHome { person, _, home in
            #expect(try person.attempt(["add"], home: home) == ["0 add"])
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: home + "/keychain.db" + suffix) }
            try setMode(0o300, home + "/keys")
            for answer in try person.attempt(["add", "read"], home: home) {
                #expect(answer.hasPrefix("-25291 ") && answer.contains("path=\(home)/keys"), "\(answer)")
            }
        }
    }

    @Test("A home without search permission does not count as one without a keychain")
    func noEntry() throws {
        try withHome { person, directory, home in
            #expect(try person.attempt(["add"], home: home) == ["0 add"])
            try setMode(0o000, home)
            for answer in try person.attempt(["read", "add"], home: home) {
                #expect(answer.hasPrefix("-25291 ") && answer.contains("path=\(home)"), "\(answer)")
            }
        }
    }
}

@Suite("Invalid environment variables", .blocking)
struct EnvironmentTests {
    private func attempt(_ environment: [String: String]) throws -> [Substring] {
        let run = try ChildProcess.run(BuiltProgram.path(of: "KeychainTestChild"), ["attempt", "add", "read"], environment: environment)
        #expect(run.ending == .exited(0))
        return run.output.split(separator: "\n")
    }

    @Test("Without a home directory, every call fails with the cause KEYCHAIN_HOME", arguments: [[:], ["HOME": ""], ["HOME": "relative"]])
    func noHome(_ environment: [String: String]) throws {
        for line in try attempt(environment) {
            #expect(line.hasPrefix("-25291 ") && line.contains("cause=environmentVariable(\"KEYCHAIN_HOME\")"))
        }
    }

    @Test("A relative KEYCHAIN_HOME is rejected even if HOME is set")
    func relativeHome() throws {
        try withTemporaryDirectory { directory in
            for line in try attempt(["KEYCHAIN_HOME": "keychain", "HOME": directory]) {
                #expect(line.hasPrefix("-50 ") && line.contains("cause=environmentVariable(\"KEYCHAIN_HOME\")"))
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("An unknown KEYCHAIN_PROTECTOR is rejected")
    func unknownProtector() throws {
        try withTemporaryDirectory { directory in
            for line in try attempt(["KEYCHAIN_HOME": directory + "/home", "KEYCHAIN_PROTECTOR": "magic"]) {
                #expect(line.hasPrefix("-50 ") && line.contains("keyFile") && line.contains("systemdCredential"))
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("A home that is a file is rejected and not changed")
    func homeIsAFile() throws {
        try withTemporaryDirectory { directory in
            try Data("a file".utf8).write(to: URL(filePath: directory + "/home"))
            let before = try FileSnapshot(of: directory)
            let answers = try attempt(["KEYCHAIN_HOME": directory + "/home"])
            #expect(answers.count == 2)
            for line in answers { #expect(line.hasPrefix("-25291 ") && line.contains(directory + "/home")) }
            #expect(try FileSnapshot(of: directory) == before)
        }
    }
}

@Suite("File descriptors", .blocking)
struct DescriptorTests {
    @Test("Opening, successfully or not, leaks no descriptor")
    func noDescriptorLeak() throws {
        try withTemporaryDirectory { directory in
            let states = UnusableState.all.enumerated().map { (directory + "/bad-\($0.offset)", $0.element) }
                .filter { !$0.1.testDescription.contains("network") }
            for (home, state) in states {
                let keyFile = try BadStateTests.makeKeychain(home)
                try state.prepare(home, keyFile)
            }
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["count-descriptors", directory + "/good"] + states.map(\.0))
            #expect(run.ending == .exited(0), "\(run.output)")
            let lines = run.output.split(separator: "\n").suffix(2)
            let counts = lines.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            #expect(counts.count == 2 && counts.first == counts.last, "\(lines)")
        }
    }
}
