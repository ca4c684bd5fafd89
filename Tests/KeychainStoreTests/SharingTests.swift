// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@Suite("Concurrent use of a store", .blocking, .timeLimit(.minutes(10)))
struct SharingTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test("Concurrent reads and writes lose no row")
    func threads() async throws {
        let stores = [try directory.makeStore(), try SQLiteItemStore(openingAt: directory.storePath)]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                let store = stores[thread % 2]
                group.addTask {
                    for number in 0..<25 {
                        let row = SampleRows.row(service: UInt64(thread), account: UInt64(number))
                        try store.insert([row])
                        let found = try store.rows(
                            RowQuery(serviceDigest: row.header.serviceDigest, accountDigest: row.header.accountDigest))
                        #expect(found.map(\.header) == [row.header])
                        let ofThread = try store.rows(RowQuery(serviceDigest: row.header.serviceDigest))
                        #expect(ofThread.count == number + 1)
                    }
                }
            }
            try await group.waitForAll()
        }
        for store in stores { #expect(try store.rows().count == 200) }
        #expect(try stores[0].integrityProblems() == [])
    }

    @Test("A write fails at the deadline while another process holds the write lock, and reads continue")
    func lockedElsewhere() throws {
        let store = try directory.makeStore(options: StoreOptions(busyTimeoutMilliseconds: 150))
        try store.insert([SampleRows.row(account: 1)])
        let other = try RawDatabase(directory.storePath)
        try other.execute("BEGIN IMMEDIATE")
        let failure = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.cause == .timedOut(milliseconds: 150))
        #expect(try store.rows().count == 1)
        try other.execute("COMMIT")
        try store.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
    }

    private final class Order: Sendable {
        let entries = Mutex<[String]>([])
    }

    @Test("A process that waits writes before the next write of the one that it waits for")
    func turns() async throws {
        // On a loaded machine it may take seconds until the other one takes its turn.
        var options = StoreOptions(busyTimeoutMilliseconds: 120_000)
        options.yieldNanosecondLimit = 120_000_000_000
        let first = try directory.makeStore(options: options)
        let second = try SQLiteItemStore(openingAt: directory.storePath, options: options)
        // The first write of a connection does more, and takes its own turn.
        try first.insert([SampleRows.row(account: 100)])
        try second.insert([SampleRows.row(account: 101)])
        let file = try OpenFile(directory.path, .read)
        let mark = file.descriptor
        let order = Order()
        @Sendable func write(_ store: SQLiteItemStore, _ name: String, _ waits: Bool) {
            _ = try? store.write(ifKeybagGeneration: 7) { _ in
                order.entries.withLock { $0.append(name) }
                while waits, !mark.isMarkedByOthers { MonotonicClock.sleep(nanoseconds: 100_000) }
            }
        }
        for round in 0..<3 {
            let bodies: [@Sendable () -> Void] = [
                {
                    write(first, "first", true)
                    write(first, "first again", false)
                },
                {
                    while order.entries.withLock({ $0.count }) == 3 * round { MonotonicClock.sleep(nanoseconds: 100_000) }
                    write(second, "second", false)
                },
            ]
            _ = await onThreads(bodies)
        }
        #expect(order.entries.withLock { $0 } == Array(repeating: ["first", "second", "first again"], count: 3).flatMap(\.self))
        #expect(!mark.isMarkedByOthers)
        withExtendedLifetime(file) {}
    }

    @Test("A process that does not take its turn, because it was stopped, does not prevent writes")
    func turnNotTaken() throws {
        let store = try directory.makeStore()
        let stopped = try OpenFile(directory.path, .read)
        try stopped.descriptor.setMark(true)
        for account in 1...5 { try store.insert([SampleRows.row(account: UInt64(account))]) }
        #expect(try store.rows().count == 5)
    }

    @Test("A write waits for a write of another process that ends before the deadline")
    func waits() async throws {
        let disk = FaultyDisk(under: directory.path)
        // A long deadline: on a loaded machine it may take seconds until the other writer ends.
        let store = try directory.makeStore(options: StoreOptions(busyTimeoutMilliseconds: 120_000, vfsName: FaultyDisk.vfsName))
        let other = try RawDatabase(directory.storePath)
        try other.execute("BEGIN IMMEDIATE")
        let writing = Task.detached { try store.insert([SampleRows.row(account: 1)]) }
        #expect(waitUntil { disk.refusedWriteLockCount > 0 })
        try other.execute("COMMIT")
        try await writing.value
        #expect(try store.rows().count == 1)
    }

    @Test("A write inside a write of the same store fails at the deadline")
    func writeInsideWrite() throws {
        let store = try directory.makeStore(options: StoreOptions(busyTimeoutMilliseconds: 50))
        var inner: KeychainFailure?
        _ = try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation) { writing throws(KeychainFailure) in
            inner = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 1)]) }
            try writing.insert(SampleRows.row(account: 2))
        }
        #expect(inner?.status == .notAvailable)
        #expect(try store.rows().count == 1)
    }

    @Test("The next write sees that another process has replaced the keybag")
    func keybagChange() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        try RawDatabase(directory.storePath).execute("UPDATE meta SET keybag_generation = 8")
        let outcome = try store.write(ifKeybagGeneration: 7) { _ in }
        guard case .keybagChanged = outcome else {
            Issue.record("the write was accepted")
            return
        }
        #expect(try store.keybag().generation == 8)
    }

    @Test("A store that is not used keeps one connection to read with, and one to write with")
    func unusedConnections() throws {
        let store = try directory.makeStore()
        func connectionCount() throws -> Int {
            let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            return descriptors.count { descriptor in
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + descriptor)) == directory.storePath
            }
        }
        func readOnThreeConnections() throws(KeychainFailure) {
            try store.read { _ throws(KeychainFailure) in
                try store.read { _ throws(KeychainFailure) in try store.read { _ in } }
            }
        }
        try store.insert([SampleRows.row(account: 1)])
        let leastCount = try connectionCount()
        try readOnThreeConnections()
        #expect(try connectionCount() > leastCount)
        #expect(!store.releaseMemoryIfUnused())
        #expect(store.releaseMemoryIfUnused())
        #expect(try connectionCount() == leastCount)
        #expect(!store.releaseMemoryIfUnused())
        // In use again.
        try readOnThreeConnections()
        try store.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
        #expect(!store.releaseMemoryIfUnused())
        #expect(store.releaseMemoryIfUnused())
        #expect(try connectionCount() == leastCount)
    }

    @Test("A closed store refuses calls and can be reopened")
    func closed() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        store.close()
        let failures = [
            failure { () throws(KeychainFailure) in _ = try store.rows() },
            failure { () throws(KeychainFailure) in try store.insert([]) },
        ]
        for failure in failures {
            #expect(failure?.status == .notAvailable)
            #expect(failure?.requiresReopening == true, "the caller must reopen the store")
        }
        #expect(try directory.names == ["keychain.db"])
        #expect(try SQLiteItemStore(openingAt: directory.storePath).rows().count == 1)
    }

    @Test("Opening the store a second time does not drop the locks of the first connection")
    func locksSurvive() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let inode = try #require(FileManager.default.attributesOfItem(atPath: directory.storePath)[.systemFileNumber] as? Int)
        // Each line without its number.
        func locks() throws -> Set<Substring> {
            // Read until the end: one read of a file in /proc may return only a part.
            let list = try FileHandle(forReadingFrom: URL(filePath: "/proc/locks")).readToEnd() ?? Data()
            let lines = String(decoding: list, as: UTF8.self).split(separator: "\n").filter { $0.contains(":\(inode) ") }
            return Set(lines.map { $0.drop { $0 != ":" } })
        }
        let before = try locks()
        #expect(!before.isEmpty)
        _ = try SQLiteItemStore(openingAt: directory.storePath).rows()
        _ = try SQLiteItemStore.inspect(directory.storePath)
        _ = try directory.create()
        // Between two reads of the list it moves if other tests lock files, so a line can be missing once. A dropped lock stays missing.
        #expect(try waitUntil { try locks().isSuperset(of: before) })
    }

    /// For example a program that copies its own home directory: the kernel drops the locks of a process when it closes any descriptor.
    @Test("A program that reads the files of its own store keeps the locks")
    func copied() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let database = try OpenFile(directory.storePath, .readWrite)
        let sharedMemory = try OpenFile(directory.storePath + "-shm", .readWrite)
        let contents = try directory.contents
        #expect(contents.count == 3)
        #expect(try !database.descriptor.tryLock(.everything), "another process may remove the -wal file")
        try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            _ = try? directory.contents
            #expect((try? sharedMemory.descriptor.tryLock(.writing)) == false, "another process may write meanwhile")
        }.mustBeWritten()
        store.close()
        #expect(try database.descriptor.tryLock(.everything))
    }

    @Test("A write to a removed file is refused, and no file is created in its place")
    func removed() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        for name in try directory.names { try FileManager.default.removeItem(atPath: directory.path + "/" + name) }
        for _ in 1...2 {
            let failure = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
            #expect(failure?.status == .notAvailable)
        }
        #expect(failure { () throws(KeychainFailure) in _ = try store.rows() }?.status == .notAvailable)
        #expect(try directory.names == [])
    }

    @Test("Reads and writes notice a replaced store")
    func replaced() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let other = try TemporaryDirectory()
        try other.create()
        for name in try directory.names { try FileManager.default.removeItem(atPath: directory.path + "/" + name) }
        try FileManager.default.moveItem(atPath: other.storePath, toPath: directory.storePath)
        var reading: KeychainFailure?
        waitUntil {
            reading = failure { () throws(KeychainFailure) in _ = try store.rows() }
            return reading != nil
        }
        #expect(reading?.status == .notAvailable)
        #expect(reading?.requiresReopening == true)
        let writing = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
        #expect(writing?.requiresReopening == true)
        #expect(try SQLiteItemStore(openingAt: directory.storePath).rows().isEmpty)
    }

    @Test("The same store restored from a copy is reopened")
    func restored() async throws {
        do { try directory.makeStore().insert([SampleRows.row(account: 1)]) }
        let copy = directory.path + "/copy"
        try FileManager.default.copyItem(atPath: directory.storePath, toPath: copy)
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.insert([SampleRows.row(account: 2)])
        for name in try directory.names where name != "copy" { try FileManager.default.removeItem(atPath: directory.path + "/" + name) }
        try FileManager.default.moveItem(atPath: copy, toPath: directory.storePath)
        #expect(failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 3)]) }?.status == .notAvailable)
        #expect(try store.rows().count == 1)
        try store.insert([SampleRows.row(account: 3)])
        #expect(try store.rows().count == 2)
    }
}
