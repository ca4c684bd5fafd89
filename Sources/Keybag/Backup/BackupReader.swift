// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
package import KeychainCore

/// Reads a backup whose password was verified.
package final class BackupReader {
    private let header: BackupHeader
    private let keys: BackupKeys
    private let source: BackupSource

    /// Derives the keys and verifies the password.
    ///
    /// Slow: the header determines the cost, so the caller checks it first.
    ///
    /// Throws `.authFailed` if the password is wrong.
    package init(
        _ header: BackupHeader, password: borrowing Passcode, source: @escaping BackupSource
    ) throws(KeychainFailure) {
        let keys = try BackupKeys.derive(from: password, header.passcode, backupID: header.id)
        guard header.isAuthentic(by: keys) else { throw Self.wrongPassword() }
        self.header = header
        self.keys = keys
        self.source = source
    }

    private static func wrongPassword() -> KeychainFailure {
        KeychainFailure(.authFailed, "the password of the backup is wrong", subject: .backup, refusal: .wrongPassword)
    }

    /// Passes every item to `body`, in order, and returns the summary at the end of the backup.
    ///
    /// Damage further on is found only at the end, so a caller must read the whole backup once before it acts on items. Throws
    /// `.decode` if anything was altered.
    package func forEachItem(
        _ body: (BackupItem) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> BackupSummary {
        var plaintext = BackupPlaintext(
            source: source, cipher: BackupChunkCipher(key: try keys.copiedChunkKey(), headerDigest: header.digest))
        var itemCount = 0
        while true {
            switch try BackupRecord(from: &plaintext) {
            case .item(let item):
                itemCount += 1
                try body(item)
            case .end(let summary):
                guard summary.savedCount == itemCount, plaintext.isAtEnd else { throw BackupDamage.failure() }
                return summary
            }
        }
    }
}

/// The plaintext of a backup, read sequentially, with one chunk in memory.
struct BackupPlaintext: ~Copyable {
    private let source: BackupSource
    private let cipher: BackupChunkCipher
    private var chunk: [UInt8] = []
    private var position = 0
    private var nextNumber: UInt64 = 0
    private var isLast = false

    init(source: @escaping BackupSource, cipher: consuming BackupChunkCipher) {
        self.source = source
        self.cipher = cipher
    }

    /// Whether everything was read.
    var isAtEnd: Bool { isLast && position == chunk.count }

    mutating func readByte() throws(KeychainFailure) -> UInt8 {
        if position == chunk.count { try openNextChunk() }
        defer { position += 1 }
        return chunk[position]
    }

    /// Reads exactly `count` bytes.
    mutating func read(_ count: Int) throws(KeychainFailure) -> Data {
        var bytes = Data(capacity: count)
        while bytes.count < count {
            if position == chunk.count { try openNextChunk() }
            let end = min(chunk.count, position + count - bytes.count)
            bytes.append(contentsOf: chunk[position..<end])
            position = end
        }
        return bytes
    }

    /// Reads a 32-bit byte count and that many bytes.
    mutating func readCounted(atMost limit: Int) throws(KeychainFailure) -> Data {
        var reader = ByteReader(try read(4))
        guard let count = reader.readUInt32(), count <= limit else { throw BackupDamage.failure() }
        return try read(Int(count))
    }

    private mutating func openNextChunk() throws(KeychainFailure) {
        let sealedByteCount = BackupHeader.chunkByteCount + BackupChunkCipher.tagByteCount
        guard !isLast, let index = Int64(exactly: nextNumber) else { throw BackupDamage.failure() }
        // One byte more shows whether another chunk follows.
        let sealed = try source(Int64(BackupHeader.byteCount) + index * Int64(sealedByteCount), sealedByteCount + 1)
        isLast = sealed.count <= sealedByteCount
        // No chunk is empty: the last one contains at least the end record.
        guard sealed.count > BackupChunkCipher.tagByteCount else { throw BackupDamage.failure() }
        chunk = try cipher.open(sealed.prefix(sealedByteCount), number: nextNumber, isLast: isLast)
        position = 0
        nextNumber += 1
    }
}
