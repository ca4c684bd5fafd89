// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// The disk of one device, and the merge on it.
struct MergeBench {
    let ledger = MemoryLedger()
    /// The versions that the device showed when it last left the circle.
    var former: [SyncVersionID: Origin] = [:]
    private static let name = ItemName(Identifier128(high: 1, low: 1))

    static func version(_ number: UInt64) -> SyncVersionID { SyncVersionID(Identifier128(high: 0, low: number)) }

    static func origin(_ batch: UInt64, log: UInt64 = 1, number: UInt64? = nil) -> Origin {
        Origin(log: LogID(Identifier128(high: 0, low: log)), number: number ?? batch, hash: Identifier128(high: 0, low: batch))
    }

    static func reference(_ version: UInt64, _ origin: Origin) -> VersionReference {
        VersionReference(id: Self.version(version), origin: origin)
    }

    static func record(
        _ number: UInt64, replacing replaced: [VersionReference] = [], date: Double? = 1, value: UInt64? = nil
    ) -> VersionRecord {
        let content = date.map { SimulatedContent(name: 1, accessibility: .afterFirstUnlock, date: $0, value: value ?? number).content }
        return VersionRecord(id: version(number), replaced: replaced, content: content)
    }

    /// Reads a batch.
    func read(_ records: [VersionRecord], _ origin: Origin) throws {
        var merge = LocalMerge(SyncTransaction(ledger: ledger, items: ledger), former: former)
        try merge.fold()
        try merge.read(records, at: origin)
    }

    /// Seals what was written.
    func publish(_ origin: Origin) throws -> [VersionRecord] {
        var merge = LocalMerge(SyncTransaction(ledger: ledger, items: ledger), former: former)
        try merge.fold()
        return try merge.publish(at: origin)
    }

    func put(_ revision: UInt64, date: Double, value: UInt64? = nil, item: UInt64? = nil) {
        let row = ledger.state.rows.first?.key ?? Identifier128(high: 9, low: item ?? revision)
        ledger.state.rows[row] = MemoryLedger.Row(
            content: SimulatedContent(name: 1, accessibility: .afterFirstUnlock, date: date, value: value ?? revision),
            revision: Self.version(revision))
        ledger.state.changes[row] = .written
    }

    func delete() {
        for item in ledger.state.rows.keys { ledger.state.changes[item] = .deleted }
        ledger.state.rows = [:]
    }

    var live: Set<VersionReference> { Set(ledger.state.live.keys) }
    var visible: UInt64? { ledger.state.rows.values.first?.revision.value.low }
}

@Suite("The merge")
struct MergeTests {
    typealias Bench = MergeBench

    @Test("A version removes what it replaces, in either order")
    func orderDoesNotMatter() throws {
        let first = [Bench.record(1)]
        let second = [Bench.record(2, replacing: [Bench.reference(1, Bench.origin(1))])]
        let (forward, backward) = (Bench(), Bench())
        try forward.read(first, Bench.origin(1))
        try forward.read(second, Bench.origin(2, log: 2, number: 1))
        try backward.read(second, Bench.origin(2, log: 2, number: 1))
        #expect(backward.ledger.state.awaited.count == 1)
        try backward.read(first, Bench.origin(1))
        #expect(forward.live == backward.live)
        #expect(forward.live == [Bench.reference(2, Bench.origin(2, log: 2, number: 1))])
        #expect(backward.ledger.state.awaited.isEmpty)
    }

    /// The date of such a version is not in the ledger.
    @Test(
        "A version from before the device left, folded while its class was locked, gives way to one of the circle only if its batch is covered",
        arguments: [(5.0, 1 as UInt64, 1 as UInt64, 1), (20, 1, 1, 1), (5, 7, 2, 2), (20, 7, 1, 2)])
    func formerVersionOfLockedClass(date: Double, batch: UInt64, visible: UInt64, liveCount: Int) throws {
        var bench = Bench()
        bench.former = [Bench.version(2): Bench.origin(batch)]
        bench.put(2, date: 10)
        bench.ledger.state.lockedLanes = [.afterFirstUnlock]
        try bench.read([], Bench.origin(1))
        bench.ledger.state.lockedLanes = []
        try bench.read([Bench.record(1, date: date)], Bench.origin(2))
        #expect(bench.visible == visible)
        #expect(bench.live.count == liveCount)
    }

    @Test("A deletion of a version from before the device left holds, although its batch is read afterwards", arguments: [false, true])
    func deletedFormerVersion(isOverwritten: Bool) throws {
        var bench = Bench()
        let published = Bench.origin(1)
        bench.former = [Bench.version(2): published]
        bench.put(2, date: 10)
        try bench.read([], Bench.origin(5, log: 5, number: 1))
        if isOverwritten { bench.put(3, date: 11) } else { bench.delete() }
        let records = try bench.publish(Bench.origin(9, log: 9, number: 1))
        #expect(records.flatMap(\.replaced) == [Bench.reference(2, published)])
        try bench.read([Bench.record(2, date: 10)], published)
        #expect(bench.visible == (isOverwritten ? 3 : nil))
        #expect(bench.live.count == (isOverwritten ? 1 : 0))
    }

