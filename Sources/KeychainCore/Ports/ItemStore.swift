// SPDX-License-Identifier: Apache-2.0

/// Stores sealed rows.
///
/// Implemented by KeychainStore.
///
/// It sees digests and sealed bytes, never a key or a plaintext.
package protocol ItemStore: LockEpochReading, Sendable {
    /// Runs `body` on a consistent snapshot of the store.
    func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result

    /// Runs `body` in a transaction, which is durable when this returns and rolled back if `body` throws.
    ///
    /// Writes nothing and returns `.keybagChanged` if the store's keybag is not of the expected generation.
    func write<Result>(
        ifKeybagGeneration: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result>

    /// Runs `body` as `write(ifKeybagGeneration:_:)` does, and with `sharesFlush` possibly in a group commit with writes of other threads.
    ///
    /// Each `body` that throws is rolled back alone, and all callers return only once everything is durable.
    ///
    /// `body` may run on another thread while the caller waits, and may run again after a rollback, so it must be short and idempotent.
    /// If the outcome is unknown, it is unknown for all callers.
    func write<Result>(
        ifKeybagGeneration: UInt64, sharesFlush: Bool, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result>

    /// Advances the lock epoch, whichever keybag the store has. Durable when this returns.
    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure)
}

extension ItemStore {
    /// Returns the lock epoch, in a session of its own.
    package func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        try read { reading throws(KeychainFailure) in try reading.lockEpoch() }
    }

    /// The default for stores without group commit.
    package func write<Result>(
        ifKeybagGeneration generation: UInt64, sharesFlush: Bool, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try write(ifKeybagGeneration: generation, body)
    }
}

extension ItemReading {
    /// The default for stores without damaged parts.
    package func forEachReadableRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> SkippedRows {
        SkippedRows(hasExcludedRow: try forEachRow(matching: query, includingSecrets: includingSecrets, body))
    }

    package func mayLackRows() throws(KeychainFailure) -> Bool { false }

    package func stateReport(using keybag: StoredKeybag) throws(KeychainFailure) -> StateReport? { nil }
}

/// What the authenticated state of a store says about a transaction that reads it.
package struct StateReport: Equatable, Sendable {
    /// The number of rows, including tombstones, that the store should have.
    package let rowCount: UInt64
    /// Whether the rows and the keybag are those of the last known change.
    package let isOfLastChange: Bool

    package init(rowCount: UInt64, isOfLastChange: Bool) {
        self.rowCount = rowCount
        self.isOfLastChange = isOfLastChange
    }
}

/// How much a store may keep.
package struct StoreQuota: Equatable, Sendable {
    /// The most bytes of pages in use, the pages of indexes among them.
    package var byteCount: Int
    /// The most rows, tombstones among them.
    package var rowCount: Int

    package init(byteCount: Int, rowCount: Int) {
        self.byteCount = byteCount
        self.rowCount = rowCount
    }
}

/// The result of a write.
package enum WriteOutcome<Result> {
    case written(Result)
    /// Another process changed the keybag. Load the new one and retry.
    case keybagChanged
}

/// Read access to a snapshot of a store.
///
/// Valid only inside the closure that received it.
package protocol ItemReading: LockEpochReading {
    /// Calls `body` with each matching row in ascending order of number, until it returns `.stop`.
    ///
    /// `includingSecrets: false` leaves `sealedSecret` empty. `body` may change the stored row that it was called with, and no other.
    ///
    /// Returns whether the search key of the query (`RowQuery.searchKey`) led to a row that another condition excludes. The column that
    /// excludes the row may have been altered. Always false for a query without a search key.
    @discardableResult
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Bool

    /// Calls `body` as `forEachRow` does, but skips damaged pages instead of failing.
    ///
    /// A row of which only the secret is in a damaged page is passed with an empty `sealedSecret`, which no key opens.
    func forEachReadableRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> SkippedRows

    /// Returns whether a search may lack rows, because a part of the store is damaged, or a row or an index was altered.
    func mayLackRows() throws(KeychainFailure) -> Bool

    /// Compares what this transaction reads with the state of the store; nil if the store has none, or if it is not authentic.
    ///
    /// `keybag` is the copy that is in use. Reads all rows.
    func stateReport(using keybag: StoredKeybag) throws(KeychainFailure) -> StateReport?

    /// Returns the number of rows without tombstones.
    func itemCount() throws(KeychainFailure) -> Int

    /// Returns the stored keybag with both copies.
    func keybag() throws(KeychainFailure) -> StoredKeybag

    /// Returns the quarantined rows, oldest first.
    func quarantinedRows() throws(KeychainFailure) -> [QuarantinedRow]

    /// Returns the number of rows, including tombstones, whose class is under the passcode and whose generation is below `generation`.
    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int

    /// Calls `body` with each of those rows and its secret, in ascending order of number, starting after `number`, until it returns
    /// `.stop`.
    ///
    /// `body` may change the stored row that it was called with, and no other.
    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure)

    /// Returns the class keys that rows name, including quarantined rows.
    ///
    /// A row with an invalid class counts for every class of its generation.
    func classKeysInUse() throws(KeychainFailure) -> Set<ClassKeyID>
}

