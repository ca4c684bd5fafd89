// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// The ledger of a store in memory, as a value: a transaction changes a copy.
struct InMemoryLedger: Sendable {
    var changes: [ItemID: RecordedChange.Kind] = [:]
    var settings: [SyncSetting: [UInt8]] = [:]
    var live: [VersionReference: LiveVersion] = [:]
    /// In the order of insertion.
    var pending: [PendingVersion] = []
    var awaited: Set<VersionReference> = []
    var permitted: Set<Origin> = []
    var batches: [Origin: ReadBatch] = [:]
    var marks: [Origin: LogMark] = [:]
    /// The origins of marks, in the order of insertion.
    var marksToReport: [Origin] = []
    /// In the order of insertion.
    var outgoing: [OutgoingObject] = []
    var statements: [StatementHash: StoredStatement] = [:]
    var copies: [VersionReference: SealedRow] = [:]
    var lastCopyNumber = Self.firstCopyNumber - 1

    /// The number of the first conflict copy, greater than that of every item.
    static let firstCopyNumber: Int64 = 1 << 62
}

extension InMemoryItemStore: SyncStore {
    package func isSynchronizing() -> Bool { currentContents.ledger != nil }

    package func startSynchronizing() throws(KeychainFailure) {
        changeLedger { ledger in ledger = ledger ?? InMemoryLedger() }
    }

    package func stopSynchronizing() throws(KeychainFailure) {
        changeLedger { ledger in ledger = nil }
    }

    package func readLedger<Result>(
        _ body: (any SyncStoreReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let transaction = InMemoryTransaction(currentContents)
        guard transaction.contents.ledger != nil else { throw Self.isNotSynchronizing }
        return try body(transaction)
    }

    package func writeLedger<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any SyncStoreWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try transact(ifKeybagGeneration: generation) { transaction throws(KeychainFailure) in
            guard transaction.contents.ledger != nil else { throw Self.isNotSynchronizing }
            transaction.recordsChanges = false
            return try body(transaction)
        }
    }
}

extension InMemoryTransaction: SyncStoreWriting {
    /// Only a store that synchronizes passes a transaction to a caller that uses its ledger.
    private var ledger: InMemoryLedger {
        get { contents.ledger ?? InMemoryLedger() }
        set { contents.ledger = newValue }
    }

    /// Records a change of one row; nil stands for a row that does not exist or does not synchronize.
    func recordChange(from old: SealedRow?, to new: SealedRow?) {
        guard recordsChanges else { return }
        for change in RecordedChange.records(from: old?.header.shared, to: new?.header.shared) {
            let kind = RecordedChange.Kind.combined(ledger.changes[change.item], change.kind)
            contents.ledger?.changes[change.item] = kind
        }
    }

    // MARK: Changes and settings

    func recordedChanges(_ kind: RecordedChange.Kind, limit: Int) -> [RecordedChange] {
        let items = ledger.changes.filter { $0.value == kind }.keys.sorted { $0.isOrdered(before: $1) }
        return items.prefix(limit).map { RecordedChange(item: $0, kind: kind) }
    }

    func eraseRecordedChange(_ item: ItemID) { ledger.changes[item] = nil }

    func setting(_ key: SyncSetting) -> [UInt8]? { ledger.settings[key] }
    func set(_ key: SyncSetting, to value: [UInt8]?) { ledger.settings[key] = value }

    /// Memory is not damaged.
    func mayLackRecords() -> Bool { false }

    func recordUnknownRows() -> Int {
        var count = 0
        for item in contents.rows.compactMap({ $0.header.shared }) where ledger.changes[item.item] == nil {
            guard !ledger.live.values.contains(where: { $0.item == item.item && $0.reference.id.value == item.revision }) else { continue }
            ledger.changes[item.item] = .written
            count += 1
        }
        return count
    }

    // MARK: Counts

    func recordedChangeCount() -> Int { ledger.changes.count }
    func pendingVersionCount() -> Int { ledger.pending.count }
    func shownVersionCount() -> Int { ledger.live.values.count { $0.item != nil } }
    func namesOfHiddenVersions() -> [ItemName] { Set(ledger.live.values.filter { $0.item == nil }.map(\.name)).sorted() }

    // MARK: Live versions

    func liveVersions(named name: ItemName) -> [LiveVersion] { sortedVersions { $0.name == name } }
    func liveVersion(_ reference: VersionReference) -> LiveVersion? { ledger.live[reference] }
    func liveVersion(shownBy item: ItemID) -> LiveVersion? { sortedVersions { $0.item == item }.first }

    func liveVersions(after reference: VersionReference?, limit: Int) -> [LiveVersion] {
        Array(sortedVersions { version in reference.map { $0 < version.reference } ?? true }.prefix(limit))
    }

    func liveVersionCount() -> Int { ledger.live.count }

    func insert(_ version: LiveVersion) throws(KeychainFailure) {
        guard ledger.live[version.reference] == nil else {
            throw KeychainFailure(.duplicateItem, "the ledger has this version already")
        }
        ledger.live[version.reference] = version
    }

    func replace(_ reference: VersionReference, with version: LiveVersion) throws(KeychainFailure) {
        guard version.reference == reference || ledger.live[version.reference] == nil else {
            throw KeychainFailure(.duplicateItem, "the ledger has this version already")
        }
        ledger.live[reference] = nil
        ledger.live[version.reference] = version
    }

    func remove(_ reference: VersionReference) { ledger.live[reference] = nil }

