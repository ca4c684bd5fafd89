// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Recording which items programs change.
///
/// A record is part of the transaction, and of the savepoint, of the write that it describes. Needs no key: it names an item by its
/// identifier.
extension StoreSession {
    /// Records a change of one row; nil stands for a row that does not exist or does not synchronize.
    func recordChange(from old: SharedItem?, to new: SharedItem?) throws(KeychainFailure) {
        for change in RecordedChange.records(from: old, to: new) {
            let statement = try connection.statement(.recordChange)
            statement.bind(change.item, at: 1)
            statement.bind(Int64(change.kind.rawValue), at: 2)
            try statement.run()
        }
    }

    /// Whether the store has a ledger, as the current transaction sees it.
    func isSynchronizing() throws(KeychainFailure) -> Bool { try format() >= StoreSchema.synchronizingFormat }

    func recordedChanges(_ kind: RecordedChange.Kind, limit: Int) throws(KeychainFailure) -> [RecordedChange] {
        let statement = try connection.statement(kind == .written ? .recordedWrites : .recordedDeletions)
        defer { statement.reset() }
        statement.bind(Int64(kind.rawValue), at: 1)
        statement.bind(Int64(limit), at: 2)
        var changes: [RecordedChange] = []
        while try statement.step() {
            guard let item = statement.identifier(at: 0) else { throw Self.ledgerDamaged }
            changes.append(RecordedChange(item: item, kind: kind))
        }
        return changes
    }

    func recordedChangeCount() throws(KeychainFailure) -> Int { try count(.recordedChangeCount) }

    /// Returns the number that a statement counts.
    func count(_ name: SyncStatement) throws(KeychainFailure) -> Int {
        let statement = try connection.statement(name)
        defer { statement.reset() }
        return try statement.step() ? Int(statement.integer(at: 0)) : 0
    }

    func eraseRecordedChange(_ item: ItemID) throws(KeychainFailure) {
        let statement = try connection.statement(.eraseChange)
        statement.bind(item, at: 1)
        try statement.run()
    }

    /// The failure for a value of the ledger that no version wrote.
    static var ledgerDamaged: KeychainFailure {
        KeychainFailure(
            .notAvailable, "the keychain's record of synchronization is damaged", subject: .store, cause: .damaged,
            isDamage: true)
    }
}
