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
    /// and a number if that name is taken. An interruption leaves either the original store or the snapshot; if the original is damaged, its last
    /// changes may then be in the kept files only.
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
        let deadline = Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds))
        let turn = isStorePresent ? try RestorationTurn(location.path, until: deadline) : nil
        defer { withExtendedLifetime(turn) {} }
        let copy = try RepairCopy(ofSnapshot: source, in: location)
        try requireSoundSnapshot(copy, source)
        guard try accepts(copy.path) else { return .declined }
        try copy.checkpoint(options)
        return .done(original: try replaceStore(at: location, isStorePresent, with: copy, originalSuffix))
    }

    /// Returns the path of the original file; nil if there was none.
    private func replaceStore(
        at location: FileLocation, _ isStorePresent: Bool, with copy: RepairCopy, _ originalSuffix: String
    ) throws(KeychainFailure) -> String? {
        let deadline = Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds))
        guard isStorePresent else {
            let keptLog = try keepLogOfLostStore(at: location, originalSuffix)
            try StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: nil).run(until: deadline)
            return keptLog
        }
        let exclusion = try excludeWriters(at: location, until: deadline)
        let keptPath = try StoreReplacement.unusedName(location.path + originalSuffix)
        try withExtendedLifetime(exclusion) { () throws(KeychainFailure) in
            try StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: keptPath).run(until: deadline)
        }
        return keptPath
    }

    /// Gives the -wal file of a store that is gone another name: it may have the only copy of the last changes.
    ///
    /// Returns the name; nil if there is no such file.
    private func keepLogOfLostStore(at location: FileLocation, _ originalSuffix: String) throws(KeychainFailure) -> String? {
        guard let log = try FileStatus.ifPresent(at: location.walPath), log.byteCount > 0 else { return nil }
        let name = try StoreReplacement.unusedName(location.path + originalSuffix + "-wal")
        do throws(Errno) {
            try FileSystem.renameWithoutReplacing(location.walPath, to: name)
            try FileSystem.flush(location.directory)
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
        return name
    }

    /// Excludes writers when the store's file has all of its changes itself.
    ///
    /// The -wal file loses its name before the file is replaced. If the process is killed in between, nothing is missing then.
    private func excludeWriters(at location: FileLocation, until deadline: Deadline) throws(KeychainFailure) -> WriteExclusion {
        while true {
            var isDamaged = false
            do throws(KeychainFailure) {
                guard try emptyLog() else {
                    throw KeychainFailure(
                        .notAvailable, "another program has been reading \(location.path) for too long; nothing was changed",
                        path: location.path, subject: .store, remedy: .closeElsewhere)
                }
            } catch  where error.requiresReopening && !deadline.isOver {
                continue
            } catch {
                // The changes in the -wal file of a damaged store cannot be applied. The kept files have them.
                guard error.isDamage else { throw error }
                isDamaged = true
            }
            let exclusion = try WriteExclusion(location.path, until: deadline)
            let log = try FileStatus.ifPresent(at: location.walPath)
            guard !isDamaged, let log, log.byteCount > 0 else { return exclusion }
            // Another process has written meanwhile.
            guard !deadline.isOver else {
                throw KeychainFailure(
                    .notAvailable, "other programs have been writing to \(location.path) for too long; nothing was changed",
                    path: location.path, subject: .store, remedy: .closeElsewhere)
            }
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
