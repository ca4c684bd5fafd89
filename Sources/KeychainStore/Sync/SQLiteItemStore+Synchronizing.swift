// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

extension SQLiteItemStore: SyncStore {
    package func isSynchronizing() throws(KeychainFailure) -> Bool {
        try withReader { session throws(KeychainFailure) in try session.isSynchronizing() }
    }

    package func startSynchronizing() throws(KeychainFailure) { try changeFormat(toSynchronizing: true) }

    package func stopSynchronizing() throws(KeychainFailure) { try changeFormat(toSynchronizing: false) }

    /// Adds or drops the tables of the ledger, in one transaction with the format of the file.
    ///
    /// Counts as a change of the state, so that an older copy of the file, without the ledger, is recognized as older.
    private func changeFormat(toSynchronizing isSynchronizing: Bool) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        try perform(sharesFlush: false) { session throws(KeychainFailure) in
            guard try session.isSynchronizing() != isSynchronizing else { return }
            try session.noteOtherChange()
            guard !isSynchronizing else { return try session.connection.execute(SyncSchema.upgrade) }
            try session.connection.execute(SyncSchema.erasure)
            // The rest is identifiers, digests, and objects under keys of the circle. Overwriting it would write a ledger of any size once more.
            try session.connection.withoutOverwritingFreedPages { () throws(KeychainFailure) in
                try session.connection.execute(SyncSchema.downgrade)
            }
        }
    }

    package func readLedger<Result>(
        _ body: (any SyncStoreReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try withReader { session throws(KeychainFailure) in
            try session.beginReadTransaction()
            guard try session.isSynchronizing() else { throw Self.isNotSynchronizing }
            return try body(session)
        }
    }

    package func writeLedger<Result>(
        ifKeybagGeneration expected: UInt64, _ body: (any SyncStoreWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try ForkDetection.requireNotForked()
        var outcome: WriteOutcome<Result>?
        try perform(sharesFlush: false) { session throws(KeychainFailure) in
            guard try session.isSynchronizing() else { throw Self.isNotSynchronizing }
            guard try session.hasKeybag(ofGeneration: expected) else {
                outcome = .keybagChanged
                return
            }
            session.recordsChanges = false
            try session.enlargeCache(kibibytes: StoreSession.cacheOfSynchronization)
            outcome = .written(try body(session))
            try session.storeVersionCount()
        }
        guard let outcome else { throw KeychainFailure(.internal, "a write ended without an outcome") }
        return outcome
    }
}

extension StoreSession {
    /// As many pages as one batch changes, which has hundreds of items.
    fileprivate static let cacheOfSynchronization = 24_576
    /// As many pages as thousands of items change, which share a transaction while a person waits for a million of them.
    static let cacheOfLargeTransactions = 49_152

    /// Lets the session keep as many pages as one transaction changes.
    ///
    /// Each item changes pages of several indexes. Pages that have no room are written, and read again, before the transaction is committed.
    func enlargeCache(kibibytes: Int) throws(KeychainFailure) {
        guard cacheKibibytes < kibibytes else { return }
        try connection.execute("PRAGMA cache_size = -\(kibibytes)")
        cacheKibibytes = kibibytes
    }
}
