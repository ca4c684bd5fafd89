// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import KeychainCore

/// The plaintext of a backup, read from its beginning to its end; one chunk of it is in memory.
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

    /// Exactly so many bytes.
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

    /// A 32-bit count and so many bytes.
    mutating func readCounted(atMost limit: Int) throws(KeychainFailure) -> Data {
        var reader = ByteReader(try read(4))
        guard let count = reader.readUInt32(), count <= limit else { throw BackupDamage.failure() }
        return try read(Int(count))
    }

    private mutating func openNextChunk() throws(KeychainFailure) {
        let sealedByteCount = BackupHeader.chunkByteCount + BackupChunkCipher.tagByteCount
        guard !isLast, let index = Int64(exactly: nextNumber) else { throw BackupDamage.failure() }
        // One byte more tells whether another chunk follows.
        let sealed = try source(Int64(BackupHeader.byteCount) + index * Int64(sealedByteCount), sealedByteCount + 1)
        isLast = sealed.count <= sealedByteCount
        // No chunk is empty: there is always an end to be told.
        guard sealed.count > BackupChunkCipher.tagByteCount else { throw BackupDamage.failure() }
        chunk = try cipher.open(sealed.prefix(sealedByteCount), number: nextNumber, isLast: isLast)
        position = 0
        nextNumber += 1
    }
}
