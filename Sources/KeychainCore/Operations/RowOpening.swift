// SPDX-License-Identifier: Apache-2.0

/// What came of opening a row.
///
/// Damage, "not yet" and "not by this version" are told apart, because only the first may be written over.
enum RowOpening {
    case opened(OpenedRow)
    case damaged(KeychainFailure)
    /// Written by a newer version, or under a class key this keybag does not have. Never written over.
    case unsupported(KeychainFailure)
    case locked(KeychainFailure)
}

extension SealedKeychain {
    /// Opens a row for reading.
    ///
    /// Throws what says nothing about the row: no memory, a holder or a library that failed.
    func open(_ row: SealedRow, includingSecret: Bool) throws(KeychainFailure) -> RowOpening {
        try opening(row) { key throws(KeychainFailure) in
            try cipher.open(row, includingSecret: includingSecret, under: key)
        }
    }

    /// Opens a row's secret and leaves its attributes sealed.
    ///
    /// Throws as `open`.
    func openSecret(of row: SealedRow) throws(KeychainFailure) -> RowOpening {
        try opening(row) { key throws(KeychainFailure) in
            OpenedRow(attributes: ItemAttributes(), secret: try cipher.openSecret(of: row, under: key))
        }
    }

    private func opening(
        _ row: SealedRow, _ open: (borrowing ClassKey) throws(KeychainFailure) -> OpenedRow
    ) throws(KeychainFailure) -> RowOpening {
        let header = row.header
        guard header.formatVersion <= RowHeader.currentFormatVersion else {
            return .unsupported(KeychainFailure(.decode, "an item was written by a newer version of this library"))
        }
        guard header.constraints == nil else {
            return .unsupported(KeychainFailure(.unimplemented, "an item has access control, which this version cannot enforce"))
        }
        guard keys.availability(of: header.accessibility, generation: header.classKeyGeneration) != .missing else {
            return .unsupported(KeychainFailure(.decode, "an item was written under a class key that this keybag does not have"))
        }
        do throws(KeychainFailure) {
            return .opened(try keys.withClassKey(for: header.accessibility, generation: header.classKeyGeneration, open))
        } catch {
            switch error.status {
            case .interactionNotAllowed: return .locked(error)
            case .decode: return .damaged(error)
            default: throw error
            }
        }
    }

    /// Opens a row that may be written over.
    ///
    /// The row must have been read with its secret: the row tag covers it.
    ///
    /// A row whose tag is wrong is damaged, whatever its columns claim about version and generation.
    func openForWriting(_ row: SealedRow) throws(KeychainFailure) -> RowOpening {
        let opening = try open(row, includingSecret: true)
        switch opening {
        case .unsupported, .locked:
            guard row.header.formatVersion <= RowHeader.currentFormatVersion, try !cipher.isIntact(row) else { return opening }
            return .damaged(KeychainFailure(.decode, "an item is damaged"))
        case .opened, .damaged:
            return opening
        }
    }
}
