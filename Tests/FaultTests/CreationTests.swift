// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing
import Valet

@Suite("Concurrent creation of one keychain", .blocking)
struct CreationRaceTests {
    private let processCount = 8

    // On a disk the flushes spread the processes out; in memory they stay close together.
    @Test(
        "Eight processes create one keychain with one key file, and it contains every value",
        arguments: [(Scale.pick(2, full: 50), false), (Scale.pick(8, full: 450), true)])
    func oneStore(roundCount: Int, inMemory: Bool) throws {
        try withTemporaryDirectory(inMemory: inMemory) { directory in
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let children = try (0..<processCount).map { try ChildProcess(program, ["sets-on-request", "key \($0)"]) }
            for child in children { #expect(try child.readLine() == "ready") }
            for round in 0..<roundCount {
                let home = "\(directory)/\(round)"
                for child in children { child.send(home) }
                let answers = try children.map { try $0.readLine() }
                try #require(answers == Array(repeating: "done", count: processCount), "round \(round)")
                try expectOneKeychain(home, "round \(round)")
                try FileManager.default.removeItem(atPath: home)
            }
            for child in children {
                child.closeInput()
                #expect(try child.waitUntilEnded() == .exited(0))
            }
        }
    }

    private func expectOneKeychain(_ home: String, _ comment: Comment) throws {
        let identifier = try #require(Identifier(nonEmpty: "child"))
        let keychain = LocalKeychain(home: home)
        try CurrentKeychain.with(keychain) { () throws in
            let valet = Valet.valet(with: identifier, accessibility: .whenUnlocked)
            #expect(try valet.allKeys() == Set((0..<processCount).map { "key \($0)" }), comment)
            for number in 0..<processCount { #expect(try valet.string(forKey: "key \(number)") == "value of key \(number)", comment) }
        }
        let store = try #require(try keychain.report().store)
        // The children may still be closing, so the log's files may exist or not.
        let names = try FileManager.default.subpathsOfDirectory(atPath: home).filter { !$0.hasPrefix("keychain.db-") }.sorted()
        let anchor = KeychainConfiguration(home: home).anchorPaths(for: store.id)[0].dropFirst(home.count + 1)
        #expect(names == ["keychain.db", "keys", String(anchor), "keys/\(store.id.hexadecimal).key"], comment)
    }
}

@Suite("Interrupted creation leaves no keychain, or a complete one", .blocking)
struct InterruptedCreationTests {
    @Test("A key file under its temporary name without a store: a new keychain is created beside it")
    func onlyProvisionalKeyFile() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let keyFile = try BadStateTests.makeKeychain(home)
            try FileManager.default.moveItem(atPath: keyFile, toPath: keyFile + ".new")
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: home + "/keychain.db" + suffix) }
            for name in try FileManager.default.contentsOfDirectory(atPath: home + "/keys") where name.hasSuffix(".anchor") {
                try FileManager.default.removeItem(atPath: home + "/keys/" + name)
            }
            let provisional = try Data(contentsOf: URL(filePath: keyFile + ".new"))

            #expect(throws: KeychainFailure(.itemNotFound, "")) { try LocalKeychain(home: home).secret(of: "kept") }
            try LocalKeychain(home: home).addItem("new", "a new secret")
            #expect(try LocalKeychain(home: home).secret(of: "new") == "a new secret")
            #expect(try Data(contentsOf: URL(filePath: keyFile + ".new")) == provisional)
        }
    }

    @Test("A store whose key file has only its temporary name: the next call opens it and completes the rename")
    func storeWithProvisionalKeyFile() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let keyFile = try BadStateTests.makeKeychain(home)
            try FileManager.default.moveItem(atPath: keyFile, toPath: keyFile + ".new")
            #expect(try LocalKeychain(home: home).secret(of: "kept") == "a secret that was there")
            let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").filter { !$0.hasSuffix(".anchor") }
            #expect(names == [URL(filePath: keyFile).lastPathComponent])
        }
    }

    /// The system calls that create a keychain.
    static let systemCalls = [
        "openat", "mkdirat", "fchmod", "write", "pwrite64", "fsync", "fdatasync", "link", "unlink", "ftruncate",
    ]

    @Test(
        "Killed at any system call, creation leaves a state that the next process can use",
        .requiresStrace, arguments: systemCalls)
    func killedAnywhere(_ systemCall: String) throws {
        try interrupt(systemCall, by: "signal=KILL")
    }

    @Test(
        "If any system call fails, creation leaves a state that the next process can use",
        .requiresStrace, arguments: systemCalls,
        Scale.pick(["ENOSPC"], full: ["EIO", "ENOSPC"]))
    func refusedAnywhere(_ systemCall: String, error: String) throws {
        try interrupt(systemCall, by: "error=\(error)")
    }

    /// Creates a keychain with one failure, at each such call on a file of the keychain in turn.
    private func interrupt(_ systemCall: String, by injection: String) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let log = directory + "/log"
            let undisturbed = try attempt(systemCall, nil, ["add", "read"], home: directory + "/undisturbed/home", log: log)
            #expect(undisturbed == ["0 add", "0 read"])
            // Counted as strace counts, from one, among all such calls of the process.
            let positions = try calls(in: log).enumerated().filter { $0.element.contains(directory) }.map { $0.offset + 1 }
            try #require(!positions.isEmpty, "making a keychain does not call \(systemCall)")
            let ends = Set([positions[0], positions[positions.count / 2], positions[positions.count - 1]])
            for position in Scale.pick(ends.sorted(), full: positions) {
                let home = "\(directory)/\(position)/home"
                let answers = try attempt(systemCall, "\(injection):when=\(position)", ["add", "read"], home: home, log: log)
                let call = try calls(in: log).last { $0.contains("INJECTED") || $0.contains("killed by SIGKILL") }
                let comment: Comment = "\(call ?? "nothing was injected"), which gave: \(answers)"
                #expect(call != nil, comment)

                let next = try attempt(systemCall, nil, ["read", "add", "read"], home: home, log: log)
                #expect(next.dropFirst().elementsEqual(["0 add", "0 read"]), "then: \(next); \(comment)")
                // Acknowledged writes are present; others may be present.
                if answers.first == "0 add" { #expect(next.first == "0 read", comment) }
            }
        }
    }

    private func attempt(
        _ systemCall: String, _ injection: String?, _ operations: [String], home: String, log: String
    ) throws -> [Substring] {
        let options = FlushTrace.straceOptions(injecting: injection.map { "\(systemCall):\($0)" })
        let parent = URL(filePath: home).deletingLastPathComponent().path
        try FileManager.default.createDirectory(
            atPath: parent, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let run = try ChildProcess.run(
            "strace",
            options + ["-s", "4096", "-o", log, "-e", "trace=\(systemCall)"]
                + [BuiltProgram.path(of: "KeychainTestChild"), "attempt"] + operations,
            environment: ["KEYCHAIN_HOME": home, "PATH": "/usr/bin:/bin"])
        return run.output.split(separator: "\n")
    }

    private func calls(in log: String) throws -> [Substring] {
        try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    }
}
