// SPDX-License-Identifier: Apache-2.0

/// The progress of a rewrapping after one batch.
package struct RewrappingBatch: Sendable {
    package enum End: Sendable {
        /// The next batch starts after the row of this number.
        case continues(after: Int64)
        case finished
        /// The store was locked after the keys were obtained, so they must no longer be used.
        case locked
    }

    package let end: End
    package let rewrappedCount: Int
    /// Rows that cannot be opened and stay unchanged under their old key.
    package let skippedCount: Int
    /// When the batch acquired the write lock, in nanoseconds of the clock that was passed.
    package let startNanoseconds: UInt64
}

extension SealedKeychain {
    /// Limits of one transaction: large enough to make the cost of a flush negligible, small enough to keep other writers from waiting
    /// long.
    private static let rewrappingRowLimit = 128
    private static let rewrappingByteLimit = 4 << 20
    private static let rewrappingNanosecondLimit: UInt64 = 20_000_000

    /// Moves the next rows after `number` from older passcode-protected class keys to the current ones.
    ///
    /// The items do not change, including their dates. The keychain must have the keys (see `with(keys:)`), obtained at
    /// `lockEpoch`. Each batch is one transaction, so an interrupted rewrapping can continue later. `time` limits its length.
    package func rewrapBatch(
        after number: Int64, currentGeneration: UInt32, lockEpoch: LockEpoch, time: some ContinuousTime
    ) throws(KeychainFailure) -> RewrappingBatch {
        try write { writing throws(KeychainFailure) in
            let start = time.nowNanoseconds()
            var last: Int64?
            var rewrappedCount = 0
            var skippedCount = 0
            var byteCount = 0
            guard try writing.lockEpoch() == lockEpoch else {
                return RewrappingBatch(end: .locked, rewrappedCount: 0, skippedCount: 0, startNanoseconds: start)
            }
            try writing.forEachRow(underPasscodeKeysBelow: currentGeneration, after: number) { row throws(KeychainFailure) in
                guard let rowNumber = row.number else { return .proceed }
                last = rowNumber
                if let renewed = try renewed(row, in: writing) {
                    try writing.replace(number: rowNumber, with: renewed)
                    rewrappedCount += 1
                } else {
                    skippedCount += 1
                }
                byteCount += row.sealedAttributes.count + row.sealedSecret.count
                let isFull =
                    rewrappedCount + skippedCount >= Self.rewrappingRowLimit || byteCount >= Self.rewrappingByteLimit
                    || time.nowNanoseconds() - start >= Self.rewrappingNanosecondLimit
                return isFull ? .stop : .proceed
            }
            return RewrappingBatch(
                end: last.map { .continues(after: $0) } ?? .finished, rewrappedCount: rewrappedCount, skippedCount: skippedCount,
                startNanoseconds: start)
        }
    }

    /// Returns the highest generation above `current` of a class key that an intact row names, and that the keybag does not have; otherwise 0.
    ///
    /// A new class key must not have the number of one that was lost with its keybag: rows under the lost one would be damaged under the new
    /// one, and a damaged row may be replaced.
    package func newestGenerationInRows(above current: UInt32) throws(KeychainFailure) -> UInt32 {
        let cipher = cipher
        var newest: UInt32 = 0
        try store.read { reading throws(KeychainFailure) in
            let known = try reading.classKeysInUse().map(\.generation).max() ?? 0
            guard known > current else { return }
            _ = try reading.forEachReadableRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
                if row.header.classKeyGeneration > newest, cipher.isIntact(row) { newest = row.header.classKeyGeneration }
                return newest == known ? .stop : .proceed
            }
        }
        return newest
    }

    /// Returns the row under the current class key; nil if it cannot be opened or was altered.
    private func renewed(_ row: SealedRow, in writing: any ItemWriting) throws(KeychainFailure) -> SealedRow? {
        guard row.header.constraints == nil else { return try rewrapped(row, in: writing) }
        guard case .opened(let opened) = try open(row, includingSecret: true, in: writing) else { return nil }
        return try resealed(row.header, opened, in: writing)
    }

    /// Rewraps a row with access control.
    ///
    /// Only the class key's wrapping changes, so no authentication is required.
    private func rewrapped(_ row: SealedRow, in writing: any ItemWriting) throws(KeychainFailure) -> SealedRow? {
        let header = row.header
        guard cipher.isIntact(row) else { return nil }
        let generation = try keys.currentGeneration(for: header.accessibility)
        let (keys, cipher) = (keys, cipher)
        do throws(KeychainFailure) {
            return try keys.withClassKey(for: header.accessibility, generation: header.classKeyGeneration, lockEpoch: writing) {
                (oldKey: borrowing ClassKey) throws(KeychainFailure) in
                // Calls of `withClassKey` may be nested.
                let newKey = try ClassKey(copying: keys, header.accessibility, generation: generation, lockEpoch: writing)
                return try cipher.rewrapConstrained(row, from: oldKey, to: newKey)
            }
        } catch {
            guard error.status == .decode else { throw error }
            return nil
        }
    }

    /// Seals the same item under the current class key and a new item key.
    ///
    /// The item does not change, so its revision stays: a new one would make synchronization send the item again.
    private func resealed(_ old: RowHeader, _ opened: OpenedRow, in writing: any ItemWriting) throws(KeychainFailure) -> SealedRow {
        var header = old
        header.classKeyGeneration = try keys.currentGeneration(for: old.accessibility)
        let cipher = cipher
        let renewed = header
        return try keys.withClassKey(for: header.accessibility, generation: header.classKeyGeneration, lockEpoch: writing) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.seal(
                opened.attributes, secret: opened.secret, header: renewed, constraint: nil, with: ConstraintKeys(), under: key)
        }
    }
}
