// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

extension StoreSession: ItemWriting {
    func insert(_ row: SealedRow) throws(KeychainFailure) {
        // The row first: when its primary key is taken, nothing else has happened yet.
        try connection.statement(.insert).bindAndRun(row, includingIndexed: true)
        let number = connection.lastInsertedNumber
        for digest in row.header.attributeDigests { try run(.insertAttribute, digest, item: number) }
    }

    /// Writes no more pages than it must: setting a new secret touches the row alone, and no index.
    func replace(number: Int64, with row: SealedRow) throws(KeychainFailure) {
        let stored = try indexedValues(ofRow: number)
        let header = row.header
        let sameKeys =
            stored.id == header.reference.id && stored.service == header.serviceDigest && stored.account == header.accountDigest
            && stored.remaining == header.remainingKeyDigest
        let statement = try connection.statement(sameKeys ? .replaceContent : .replaceAll)
        statement.bind(number, at: RowColumn.numberParameter)
        try statement.bindAndRun(row, includingIndexed: !sameKeys)
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
    }

    /// Moves the stored bytes as they are: nothing is parsed on the way.
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
    }

    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure) {
        guard try generation > keybagGeneration() else {
            throw KeychainFailure(.internal, "a keybag is replaced by one of a higher generation only")
        }
        for name in [StoreStatement.replaceKeybag, .replaceKeybagCopy] {
            let statement = try connection.statement(name)
            try statement.withBound([SQLiteStatement.Blob(index: 1, bytes: bytes)]) { () throws(KeychainFailure) in
                try statement.run()
            }
        }
        let meta = try connection.statement(.markKeybagReplaced)
        meta.bind(Int64(bitPattern: generation), at: 1)
        // A number of its own, so that whoever finishes an earlier scrub does not take away the mark of this one.
        meta.bind(Int64.random(in: 1...Int64.max), at: 2)
        try meta.run()
        mayNeedScrub = true
        waitsForScrub = true
    }

    /// What of a row is in an index.
    ///
    /// When its digests cannot be understood their entries stay behind, which is harmless: a search believes the row it is led to,
    /// not the entry.
    private func indexedValues(
        ofRow number: Int64
    ) throws(KeychainFailure) -> (
        id: ItemID?, service: IndexDigest?, account: IndexDigest?, remaining: IndexDigest?, attributes: [AttributeDigest]
    ) {
        let statement = try connection.statement(.indexedColumns)
        defer { statement.reset() }
        statement.bind(number, at: 1)
        guard try statement.step() else { throw KeychainFailure(.internal, "the store has no row of that number") }
        return (
            statement.identifier(at: 0), statement.identifier(at: 1), statement.identifier(at: 2), statement.identifier(at: 3),
            statement.attributeDigests(at: 4) ?? []
        )
    }

    private func run(_ name: StoreStatement, _ digest: AttributeDigest, item: Int64) throws(KeychainFailure) {
        let statement = try connection.statement(name)
        statement.bind(Int64(digest.attribute.rawValue), at: 1)
        statement.bind(digest.digest, at: 2)
        statement.bind(item, at: 3)
        try statement.run()
    }
}
