// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import SyncCore

/// The disk of a simulated device: its ledger and its items.
package protocol SimulatedDisk: AnyObject {
    /// The lanes whose class is locked.
    var lockedLanes: Set<Lane> { get set }

    /// Runs `body` in a transaction of the agent, which is rolled back at the end if `rollsBack` is true.
    func transaction(rollsBack: Bool, _ body: (SyncTransaction) throws(KeychainFailure) -> Void) throws(KeychainFailure)

    func read<Result>(_ body: (any SyncReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result

    /// Runs `body` on a snapshot, which transactions within `body` do not change.
    func snapshot<Result>(
        _ body: (any SyncReading, any SyncItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result

    /// Empties the ledger: turns synchronization off and on again.
    func leaveCircle() throws(KeychainFailure)

    /// Returns another disk with the present content.
    func copied() throws -> any SimulatedDisk

    // Calls of programs

    func itemName(of name: Int) throws(KeychainFailure) -> ItemName

    /// Returns the synchronizable item with this name, also while its class is locked.
    func row(named name: Int) throws(KeychainFailure) -> SimulatedRow?

    /// Adds an item, or changes one, which may get another name.
    ///
    /// Returns the revision: `revision` if the disk does not make its own.
    func put(
        _ content: SimulatedContent, over row: SimulatedRow?, revision: SyncVersionID
    ) throws(KeychainFailure) -> SyncVersionID

    func delete(_ row: SimulatedRow) throws(KeychainFailure)

    // For the oracle

    func isStored(_ statement: StatementHash) throws(KeychainFailure) -> Bool

    /// The number of batches read and statements stored.
    func progress() throws(KeychainFailure) -> Int

    /// Returns what the disk contains, to be checked once the devices are at rest.
    func restingState() throws -> RestingState
}

/// An item of a simulated device.
package struct SimulatedRow: Hashable {
    package let item: ItemID
    package let content: SimulatedContent
    package let revision: SyncVersionID
    package var isDamaged = false
}

/// The content of a disk at rest.
package struct RestingState {
    var live: Set<VersionReference> = []
    var awaited: Set<VersionReference> = []
    var read: Set<Origin> = []
    var pendingCount = 0
    var hasChanges = false
    /// The items that may leave the device.
    var rows: [SimulatedRow] = []
    var copyCount = 0
    /// The versions that a reader does not share; without a content if that is lost.
    var unshared: [SyncVersionID: (content: SimulatedContent?, isCopy: Bool)] = [:]
    /// The items that show a version which the circle does not have.
    var namesWithFormerVersion: Set<Int> = []
    /// What is wrong with the disk itself.
    var problem: String?
}

extension MemoryLedger: SimulatedDisk {
    package var lockedLanes: Set<Lane> {
        get { state.lockedLanes }
        set { state.lockedLanes = newValue }
    }

    package func transaction(
        rollsBack: Bool, _ body: (SyncTransaction) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        let before = rollsBack ? state : nil
        try body(SyncTransaction(ledger: self, items: self))
        if let before { state = before }
    }

    package func read<Result>(
        _ body: (any SyncReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result { try body(self) }

    package func snapshot<Result>(
        _ body: (any SyncReading, any SyncItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let snapshot = MemoryLedger()
        snapshot.state = state
        return try body(snapshot, snapshot)
    }

    package func leaveCircle() {
        var left = State()
        (left.rows, left.lockedLanes, left.itemCount) = (state.rows, state.lockedLanes, state.itemCount)
        state = left
    }

    package func copied() -> any SimulatedDisk {
        let copy = MemoryLedger()
        copy.state = state
        return copy
    }

    package func itemName(of name: Int) -> ItemName { SimulatedContent.itemName(of: name) }

    package func row(named name: Int) -> SimulatedRow? {
        state.rows.first { $0.value.content.name == name && $0.value.isSynchronizable }
            .map { SimulatedRow($0.key, $0.value) }
    }

    package func put(_ content: SimulatedContent, over row: SimulatedRow?, revision: SyncVersionID) -> SyncVersionID {
        let item = row?.item ?? newItem()
        state.rows[item] = Row(content: content, revision: revision)
        state.changes[item] = .written
        return revision
    }

    package func delete(_ row: SimulatedRow) {
        state.rows[row.item] = nil
        state.changes[row.item] = .deleted
    }

    package func isStored(_ statement: StatementHash) -> Bool { state.statements[statement] != nil }

    package func progress() -> Int { state.read.count + state.statements.count }

    package func restingState() -> RestingState {
        RestingState(
            live: Set(state.live.keys), awaited: state.awaited, read: state.read, pendingCount: state.pending.count,
            hasChanges: !state.changes.isEmpty,
            rows: state.rows.filter { $0.value.isSynchronizable && !$0.value.content.accessibility.isThisDeviceOnly }
                .map { SimulatedRow($0.key, $0.value) },
            copyCount: state.copies.count, unshared: unshared())
    }

    private func unshared() -> [SyncVersionID: (content: SimulatedContent?, isCopy: Bool)] {
        let versions = state.live.values.filter { $0.reference.origin == nil }
        return Dictionary(
            uniqueKeysWithValues: versions.map { version in
                let content = (try? content(of: version)).flatMap { $0 }.flatMap { SimulatedContent($0) }
                return (version.reference.id, (content, version.item == nil))
            })
    }
}

extension SimulatedRow {
    init(_ item: ItemID, _ row: MemoryLedger.Row) {
        self.init(item: item, content: row.content, revision: row.revision, isDamaged: row.isDamaged)
    }
}
