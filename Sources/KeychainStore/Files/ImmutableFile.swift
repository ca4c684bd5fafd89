// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A store in a place where nobody can write, read without locks.
///
/// It is watched, because a place may be read-only for us alone.
struct ImmutableFile {
    let location: StoreLocation
    let facts: POSIX.FileFacts

    /// Nil when the store can be opened in the usual way: the directory is writable, or somebody has a -wal file there.
    init?(_ file: StoreFile) throws(KeychainFailure) {
        guard !POSIX.canMakeFiles(in: file.location.directory) else { return nil }
        guard try StoreFile.facts(of: file.location.walPath) == nil else { return nil }
        location = file.location
        facts = file.facts
    }

    /// Whether the file is what it was when it was opened.
    ///
    /// A writer would have made a -wal file, or changed the file itself.
    var isUnchanged: Bool {
        guard let now = try? POSIX.facts(of: location.path), now == facts else { return false }
        do throws(POSIX.ErrorNumber) {
            _ = try POSIX.facts(of: location.walPath)
            return false
        } catch {
            return error == .noEntry
        }
    }
}
