// SPDX-License-Identifier: Apache-2.0

/// A store that can record which items programs change, and that keeps the ledger of synchronization.
///
/// Implemented by KeychainStore.
package protocol SyncStore: ItemStore {
    /// Returns whether synchronization is on.
    func isSynchronizing() throws(KeychainFailure) -> Bool

    /// Adds an empty ledger; from now on every process records its changes. A no-op if synchronization is on.
    ///
    /// Programs that do not know the ledger are refused from their next write on.
    func startSynchronizing() throws(KeychainFailure)

    /// Removes the ledger with all conflict copies, and leaves the items as they are. A no-op if synchronization is off.
    func stopSynchronizing() throws(KeychainFailure)

    /// Runs `body` on a consistent snapshot of items and ledger. Throws `.notAvailable` while synchronization is off.
    func readLedger<Result>(
        _ body: (any SyncStoreReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result

    /// Runs `body` in a transaction that records none of its changes. Otherwise like `write(ifKeybagGeneration:_:)`.
    ///
    /// Throws `.notAvailable` while synchronization is off. The transaction is never part of a group commit.
    func writeLedger<Result>(
        ifKeybagGeneration: UInt64, _ body: (any SyncStoreWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result>
}

extension SyncStore {
    /// The failure of a call that needs the ledger while there is none.
    package static var isNotSynchronizing: KeychainFailure {
        KeychainFailure(.notAvailable, "synchronization is off in this keychain", subject: .store)
    }
}

/// Read access to the rows of items and of conflict copies, and to the ledger.
package protocol SyncStoreReading: ItemReading, SyncReading {
    /// Returns the number of recorded changes of all kinds.
    func recordedChangeCount() throws(KeychainFailure) -> Int

    /// Returns the number of pending versions of all lanes.
    func pendingVersionCount() throws(KeychainFailure) -> Int

    /// Returns the number of live versions that an item shows.
    func shownVersionCount() throws(KeychainFailure) -> Int

    /// Returns the row of a conflict copy with its secret; nil if there is none.
    func copy(of reference: VersionReference) throws(KeychainFailure) -> SealedRow?
}

/// Write access to the rows of items and of conflict copies, and to the ledger.
package protocol SyncStoreWriting: SyncStoreReading, ItemWriting, SyncWriting {
    /// Inserts the row of a conflict copy. Throws `.duplicateItem` if the version has one.
    ///
    /// `seconds` is the time of the insertion since 2001-01-01 00:00:00 UTC.
    func insertCopy(_ row: SealedRow, of reference: VersionReference, at seconds: Double) throws(KeychainFailure)

    /// Copies the row of an item into a new conflict copy. Throws `.duplicateItem` if the version has one.
    func copyRow(number: Int64, toCopyOf reference: VersionReference, at seconds: Double) throws(KeychainFailure)

    /// Removes a conflict copy. Succeeds if there is none.
    func removeCopy(of reference: VersionReference) throws(KeychainFailure)

    /// Changes the reference of a conflict copy. Succeeds if there is none.
    func renameCopy(_ reference: VersionReference, to other: VersionReference) throws(KeychainFailure)
}