/// Write access to a store within a transaction.
///
/// Valid only inside the closure that received it.
package protocol ItemWriting: ItemReading {
    /// Inserts a row. Throws `.duplicateItem` if a row with the same primary-key digests exists.
    func insert(_ row: SealedRow) throws(KeychainFailure)
    /// Replaces the stored row of that number.
    func replace(number: Int64, with row: SealedRow) throws(KeychainFailure)
    func remove(number: Int64) throws(KeychainFailure)
    /// Moves an unreadable row to the quarantine, which keeps the newest `QuarantinedRow.capacity` rows.
    func quarantine(number: Int64, at seconds: Double) throws(KeychainFailure)
    /// Deletes all quarantined rows permanently.
    func purgeQuarantine() throws(KeychainFailure)
    /// Replaces both copies of the keybag.
    ///
    /// The store then scrubs the old keybag from its files as soon as no reader uses them. Throws `.internal` if `generation` is not
    /// greater than the current one.
    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure)
}

/// A stored keybag: two copies of its bytes, written in one transaction.
package struct StoredKeybag: Hashable, Sendable {
    /// Increases with each change of the keybag.
    package let generation: UInt64
    /// The readable copies, at most two.
    ///
    /// They differ only after damage.
    package let copies: [[UInt8]]

    package init(generation: UInt64, copies: [[UInt8]]) {
        self.generation = generation
        self.copies = copies
    }
}

/// Whether an iteration continues.
package enum Iteration: Sendable {
    case proceed, stop
}

/// A search by digests and columns.
///
/// All conditions must hold.
package struct RowQuery: Sendable {
    package var itemClass: ItemClass?
    package var id: ItemID?
    package var serviceDigest: IndexDigest?
    package var accountDigest: IndexDigest?
    package var remainingKeyDigest: IndexDigest?
    /// The digests of the permitted groups; nil: all groups.
    package var accessGroupDigests: [IndexDigest]?
    package var attributeDigests: [AttributeDigest]
    package var accessibility: ItemAccessibility?
    package var isSynchronizable: Bool?
    package var isTombstone: Bool?

    package init(
        itemClass: ItemClass? = nil, id: ItemID? = nil, serviceDigest: IndexDigest? = nil, accountDigest: IndexDigest? = nil,
        remainingKeyDigest: IndexDigest? = nil, accessGroupDigests: [IndexDigest]? = nil,
        attributeDigests: [AttributeDigest] = [], accessibility: ItemAccessibility? = nil, isSynchronizable: Bool? = nil,
        isTombstone: Bool? = nil
    ) {
        self.itemClass = itemClass
        self.id = id
        self.serviceDigest = serviceDigest
        self.accountDigest = accountDigest
        self.remainingKeyDigest = remainingKeyDigest
        self.accessGroupDigests = accessGroupDigests
        self.attributeDigests = attributeDigests
        self.accessibility = accessibility
        self.isSynchronizable = isSynchronizable
        self.isTombstone = isTombstone
    }
}

extension RowQuery {
    /// The conditions by which an index finds a few rows: an identifier, or a service and an account.
    ///
    /// Nil if the query has neither.
    package var searchKey: RowQuery? {
        if let id { return RowQuery(id: id) }
        guard let serviceDigest, let accountDigest else { return nil }
        return RowQuery(serviceDigest: serviceDigest, accountDigest: accountDigest, remainingKeyDigest: remainingKeyDigest)
    }
}

/// The rows that a search did not pass to its closure although they may be wanted.
package struct SkippedRows: Sendable {
    /// The maximum number of rows of which nothing could be read.
    package var damagedPageRowCount = 0
    /// The result of `ItemReading.forEachRow`.
    package var hasExcludedRow = false

    package init(damagedPageRowCount: Int = 0, hasExcludedRow: Bool = false) {
        self.damagedPageRowCount = damagedPageRowCount
        self.hasExcludedRow = hasExcludedRow
    }
}

/// An unreadable row that was set aside instead of being deleted.
package struct QuarantinedRow: Sendable {
    package static let capacity = 1_000

    package let row: SealedRow
    /// The time of the quarantine, in seconds since 2001-01-01 00:00:00 UTC.
    package let seconds: Double

    package init(row: SealedRow, seconds: Double) {
        self.row = row
        self.seconds = seconds
    }
}
