// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

/// Files that are removed or replaced while a store has them open.
///
/// SQLite keeps the old files open, and everything that is written to them ends with the process.
@Suite("Files that are removed or replaced while the store is open", .blocking, .timeLimit(.minutes(10)))
struct LostFileTests {
    private let directory: TemporaryDirectory
    private let store: SQLiteItemStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.makeStore(options: StoreOptions(busyTimeoutMilliseconds: 500))
        try store.insert([SampleRows.row(account: 1)])
    }

    /// One way to lose files, and whether the changes in them survive.
    struct Loss: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let keepsEarlierChanges: Bool
        let apply: @Sendable (_ storePath: String) throws -> Void
    }

    private static let losses = [
        Loss(testDescription: "the -wal file is removed", keepsEarlierChanges: true) { path in
            try FileManager.default.removeItem(atPath: path + "-wal")
        },
        Loss(testDescription: "an empty file replaces the -wal file", keepsEarlierChanges: true) { path in
            try FileSystem.createPrivateFile(path + "-empty")
            try FileSystem.rename(path + "-empty", to: path + "-wal")
        },
        Loss(testDescription: "the -shm file is removed", keepsEarlierChanges: true) { path in
            try FileManager.default.removeItem(atPath: path + "-shm")
        },
        Loss(testDescription: "the -wal and -shm files are removed", keepsEarlierChanges: false) { path in
            for suffix in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + suffix) }
        },
        Loss(testDescription: "a copy replaces the database, and its other files are removed", keepsEarlierChanges: false) { path in
            try FileManager.default.copyItem(atPath: path, toPath: path + "-copy")
            for suffix in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + suffix) }
            try FileSystem.rename(path + "-copy", to: path)
        },
        Loss(testDescription: "a copy is written over the database, and its other files are removed", keepsEarlierChanges: false) { path in
            for suffix in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + suffix) }
            // By another process: closing the file here would drop this process's locks.
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", #"cp "$0" "$0-copy" && cat "$0-copy" >"$0" && rm "$0-copy""#, path]
            try process.run()
            process.waitUntilExit()
        },
    ]

    /// The accounts in the files as they are now, without the processes that have them open.
    private func accountsAfterKill() throws -> Set<IndexDigest> {
        let copies = try DirectoryCopy(of: directory)
        let copy = try SQLiteItemStore(openingAt: copies.directory.storePath)
        #expect(try copy.integrityProblems() == [])
        return Set(try copy.rows().map(\.header.accountDigest))
    }

    private func digest(_ account: UInt64) -> IndexDigest { SampleRows.row(account: account).header.accountDigest }

    /// Inserts as the engine does: a failure that requires reopening has changed nothing, and the call is repeated.
    private func insert(_ account: UInt64) throws {
        let failure = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: account)]) }
        guard let failure else { return }
        #expect(failure.requiresReopening)
        try store.insert([SampleRows.row(account: account)])
    }

    @Test("A write that is acknowledged afterwards survives the process", arguments: losses)
    func acknowledged(loss: Loss) throws {
        try loss.apply(directory.storePath)
        try insert(2)
        let accounts = try accountsAfterKill()
        #expect(accounts.contains(digest(2)))
        #expect(accounts.contains(digest(1)) == loss.keepsEarlierChanges)
        #expect(Set(try store.rows().map(\.header.accountDigest)) == accounts)
        try insert(3)
        #expect(try accountsAfterKill().contains(digest(3)))
    }

    @Test("A write during which files are lost is durable or reports that its outcome is unknown", arguments: losses)
    func duringWrite(loss: Loss) throws {
        let path = directory.storePath
        let failure = failure { () throws(KeychainFailure) in
            _ = try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation) { writing throws(KeychainFailure) in
                do { try loss.apply(path) } catch { throw KeychainFailure(.internal, "the loss failed: \(error)") }
                try writing.insert(SampleRows.row(account: 2))
            }
        }
        #expect(failure == nil || failure?.requiresReopening == true)
        #expect(try accountsAfterKill().contains(digest(2)) == (failure == nil))
    }

    @Test("Closing the store leaves files alone that another process has put in their place", arguments: losses)
    func closing(loss: Loss) throws {
        try loss.apply(directory.storePath)
        let other = try DirectoryCopy(of: directory)
        let before = try other.directory.contents
        store.close()
        let after = try directory.contents
        for name in ["keychain.db", "keychain.db-wal"] { #expect(after[name] == before[name], "\(name)") }
    }

    @Test("All stores of a process close a -shm file that was removed")
    func severalStores() throws {
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(try other.rows().count == 1)
        try FileManager.default.removeItem(atPath: directory.storePath + "-shm")
        try insert(2)
        #expect(try other.rows().count == 2)
    }

    @Test("A process that did not have the lost -wal file open refuses to write beside one that has")
    func withoutTheContent() throws {
        let log = directory.storePath + "-wal"
        // Another connection to the same index, without the content.
        try FileManager.default.moveItem(atPath: log, toPath: log + "-away")
        let other = try? SQLiteItemStore(openingAt: directory.storePath)
        let refusal = failure { () throws(KeychainFailure) in try other?.insert([SampleRows.row(account: 2)]) }
        #expect(other == nil || refusal != nil)
        try insert(3)
        #expect(try accountsAfterKill().isSuperset(of: [digest(1), digest(3)]))
    }
}
