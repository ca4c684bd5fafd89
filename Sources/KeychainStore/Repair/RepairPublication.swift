// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Puts a copy in the place of a store, which keeps its files under other names.
///
/// There is no moment without a store: the old file gets a second name, and the new one takes its first in one step. Between that step and
/// the removal of the old -wal file the new file has the old one's log; its changes are in the file already, so applying them again changes
/// nothing.
struct RepairPublication {
    let location: StoreLocation
    let copy: RestampedCopy
    /// The second name of the old file.
    let originalPath: String

    /// The caller has locked the store.
    func run(deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        if let log = try StoreFile.facts(of: copy.path + "-wal"), log.byteCount > 0 {
            throw KeychainFailure(.notAvailable, "the copy is not whole; nothing was changed")
        }
        try naming { () throws(POSIX.ErrorNumber) in try POSIX.flush(copy.path) }
        // Whoever opens the new file has to wait until the old one's log is out of its way.
        let lock = try LockedDatabase(copy.path, deadlineNanoseconds: deadlineNanoseconds)
        do throws(KeychainFailure) {
            try naming { () throws(POSIX.ErrorNumber) in try nameOriginal() }
            try naming { () throws(POSIX.ErrorNumber) in try POSIX.rename(copy.path, to: location.path) }
        } catch {
            for suffix in [""] + RestampedCopy.logSuffixes where isOriginal(suffix) { POSIX.removeName(originalPath + suffix) }
            throw error
        }
        do throws(POSIX.ErrorNumber) {
            try POSIX.flush(location.directory)
            for suffix in StoreLocation.companionSuffixes { POSIX.removeName(location.path + suffix) }
            try POSIX.flush(location.directory)
        } catch {
            throw KeychainFailure(
                .inputOutput,
                "the repaired file is in its place, but the disk failed (\(error.message)): after a restart it may be the old one again")
        }
        withExtendedLifetime(lock) {}
    }

    private func nameOriginal() throws(POSIX.ErrorNumber) {
        try POSIX.link(location.path, as: originalPath)
        for suffix in RestampedCopy.logSuffixes {
            do throws(POSIX.ErrorNumber) { try POSIX.link(location.path + suffix, as: originalPath + suffix) } catch .noEntry {}
        }
        try POSIX.flush(location.directory)
    }

    /// Whether the second name is one that was given here: it stands for the same file as the first.
    private func isOriginal(_ suffix: String) -> Bool {
        guard let first = try? POSIX.facts(of: location.path + suffix), let second = try? POSIX.facts(of: originalPath + suffix) else {
            return false
        }
        return first.identity == second.identity
    }

    private func naming(_ body: () throws(POSIX.ErrorNumber) -> Void) throws(KeychainFailure) {
        do throws(POSIX.ErrorNumber) {
            try body()
        } catch {
            throw PrivateDirectory.failure(error, location.directory)
        }
    }
}
