// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Files of a keychain that are removed or replaced while a process uses it", .blocking, .timeLimit(.minutes(5)))
struct ReplacedFileTests {
    /// A process that keeps the keychain open.
    private struct Server {
        let process: ChildProcess

        init(home: String) throws {
            process = try ChildProcess(try BuiltProgram.path(of: "KeychainTestChild"), ["serve", home])
            try #require(try process.readLine() == "ready")
        }

        func ask(_ request: String) throws -> String? {
            process.send(request)
            // The log has the reason of a failure, on the same stream.
            while let line = try process.readLine() {
                if ["done", "failed", "value"].contains(where: line.hasPrefix) { return line }
            }
            return nil
        }

        func kill() throws {
            process.send(signal: SIGKILL)
            _ = try process.waitUntilEnded()
        }
    }

    @Test(
        "A write that is acknowledged after a file was removed survives the process", arguments: ["-wal", "-shm"])
    func removed(suffix: String) throws {
        try withTemporaryDirectory { home in
            let server = try Server(home: home)
            #expect(try server.ask("set first one") == "done")
            try FileManager.default.removeItem(atPath: home + "/keychain.db" + suffix)
            #expect(try server.ask("set second two") == "done")
            try server.kill()
            let after = try Server(home: home)
            #expect(try after.ask("get second") == "value two")
            #expect(try after.ask("get first") == "value one")
        }
    }

    @Test("If changes are lost with both files, the running process notices, and stores nothing until a person accepts that")
    func changesLost() throws {
        try withTemporaryDirectory { home in
            let server = try Server(home: home)
            #expect(try server.ask("set first one") == "done")
            for suffix in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: home + "/keychain.db" + suffix) }
            #expect(try server.ask("set second two") != "done")
            let keychain = LocalKeychain(home: home)
            #expect(try keychain.acceptContent(applying: true) != nil)
            #expect(try server.ask("set second two") == "done")
            try server.kill()
            let after = try Server(home: home)
            #expect(try after.ask("get second") == "value two")
        }
    }

    @Test("After a removal two processes see each other's writes")
    func twoProcesses() throws {
        try withTemporaryDirectory { home in
            let servers = [try Server(home: home), try Server(home: home)]
            for server in servers { #expect(try server.ask("set shared before") == "done") }
            try FileManager.default.removeItem(atPath: home + "/keychain.db-shm")
            #expect(try servers[0].ask("set shared after") == "done")
            #expect(try waitUntil { try servers[1].ask("get shared") == "value after" })
            #expect(try servers[1].ask("set shared later") == "done")
            #expect(try waitUntil { try servers[0].ask("get shared") == "value later" })
        }
    }

    @Test("A snapshot is restored beside a running process, which continues with its content and loses no acknowledged write")
    func restored() throws {
        try withTemporaryDirectory { home in
            let server = try Server(home: home)
            #expect(try server.ask("set key old") == "done")
            let keychain = LocalKeychain(home: home)
            let snapshot = home + "/snapshot"
            try keychain.snapshot(toPath: snapshot, replacing: false)
            #expect(try server.ask("set key new") == "done")
            #expect(try keychain.restoreSnapshot(fromPath: snapshot, applying: true).isRestored)
            #expect(try waitUntil { try server.ask("get key") == "value old" })
            #expect(try server.ask("set other three") == "done")
            try server.kill()
            let after = try Server(home: home)
            #expect(try after.ask("get key") == "value old")
            #expect(try after.ask("get other") == "value three")
        }
    }

    @Test("A write after a restoration that the process has not noticed yet is made in the restored keychain")
    func writtenAfterRestoration() throws {
        try withTemporaryDirectory { home in
            let server = try Server(home: home)
            #expect(try server.ask("set key old") == "done")
            let keychain = LocalKeychain(home: home)
            try keychain.snapshot(toPath: home + "/snapshot", replacing: false)
            #expect(try server.ask("set key new") == "done")
            _ = try keychain.restoreSnapshot(fromPath: home + "/snapshot", applying: true)
            #expect(try server.ask("set other three") == "done")
            try server.kill()
            let after = try Server(home: home)
            #expect(try after.ask("get key") == "value old")
            #expect(try after.ask("get other") == "value three")
        }
    }
}
