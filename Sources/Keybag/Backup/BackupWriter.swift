// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
package import KeychainCore

/// Writes a backup sequentially, with one chunk in memory.
package final class BackupWriter {
    package typealias Sink = (_ bytes: [UInt8]) throws(KeychainFailure) -> Void

    private let sink: Sink
    private let cipher: BackupChunkCipher
    private var chunk: [UInt8] = []
    private var nextNumber: UInt64 = 0
    private var itemCount = 0

    /// Derives the keys at the given cost, and writes the header.
    package convenience init(
        password: borrowing Passcode, cost: PasscodeCost, creationDate: Double, sink: @escaping Sink
    ) throws(KeychainFailure) {
        try self.init(password: password, id: .random(), PasscodeRecord(cost: cost), creationDate: creationDate, sink: sink)
    }

    /// Derives the keys and writes the header with given random values, so that tests can compare with backups of another implementation.
    init(
        password: borrowing Passcode, id: Identifier128, _ record: PasscodeRecord, creationDate: Double, sink: @escaping Sink
    ) throws(KeychainFailure) {
        let keys = try BackupKeys.derive(from: password, record, backupID: id)
        let header = BackupHeader(id: id, passcode: record, creationDate: creationDate, authenticatedBy: keys)
        cipher = BackupChunkCipher(key: try keys.copiedChunkKey(), headerDigest: header.digest)
        self.sink = sink
        chunk.reserveCapacity(BackupHeader.chunkByteCount)
        try sink(header.encoded)
    }

    package func append(_ item: BackupItem) throws(KeychainFailure) {
        try write(BackupRecord.prefix(of: item))
        if let secret = item.secret { try write(secret) }
        itemCount += 1
    }

    /// Writes the end record; without it the backup does not open.
    ///
    /// Throws `.internal` if the summary's item count is not the number of items appended.
    package func finish(_ summary: BackupSummary) throws(KeychainFailure) {
        guard summary.savedCount == itemCount else { throw KeychainFailure(.internal, "the items of a backup were miscounted") }
        try write(BackupRecord.end(summary))
        try sink(cipher.seal(chunk, number: nextNumber, isLast: true))
    }

    /// Writes a full chunk only once more bytes follow, because the last chunk is sealed differently.
    private func write(_ bytes: some RandomAccessCollection<UInt8>) throws(KeychainFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if chunk.count == BackupHeader.chunkByteCount {
                try sink(cipher.seal(chunk, number: nextNumber, isLast: false))
                nextNumber += 1
                chunk.removeAll(keepingCapacity: true)
            }
            let part = rest.prefix(BackupHeader.chunkByteCount - chunk.count)
            chunk.append(contentsOf: part)
            rest = rest.dropFirst(part.count)
        }
    }
}
