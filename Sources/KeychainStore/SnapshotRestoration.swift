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

    /// What the caller decides about a snapshot.
    package enum Decision {
        case decline
        /// Replace the store. Without a check, it is taken to have its newest content.
        case replace(NewestContentCheck? = nil)
    }

    /// How the state of the store is compared with its anchors, which show whether the store has its newest content.
    package struct NewestContentCheck {
        fileprivate let storeID: StoreID
        fileprivate let cipher: any StateCipher
        fileprivate let anchorDirectory: String
        fileprivate let changeCountOfCopy: UInt64

        /// `changeCountOfCopy` is that of the copy, which begins a new series.
        package init(of storeID: StoreID, _ cipher: any StateCipher, anchorsIn directory: String, changeCountOfCopy: UInt64) {
            self.storeID = storeID
            self.cipher = cipher
            anchorDirectory = directory
            self.changeCountOfCopy = changeCountOfCopy
        }
    }

    /// Copies the snapshot, passes the path of the copy to `decide`, and replaces the store with the copy if that returns `.replace`.
    ///
    /// No connection to the store may be open in this process. The original file, which may be damaged, gets its name plus `originalSuffix`,
    /// and a number if that name is taken. An interruption leaves either the original store or the snapshot; if the original is damaged or
    /// not the newest, its last changes may then be in the kept files only.
    ///
    /// `decide` may change the copy. Only if the store has its newest content, the changes of its -wal file are copied into it, because the files of
    /// another one are kept as they are.
    ///
    /// Throws `.itemNotFound` if there is no such file, `.decode` if it is damaged or not a snapshot, `.notAvailable` if it has a newer
    /// version or the file in the store's place must not be replaced, `.notAvailable` if a process is still using the store at the deadline,
    /// and a failure with the cause `.unexpectedState(.keybagReplaced)` if the keybag was replaced after `decide` was called.
    package func run(
        from source: String, originalSuffix: String, _ decide: (_ copyPath: String) throws(KeychainFailure) -> Decision
    ) throws(KeychainFailure) -> Outcome {
        try ForkDetection.requireNotForked()
        let isStorePresent = try requireReplaceable()
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) is gone", path: path, subject: .store)
        }
        let turn = isStorePresent ? try RestorationTurn(location.path, until: newDeadline) : nil
        defer { withExtendedLifetime(turn) {} }
        let generation = isStorePresent ? try keybagGeneration() : nil
        let copy = try RepairCopy(ofSnapshot: source, in: location)
        try requireSoundSnapshot(copy, source)
        guard case .replace(let check) = try decide(copy.path) else { return .declined }
        try copy.checkpoint(options)
        guard isStorePresent else { return .done(original: try createStore(at: location, from: copy, originalSuffix)) }
        let exclusion = try excludeWriters(at: location, ifKeybagGeneration: generation, check)
        let keptPath = try StoreReplacement.unusedName(location.path + originalSuffix)
        try withExtendedLifetime(exclusion) { () throws(KeychainFailure) in
            try StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: keptPath).run(until: newDeadline)
        }
        return .done(original: keptPath)
    }

    private var newDeadline: Deadline { Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds)) }

    /// Creates the store that is gone, unless there is one again.
    ///
    /// Returns the new path of the -wal file of the store that is gone; nil if there is none.
    private func createStore(
        at location: FileLocation, from copy: RepairCopy, _ originalSuffix: String
    ) throws(KeychainFailure) -> String? {
        let log = try LostLog(at: location, until: newDeadline)
        let keptPath = try log.map { log throws(KeychainFailure) in
            try requireGone(location)
            return try log.keep(as: try StoreReplacement.unusedName(location.path + originalSuffix + "-wal"))
        }
        do throws(KeychainFailure) {
            try StoreReplacement(location: location, copy: copy, containsLog: false, originalPath: nil).run(until: newDeadline)
        } catch {
            // The snapshot is in place, and only its durability is unknown.
            if error.cause == .outcomeUnknown { throw error }
            try requireGone(location, keptPath)
            if let log, let keptPath { try log.putBack(from: keptPath) }
            throw error
        }
        withExtendedLifetime(log) {}
        return keptPath
    }

    private func requireGone(_ location: FileLocation, _ keptLogPath: String? = nil) throws(KeychainFailure) {
        guard try FileStatus.ifPresent(at: location.path) != nil else { return }
        let kept = keptLogPath.map { "; the -wal file of the earlier one is now \($0)" } ?? "; nothing was changed"
        throw KeychainFailure(
            .notAvailable, "there is a keychain at \(location.path) again\(kept)", path: location.path, subject: .store,
            remedy: .closeElsewhere)
    }

    /// Excludes writers when the store's file has all of its changes itself.
    ///
    /// The -wal file loses its name before the file is replaced. If the process is killed in between, nothing is missing then. All that the
    /// decision rests on is looked at while no process can write.
    ///
    /// Throws a failure with the cause `.unexpectedState(.keybagReplaced)` if the keybag has another generation than the one whose passcode was
    /// compared with that of the snapshot.
    private func excludeWriters(
        at location: FileLocation, ifKeybagGeneration generation: UInt64?, _ check: NewestContentCheck?
    ) throws(KeychainFailure) -> WriteExclusion {
        let deadline = newDeadline
        while true {
            // Before the exclusion, which keeps this process too from opening the store.
            var session = try unlessDamaged { () throws(KeychainFailure) in try openSession(.writer) }
            if let session, (try? isNewest(session, at: location, generation, check)) == true { session.tryToEmptyLog() }
            let exclusion = try WriteExclusion(location.path, until: deadline)
            let result = Result { () throws(KeychainFailure) in try completeFile(at: location, session, generation, check) }
            // Closed before the exclusion ends: closing the descriptors of that one drops the locks of this process.
            session = nil
            switch try result.get() {
            case .keptAsItIs: return exclusion
            case .complete:
                // Programs that have an empty -wal file open can go on without it. Others would have to be ended after an interruption.
                let log = try FileStatus.ifPresent(at: location.walPath)
                if deadline.isOver || (log?.byteCount ?? 0) == 0 { return exclusion }
            case .incomplete:
                guard !deadline.isOver else { throw inUse(location) }
            }
            withExtendedLifetime(consume exclusion) {}
            MonotonicClock.sleep(nanoseconds: 5_000_000)
        }
    }

    private enum FileState {
        /// The store is damaged, or does not have its newest content.
        case keptAsItIs
        /// The file has all changes of the -wal file.
        case complete
        /// A reader still needs the content without those changes.
        case incomplete
    }

    /// Copies the changes of the -wal file into the store's file.
    ///
    /// `session` is nil if the store cannot be opened because of damage.
    private func completeFile(
        at location: FileLocation, _ session: StoreSession?, _ generation: UInt64?, _ check: NewestContentCheck?
    ) throws(KeychainFailure) -> FileState {
        guard let session, try isNewest(session, at: location, generation, check) else { return .keptAsItIs }
        return try session.connection.checkpoint() ? .complete : .incomplete
    }

    /// Returns whether the store has its newest content, undamaged.
    private func isNewest(
        _ session: StoreSession, at location: FileLocation, _ generation: UInt64?, _ check: NewestContentCheck?
    ) throws(KeychainFailure) -> Bool {
        let isNewest = try unlessDamaged { () throws(KeychainFailure) in
            try session.beginReadTransaction()
            defer { session.finishReading() }
            try session.connection.requireNoHiddenChanges()
            if let generation, try session.keybagGeneration() != generation { throw keybagChanged(location) }
            guard let check else { return true }
            let anchored = SQLiteItemStore.greatestAnchoredChangeCount(of: check.storeID, in: check.anchorDirectory)
            let stored = try session.changeCount(in: check.cipher)
            // Accepting the content of a refused store begins a new series too.
            guard (stored ?? 0) < check.changeCountOfCopy else { throw changed(location) }
            return anchored == 0 || (stored ?? 0) >= anchored
        }
        return isNewest == true
    }

    /// Returns nil if the store is damaged.
    ///
    /// A store whose changes another process hides is not: it is sound after that process has ended.
    private func unlessDamaged<Value>(_ body: () throws(KeychainFailure) -> Value) throws(KeychainFailure) -> Value? {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            guard error.isOfDamagedStore else { throw error }
            return nil
        }
    }

    private func keybagChanged(_ location: FileLocation) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "the passcode or the protector of \(location.path) was changed meanwhile",
            path: location.path, subject: .store, cause: .unexpectedState(.keybagReplaced))
    }

    private func changed(_ location: FileLocation) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "another program has accepted the content of \(location.path), or replaced it, meanwhile; nothing was changed",
            path: location.path, subject: .store, remedy: .closeElsewhere)
    }

    private func inUse(_ location: FileLocation) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "other programs have been using \(location.path) for too long; nothing was changed", path: location.path,
            subject: .store, remedy: .closeElsewhere)
    }

    /// Returns nil if the store is damaged: a keybag that cannot be read is not compared.
    private func keybagGeneration() throws(KeychainFailure) -> UInt64? {
        try unlessDamaged { () throws(KeychainFailure) in try openSession(.reader).keybagGeneration() }
    }

    private func openSession(_ role: StoreOpener.Role) throws(KeychainFailure) -> StoreSession {
        let opener = StoreOpener(path: path, options: options)
        do throws(KeychainFailure) {
            return try opener.openSession(role, poolGeneration: 0, deadlineNanoseconds: nil)
        } catch {
            // SQLite takes a file with a damaged header for another program's.
            try opener.requireStore()
            throw error
        }
    }

    /// Returns whether there is a store, and creates its directory if there is none.
    ///
    /// Throws unless the file in its place is a store of this version, sound or damaged.
    private func requireReplaceable() throws(KeychainFailure) -> Bool {
        let isPresent = try unlessDamaged { () throws(KeychainFailure) in
            guard try SQLiteItemStore.inspect(path, fileSystem: options.fileSystem) == .present else { return false }
            try StoreOpener(path: path, options: options).requireStore()
            return true
        }
        if isPresent == false {
            let (directory, _) = try FileLocation.split(path)
            try PrivateDirectory.make(directory)
        }
        return isPresent ?? true
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

/// The -wal file of a store that is gone, which may have the only copy of the last changes.
///
/// A store that is created must not find it under its name: SQLite would apply it. While this object exists, no other restoration touches it.
private final class LostLog {
    private let location: FileLocation
    private let turn: RestorationTurn

    /// Nil if there is no such file.
    init?(at location: FileLocation, until deadline: Deadline) throws(KeychainFailure) {
        guard let log = try FileStatus.ifPresent(at: location.walPath), log.byteCount > 0 else { return nil }
        self.location = location
        turn = try RestorationTurn(location.walPath, until: deadline)
    }

    func keep(as path: String) throws(KeychainFailure) -> String {
        do throws(KeychainFailure) {
            try rename(location.walPath, to: path)
        } catch {
            // Perhaps only the flush failed.
            try? putBack(from: path)
            throw error
        }
        return path
    }

    /// After a failure, the store may be moved back, and then needs it.
    func putBack(from path: String) throws(KeychainFailure) { try rename(path, to: location.walPath) }

    private func rename(_ path: String, to other: String) throws(KeychainFailure) {
        do throws(Errno) {
            try FileSystem.renameWithoutReplacing(path, to: other)
            try FileSystem.flush(location.directory)
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }
}

extension StoreSession {
    /// Empties the -wal file if no other connection is in the way; best effort.
    fileprivate func tryToEmptyLog() {
        connection.busyHandler.setDeadline(atNanoseconds: 0)
        defer { connection.busyHandler.resetDeadline() }
        _ = try? connection.checkpointAndTruncate()
    }
}

extension KeychainFailure {
    /// Whether the store cannot be read, so that a copy may replace it.
    ///
    /// Its file may be empty. A store whose changes another process hides is sound after that process has ended.
    package var isOfDamagedStore: Bool { cause == .empty || (isDamage && remedy != .closeElsewhere) }
}
