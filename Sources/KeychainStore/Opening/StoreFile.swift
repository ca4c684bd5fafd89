// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// Whether there is a store at a path.
package enum StorePresence: Equatable, Sendable {
    case absent, present
}

/// A file that may be opened as a store: a private regular file of this user, in a private directory, on a local disk.
///
/// Inspected with lstat only: opening and closing the file would drop the locks of every connection that this process has on it.
struct StoreFile {
    let location: FileLocation
    let facts: FileStatus

    /// Returns the file at a path, or nil if there is none.
    ///
    /// Throws `.notAvailable` for a file or directory that must not be used. The reason says what to do.
    static func find(_ path: String, fileSystem: FileSystemProbe) throws(KeychainFailure) -> StoreFile? {
        guard let location = try FileLocation(path) else { return nil }
        try checkDirectory(location.directory, fileSystem: fileSystem)
        guard let facts = try FileStatus.ifPresent(at: location.path) else { return nil }
        let path = location.path
        switch facts.kind {
        case .regularFile: break
        case .symbolicLink:
            throw refusal(path, .symbolicLink, "is a symbolic link; replace it by the file that it points to")
        case .directory, .other: throw refusal(path, .notRegularFile, "is not a regular file; move it away")
        }
        try checkOwner(facts, path)
        guard facts.permissions & 0o7177 == 0 else {
            throw refusal(path, .accessibleToOthers, "can be used by others (mode \(octal(facts.permissions))); run: chmod 600 \(path)")
        }
        guard facts.byteCount > 0 else {
            throw KeychainFailure(
                .notAvailable, "\(path) is empty, so its content was lost; put a copy back, or remove it to start over", path: path,
                subject: .store, cause: .empty, isDamage: true)
        }
        return StoreFile(location: location, facts: facts)
    }

    /// Throws if SQLite would use a file beside the store that cannot be the store's own.
    ///
    /// A store has no rollback journal, and the VFS hides one from SQLite. It means that another program was interrupted while it wrote to the
    /// store. And SQLite would wait for a writer if such a name is a FIFO.
    func requireOwnCompanions() throws(KeychainFailure) {
        for suffix in FileLocation.companionSuffixes {
            let path = location.path + suffix
            guard let facts = try FileStatus.ifPresent(at: path) else { continue }
            guard facts.kind == .regularFile else {
                throw Self.refusal(path, .notRegularFile, "is not a regular file; move it away")
            }
            // SQLite creates these files with the mode of the database, which may have been read-only at that time. Nothing else changes it back.
            if facts.permissions & 0o200 == 0, self.facts.permissions & 0o200 != 0, facts.owner == CurrentProcess.effectiveUserID {
                try? FileSystem.setPermissions(self.facts.permissions, of: path)
            }
            guard suffix != FileLocation.journalSuffix || facts.byteCount == 0 else {
                throw KeychainFailure(
                    .notAvailable,
                    "\(path) was left by another program that was interrupted while it wrote to the store; nothing was changed. To undo that "
                        + "write, open the store once with that program, for example sqlite3",
                    path: path, subject: .store, cause: .foreignFile, isDamage: true)
            }
        }
    }

    /// Checks the directory of a store, existing or new.
    static func checkDirectory(_ directory: String, fileSystem: FileSystemProbe) throws(KeychainFailure) {
        guard let facts = try FileStatus.ifPresent(at: directory) else { throw refusal(directory, .missing, "is gone") }
        guard facts.kind == .directory else { throw refusal(directory, nil, "is not a directory") }
        try checkOwner(facts, directory)
        guard facts.permissions & 0o077 == 0 else {
            throw refusal(
                directory, .accessibleToOthers,
                "can be used by others (mode \(octal(facts.permissions))); choose a folder for the keychain alone, or run: chmod 700 \(directory)"
            )
        }
        guard let type = fileSystem.typeNumber(directory) else {
            throw refusal(directory, .unknownFileSystem, "is on an unknown file system; choose a local directory")
        }
        if let name = fileSystem.networkFileSystemName(of: directory, typeNumber: type) {
            throw refusal(
                directory, .networkFileSystem(name: name),
                "is on a network file system (\(name)), where a store is not safe; choose a local directory")
        }
    }

    private static func checkOwner(_ facts: FileStatus, _ path: String) throws(KeychainFailure) {
        let user = CurrentProcess.effectiveUserID
        guard facts.owner == user else {
            throw refusal(
                path, .wrongOwner,
                "belongs to user \(facts.owner), not to user \(user); run as that user, or set KEYCHAIN_HOME to another directory")
        }
    }

    private static func refusal(_ path: String, _ cause: KeychainFailure.Cause?, _ reason: String) -> KeychainFailure {
        KeychainFailure(.notAvailable, "\(path) \(reason)", path: path, subject: .store, cause: cause)
    }

    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

/// A store in a read-only directory, which is read without locks.
///
/// The directory may be read-only for this process only. So each read checks that the file is unchanged.
struct ImmutableFile {
    let location: FileLocation
    let facts: FileStatus

    /// Returns nil if the store can be opened with locks: the directory is writable, or another process has a -wal file there.
    init?(_ file: StoreFile) throws(KeychainFailure) {
        guard !FileSystem.canCreateFiles(in: file.location.directory) else { return nil }
        guard try FileStatus.ifPresent(at: file.location.walPath) == nil else { return nil }
        location = file.location
        facts = file.facts
    }

    /// Whether no process has written to the store since it was opened.
    ///
    /// A writer creates a -wal file or changes the file itself.
    var isUnchanged: Bool {
        guard let now = try? FileStatus(of: location.path), now == facts else { return false }
        do throws(Errno) {
            _ = try FileStatus(of: location.walPath)
            return false
        } catch {
            return error == .notFound
        }
    }
}

extension FileLocation {
    /// The path of the write-ahead log.
    var walPath: String { path + "-wal" }

    /// The suffixes that SQLite appends to a database's name for the files beside it.
    static let companionSuffixes = ["-wal", "-shm", journalSuffix]
    static let journalSuffix = "-journal"
}
