// SPDX-License-Identifier: Apache-2.0

/// How far a rewrapping has come.
package struct RewrappingBatch: Sendable {
    /// Where the next batch begins; nil when this was the last one.
    package let lastNumber: Int64?
    package let rewrappedCount: Int
    /// Rows that cannot be opened: they stay under their old key, as they are.
    package let skippedCount: Int
}

extension SealedKeychain {
    /// Rows in one transaction: enough that flushing does not count, few enough that other writers need not wait long.
    private static let rewrappingRowLimit = 128
    private static let rewrappingByteLimit = 4 << 20

    /// Seals rows that are under an older passcode-protected class key anew under the current one: the next ones after `number`.
    ///
    /// The items stay as they are, dates included. The keys must be at hand: see `with(keys:)`. Each batch is one
    /// transaction, so a rewrapping that ends anywhere can go on later.
    package func rewrapBatch(after number: Int64, currentGeneration: UInt32) throws(KeychainFailure) -> RewrappingBatch {
        try write { writing throws(KeychainFailure) in
            var last: Int64?
            var rewrappedCount = 0
            var skippedCount = 0
            var byteCount = 0
            try writing.forEachRow(underPasscodeKeysBelow: currentGeneration, after: number) { row throws(KeychainFailure) in
                guard let rowNumber = row.number else { return .proceed }
                last = rowNumber
                if case .opened(let opened) = try open(row, includingSecret: true) {
                    try writing.replace(number: rowNumber, with: try resealed(row.header, opened))
                    rewrappedCount += 1
                } else {
                    skippedCount += 1
                }
                byteCount += row.sealedAttributes.count + row.sealedSecret.count
                let isFull = rewrappedCount + skippedCount >= Self.rewrappingRowLimit || byteCount >= Self.rewrappingByteLimit
                return isFull ? .stop : .proceed
            }
            return RewrappingBatch(lastNumber: last, rewrappedCount: rewrappedCount, skippedCount: skippedCount)
        }
    }

    /// The same item under the current class key: nothing of it changes, and its revision is new as with every write.
    private func resealed(_ old: RowHeader, _ opened: OpenedRow) throws(KeychainFailure) -> SealedRow {
        var header = old
        header.classKeyGeneration = try keys.currentGeneration(for: old.accessibility)
        header.revision = .random()
        let cipher = cipher
        let renewed = header
        return try keys.withClassKey(for: header.accessibility, generation: header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.seal(opened.attributes, secret: opened.secret, header: renewed, under: key)
        }
    }
}
