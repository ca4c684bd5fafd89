// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Contracts
import Foundation
import KeychainCore
import KeychainTestSupport
import Synchronization
import Testing

@testable import KeychainStore

/// Writes of several threads that are queued, in order, while the first write runs.
struct ConcurrentWrites {
    struct Write: Sendable {
        var generation = ItemStoreContract.keybag.generation
        var sharesFlush = true
        let body: @Sendable (any ItemWriting) throws(KeychainFailure) -> Void

        static func inserting(_ row: SealedRow) -> Write {
            Write { writing throws(KeychainFailure) in try writing.insert(row) }
        }
    }

    enum Outcome: Equatable, Sendable {
        case written, keybagChanged
        case failed(KeychainFailure)
        case missing

        var failure: KeychainFailure? {
            if case .failed(let failure) = self { failure } else { nil }
        }
    }

    let store: SQLiteItemStore

    /// Runs the writes and returns their outcomes in order.
    func run(_ first: Write, _ others: [Write]) -> [Outcome] {
        let store = store
        let box = Box(count: others.count + 1)
        let ended = DispatchGroup()
        let isAtWork = DispatchSemaphore(value: 0)
        let leading = Write(generation: first.generation, sharesFlush: first.sharesFlush) { writing throws(KeychainFailure) in
            isAtWork.signal()
            waitUntil { store.writerQueue.waitingCount == others.count || box.isRepeated }
            box.noteRun()
            try first.body(writing)
        }
        start(leading, 0, ended, box)
        isAtWork.wait()
        for (index, write) in others.enumerated() {
            waitUntil { store.writerQueue.waitingCount == index }
            start(write, index + 1, ended, box)
        }
        #expect(ended.wait(timeout: .now() + 120) == .success, "a write hangs")
        return box.outcomes.withLock { $0 }
    }

    private final class Box: Sendable {
        let outcomes: Mutex<[Outcome]>
        private let hasRun = Mutex(false)

        init(count: Int) { outcomes = Mutex([Outcome](repeating: .missing, count: count)) }

        var isRepeated: Bool { hasRun.withLock { $0 } }
        func noteRun() { hasRun.withLock { $0 = true } }
    }

    private func start(_ write: Write, _ index: Int, _ ended: DispatchGroup, _ box: Box) {
        let store = store
        ended.enter()
        Thread.detachNewThread {
            let outcome: Outcome
            do throws(KeychainFailure) {
                switch try store.write(ifKeybagGeneration: write.generation, sharesFlush: write.sharesFlush, write.body) {
                case .written: outcome = .written
                case .keybagChanged: outcome = .keybagChanged
                }
            } catch {
                outcome = .failed(error)
            }
            box.outcomes.withLock { $0[index] = outcome }
            ended.leave()
        }
    }
}

@Suite("Group commit", .blocking, .timeLimit(.minutes(10)))
struct SharedFlushTests {
    private typealias Write = ConcurrentWrites.Write

    let directory: TemporaryDirectory
    let disk: FaultyDisk
    let store: SQLiteItemStore
    let atOnce: ConcurrentWrites

    init() throws {
        directory = try TemporaryDirectory()
        disk = FaultyDisk(under: directory.path)
        // Long deadlines, which a loaded machine does not exceed.
        var options = StoreOptions(busyTimeoutMilliseconds: 60_000, vfsName: FaultyDisk.vfsName)
        options.groupNanosecondLimit = 60_000_000_000
        store = try directory.makeStore(options: options)
        try store.insert([SampleRows.row(account: 1)])
        atOnce = ConcurrentWrites(store: store)
    }

    private func inserting(_ accounts: ClosedRange<UInt64>) -> [Write] {
        accounts.map { .inserting(SampleRows.row(account: $0)) }
    }

    private func accountCount(_ account: UInt64) throws -> Int {
        let row = SampleRows.row(account: account)
        return try store.rows(RowQuery(serviceDigest: row.header.serviceDigest, accountDigest: row.header.accountDigest)).count
    }

