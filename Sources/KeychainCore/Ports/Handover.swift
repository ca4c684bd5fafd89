// SPDX-License-Identifier: Apache-2.0

/// What opens a keychain that is handed over from one keeper to another: everything but its rows.
///
/// The rows and the keybag move as they are, sealed, so nothing has to be decrypted, and nothing that the classes or a passcode protect is
/// lost or released.
package struct KeychainKeys: Sendable {
    package let storeID: StoreID
    package let keybag: [UInt8]
    package let keybagGeneration: UInt64
    package let deviceSecret: SharedSecretBytes

    package init(storeID: StoreID, keybag: [UInt8], keybagGeneration: UInt64, deviceSecret: SharedSecretBytes) {
        self.storeID = storeID
        self.keybag = keybag
        self.keybagGeneration = keybagGeneration
        self.deviceSecret = deviceSecret
    }
}

/// A row of a keychain that is handed over.
package struct HandedOverRow: Hashable, Sendable {
    /// Without its number: the rows keep their order, and the new store numbers them.
    package let row: SealedRow
    /// When the row was set aside as unreadable, in seconds since 2001-01-01 00:00:00 UTC; nil for a row that is in use.
    package let quarantineSeconds: Double?

    package init(_ row: SealedRow, quarantineSeconds: Double? = nil) {
        var row = row
        row.number = nil
        self.row = row
        self.quarantineSeconds = quarantineSeconds
    }

    /// About as many bytes as the row has in a message.
    package var byteCount: Int {
        256 + row.header.encodedByteCount + row.wrappedItemKey.count + row.sealedAttributes.count + row.sealedSecret.count + row.tag.count
    }

    /// The rows that one store hands over, in the order in which another one inserts them: first those of the quarantine.
    ///
    /// Throws for a row that cannot be read.
    package static func forEach(
        in reading: any ItemReading, _ body: (HandedOverRow) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        for quarantined in try reading.quarantinedRows() {
            try body(HandedOverRow(quarantined.row, quarantineSeconds: quarantined.seconds))
        }
        try reading.forEachRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
            try body(HandedOverRow(row))
            return .proceed
        }
    }
}

/// Rows that are sent, or inserted, together.
package struct RowBatch {
    package private(set) var rows: [HandedOverRow] = []
    private var byteCount = 0

    /// The size from which no further row is added.
    private static let largestByteCount = 1 << 20

    package init() {}

    /// Adds a row; returns the rows of the batch, which is empty then, if it is large enough.
    package mutating func add(_ row: HandedOverRow) -> [HandedOverRow]? {
        rows.append(row)
        byteCount += row.byteCount
        guard byteCount >= Self.largestByteCount else { return nil }
        defer { (rows, byteCount) = ([], 0) }
        return rows
    }
}

/// What keychaind has of a user's keychain.
///
/// The raw values are those of the protocol.
package enum KeptKeychain: UInt8, Sendable {
    case nothing = 0
    /// A keychain that is used.
    case inUse = 1
    /// A copy that is not complete.
    case incomplete = 2
    /// A complete copy, which is used from the first program on whose signpost names it.
    case prepared = 3
    /// A keychain that is used no more, because its content was given back; the copy of the user may be in place or not.
    case releasing = 4
}
