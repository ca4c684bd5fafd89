// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// Replaces a store with a snapshot of it.
///
/// Other processes may have the store open. None of them can write while the files are replaced. Afterwards each of them notices, before it
/// acknowledges a write and within a second when it reads, and continues with the restored content.
package struct SnapshotRestoration {
    package enum Outcome: Equatable {
        /// The caller rejected the snapshot. The store is unchanged.
        case declined
        /// The snapshot has replaced the store. `original` is the path of the original file; nil if there was none.
        case done(original: String?)
    }

    private let path: String
    private let options: StoreOptions

    /// `path` is that of the store.
    package init(_ path: String, options: StoreOptions = StoreOptions()) {
        self.path = path
        self.options = options
    }

    /// Copies the snapshot, passes the path of the copy to `accepts`, and replaces the store with the copy if that returns true.
    ///
    /// No connection to the store may be open in this process. The original file, which may be damaged, gets its name plus `originalSuffix`,
    /// and a number if that name is taken. An interruption leaves either the original store or the snapshot.
    ///
    /// `accepts` may change the copy.
    ///
    /// Throws `.itemNotFound` if there is no such file, `.decode` if it is damaged or not a snapshot, `.notAvailable` if it has a newer
    /// version or the file in the store's place must not be replaced, and `.notAvailable` if a process is still writing at the deadline.
    package func run(
        from source: String, originalSuffix: String, _ accepts: (_ copyPath: String) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> Outcome {
        try ForkDetection.requireNotForked()
        let isStorePresent = try requireReplaceable()
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) is gone", path: path, subject: .store)
        }
        let copy = try RepairCopy(ofSnapshot: source, in: location)
        try requireSoundSnapshot(copy, source)
        guard try accepts(copy.path) else { return .declined }
        try copy.checkpoint(options)
        let deadline = Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds))
        let exclusion = isStorePresent ? try excludeWriters(at: location, until: deadline) : nil
        let keptPath = isStorePresent ? try StoreReplacement.unusedName(location.path + originalSuffix) : nil
        let replacement = StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: keptPath)
        try withExtendedLifetime(exclusion) { () throws(KeychainFailure) in
            try replacement.run(until: deadline)
        }
        return .done(original: keptPath)
    }

    /// Excludes writers when the store's file has all of its changes itself, if that can be achieved.
    ///
    /// The -wal file loses its name before the file is replaced. If the process is killed in between, nothing is missing then.
    private func excludeWriters(at location: FileLocation, until deadline: Deadline) throws(KeychainFailure) -> WriteExclusion {
        while true {
            // A damaged store may have a -wal file that cannot be applied. The kept files have it.
            let isEmptied = (try? emptyLog()) ?? false
            let exclusion = try WriteExclusion(location.path, until: deadline)
            let log = try FileStatus.ifPresent(at: location.walPath)
            guard isEmptied, let log, log.byteCount > 0, !deadline.isOver else { return exclusion }
            // Another process has written meanwhile.
        }
    }

    /// Copies the changes of the -wal file into the store's file; returns false if another process prevents that.
    private func emptyLog() throws(KeychainFailure) -> Bool {
        let session = try StoreOpener(path: path, options: options).openSession(.writer, poolGeneration: 0, deadlineNanoseconds: nil)
        try session.connection.requireNoHiddenChanges()
        return try session.connection.checkpointAndTruncate()
    }

    /// Returns whether there is a store, and creates its directory if there is none.
    ///
    /// Throws unless the file in its place is a store of this version, sound or damaged.
    private func requireReplaceable() throws(KeychainFailure) -> Bool {
        guard try SQLiteItemStore.inspect(path, fileSystem: options.fileSystem) == .present else {
            let (directory, _) = try FileLocation.split(path)
            try PrivateDirectory.make(directory)
            return false
        }
        do throws(KeychainFailure) {
            try StoreOpener(path: path, options: options).requireStore()
        } catch {
            guard error.isDamage else { throw error }
        }
        return true
    }

    private func requireSoundSnapshot(_ copy: RepairCopy, _ source: String) throws(KeychainFailure) {
        var damage: String?
        do throws(KeychainFailure) {
            let opener = StoreOpener(path: copy.path, options: options)
            try opener.requireStore()
            damage = try opener.findDamage().description
            if damage == nil { try copy.checkpoint(options) }
        } catch {
            if error.cause == .newerVersion {
                throw KeychainFailure(
                    .notAvailable, "the snapshot \(source) was written by a newer version", path: source, subject: .snapshot,
                    cause: .newerVersion, remedy: .useNewerVersion)
            }
            guard error.isDamage || error.cause == .foreignFile || error.cause == .unsupportedVersion else { throw error }
            guard error.isDamage else {
                throw KeychainFailure(
                    .decode, "\(source) is not a snapshot of a keychain", path: source, subject: .snapshot, cause: .malformed)
            }
            damage = "its header has a wrong checksum, or it is not complete"
        }
        guard let damage else { return }
        throw KeychainFailure(
            .decode, "the snapshot \(source) is damaged: \(damage)", path: source, subject: .snapshot, cause: .damaged)
    }
}
