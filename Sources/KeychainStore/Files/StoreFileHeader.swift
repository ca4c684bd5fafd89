// SPDX-License-Identifier: Apache-2.0

/// Whose database file it is and of which format: fields that are written once, before the file gets its name.
///
/// Source: SQLite, "Database File Format", section 1.3.
struct StoreFileHeader {
    static let byteCount = 100

    let applicationID: Int64
    let formatVersion: Int64

    init(applicationID: Int64, formatVersion: Int64) {
        self.applicationID = applicationID
        self.formatVersion = formatVersion
    }

    /// Nil when these are not the first bytes of a database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.byteCount, bytes.starts(with: "SQLite format 3\0".utf8) else { return nil }
        formatVersion = Self.number(bytes[60..<64])
        applicationID = Self.number(bytes[68..<72])
    }

    /// Four bytes, big-endian and signed.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
        Int64(Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) }))
    }
}
