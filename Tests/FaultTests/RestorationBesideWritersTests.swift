// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Synchronization
import Testing

/// A process can be stopped, or wait for a slow disk, when its transaction is in the -wal file and not yet acknowledged.
@Suite(
    "A snapshot that is put back while another process is in the middle of a write", .blocking, .requiresStrace, .timeLimit(.minutes(10)))
struct RestorationBesideWritersTests {
    /// If the restoration is killed after the -wal file has lost its name, the file is all that is left.
    @Test("The file that is kept has the other process's change itself, without its -wal file")
    func addition() throws {
        try withTemporaryDirectory { home in
            let writer = try StoppedWriter(home: home)
            let (report, status) = try writer.restore(during: "add second ak")
            #expect(status == .success)
            let original = try #require(try report.get().originalPath)
            let copy = home + "/copy.db"
            try FileManager.default.copyItem(atPath: original, toPath: copy)
            #expect(try RawDatabase(copy).integer("SELECT count(*) FROM items") == 2)
            #expect(try LocalKeychain(home: home).secret(of: "first") == "secret")
        }
    }

    /// The keychain would be without the passcode that was reported as set.
    @Test("A passcode that is being set meanwhile is not lost: the restoration ends with an error")
    func passcode() throws {
        try withTemporaryDirectory { home in
            let writer = try StoppedWriter(home: home)
            let (report, status) = try writer.restore(during: "set swordfish")
            #expect(status == .success)
            let failure = #expect(throws: KeychainFailure.self) { try report.get() }
            #expect(failure?.cause == .unexpectedState(.keybagReplaced))
            #expect(throws: Never.self) { try LocalKeychain(home: home).unlock(with: "swordfish") }
        }
    }
}

/// A process that is stopped after its first commit is in the -wal file, and before it is acknowledged.
private struct StoppedWriter {
    private let home: String
    private let process: SessionProcess
    private let log: String

    /// Makes a keychain with one item, and a snapshot of it.
    init(home: String) throws {
        self.home = home
        log = home + "/log"
        let keychain = LocalKeychain(home: home)
        try keychain.addItem("first", "secret")
        try keychain.snapshot(toPath: home + "/snapshot", replacing: false)
        process = try SessionProcess(
            home: home, holder: .processMemory,
            under: [
                "strace", "-f", "-o", log, "-P", home + "/keychain.db-wal", "-e", "trace=fdatasync", "-e",
                "inject=fdatasync:signal=STOP:when=2",
            ])
    }

    /// Puts the snapshot back while the process is stopped in this request, and lets the process continue when the restoration waits for it.
    func restore(during request: String) throws -> (report: Result<SnapshotReport, KeychainFailure>, status: KeychainStatus) {
        process.send(request)
        let stopped = try #require(try stoppedProcess())
        let report = Mutex<Result<SnapshotReport, KeychainFailure>?>(nil)
        let home = home
        Thread.detachNewThread {
            let result = Result { () throws(KeychainFailure) in
                try LocalKeychain(home: home).restoreSnapshot(fromPath: home + "/snapshot", applying: true)
            }
            report.withLock { $0 = result }
        }
        // The turn, the connection that was opened before writers are excluded, and the lock that excludes them.
        waitUntil { report.withLock { $0 != nil } || Self.descriptorCount(of: home + "/keychain.db") >= 3 }
        kill(stopped, SIGCONT)
        let status = KeychainStatus(rawValue: try process.answer().status)
        waitUntil { report.withLock { $0 != nil } }
        return (try #require(report.withLock { $0 }), status)
    }

    private func stoppedProcess() throws -> pid_t? {
        var stopped: pid_t?
        waitUntil {
            let lines = ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n")
            stopped = lines.first { $0.contains("stopped by SIGSTOP") }?.split(separator: " ").first.flatMap { pid_t($0) }
            return stopped != nil
        }
        return stopped
    }

    private static func descriptorCount(of path: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
    }
}