    @Test("Eight concurrent writes are durable after fewer than eight flushes")
    func shared() throws {
        let before = disk.syncCount(of: .wal)
        let outcomes = atOnce.run(inserting(10...10)[0], inserting(11...17))
        #expect(outcomes == Array(repeating: .written, count: 8))
        let flushCount = disk.syncCount(of: .wal) - before
        #expect(flushCount >= 1)
        #expect(flushCount < 8)
        #expect(try store.rows().count == 9)
        #expect(try store.integrityProblems() == [])
    }

    @Test("Eight threads that write repeatedly lose no write and flush less often than they write")
    func manyThreads() throws {
        let before = disk.syncCount(of: .wal)
        let ended = DispatchGroup()
        let failures = FailureList()
        for thread in UInt64(0)..<8 {
            ended.enter()
            Thread.detachNewThread { [store] in
                for number in UInt64(0)..<50 {
                    let failure = failure { () throws(KeychainFailure) in
                        try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation, sharesFlush: true) {
                            writing throws(KeychainFailure) in
                            try writing.insert(SampleRows.row(service: 100 + thread, account: number))
                        }.mustBeWritten()
                    }
                    if let failure { failures.append(failure) }
                }
                ended.leave()
            }
        }
        #expect(ended.wait(timeout: .now() + 100) == .success)
        #expect(failures.all == [])
        #expect(try store.rows().count == 401)
        #expect(disk.syncCount(of: .wal) - before < 400)
        #expect(try store.integrityProblems() == [])
    }

    @Test("A body that throws, and a duplicate, are rolled back without the other members")
    func rolledBackAlone() throws {
        let throwing = Write { writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 20))
            throw KeychainFailure(.userCanceled, "requested by the test")
        }
        let outcomes = atOnce.run(
            inserting(10...10)[0], [inserting(11...11)[0], throwing, inserting(10...10)[0], inserting(1...1)[0], inserting(12...12)[0]])
        let duplicate = ConcurrentWrites.Outcome.failed(KeychainFailure(.duplicateItem, ""))
        #expect(
            outcomes == [
                .written, .written, .failed(KeychainFailure(.userCanceled, "")), duplicate, duplicate, .written,
            ])
        #expect(try store.rows().count == 4)
        #expect(try accountCount(20) == 0)
    }

    @Test("If the leader's body throws, it is rolled back before others join")
    func firstThrows() throws {
        let throwing = Write { writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 11))
            throw KeychainFailure(.userCanceled, "requested by the test")
        }
        let outcomes = atOnce.run(throwing, inserting(11...13))
        #expect(outcomes == [.failed(KeychainFailure(.userCanceled, "")), .written, .written, .written])
        #expect(try store.rows().count == 4)
    }

    @Test("If the flush fails, the outcome is unknown for every member, even one whose body threw")
    func failedFlush() throws {
        let failing = Write { [disk] writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 10))
            disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        }
        let outcomes = atOnce.run(failing, inserting(10...13))
        for outcome in outcomes {
            #expect(outcome.failure?.status == .inputOutput)
            #expect(outcome.failure?.cause == .outcomeUnknown)
        }
        disk.heal()
        try store.insert([SampleRows.row(account: 30)])
        #expect(try store.integrityProblems() == [])
    }

    @Test("A full disk is reported to every member and changes nothing")
    func fullDisk() throws {
        let filling = Write { [disk] writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 10))
            disk.fail(.wal, .write, with: SQLITE_FULL)
        }
        let outcomes = atOnce.run(filling, inserting(11...13))
        for outcome in outcomes {
            #expect(outcome.failure?.status == .notAvailable)
            #expect(outcome.failure?.cause == .diskFull)
        }
        disk.heal()
        #expect(try store.rows().count == 1)
    }

    @Test("A member too large for the disk does not fail the others")
    func oneTooLarge() throws {
        let fitting = (UInt64(10)...12).map { account in
            Write { [disk] writing throws(KeychainFailure) in
                disk.heal()
                try writing.insert(SampleRows.row(account: account))
            }
        }
        let tooLarge = Write { [disk] writing throws(KeychainFailure) in
            disk.fail(.wal, .write, with: SQLITE_FULL)
            try writing.insert(SampleRows.row(account: 20))
        }
        let outcomes = atOnce.run(fitting[0], [fitting[1], fitting[2], tooLarge])
        #expect(outcomes.prefix(3) == [.written, .written, .written])
        #expect(outcomes[3].failure?.cause == .diskFull)
        disk.heal()
        #expect(try store.rows().count == 4)
        #expect(try accountCount(20) == 0)
    }

    @Test("A disk failure of one member rolls back all, and the others write again", arguments: [false, true])
    func lostTransaction(isPassedOver: Bool) throws {
        let reading = Write { [disk] writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 20))
            disk.fail(.database, .read, with: SQLITE_IOERR | 1 << 8)
            disk.fail(.wal, .read, with: SQLITE_IOERR | 1 << 8)
            defer { disk.heal() }
            // Rows that were not read yet are on pages outside the cache.
            if isPassedOver {
                _ = try? writing.quarantinedRows()
            } else {
                _ = try writing.quarantinedRows()
            }
        }
        let outcomes = atOnce.run(inserting(10...10)[0], [inserting(11...11)[0], reading, inserting(12...12)[0]])
        #expect(outcomes[0] == .written)
        #expect(outcomes[1] == .written)
        #expect(outcomes[2].failure?.status == .inputOutput)
        #expect(outcomes[2].failure?.cause != .outcomeUnknown, "nothing was committed, so the outcome is known")
        #expect(outcomes[3] == .written)
        #expect(try store.rows().count == 4)
        #expect(try store.integrityProblems() == [])
    }

    @Test("A replacement of the keybag has its own transaction, and later requests see it")
    func keybagChange() throws {
        let replacing = Write(sharesFlush: false) { writing throws(KeychainFailure) in try writing.replaceKeybag([1, 2, 3], generation: 8) }
        var later = inserting(12...12)[0]
        later.generation = 8
        let outcomes = atOnce.run(
            inserting(10...10)[0], [inserting(11...11)[0], replacing, inserting(13...13)[0], later, inserting(14...14)[0]])
        #expect(outcomes == [.written, .written, .written, .keybagChanged, .written, .keybagChanged])
        #expect(try store.rows().count == 4)
        #expect(try store.keybag().generation == 8)
    }

    @Test("A request that may share a flush runs on the leader's thread, any other on its own")
    func threads() throws {
        let box = ThreadList()
        func noting(_ name: String, sharesFlush: Bool) -> Write {
            Write(sharesFlush: sharesFlush) { _ in box.note(name) }
        }
        let outcomes = atOnce.run(
            noting("first", sharesFlush: true), [noting("joining", sharesFlush: true), noting("alone", sharesFlush: false)])
        #expect(outcomes == [.written, .written, .written])
        #expect(box["first"] != nil)
        #expect(box["joining"] == box["first"])
        #expect(box["alone"] != box["first"])
    }

    @Test("A request leaves the queue at its deadline and is not written later")
    func deadline() throws {
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(busyTimeoutMilliseconds: 100))
        let failures = FailureList()
        let outcome = try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation, sharesFlush: true) {
            writing throws(KeychainFailure) in
            let ended = DispatchGroup()
            ended.enter()
            Thread.detachNewThread {
                let failure = failure { () throws(KeychainFailure) in
                    try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation, sharesFlush: true) {
                        writing throws(KeychainFailure) in try writing.insert(SampleRows.row(account: 11))
                    }.mustBeWritten()
                }
                if let failure { failures.append(failure) }
                ended.leave()
            }
            #expect(ended.wait(timeout: .now() + 60) == .success)
            #expect(store.writerQueue.waitingCount == 0)
            try writing.insert(SampleRows.row(account: 10))
        }
        try outcome.mustBeWritten()
        #expect(failures.all.map(\.status) == [.notAvailable])
        #expect(failures.all.first?.cause == .timedOut(milliseconds: 100))
        #expect(try store.rows().count == 2)
    }
}

private final class FailureList: Sendable {
    private let failures = Mutex<[KeychainFailure]>([])

    var all: [KeychainFailure] { failures.withLock { $0 } }
    func append(_ failure: KeychainFailure) { failures.withLock { $0.append(failure) } }
}

private final class ThreadList: Sendable {
    private let threads = Mutex<[String: ObjectIdentifier]>([:])

    func note(_ name: String) {
        let thread = ObjectIdentifier(Thread.current)
        threads.withLock { $0[name] = thread }
    }

    subscript(_ name: String) -> ObjectIdentifier? { threads.withLock { $0[name] } }
}
