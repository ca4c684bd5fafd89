// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// Repairs a store: recomputes page checksums after a program that does not know them has written to the file, and discards changes that
/// damage in the -wal file has made unreachable.
///
/// A checksum only proves that a page is unchanged since it was computed. So new checksums are computed for a copy, which the caller
/// authenticates with stronger means. The accepted copy replaces the store. The original file remains beside it under another name.
package struct StoreRepair {
    /// A copy for the caller to authenticate.
    package struct Copy {
        /// The path of the copy, which can be opened like the store.
        ///
        /// It includes the changes of the -wal file.
        package let path: String
        package let pageCount: Int
        /// The number of the store's pages with wrong checksums.
        package let refusedPageCount: Int
        /// The number of the latest changes that are missing from the copy, because the -wal file is damaged before them.
        package let unreachableChangeCount: Int
    }

    package enum Outcome: Equatable {
        /// No checksum is wrong.
        case notNeeded
        /// The caller rejected the copy. The store is unchanged.
        case declined
        /// The copy has replaced the store. `original` is the path of the original file.
        case done(original: String)
    }

    private let path: String
    private let options: StoreOptions

    package init(_ path: String, options: StoreOptions = StoreOptions()) {
        self.path = path
        self.options = options
    }

    /// Creates a copy with new checksums, passes it to `accepts`, and replaces the store with it if that returns true.
    ///
    /// `accepts` may change the copy.
    ///
    /// No connection to the store may be open in this process. Throws `.notAvailable` if another process still has the store open at the
    /// deadline. The original file gets its name plus `originalSuffix`, and a number if that name is taken. An interruption leaves the
    /// store either unchanged or repaired.
    package func run(
        originalSuffix: String, _ accepts: (Copy) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> Outcome {
        try ForkDetection.requireNotForked()
        let opener = StoreOpener(path: path, options: options)
        // A damaged first page prevents opening, but not a repair.
        do throws(KeychainFailure) { try opener.requireStore() } catch { guard error.isDamage else { throw error } }
        let refused = try opener.findDamage()
        guard refused.description != nil, let location = try FileLocation(path) else {
            try requireReadable(opener)
            return .notNeeded
        }
        let deadline = Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds))
        let original = try LockedDatabase(location.path, until: deadline)
        RepairCopy.removeLeftovers(in: location)
        let copy = try RepairCopy(of: original, in: location)
        let unreachableChangeCount = try truncateUnreachableChanges(copy)
        try copy.checkpoint(options)
        copy.restoreFormat(options)
        let isAccepted = try accepts(
            Copy(
                path: copy.path, pageCount: copy.pageCount, refusedPageCount: refused.pages.count,
                unreachableChangeCount: unreachableChangeCount))
        guard isAccepted else { return .declined }
        try copy.checkpoint(options)
        let keptPath = try StoreReplacement.unusedName(location.path + originalSuffix)
        let replacement = StoreReplacement(location: location, copy: copy, containsLog: true, originalPath: keptPath)
        try withExtendedLifetime(original) { () throws(KeychainFailure) in
            try replacement.run(until: deadline)
        }
        return .done(original: keptPath)
    }

    /// Throws for damage that no checksum shows: a file that was cut off at the end of a page has only intact pages, and cannot be read.
    private func requireReadable(_ opener: StoreOpener) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            guard try FileStatus.ifPresent(at: path) != nil else { return }
            _ = try opener.openSession(.reader, poolGeneration: 0, deadlineNanoseconds: nil)
        } catch {
            if error.isDamage { throw error }
        }
    }

    /// Truncates the copy's -wal file where damage begins, if there are changes after the damage.
    ///
    /// Returns the number of those changes.
    private func truncateUnreachableChanges(_ copy: RepairCopy) throws(KeychainFailure) -> Int {
        guard let damage = try StoreOpener(path: copy.path, options: options).findDamage().wal else { return 0 }
        do throws(Errno) {
            try FileSystem.truncate(copy.path + "-wal", toByteCount: damage.soundByteCount)
        } catch {
            throw LockedDatabase.failure(error, copy.path)
        }
        return damage.unreachableChangeCount
    }
}
