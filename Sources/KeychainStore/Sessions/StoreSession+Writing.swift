// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

extension StoreSession: ItemWriting {
    func insert(_ row: SealedRow) throws(KeychainFailure) {
        // The row comes first: if its primary key is taken, nothing has been changed yet.
        storesItems = true
        try connection.statement(.insert).bindAndRun(row, includingIndexed: true)
        let number = connection.lastInsertedNumber
        try noteInsertion(tag: row.tag)
        if recordsChanges { try recordChange(from: nil, to: row.header.shared) }
        for digest in row.header.attributeDigests { try run(.insertAttribute, digest, item: number) }
    }

    /// Replaces the row and changes only the indices whose columns differ.
    ///
    /// A new secret changes no index.
    func replace(number: Int64, with row: SealedRow) throws(KeychainFailure) {
        guard number < SyncSchema.firstCopyNumber else { return try replaceCopy(number: number, with: row) }
        let stored = try indexedValues(ofRow: number)
        let header = row.header
        if !header.isTombstone { storesItems = true }
        let sameKeys =
            stored.id == header.reference.id && stored.service == header.serviceDigest && stored.account == header.accountDigest
            && stored.remaining == header.remainingKeyDigest
        let statement = try connection.statement(sameKeys ? .replaceContent : .replaceAll)
        statement.bind(number, at: RowColumn.numberParameter)
        try statement.bindAndRun(row, includingIndexed: !sameKeys)
        try noteReplacement(of: stored.tag, by: row.tag)
        if recordsChanges { try recordChange(from: stored.shared, to: header.shared) }
        guard stored.attributes != header.attributeDigests else { return }
        for digest in stored.attributes where !header.attributeDigests.contains(digest) {
            try run(.removeAttribute, digest, item: number)
        }
        for digest in header.attributeDigests where !stored.attributes.contains(digest) {
            try run(.insertAttribute, digest, item: number)
        }
    }

    func remove(number: Int64) throws(KeychainFailure) {
        let stored = try indexedValues(ofRow: number)
        for digest in stored.attributes { try run(.removeAttribute, digest, item: number) }
        let statement = try connection.statement(.remove)
        statement.bind(number, at: 1)
        try statement.run()
        try noteRemoval(tag: stored.tag)
        if recordsChanges { try recordChange(from: stored.shared, to: nil) }
    }

    /// Moves the row to the quarantine without parsing any column.
    func quarantine(number: Int64, at seconds: Double) throws(KeychainFailure) {
        let copy = try connection.statement(.quarantine)
        copy.bind(number, at: 1)
        copy.bind(seconds, at: 2)
        try copy.run()
        try remove(number: number)
        let trim = try connection.statement(.trimQuarantine)
        trim.bind(Int64(QuarantinedRow.capacity), at: 1)
        try trim.run()
    }

    func purgeQuarantine() throws(KeychainFailure) {
        try connection.run(.purgeQuarantine)
        try noteOtherChange()
    }

    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure) {
        guard try generation > keybagGeneration() else {
            throw KeychainFailure(.internal, "the generation of a new keybag must be greater than the current one")
        }
        try storeKeybag(bytes, generation: generation)
    }

    /// Returns whether the stored keybag is the one of this generation.
    ///
    /// If the generation in the store was altered, no process could ever replace the keybag. So a recovery, whose keybag a person has chosen,
    /// corrects it in the same transaction, unless another process has replaced the keybag.
    func hasKeybag(ofGeneration generation: UInt64) throws(KeychainFailure) -> Bool {
        if try keybagGeneration() == generation { return true }
        guard let recovered = stateGuard?.recoveredKeybag, try keybag().copies.contains(recovered) else { return false }
        try storeKeybag(recovered, generation: generation)
        return true
    }

    /// Stores both copies of a keybag, whatever its generation.
    func storeKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure) {
        for name in [StoreStatement.replaceKeybag, .replaceKeybagCopy] {
            let statement = try connection.statement(name)
            try statement.withBound([SQLiteStatement.Blob(index: 1, bytes: bytes)]) { () throws(KeychainFailure) in
                try statement.run()
            }
        }
        let meta = try connection.statement(.markKeybagReplaced)
        meta.bind(Int64(bitPattern: generation), at: 1)
        // The mark is random, so that a process that finishes an earlier scrub does not clear it.
        meta.bind(Int64.random(in: 1...Int64.max), at: 2)
        try meta.run()
        try noteKeybag(bytes)
        mayNeedScrub = true
        waitsForScrub = true
    }

    /// The values of a stored row that a write of it needs.
    private struct StoredValues {
        let id: ItemID?
        let service: IndexDigest?
        let account: IndexDigest?
        let remaining: IndexDigest?
        let attributes: [AttributeDigest]
        let tag: [UInt8]
        /// Nil if changes are not recorded, and for a row that does not synchronize.
        let shared: SharedItem?
    }

    /// Returns the values of a row that are in an index, and its tag.
    ///
    /// If the attribute digests are malformed, their index entries are not removed. That is harmless: a search checks the conditions on the
    /// row, not on the index entry.
    private func indexedValues(ofRow number: Int64) throws(KeychainFailure) -> StoredValues {
        let statement = try connection.statement(recordsChanges ? .recordedColumns : .indexedColumns)
        defer { statement.reset() }
        statement.bind(number, at: 1)
        guard try statement.step() else { throw KeychainFailure(.internal, "the store has no row with that number") }
        return StoredValues(
            id: statement.identifier(at: 0), service: statement.identifier(at: 1), account: statement.identifier(at: 2),
            remaining: statement.identifier(at: 3), attributes: statement.attributeDigests(at: 4) ?? [], tag: statement.bytes(at: 5),
            shared: recordsChanges ? statement.sharedItem(at: 6) : nil)
    }

    private func run(_ name: StoreStatement, _ digest: AttributeDigest, item: Int64) throws(KeychainFailure) {
        let statement = try connection.statement(name)
        statement.bind(Int64(digest.attribute.rawValue), at: 1)
        statement.bind(digest.digest, at: 2)
        statement.bind(item, at: 3)
        try statement.run()
    }
}
