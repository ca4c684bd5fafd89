// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
package import KeychainCore

/// A backup whose password was right.
package final class BackupReader {
    private let header: BackupHeader
    private let keys: BackupKeys
    private let source: BackupSource

    /// Derives the keys, which takes as long as the cost of the password says.
    ///
    /// Throws as `BackupHeader.init(from:)`, and `.authFailed` when the password is wrong.
    package init(password: borrowing Passcode, source: @escaping BackupSource) throws(KeychainFailure) {
        let header = try BackupHeader(from: source)
        let keys = try BackupKeys.derive(from: password, header.passcode, backupID: header.id)
        guard header.isAuthentic(by: keys) else { throw KeychainFailure(.authFailed, "the password of the backup is wrong") }
        self.header = header
        self.keys = keys
        self.source = source
    }

    /// Reads the backup from its beginning to its end, and hands over its items.
    ///
    /// Whether the rest is sound is known only at the end: whoever acts on the items runs through all of them first. Throws
    /// `.decode` when anything in it is not as it was written.
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
