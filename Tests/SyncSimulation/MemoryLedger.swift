// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A ledger and the items of a device in memory.
///
/// The state is a value, so that a transaction can be rolled back and a disk can be restored from a snapshot.
package final class MemoryLedger: SyncWriting {
    package var state = State()

    package struct State {
        package var settings: [SyncSetting: [UInt8]] = [:]
        package var live: [VersionReference: LiveVersion] = [:]
        package var names: [ItemName: [VersionReference]] = [:]
        package var pending: [PendingVersion] = []
        package var awaited: Set<VersionReference> = []
        package var permitted: Set<Origin> = []
        package var batches: [LogID: [ReadBatch]] = [:]
        package var read: Set<Origin> = []
        package var marks: [LogID: [LogMark]] = [:]
        /// The marks of each device that are to be reported, in the order of insertion; nil for one that was reported.
        var marksToReport: [DeviceID: [LogMark?]] = [:]
        var reportPositions: [Origin: (device: DeviceID, index: Int)] = [:]
        package var outgoing: [OutgoingObject] = []
        package var statements: [StatementHash: [UInt8]] = [:]
        // The items
        package var rows: [ItemID: Row] = [:]
        package var copies: [VersionReference: SyncContent] = [:]
        package var changes: [ItemID: RecordedChange.Kind] = [:]
        package var lacksRecords = false
        package var lockedLanes: Set<Lane> = []
        var itemCount: UInt64 = 0
    }

    /// A row of the simulated keychain.
    package struct Row: Hashable {
        package var content: SimulatedContent
        package var revision: SyncVersionID
        package var isSynchronizable = true
        package var isDamaged = false
        /// Written by a newer program.
        package var isNewer = false

        package init(content: SimulatedContent, revision: SyncVersionID) {
            self.content = content
            self.revision = revision
        }

        var isReadable: Bool { !isDamaged && !isNewer }
        func isShared(as name: Int) -> Bool { isSynchronizable && content.name == name }
    }

    package init() {}

    package func setting(_ key: SyncSetting) -> [UInt8]? { state.settings[key] }
    package func set(_ key: SyncSetting, to value: [UInt8]?) { state.settings[key] = value }

    package func recordedChanges(_ kind: RecordedChange.Kind, limit: Int) -> [RecordedChange] {
        guard !state.changes.isEmpty else { return [] }
        let items = state.changes.filter { $0.value == kind }.keys.sorted { $0.isOrdered(before: $1) }
        return items.prefix(limit).map { RecordedChange(item: $0, kind: kind) }
    }

    package func mayLackRecords() -> Bool { state.lacksRecords }

    package func recordUnknownRows() -> Int {
        state.lacksRecords = false
        var shown: [ItemID: SyncVersionID] = [:]
        for version in state.live.values { if let item = version.item { shown[item] = version.reference.id } }
        var count = 0
        for (item, row) in state.rows where row.isSynchronizable && shown[item] != row.revision && state.changes[item] == nil {
            state.changes[item] = .written
            count += 1
        }
        return count
    }

    package func eraseRecordedChange(_ item: ItemID) { state.changes[item] = nil }

    // Live versions

    package func liveVersions(named name: ItemName) -> [LiveVersion] { (state.names[name] ?? []).compactMap { state.live[$0] } }
    package func liveVersion(_ reference: VersionReference) -> LiveVersion? { state.live[reference] }

    package func liveVersion(shownBy item: ItemID) -> LiveVersion? {
        state.live.values.first { $0.item == item }
    }

    package func liveVersions(after reference: VersionReference?, limit: Int) -> [LiveVersion] {
        let sorted = state.live.keys.sorted()
        let rest = reference.map { last in sorted.drop { !(last < $0) } } ?? sorted[...]
        return rest.prefix(limit).compactMap { state.live[$0] }
    }

    package func liveVersionCount() -> Int { state.live.count }

    package func namesOfHiddenVersions() -> [ItemName] { Set(state.live.values.filter { $0.item == nil }.map(\.name)).sorted() }

    package func insert(_ version: LiveVersion) throws(KeychainFailure) {
        guard state.live[version.reference] == nil else { throw KeychainFailure(.duplicateItem, "the version is live already") }
        state.live[version.reference] = version
        var references = state.names[version.name] ?? []
        references.insert(version.reference, at: references.firstIndex { version.reference < $0 } ?? references.endIndex)
        state.names[version.name] = references
    }

    package func replace(_ reference: VersionReference, with version: LiveVersion) throws(KeychainFailure) {
        if reference == version.reference, state.live[reference]?.name == version.name {
            state.live[reference] = version
            return
        }
        remove(reference)
        try insert(version)
    }

    package func remove(_ reference: VersionReference) {
        guard let version = state.live.removeValue(forKey: reference) else { return }
        state.names[version.name]?.removeAll { $0 == reference }
        if state.names[version.name]?.isEmpty == true { state.names[version.name] = nil }
    }

    // Pending versions

    package func pendingVersions(in lane: Lane, limit: Int) -> [PendingVersion] {
        state.pending.isEmpty ? [] : Array(state.pending.lazy.filter { $0.lane == lane }.prefix(limit))
    }

    package func pendingVersion(_ id: SyncVersionID) -> PendingVersion? { state.pending.first { $0.id == id } }
    package func pendingVersions(named name: ItemName) -> [PendingVersion] { state.pending.filter { $0.name == name } }
    package func insert(_ version: PendingVersion) throws(KeychainFailure) {
        guard pendingVersion(version.id) == nil else { throw KeychainFailure(.duplicateItem, "the version is pending already") }
        state.pending.append(version)
    }

    package func removePending(_ id: SyncVersionID) { state.pending.removeAll { $0.id == id } }

    // Batches

    package func isAwaited(_ reference: VersionReference) -> Bool { state.awaited.contains(reference) }

    package func awaitedVersions(after reference: VersionReference?, limit: Int) -> [VersionReference] {
        let sorted = state.awaited.sorted()
        let rest = reference.map { last in sorted.drop { !(last < $0) } } ?? sorted[...]
        return Array(rest.prefix(limit))
    }

    package func insertAwaited(_ reference: VersionReference) { state.awaited.insert(reference) }

    package func removeAwaited(_ origin: Origin) {
        if !state.awaited.isEmpty { state.awaited = state.awaited.filter { $0.origin != origin } }
    }

    package func isPermitted(_ origin: Origin) -> Bool { state.permitted.contains(origin) }
    package func insertPermitted(_ origin: Origin) { state.permitted.insert(origin) }
    package func removePermitted(_ origin: Origin) { state.permitted.remove(origin) }

    package func isRead(_ origin: Origin) -> Bool { state.read.contains(origin) }
    package func isAnyRead(_ number: UInt64, of log: LogID) -> Bool { state.batches[log]?.contains { $0.number == number } ?? false }
    package func readBatches(of log: LogID) -> [ReadBatch] { state.batches[log] ?? [] }
    package func logs() -> [LogID] { Set(state.batches.keys).union(state.marks.keys).sorted() }
    package func marks(of log: LogID) -> [LogMark] { state.marks[log] ?? [] }
    package func mark(_ origin: Origin) -> LogMark? { state.marks[origin.log]?.first { $0.origin == origin } }

    package func insert(_ batch: ReadBatch) {
        guard state.read.insert(batch.origin).inserted else { return }
        var batches = state.batches[batch.log] ?? []
        batches.insert(batch, at: batches.firstIndex { batch < $0 } ?? batches.endIndex)
        state.batches[batch.log] = batches
    }

    package func insert(_ mark: LogMark, isToReport: Bool) {
        removeMark(mark.origin)
        var marks = state.marks[mark.log] ?? []
        marks.insert(mark, at: marks.firstIndex { mark.origin < $0.origin } ?? marks.endIndex)
        state.marks[mark.log] = marks
        guard isToReport else { return }
        state.reportPositions[mark.origin] = (mark.device, state.marksToReport[mark.device]?.count ?? 0)
        state.marksToReport[mark.device, default: []].append(mark)
    }

    package func removeMark(_ origin: Origin) {
        state.marks[origin.log]?.removeAll { $0.origin == origin }
        noteReported(origin)
    }

    package func marksToReport(of device: DeviceID, limit: Int) -> [LogMark] {
        Array((state.marksToReport[device] ?? []).lazy.compactMap { $0 }.prefix(limit))
    }

    package func noteReported(_ origin: Origin) {
        guard let (device, index) = state.reportPositions.removeValue(forKey: origin) else { return }
        state.marksToReport[device]?[index] = nil
        while state.marksToReport[device]?.last == .some(nil) { state.marksToReport[device]?.removeLast() }
    }

    // Objects

    package func outgoingNames() -> [String] { state.outgoing.map(\.name) }
    package func outgoingBytes(_ name: String) -> [UInt8]? { state.outgoing.first { $0.name == name }?.bytes }

    package func insert(_ object: OutgoingObject) {
        if !state.outgoing.contains(where: { $0.name == object.name }) { state.outgoing.append(object) }
    }

    package func removeOutgoing(_ name: String) { state.outgoing.removeAll { $0.name == name } }

    package func statements() -> [StoredStatement] {
        state.statements.sorted { $0.key < $1.key }.map { StoredStatement(hash: $0.key, bytes: $0.value) }
    }

    package func insert(_ statement: StoredStatement) { state.statements[statement.hash] = statement.bytes }
}
