// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What is said of a backup that is not as it was written.
enum BackupDamage {
    static func failure(file: StaticString = #fileID, line: UInt = #line) -> KeychainFailure {
        KeychainFailure(.decode, "the backup is damaged: it is not as it was written", file: file, line: line)
    }
}
