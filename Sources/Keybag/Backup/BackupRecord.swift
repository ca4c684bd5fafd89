// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import KeychainCore

/// A record of a backup's plaintext, which consists of items and one end record.
///
///     item = 1 (1) ‖ reference (20) ‖ accessibility (1) ‖ counted(attributes) ‖ presence (1) ‖ counted(secret)
///     end  = 2 (1) ‖ item count (8) ‖ omitted: this device only (8), with access control (8), unreadable (8)
enum BackupRecord {
    case item(BackupItem)
    case end(BackupSummary)

    private enum Kind: UInt8 {
        case item = 1
        case end = 2
    }

    /// A limit for the attributes of one item, above anything that can be stored.
    private static let largestAttributesByteCount = SealedKeychain.largestItemByteCount + 4_096

    /// An item's record up to its secret.
    ///
    /// The bytes of the secret follow.
    static func prefix(of item: BackupItem) throws(KeychainFailure) -> [UInt8] {
        guard isRestorable(item) else {
            throw KeychainFailure(.internal, "no backup was made: an item could not be restored from it", subject: .backup)
        }
        var bytes = [Kind.item.rawValue]
        bytes += item.reference.data
        bytes.append(item.accessibility.code)
        bytes.append(lengthPrefixed: item.attributes.encoded)
        bytes.append(item.secret == nil ? 0 : 1)
        bytes.append(littleEndian: UInt32(item.secret?.count ?? 0))
        return bytes
    }

    static func end(_ summary: BackupSummary) -> [UInt8] {
        var bytes = [Kind.end.rawValue]
        for count in [summary.savedCount, summary.thisDeviceOnlyCount, summary.constrainedCount, summary.unreadableCount] {
            bytes.append(littleEndian: UInt64(count))
        }
        return bytes
    }

    /// Reads a record.
    ///
    /// Throws `.decode` if it is not one of version 1.
    init(from plaintext: inout BackupPlaintext) throws(KeychainFailure) {
        guard let kind = Kind(rawValue: try plaintext.readByte()) else { throw BackupDamage.failure() }
        switch kind {
        case .item: self = .item(try Self.item(from: &plaintext))
        case .end:
            var summary = BackupSummary()
            summary.savedCount = try Self.count(from: &plaintext)
            summary.thisDeviceOnlyCount = try Self.count(from: &plaintext)
            summary.constrainedCount = try Self.count(from: &plaintext)
            summary.unreadableCount = try Self.count(from: &plaintext)
            self = .end(summary)
        }
    }

    private static func item(from plaintext: inout BackupPlaintext) throws(KeychainFailure) -> BackupItem {
        guard let reference = PersistentReference(try plaintext.read(PersistentReference.byteCount)),
            let accessibility = ItemAccessibility(code: try plaintext.readByte()),
            let attributes = ItemAttributes(encoded: try plaintext.readCounted(atMost: largestAttributesByteCount))
        else { throw BackupDamage.failure() }
        let presence = try plaintext.readByte()
        let secret = try plaintext.readCounted(atMost: SealedKeychain.largestItemByteCount)
        guard presence == 1 || (presence == 0 && secret.isEmpty) else { throw BackupDamage.failure() }
        let item = BackupItem(
            reference: reference, accessibility: accessibility, attributes: attributes, secret: presence == 1 ? secret : nil)
        guard isRestorable(item) else { throw BackupDamage.failure() }
        return item
    }

    /// Whether the item may be in a backup: of a class that may leave the device, with attributes that agree.
    private static func isRestorable(_ item: BackupItem) -> Bool {
        item.reference.itemClass.isPassword && !item.accessibility.isThisDeviceOnly
            && item.attributes.text(.accessible) == item.accessibility.rawValue && item.attributes.text(.accessGroup) != nil
            && item.attributes.flag(.tombstone) != true
    }

    private static func count(from plaintext: inout BackupPlaintext) throws(KeychainFailure) -> Int {
        var reader = ByteReader(try plaintext.read(8))
        guard let count = reader.readUInt64().flatMap({ Int(exactly: $0) }) else { throw BackupDamage.failure() }
        return count
    }
}
