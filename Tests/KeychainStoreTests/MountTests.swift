// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainStore
import KeychainTesting
import Testing

@Suite("Full and read-only file systems", .enabled(if: TemporaryMount.isPossible, "mounting takes root"))
struct MountTests {
    @Test("A store on a disk that fills up refuses writes, keeps what it has, and goes on when there is room")
    func full() throws {
        let mount = try TemporaryMount(byteCount: 1 << 20)
        let store = try mount.directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let ballast = mount.directory.path + "/ballast"
        try Data().write(to: URL(fileURLWithPath: ballast))
        let handle = try #require(FileHandle(forWritingAtPath: ballast))
        while (try? handle.write(contentsOf: Data(count: 4_096))) != nil {}
        try handle.close()

        // What is free in the -wal file's last page may still take a row or two.
        var failed: KeychainFailure?
        var storedCount = 1
        for account in 2..<100 {
            failed = failure { () throws(KeychainFailure) in
                try store.insert([SampleRows.row(account: UInt64(account), secretByteCount: 8_000)])
            }
            if failed != nil { break }
            storedCount += 1
        }
        #expect(failed?.status == .notAvailable)
        #expect(failed?.reason.contains("disk is full") == true)
        #expect(try store.rows().count == storedCount)
        try FileManager.default.removeItem(atPath: ballast)
        try store.insert([SampleRows.row(account: 1_000, secretByteCount: 8_000)])
        #expect(try store.rows().count == storedCount + 1)
        #expect(try store.integrityProblems() == [])
    }

    @Test("No store is made on a full disk, and nothing is left of the attempt")
    func creationOnFullDisk() throws {
        let mount = try TemporaryMount(byteCount: 16 << 10)
        let failure = failure { () throws(KeychainFailure) in
            _ = try SQLiteItemStore.create(at: mount.directory.storePath, storeID: .random(), keybag: [1], generation: 1)
        }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.reason.contains("disk is full") == true)
        #expect(try mount.directory.names == [])
    }

    @Test("A store on a read-only file system can be read and not written")
    func readOnly() throws {
        let mount = try TemporaryMount(byteCount: 1 << 20)
        do { try mount.directory.makeStore().insert([SampleRows.row(account: 1)]) }
        try mount.makeReadOnly()
        #expect(try SQLiteItemStore.inspect(mount.directory.storePath) == .present)
        let store = try SQLiteItemStore(openingAt: mount.directory.storePath)
        #expect(try store.rows().count == 1)
        #expect(try store.keybag().generation == 7)
        let write = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
        #expect(write?.status == .readOnly)
        #expect(write?.reason.contains(mount.directory.path) == true)
        #expect(try store.rows().count == 1)
    }

    @Test("A read-only place that becomes writable is noticed")
    func becomesWritable() throws {
        let mount = try TemporaryMount(byteCount: 1 << 20)
        do { try mount.directory.makeStore().insert([SampleRows.row(account: 1)]) }
        try mount.makeReadOnly()
        let store = try SQLiteItemStore(openingAt: mount.directory.storePath)
        #expect(try store.rows().count == 1)
        try mount.makeWritable()
        let other = try SQLiteItemStore(openingAt: mount.directory.storePath)
        try other.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
        try store.insert([SampleRows.row(account: 3)])
        #expect(try other.rows().count == 3)
    }

    @Test("No store is made on a read-only file system")
    func creationReadOnly() throws {
        let mount = try TemporaryMount(byteCount: 64 << 10)
        try mount.makeReadOnly()
        for path in [mount.directory.storePath, mount.directory.path + "/deeper/keychain.db"] {
            let failure = failure { () throws(KeychainFailure) in
                _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 1)
            }
            #expect(failure?.status == .readOnly)
            #expect(failure?.reason.contains(mount.directory.path) == true)
        }
    }
}
