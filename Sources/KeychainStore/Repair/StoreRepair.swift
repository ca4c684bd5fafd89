// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
package import KeychainCore

/// Gives a store its page checksums back after a program that does not know them has written to its file, and goes on without changes that
/// damage in the -wal file has cut off.
///
/// A checksum is no proof of anything but that nothing changed since it was computed. So a new one is only given where something stronger
/// shows that the content is what was written: whoever asks judges a copy, which then takes the store's place. The file as it was stays
/// beside it.
package struct StoreRepair {
    /// What is to be judged.
    package struct Copy {
        /// Opens as the store would; what the -wal file held is in it.
        package let path: String
        package let pageCount: Int
        /// Pages that are refused as the store is.
        package let refusedPageCount: Int
        /// Changes stored last that are not in the copy, because the -wal file is damaged before them.
        package let unreachableChangeCount: Int
    }

    package enum Outcome: Equatable {
        /// Nothing is refused.
        case notNeeded
        case declined
        /// The path of the file as it was.
        case done(original: String)
    }

    private let path: String
    private let options: StoreOptions

    package init(_ path: String, options: StoreOptions = StoreOptions()) {
        self.path = path
        self.options = options
    }

    /// Lets `accepts` judge a copy with new checksums, and puts it in the store's place if it answers true.
    ///
    /// Nothing in this process may have the store open, and nobody else: throws `.notAvailable` when somebody has past the deadline.
    /// `originalSuffix` tells the file as it was from others like it; where the name is taken it gets a number. Until the copy takes the
    /// store's place nothing of the store is changed, and whatever interrupts this leaves the store as it was, or repaired.
    package func run(
        originalSuffix: String, _ accepts: (Copy) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> Outcome {
        guard keychain_mark_process(), !keychain_process_is_forked() else { throw SQLiteItemStore.forkedChildFailure }
        let opening = StoreOpening(path: path, options: options)
        try opening.examine()
        let refused = try opening.damage()
        guard refused.description != nil, let location = try StoreLocation(path) else { return .notNeeded }
        let deadline = MonotonicClock.nowNanoseconds() + UInt64(clamping: options.busyTimeoutMilliseconds) * 1_000_000
        let original = try LockedDatabase(location.path, deadlineNanoseconds: deadline)
        let copy = try RestampedCopy(of: original, in: location)
        let unreachableChangeCount = try leaveUnreachableChanges(copy)
        try settle(copy)
        let isAccepted = try accepts(
            Copy(
                path: copy.path, pageCount: copy.pageCount, refusedPageCount: refused.pages.count,
                unreachableChangeCount: unreachableChangeCount))
        guard isAccepted else { return .declined }
        let publication = RepairPublication(location: location, copy: copy, originalPath: try freeName(location.path + originalSuffix))
        try withExtendedLifetime(original) { () throws(KeychainFailure) in try publication.run(deadlineNanoseconds: deadline) }
        return .done(original: publication.originalPath)
    }

    /// One that was interrupted may have left a second name of the store's file a moment ago.
    private func freeName(_ path: String) throws(KeychainFailure) -> String {
        var name = path
        var number = 1
        while try StoreFile.facts(of: name) != nil {
            number += 1
            name = "\(path)-\(number)"
        }
        return name
    }

    /// Ends the copy's -wal file where damage begins in it, if there are changes behind that, and tells how many.
    private func leaveUnreachableChanges(_ copy: RestampedCopy) throws(KeychainFailure) -> Int {
        guard let damage = try StoreOpening(path: copy.path, options: options).damage().log else { return 0 }
        do throws(POSIX.ErrorNumber) {
            try POSIX.truncate(copy.path + "-wal", toByteCount: damage.soundByteCount)
        } catch {
            throw LockedDatabase.failure(error, copy.path)
        }
        return damage.unreachableChangeCount
    }

    /// Brings what is in the copy's -wal file into the copy.
    private func settle(_ copy: RestampedCopy) throws(KeychainFailure) {
        let connection = try SQLiteConnection(
            path: copy.path, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try connection.checkPages()
        try connection.applySafetySettings()
        try connection.apply(options.synchronous)
        // SQLite finds the -wal file, or a journal, with the first read.
        _ = try connection.integer(of: "PRAGMA user_version")
        guard try connection.checkpointAndTruncate() else {
            throw KeychainFailure(.notAvailable, "another program has the copy \(copy.path) open; nothing was changed")
        }
    }
}
