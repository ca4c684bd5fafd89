// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Files of a keychain that are removed or replaced while a process uses it", .blocking, .timeLimit(.minutes(10)))
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

    /// Accepting the earlier content would overwrite the later changes.
    @Test("If the -shm file hides the last changes, a process that knew them does not read earlier content, and none is accepted")
    func hidden() throws {
        try withTemporaryDirectory { home in
            let (server, other) = (try Server(home: home), try Server(home: home))
            #expect(try server.ask("set key old") == "done")
            #expect(try other.ask("get key") == "value old")
            let index = URL(filePath: home + "/keychain.db-shm")
            // Both copies of the header.
            let header = try Data(contentsOf: index).prefix(96)
            #expect(try server.ask("set key new") == "done")
            #expect(try server.ask("set added one") == "done")
            // Only the child processes have locks on the file, so it may be closed here.
            let file = try FileHandle(forUpdating: index)
            try file.write(contentsOf: header)
            try file.close()
            for _ in 1...3 {
                for key in ["key", "added"] {
                    let answer = try #require(try server.ask("get \(key)"))
                    #expect(answer.hasPrefix("failed") && !answer.contains("itemNotFound"), "\(answer)")
                }
            }
            #expect(try server.ask("set key newer") != "done")
            for isApplied in [false, true] {
                let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home).acceptContent(applying: isApplied) }
                #expect(failure?.remedy == .closeElsewhere)
            }
            for process in [server, other] { try process.kill() }
            let after = try Server(home: home)
            #expect(try after.ask("get key") == "value new")
            #expect(try after.ask("get added") == "value one")
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

    @Test(
        "A process that writes the anchor only after a restoration does not make the keychain look rolled back", arguments: [false, true])
    func lateAnchor(removesAnchor: Bool) throws {
        try withTemporaryDirectory { home in
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("first", "secret")
            try keychain.snapshot(toPath: home + "/snapshot", replacing: false)
            for account in ["second", "third"] { try keychain.addItem(account, "secret") }
            let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").filter { $0.hasSuffix(".anchor") }
            let anchor = try home + "/keys/" + #require(names.first)
            let record = try Data(contentsOf: URL(filePath: anchor))
            if removesAnchor { try FileManager.default.removeItem(atPath: anchor) }
            #expect(try keychain.restoreSnapshot(fromPath: home + "/snapshot", applying: true).isRestored)
            for account in ["fourth", "fifth"] {
                // A process that was stopped between the commit of the third item and the write of the anchor continues.
                try Self.writeRecord(record, toAnchor: anchor)
                #expect(try LocalKeychain(home: home).secret(of: "first") == "secret")
                try LocalKeychain(home: home).addItem(account, "secret")
                try LocalKeychain(home: home).addItem(account + " again", "secret")
            }
            // The restored content is protected from then on.
            let original = try FileManager.default.contentsOfDirectory(atPath: home).first { $0.contains(".before-restore-") }
            try FileManager.default.removeItem(atPath: home + "/keychain.db")
            try FileManager.default.copyItem(atPath: home + "/" + #require(original), toPath: home + "/keychain.db")
            let failure = #expect(throws: KeychainFailure.self) { try LocalKeychain(home: home).secret(of: "first") }
            #expect(failure?.cause == .unexpectedState(.superseded))
        }
    }

    /// Writes a record of an anchor into this file, creating it if necessary, as a process does that has the file open.
    private static func writeRecord(_ record: Data, toAnchor path: String) throws {
        if !FileManager.default.fileExists(atPath: path) {
            try #require(FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]))
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let inode = try #require(attributes[.systemFileNumber] as? UInt64)
        var bytes = Array(record.prefix(21))
        bytes.append(littleEndian: inode)
        bytes += record[29..<135]
        var (first, second): (UInt64, UInt64) = (0x4B43_414E_4348_4F52, 0)
        for byte in bytes {
            first = first &* 31 &+ UInt64(byte)
            second = second &+ first
        }
        bytes.append(littleEndian: first)
        bytes.append(littleEndian: second)
        let handle = try FileHandle(forWritingTo: URL(filePath: path))
        try handle.write(contentsOf: bytes)
        try handle.close()
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
