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
            guard (try? FileSystem.resolve(path)) != nil else {
                throw refusal(path, .missing, "is a symbolic link to a file that does not exist; remove it, unless a disk is not mounted")
            }
            throw refusal(path, .symbolicLink, "is a symbolic link; replace it by the file that it points to")
        case .directory, .socket, .other: throw refusal(path, .notRegularFile, "is not a regular file; move it away")
        }
        try checkOwner(facts, path)
        guard facts.permissions & 0o7177 == 0 else {
            throw refusal(path, .accessibleToOthers, "can be used by others (mode \(octal(facts.permissions))); run: chmod 600 \(path)")
        }
        try checkOnlyDirectory(of: location, facts)
        guard facts.byteCount > 0 else {
            throw KeychainFailure(
                .notAvailable,
                "\(path) is empty, so its content was lost; put a copy back, or move it away with its key file to start over",
                path: path, subject: .store, cause: .empty, isDamage: true)
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
                    "\(path) was left by another program that was interrupted while it wrote to the store. To undo that write, "
                        + "open the store once with that program, for example sqlite3",
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

    /// Throws if programs can find the file in several directories.
    ///
    /// Each directory would have its own -wal and -shm file, so the programs would not see each other's locks and changes, and a checkpoint of
    /// one would overwrite the changes of the other. Source: sqlite.org/howtocorrupt.html, "Multiple links to the same file".
    private static func checkOnlyDirectory(of location: FileLocation, _ facts: FileStatus) throws(KeychainFailure) {
        guard !FileSystem.isMountPoint(location.path) else {
            throw refusal(
                location.path, .mountPoint,
                "is mounted without its directory, so changes of other programs would be lost; mount the directory instead")
        }
        // A creation or a repair gives the file a second name in its directory for a moment, and leaves it there if it is killed.
        var facts = facts
        for _ in 1...3 where facts.linkCount > 1 {
            let names = try namesOfFile(facts.identity, in: location.directory)
            guard names < facts.linkCount, let now = try FileStatus.ifPresent(at: location.path) else { return }
            facts = now
        }
        guard facts.linkCount <= 1 else {
            throw refusal(
                location.path, .hardLinks,
                "has another name (a hard link) outside of \(location.directory), where a program that uses it would overwrite changes; "
                    + "remove the other name, or replace this one by a copy of the file")
        }
    }

    /// The number of names that a file has in a directory.
    private static func namesOfFile(_ identity: FileStatus.Identity, in directory: String) throws(KeychainFailure) -> UInt64 {
        let names: [String]
        do throws(Errno) { names = try FileSystem.names(in: directory) } catch {
            throw KeychainFailure(.notAvailable, "cannot list \(directory): \(error)", path: directory, subject: .store)
        }
        return UInt64(names.count { (try? FileStatus(of: directory + "/" + $0))?.identity == identity })
    }

    private static func checkOwner(_ facts: FileStatus, _ path: String) throws(KeychainFailure) {
        let user = CurrentProcess.effectiveUserID
        guard facts.owner == user else {
            // A new volume of a container belongs to root. A keychain of another person is not taken from them.
            let transfer = facts.owner == 0 ? "if it is meant for this user, run as root: chown -R \(user) \(path); otherwise " : ""
            throw refusal(
                path, .wrongOwner,
                "belongs to user \(facts.owner), not to user \(user); \(transfer)run as that user, or set KEYCHAIN_HOME to another directory"
            )
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