    @Test("One identifier with two origins is two versions (C1)")
    func versionsAreNamedByOrigin() throws {
        let published = Bench.origin(1)
        let again = Bench.origin(2, log: 2, number: 1)
        let deletion = [Bench.record(3, replacing: [Bench.reference(1, published)], date: nil)]
        let orders: [[([VersionRecord], Origin)]] = [
            [([Bench.record(1)], published), (deletion, Bench.origin(3, log: 3, number: 1)), ([Bench.record(1)], again)],
            [([Bench.record(1)], again), (deletion, Bench.origin(3, log: 3, number: 1)), ([Bench.record(1)], published)],
        ]
        for order in orders {
            let bench = Bench()
            for (records, origin) in order { try bench.read(records, origin) }
            #expect(bench.live == [Bench.reference(1, again)])
        }
    }

    @Test("The latest modification date is visible, then the highest identifier; the others are copies")
    func visibility() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        try bench.read([Bench.record(2, date: 7)], Bench.origin(2, log: 2, number: 1))
        try bench.read([Bench.record(3, date: 7)], Bench.origin(3, log: 3, number: 1))
        #expect(bench.visible == 3)
        #expect(bench.ledger.state.copies.count == 2)
    }

    @Test("A put replaces the shown version and keeps older, different copies")
    func putKeepsCopies() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        try bench.read([Bench.record(2, date: 7)], Bench.origin(2, log: 2, number: 1))
        bench.put(9, date: 8)
        let records = try bench.publish(Bench.origin(9, log: 9, number: 1))
        #expect(records.map(\.replaced) == [[Bench.reference(2, Bench.origin(2, log: 2, number: 1))]])
        #expect(bench.live.count == 2)
    }

    @Test("A put replaces versions of equal content, so that joining twice leaves no conflict with an old password")
    func putReplacesEqualContent() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5, value: 4)], Bench.origin(1))
        try bench.read([Bench.record(2, date: 7, value: 4)], Bench.origin(2, log: 2, number: 1))
        bench.put(9, date: 8)
        _ = try bench.publish(Bench.origin(9, log: 9, number: 1))
        #expect(bench.live == [Bench.reference(9, Bench.origin(9, log: 9, number: 1))])
    }

    @Test("A put with an old date, as of a restored backup, stays visible")
    func restoredBackup() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        try bench.read([Bench.record(2, date: 7)], Bench.origin(2, log: 2, number: 1))
        bench.put(9, date: 1)
        _ = try bench.publish(Bench.origin(9, log: 9, number: 1))
        #expect(bench.visible == 9)
        #expect(bench.live.count == 1)
    }

    @Test("A deletion replaces every live version, so that no copy reappears")
    func deletionReplacesAll() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        try bench.read([Bench.record(2, date: 7)], Bench.origin(2, log: 2, number: 1))
        bench.delete()
        let records = try bench.publish(Bench.origin(9, log: 9, number: 1))
        #expect(records.first?.replaced.count == 2)
        #expect(bench.live.isEmpty)
    }

    @Test("An item that was deleted and added again before a round survives (C2)")
    func deletedAndAddedAgain() throws {
        for item in [1 as UInt64, 99] {
            let bench = Bench()
            try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
            bench.delete()
            bench.put(9, date: 6, item: item << 32)
            _ = try bench.publish(Bench.origin(9, log: 9, number: 1))
            #expect(bench.visible == 9)
            #expect(bench.live.map(\.id) == [Bench.version(9)])
        }
    }

    @Test("A concurrent edit survives a deletion")
    func concurrentEditSurvivesDeletion() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        bench.delete()
        _ = try bench.publish(Bench.origin(9, log: 9, number: 1))
        try bench.read([Bench.record(2, replacing: [Bench.reference(1, Bench.origin(1))], date: 6)], Bench.origin(2, log: 2, number: 1))
        #expect(bench.visible == 2)
    }

    @Test("An unpublished version that is overwritten passes on what it replaces")
    func coalescing() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        bench.put(8, date: 6)
        var merge = LocalMerge(SyncTransaction(ledger: bench.ledger, items: bench.ledger))
        try merge.fold()
        bench.put(9, date: 7)
        let records = try bench.publish(Bench.origin(9, log: 9, number: 1))
        #expect(records.map(\.id) == [Bench.version(9)])
        #expect(records.map(\.replaced) == [[Bench.reference(1, Bench.origin(1))]])
    }

    @Test("A write that is known only locally is folded before anything is applied")
    func foldComesFirst() throws {
        let bench = Bench()
        try bench.read([Bench.record(1, date: 5)], Bench.origin(1))
        bench.delete()
        try bench.read([Bench.record(2, date: 6)], Bench.origin(2, log: 2, number: 1))
        #expect(bench.visible == 2)
        #expect(bench.ledger.state.pending.first?.replaced == [Bench.reference(1, Bench.origin(1))])
    }

    @Test("Small cases, exhaustively: three devices, every schedule of at most five steps")
    func exhaustive() {
        var search = ExhaustiveMerge(deviceCount: 3, stepCount: 5)
        search.run()
        #expect(search.failures.isEmpty)
        #expect(search.stateCount > 200)
    }
}
