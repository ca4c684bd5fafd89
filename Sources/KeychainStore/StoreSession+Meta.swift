// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What a store knows about itself.
extension StoreSession {
    func storeID() throws(KeychainFailure) -> StoreID {
        var id: StoreID?
        try connection.query("SELECT store_id FROM meta WHERE number = 1") { id = $0.identifier(at: 0) }
        guard let id else { throw KeychainFailure(.notAvailable, "the store is damaged: it has no identifier", isDamage: true) }
        return id
    }

    /// The format may have changed since the connection was opened.
    func checkFormat() throws(KeychainFailure) {
        let version = try singleInteger(.formatVersion) ?? 0
        guard version <= StoreSchema.formatVersion else { throw StoreOpening.newer(version) }
    }

    /// Names the change of keys after which the -wal file is still to be emptied; nil when there is none.
    func scrubPending() throws(KeychainFailure) -> Int64? {
        let pending = try singleInteger(.scrubPending) ?? 0
        return pending == 0 ? nil : pending
    }

    /// Only if no later change asked for another one.
    func clearScrubPending(_ pending: Int64) throws(KeychainFailure) {
        let statement = try connection.statement(.clearScrubPending)
        statement.bind(pending, at: 1)
        try statement.run()
    }

    /// One row of one statement is consistent without a transaction, and every use of a held key asks for it.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        guard let epoch = try singleInteger(.lockEpoch) else {
            throw KeychainFailure(.notAvailable, "the store is damaged: it has no count of its locks", isDamage: true)
        }
        return LockEpoch(rawValue: epoch)
    }

    func setLockEpoch(_ epoch: LockEpoch) throws(KeychainFailure) {
        let statement = try connection.statement(.setLockEpoch)
        statement.bind(epoch.rawValue, at: 1)
        try statement.run()
    }
}
