// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainEngine

/// Compares the records of changes in a synchronized store with its rows, as an agent relies on them.
///
/// A ledger that knows the revision of each row shows which rows were written since: exactly those must be recorded.
package struct RecordAudit {
    private let store: any SyncStore
    private let generation: UInt64

    private init(_ store: any SyncStore, generation: UInt64) {
        self.store = store
        self.generation = generation
    }

    /// Runs `body` with the store of an existing keychain.
    package static func with<Result>(
        _ keychain: LocalKeychain, _ body: (RecordAudit) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try keychain.perform(creating: false) { opened throws(KeychainFailure) in
            guard let store = opened.store as? any SyncStore else { throw KeychainFailure(.internal, "the store cannot synchronize") }
            let generation = try store.read { reading throws(KeychainFailure) in try reading.keybag().generation }
            return try body(RecordAudit(store, generation: generation))
        }
    }

    /// Turns synchronization on, and adds all items to the ledger.
    package func start() throws(KeychainFailure) {
        try store.startSynchronizing()
        try synchronize()
    }

    /// Brings the ledger up to date with the rows and erases all records, as an agent does.
    package func synchronize() throws(KeychainFailure) {
        try write { writing throws(KeychainFailure) in
            for version in try writing.liveVersions(after: nil, limit: .max) { try writing.remove(version.reference) }
            for row in try Self.sharedRows(writing) {
                try writing.insert(
                    LiveVersion(
                        reference: VersionReference(id: SyncVersionID(row.revision), origin: nil), name: ItemName(row.item),
                        lane: .whenUnlocked, date: nil, contentDigest: nil, item: row.item))
            }
            for change in try Self.changes(writing) { try writing.eraseRecordedChange(change.item) }
            try writing.set(.membership, to: [1])
        }
    }

    /// The number of items of which a change is recorded.
    package func recordCount() throws(KeychainFailure) -> Int {
        try store.readLedger { reading throws(KeychainFailure) in try Self.changes(reading).count }
    }

    /// Planted fault: loses all records.
    package func loseRecords() throws(KeychainFailure) {
        try write { writing throws(KeychainFailure) in
            for change in try Self.changes(writing) { try writing.eraseRecordedChange(change.item) }
        }
    }

    /// Returns a sentence for each write without a record, and for each record without a write; empty if synchronization is off.
    package func objections() throws(KeychainFailure) -> [String] {
        guard try store.isSynchronizing() else { return [] }
        return try store.readLedger { reading throws(KeychainFailure) in
            // Between the start and the first round the ledger is empty.
            guard try reading.setting(.membership) != nil else { return [] }
            var objections: [String] = []
            var changes: [ItemID: RecordedChange.Kind] = [:]
            for change in try Self.changes(reading) { changes[change.item] = change.kind }
            var items: Set<ItemID> = []
            for row in try Self.sharedRows(reading) {
                items.insert(row.item)
                let isKnown = try reading.liveVersion(shownBy: row.item)?.reference.id.value == row.revision
                switch changes[row.item] {
                case .written, .rewritten: if isKnown { objections.append("an item that was not written is recorded as written") }
                case .deleted: objections.append("an item that exists is recorded as deleted")
                case nil: if !isKnown { objections.append("a written item is not recorded") }
                }
            }
            for (item, kind) in changes where kind != .deleted && !items.contains(item) {
                objections.append("the item \(item.hexadecimal) does not exist and is recorded as written")
            }
            for version in try reading.liveVersions(after: nil, limit: .max) {
                guard let item = version.item, !items.contains(item), changes[item] == nil else { continue }
                objections.append("a deleted item is not recorded")
            }
            return objections
        }
    }

    private func write(_ body: (any SyncStoreWriting) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        guard case .written = try store.writeLedger(ifKeybagGeneration: generation, body) else {
            throw SealedKeychain.keybagChanged
        }
    }

    private static func changes(_ reading: any SyncStoreReading) throws(KeychainFailure) -> [RecordedChange] {
        var changes: [RecordedChange] = []
        for kind in RecordedChange.Kind.allCases { changes += try reading.recordedChanges(kind, limit: .max) }
        return changes
    }

    private static func sharedRows(_ reading: any SyncStoreReading) throws(KeychainFailure) -> [SharedItem] {
        var items: [SharedItem] = []
        try reading.forEachRow(matching: RowQuery(isSynchronizable: true, isTombstone: false), includingSecrets: false) { row in
            if let item = row.header.shared { items.append(item) }
            return .proceed
        }
        return items
    }
}