    private func sortedVersions(where isIncluded: (LiveVersion) -> Bool) -> [LiveVersion] {
        ledger.live.values.filter(isIncluded).sorted { $0.reference < $1.reference }
    }

    // MARK: Pending versions

    func pendingVersions(in lane: Lane, limit: Int) -> [PendingVersion] { Array(ledger.pending.filter { $0.lane == lane }.prefix(limit)) }
    func pendingVersion(_ id: SyncVersionID) -> PendingVersion? { ledger.pending.first { $0.id == id } }
    func pendingVersions(named name: ItemName) -> [PendingVersion] { ledger.pending.filter { $0.name == name } }

    func insert(_ version: PendingVersion) throws(KeychainFailure) {
        guard pendingVersion(version.id) == nil else { throw KeychainFailure(.duplicateItem, "the version is pending already") }
        ledger.pending.append(version)
    }

    func removePending(_ id: SyncVersionID) { ledger.pending.removeAll { $0.id == id } }

    // MARK: Logs

    func logs() -> [LogID] { Set(ledger.batches.keys.map(\.log) + ledger.marks.keys.map(\.log)).sorted() }

    func isAwaited(_ reference: VersionReference) -> Bool { ledger.awaited.contains(reference) }

    func awaitedVersions(after reference: VersionReference?, limit: Int) -> [VersionReference] {
        Array(ledger.awaited.filter { awaited in reference.map { $0 < awaited } ?? true }.sorted().prefix(limit))
    }

    func insertAwaited(_ reference: VersionReference) { ledger.awaited.insert(reference) }
    func removeAwaited(_ origin: Origin) { ledger.awaited = ledger.awaited.filter { $0.origin != origin } }

    func isPermitted(_ origin: Origin) -> Bool { ledger.permitted.contains(origin) }
    func insertPermitted(_ origin: Origin) { ledger.permitted.insert(origin) }
    func removePermitted(_ origin: Origin) { ledger.permitted.remove(origin) }

    func isRead(_ origin: Origin) -> Bool { ledger.batches[origin] != nil }
    func isAnyRead(_ number: UInt64, of log: LogID) -> Bool { ledger.batches.values.contains { $0.log == log && $0.number == number } }
    func readBatches(of log: LogID) -> [ReadBatch] { ledger.batches.values.filter { $0.log == log }.sorted() }
    func insert(_ batch: ReadBatch) { ledger.batches[batch.origin] = ledger.batches[batch.origin] ?? batch }

    func marks(of log: LogID) -> [LogMark] { ledger.marks.values.filter { $0.log == log }.sorted { $0.origin < $1.origin } }
    func mark(_ origin: Origin) -> LogMark? { ledger.marks[origin] }

    func marksToReport(of device: DeviceID, limit: Int) -> [LogMark] {
        Array(ledger.marksToReport.compactMap { ledger.marks[$0] }.filter { $0.device == device }.prefix(limit))
    }

    func insert(_ mark: LogMark, isToReport: Bool) {
        removeMark(mark.origin)
        ledger.marks[mark.origin] = mark
        if isToReport { ledger.marksToReport.append(mark.origin) }
    }

    func noteReported(_ origin: Origin) { ledger.marksToReport.removeAll { $0 == origin } }

    func removeMark(_ origin: Origin) {
        ledger.marks[origin] = nil
        noteReported(origin)
    }

    // MARK: Objects

    func outgoingNames() -> [String] { ledger.outgoing.map(\.name) }
    func outgoingBytes(_ name: String) -> [UInt8]? { ledger.outgoing.first { $0.name == name }?.bytes }

    func insert(_ object: OutgoingObject) {
        if !ledger.outgoing.contains(where: { $0.name == object.name }) { ledger.outgoing.append(object) }
    }

    func removeOutgoing(_ name: String) { ledger.outgoing.removeAll { $0.name == name } }

    func statements() -> [StoredStatement] { ledger.statements.values.sorted { $0.hash < $1.hash } }
    func insert(_ statement: StoredStatement) { ledger.statements[statement.hash] = ledger.statements[statement.hash] ?? statement }

    // MARK: Conflict copies

    func copy(of reference: VersionReference) -> SealedRow? { ledger.copies[reference] }

    func insertCopy(_ row: SealedRow, of reference: VersionReference, at seconds: Double) throws(KeychainFailure) {
        guard ledger.copies[reference] == nil else {
            throw KeychainFailure(.duplicateItem, "the version has a conflict copy already")
        }
        ledger.lastCopyNumber += 1
        var copy = row
        copy.number = ledger.lastCopyNumber
        ledger.copies[reference] = copy
    }

    func copyRow(number: Int64, toCopyOf reference: VersionReference, at seconds: Double) throws(KeychainFailure) {
        try insertCopy(contents.rows[try position(of: number)], of: reference, at: seconds)
    }

    func removeCopy(of reference: VersionReference) { ledger.copies[reference] = nil }

    func renameCopy(_ reference: VersionReference, to other: VersionReference) {
        guard let copy = ledger.copies.removeValue(forKey: reference) else { return }
        ledger.copies[other] = copy
    }

    /// Replaces the row of a conflict copy, which was resealed.
    func replaceCopy(number: Int64, with row: SealedRow) throws(KeychainFailure) {
        guard let reference = ledger.copies.first(where: { $0.value.number == number })?.key else {
            throw KeychainFailure(.internal, "a conflict copy that was just read is gone")
        }
        ledger.copies[reference] = row
        ledger.copies[reference]?.number = number
    }
}
#endif
