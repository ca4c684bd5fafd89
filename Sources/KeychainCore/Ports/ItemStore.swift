// SPDX-License-Identifier: Apache-2.0

/// Keeps sealed rows.
///
/// It sees digests and sealed bytes, never a key or a plaintext. Implemented by KeychainStore.
package protocol ItemStore: Sendable {
    /// Runs `body` on one consistent state of the store.
    func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result

    /// Runs `body` in a transaction that is durable when this returns, and undone when `body` throws.
    ///
    /// Writes nothing and answers `.keybagChanged` when the store's keybag is not of the expected generation.
    func write<Result>(
        ifKeybagGeneration: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result>

    /// The same, and with `sharesFlush` perhaps in one transaction with what other threads write at the same time: each `body` is undone
    /// alone when it throws, and nobody is answered before all is durable.
    ///
    /// Such a `body` may run on another thread while the caller waits, and once more after what it did was undone: it is short, and
    /// does not mind. When the outcome is unknown, it is so for all.
    func write<Result>(
        ifKeybagGeneration: UInt64, sharesFlush: Bool, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result>

    /// Counts one more lock, whatever the keybag is.
    ///
    /// Durable when this returns.
    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure)
}

extension ItemStore {
    /// Where there is nothing to share, every write is one of its own.
    package func write<Result>(
        ifKeybagGeneration generation: UInt64, sharesFlush: Bool, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try write(ifKeybagGeneration: generation, body)
    }
}

extension ItemReading {
    /// Where nothing can be damaged, or all is damaged together.
    package func forEachReadableRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Int {
        try forEachRow(matching: query, includingSecrets: includingSecrets, body)
        return 0
    }
}

/// What became of a write.
package enum WriteOutcome<Result> {
    case written(Result)
    /// Another process changed the keybag: load it again, then repeat.
    case keybagChanged
}

/// Valid only inside the closure that received it.
package protocol ItemReading {
    /// Hands over the rows that match, in ascending order of their number, until `body` answers `.stop`.
    ///
    /// `includingSecrets: false` leaves `sealedSecret` empty. `body` may change the row it was given, and no other.
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure)

    /// The same where a damaged part of the store hides no other row: a row of which only the secret lies there comes with an empty
    /// `sealedSecret`, which no key opens.
    ///
    /// Returns how many rows are there, or may be, of which nothing could be read.
    func forEachReadableRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Int

    /// How many rows there are, tombstones left out.
    func itemCount() throws(KeychainFailure) -> Int

    /// The keybag as stored, with both its copies.
    func keybag() throws(KeychainFailure) -> StoredKeybag

    /// Rows set aside because they could not be read, oldest first.
    func quarantinedRows() throws(KeychainFailure) -> [QuarantinedRow]

    /// How often the store was locked.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch

    /// How many rows, tombstones too, are of a class under the passcode and of a generation below that one.
    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int

    /// Hands over those rows, with their secrets, in ascending order of their number, from the first one after `number` until
    /// `body` answers `.stop`.
    ///
    /// `body` may change the row it was given, and no other.
    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure)

    /// The class keys that rows name, those in the quarantine too.
    ///
    /// A row whose class makes no sense stands for every class of its generation.
    func classKeysInUse() throws(KeychainFailure) -> Set<ClassKeyID>
}

package protocol ItemWriting: ItemReading {
    /// Throws `.duplicateItem` when a row with the same primary-key digests is there.
    func insert(_ row: SealedRow) throws(KeychainFailure)
    /// Puts `row` in the place of the stored row of that number.
    func replace(number: Int64, with row: SealedRow) throws(KeychainFailure)
    func remove(number: Int64) throws(KeychainFailure)
    /// Moves a row that cannot be read to the quarantine, which keeps the newest `QuarantinedRow.capacity`.
    func quarantine(number: Int64, at seconds: Double) throws(KeychainFailure)
    /// Empties the quarantine for good.
    func purgeQuarantine() throws(KeychainFailure)
    /// Puts another keybag in the place of both copies.
    ///
    /// The store then removes what is left of the old one from its files as soon as nobody reads there. Throws `.internal` unless
    /// the generation is higher than the present one.
    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure)
}

/// The keybag as the store keeps it: sealed bytes, twice, written in one transaction.
package struct StoredKeybag: Sendable {
    /// Rises with each change of the keybag.
    package let generation: UInt64
    /// Two, unless one is unreadable.
    ///
    /// They differ only after damage.
    package let copies: [[UInt8]]

    package init(generation: UInt64, copies: [[UInt8]]) {
        self.generation = generation
        self.copies = copies
    }
}

package enum Iteration: Sendable {
    case proceed, stop
}

/// A search as the store understands it.
///
/// All conditions hold together.
package struct RowQuery: Sendable {
    package var itemClass: ItemClass?
    package var id: ItemID?
    package var serviceDigest: IndexDigest?
    package var accountDigest: IndexDigest?
    package var remainingKeyDigest: IndexDigest?
    /// Any of these groups; nil for all.
    package var accessGroupDigests: [IndexDigest]?
    package var attributeDigests: [AttributeDigest]
    package var accessibility: Accessibility?
    package var isSynchronizable: Bool?
    package var isTombstone: Bool?

    package init(
        itemClass: ItemClass? = nil, id: ItemID? = nil, serviceDigest: IndexDigest? = nil, accountDigest: IndexDigest? = nil,
        remainingKeyDigest: IndexDigest? = nil, accessGroupDigests: [IndexDigest]? = nil,
        attributeDigests: [AttributeDigest] = [], accessibility: Accessibility? = nil, isSynchronizable: Bool? = nil,
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

/// A row that was set aside instead of being lost.
package struct QuarantinedRow: Sendable {
    package static let capacity = 1_000

    package let row: SealedRow
    /// When it was set aside, in seconds since 2001-01-01 00:00:00 UTC.
    package let seconds: Double

    package init(row: SealedRow, seconds: Double) {
        self.row = row
        self.seconds = seconds
    }
}
