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
    /// and a number if that name is taken. An interruption leaves either the original store or the snapshot; if the original is damaged or
    /// not the newest, its last changes may then be in the kept files only.
    ///
    /// `accepts` may change the copy. `isStoreNewest` is asked afterwards whether the store has its newest content. Only then are the changes of its
    /// -wal file copied into it, because the files of another one are kept as they are.
    ///
    /// Throws `.itemNotFound` if there is no such file, `.decode` if it is damaged or not a snapshot, `.notAvailable` if it has a newer
    /// version or the file in the store's place must not be replaced, and `.notAvailable` if a process is still writing at the deadline.
    package func run(
        from source: String, originalSuffix: String, isStoreNewest: () -> Bool = { true },
        _ accepts: (_ copyPath: String) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> Outcome {
        try ForkDetection.requireNotForked()
        let isStorePresent = try requireReplaceable()
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) is gone", path: path, subject: .store)
        }
        let turn = isStorePresent ? try RestorationTurn(location.path, until: newDeadline) : nil
        defer { withExtendedLifetime(turn) {} }
        let generation = isStorePresent ? try? keybagGeneration() : nil
        let copy = try RepairCopy(ofSnapshot: source, in: location)
        try requireSoundSnapshot(copy, source)
        guard try accepts(copy.path) else { return .declined }
        try copy.checkpoint(options)
        guard isStorePresent else { return .done(original: try createStore(at: location, from: copy, originalSuffix)) }
        let exclusion =
            isStoreNewest()
            ? try excludeWriters(at: location, ifKeybagGeneration: generation) : try WriteExclusion(location.path, until: newDeadline)
        let keptPath = try StoreReplacement.unusedName(location.path + originalSuffix)
        try withExtendedLifetime(exclusion) { () throws(KeychainFailure) in
            try StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: keptPath).run(until: newDeadline)
        }
        return .done(original: keptPath)
    }

    private var newDeadline: Deadline { Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds)) }

    /// Returns the path of the -wal file of a store that is gone; nil if there is none.
    private func createStore(
        at location: FileLocation, from copy: RepairCopy, _ originalSuffix: String
    ) throws(KeychainFailure) -> String? {
        let keptLog = try keepLogOfLostStore(at: location, originalSuffix)
        try StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: nil).run(until: newDeadline)
        return keptLog
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
    ///
    /// Throws `.notAvailable` if the keybag has another generation than the one whose passcode was compared with that of the snapshot.
    private func excludeWriters(
        at location: FileLocation, ifKeybagGeneration generation: UInt64?
    ) throws(KeychainFailure) -> WriteExclusion {
        let deadline = newDeadline
        while true {
            let state: LogState
            do throws(KeychainFailure) {
                state = try emptyLog(ifKeybagGeneration: generation)
            } catch {
                // The changes in the -wal file of a damaged store cannot be applied. The kept files have them.
                if error.isDamage { return try WriteExclusion(location.path, until: deadline) }
                // A transaction that is just being written can look like changes that the index hides.
                guard !deadline.isOver, error.status == .notAvailable else { throw error }
                MonotonicClock.sleep(nanoseconds: 5_000_000)
                continue
            }
            switch state {
            case .emptied: break
            case .inUse where deadline.isOver: throw inUse(location)
            case .inUse: continue
            case .otherKeybag: throw keybagChanged(location)
            }
            let exclusion = try WriteExclusion(location.path, until: deadline)
            let log = try FileStatus.ifPresent(at: location.walPath)
            guard let log, log.byteCount > 0 else { return exclusion }
            // Another process has written meanwhile.
            guard !deadline.isOver else { throw inUse(location) }
        }
    }

    private func keybagChanged(_ location: FileLocation) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "the passcode or the protector of \(location.path) was changed meanwhile; nothing was changed",
            path: location.path, subject: .store, cause: .unexpectedState(.keybagReplaced))
    }

    private func inUse(_ location: FileLocation) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "other programs have been using \(location.path) for too long; nothing was changed", path: location.path,
            subject: .store, remedy: .closeElsewhere)
    }

    private enum LogState { case emptied, inUse, otherKeybag }

    /// Copies the changes of the -wal file into the store's file.
    private func emptyLog(ifKeybagGeneration generation: UInt64?) throws(KeychainFailure) -> LogState {
        let session = try StoreOpener(path: path, options: options).openSession(.writer, poolGeneration: 0, deadlineNanoseconds: nil)
        if let generation, try session.keybagGeneration() != generation { return .otherKeybag }
        try session.connection.requireNoHiddenChanges()
        return try session.connection.checkpointAndTruncate() ? .emptied : .inUse
    }

    private func keybagGeneration() throws(KeychainFailure) -> UInt64 {
        try StoreOpener(path: path, options: options).openSession(.reader, poolGeneration: 0, deadlineNanoseconds: nil).keybagGeneration()
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
