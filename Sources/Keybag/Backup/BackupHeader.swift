// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
package import KeychainCore

/// The header of a backup, with the parameters of its key derivation.
///
/// The format is specified in On-disk-format.md, "Backup":
///
///     "KBAK" ‖ version (2) ‖ byte count of the header (2) ‖ fields ‖ HMAC-SHA256 (32) ‖ checksum (8)
///
/// The frame is the same in every version, so that "damaged" and "newer" can always be distinguished. The checksum needs no
/// password, so that "damaged" and "wrong password" can be distinguished too.
package struct BackupHeader: Sendable {
    /// The time of the backup, in seconds since 2001-01-01 00:00:00 UTC.
    package let creationDate: Double
    let id: Identifier128
    let passcode: PasscodeRecord
    let encoded: [UInt8]

    /// The cost of verifying the password.
    ///
    /// Only verifying the password authenticates it.
    package var cost: PasscodeCost { passcode.cost }

    static let chunkByteCount = 65_536
    /// The size in version 1.
    static let byteCount = 118

    private static let magic = Array("KBAK".utf8)
    private static let currentVersion: UInt16 = 1
    private static let frameByteCount = 8
    private static let codeByteCount = 32
    private static let checksumByteCount = 8
    /// More than any later version will need.
    private static let largestByteCount = 4_096

    init(
        id: Identifier128, passcode: PasscodeRecord, creationDate: Double, authenticatedBy keys: borrowing BackupKeys
    ) {
        self.id = id
        self.passcode = passcode
        self.creationDate = creationDate
        var bytes = Self.magic
        bytes.append(littleEndian: Self.currentVersion)
        bytes.append(littleEndian: UInt16(Self.byteCount))
        bytes.append(id)
        bytes += passcode.encoded
        bytes.append(littleEndian: UInt32(Self.chunkByteCount))
        bytes.append(littleEndian: creationDate.bitPattern)
        bytes += Array(keys.headerCode(of: bytes))
        bytes += Self.checksum(of: bytes)
        encoded = bytes
    }

    /// Reads the header, and checks everything that can be checked without the password.
    ///
    /// Throws `.decode` if `source` is not a backup or is damaged, and `.notAvailable` if a newer version wrote it or if the cost of its
    /// key derivation is out of bounds.
    package init(from source: BackupSource) throws(KeychainFailure) {
        let start = try source(0, Self.largestByteCount)
        var frame = ByteReader(start)
        guard frame.readBytes(Self.magic.count).map(Array.init) == Self.magic, let version = frame.readUInt16(),
            let byteCount = frame.readUInt16()
        else {
            throw KeychainFailure(
                .decode, "the file is not a backup, or its beginning is damaged", subject: .backup, cause: .malformed)
        }
        guard byteCount >= Self.frameByteCount + Self.checksumByteCount, byteCount <= start.count else { throw BackupDamage.failure() }
        let header = Array(start.prefix(Int(byteCount)))
        guard Array(header.suffix(Self.checksumByteCount)) == Self.checksum(of: header.dropLast(Self.checksumByteCount)) else {
            throw BackupDamage.failure()
        }
        guard version == Self.currentVersion else { throw Self.newer() }
        guard header.count == Self.byteCount else { throw BackupDamage.failure() }

        var fields = ByteReader(header[Self.frameByteCount...])
        guard let id = fields.readBytes(Identifier128.byteCount).flatMap({ Identifier128($0) }),
            let derivation = fields.readByte(), let salt = fields.readBytes(PasscodeRecord.saltByteCount),
            let roundsExponent = fields.readByte(), let blockSize = fields.readUInt32(), let parallelism = fields.readUInt32(),
            let chunkByteCount = fields.readUInt32(), let date = fields.readUInt64()
        else { throw BackupDamage.failure() }
        guard derivation == PasscodeRecord.scryptCode, chunkByteCount == UInt32(Self.chunkByteCount) else { throw Self.newer() }
        guard let cost = PasscodeCost(roundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism) else {
            throw KeychainFailure(
                .notAvailable, "the cost of the backup's password is out of bounds: too low or too high", subject: .backup,
                cause: .costRefused)
        }
        self.id = id
        passcode = PasscodeRecord(salt: Array(salt), cost: cost)
        creationDate = Double(bitPattern: date)
        encoded = header
    }

    /// Whether the header was written with these keys, that is, with the password.
    func isAuthentic(by keys: borrowing BackupKeys) -> Bool {
        let message = encoded.dropLast(Self.codeByteCount + Self.checksumByteCount)
        let code = keys.headerCode(of: Array(message))
        // A digest compares itself with bytes in constant time.
        return unsafe encoded[message.endIndex..<message.endIndex + Self.codeByteCount].withUnsafeBytes { unsafe code == $0 }
    }

    /// The digest that every chunk is bound to.
    var digest: [UInt8] { Array(SHA256.hash(data: encoded)) }

    private static func checksum(of bytes: some Collection<UInt8>) -> [UInt8] {
        Array(SHA256.hash(data: Array(bytes)).prefix(checksumByteCount))
    }

    private static func newer() -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "the backup was written by a newer version", subject: .backup, cause: .newerVersion, remedy: .useNewerVersion)
    }
}

/// Reads up to `byteCount` bytes of a backup at an offset; returns fewer only at its end.
///
/// A function rather than a stream, because a backup is read twice: first to verify it, then to restore its items.
package typealias BackupSource = (_ offset: Int64, _ byteCount: Int) throws(KeychainFailure) -> [UInt8]

/// The failure of a damaged backup.
enum BackupDamage {
    static func failure() -> KeychainFailure {
        KeychainFailure(
            .decode, "the backup is damaged: it was altered or cut off", subject: .backup, cause: .damaged)
    }
}
