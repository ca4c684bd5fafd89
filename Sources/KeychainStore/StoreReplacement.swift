// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// A database file locked exclusively until this object is released: no process has it open with SQLite.
///
/// The file is read without SQLite. Nothing else in this process may use the file meanwhile: closing this descriptor would drop its locks.
final class LockedDatabase {
    let path: String
    let byteCount: Int64
    private let file: OpenFile

    /// Locks the file, waiting for other processes to close it.
    ///
    /// Throws `.notAvailable` if a process still has it open at the deadline, and `.readOnly` for a file that cannot be written.
    convenience init(_ path: String, until deadline: Deadline) throws(KeychainFailure) {
        do throws(Errno) {
            try self.init(opening: path, deadline)
        } catch  where error == .wouldBlock {
            throw KeychainFailure(
                .notAvailable, "another program has \(path) open; nothing was changed", path: path, subject: .store,
                remedy: .closeElsewhere)
        } catch {
            throw Self.failure(error, path)
        }
    }

    private init(opening path: String, _ deadline: Deadline) throws(Errno) {
        let file = try OpenFile(path, .readWrite)
        try file.descriptor.lock(.everything, until: deadline)
        byteCount = try file.descriptor.status(ofFileAt: path).byteCount
        self.path = path
        self.file = file
    }

    var descriptor: FileDescriptor { file.descriptor }

    static func failure(_ error: Errno, _ path: String) -> KeychainFailure {
        let status: KeychainStatus = error.isWriteDenied ? .readOnly : error.isInputOutputError ? .inputOutput : .notAvailable
        return KeychainFailure(
            status, "\(path) cannot be copied: \(error)", path: path, subject: .store,
            cause: error.isDiskFull ? .diskFull : nil)
    }
}

extension FileDescriptor {
    /// Waits for the lock; throws `.wouldBlock` at the deadline.
    fileprivate func lock(_ lock: DatabaseLock, until deadline: Deadline) throws(Errno) {
        while try !tryLock(lock) {
            guard !deadline.isOver else { throw .wouldBlock }
            MonotonicClock.sleep(nanoseconds: 2_000_000)
        }
    }

    /// Throws `.notFound` if another file has taken the name since the file was opened.
    fileprivate func status(ofFileAt path: String) throws(Errno) -> FileStatus {
        let status = try status()
        guard try FileStatus(of: path).identity == status.identity else { throw .notFound }
        return status
    }
}

/// Keeps other processes from putting a snapshot in the place of a store, until this object is released.
///
/// Each of them makes the snapshot newer than the store that it replaces, so they have to take turns.
final class RestorationTurn {
    private let database: OpenFile

    /// Waits for another restoration; throws `.notAvailable` at the deadline.
    init(_ path: String, until deadline: Deadline) throws(KeychainFailure) {
        do throws(Errno) {
            database = try Self.locked(path, deadline)
        } catch .wouldBlock {
            throw KeychainFailure(
                .notAvailable, "another program is putting a snapshot back; nothing was changed", path: path, subject: .store,
                remedy: .closeElsewhere)
        } catch {
            throw LockedDatabase.failure(error, path)
        }
    }

    private static func locked(_ path: String, _ deadline: Deadline) throws(Errno) -> OpenFile {
        while true {
            let database = try OpenFile(path, .readWrite)
            try database.descriptor.lock(.replacing, until: deadline)
            // Another restoration may have replaced the file meanwhile.
            if try database.descriptor.status().identity == FileStatus(of: path).identity { return database }
        }
    }
}

/// Keeps all connections from opening a store and from writing to it, until this object is released.
///
/// Connections that are open continue to read. This process may have none: closing these descriptors would drop its locks.
final class WriteExclusion {
    private let database: OpenFile
    private let sharedMemory: OpenFile?

    /// Waits for a transaction that is being written; throws `.notAvailable` at the deadline.
    convenience init(_ path: String, until deadline: Deadline) throws(KeychainFailure) {
        do throws(Errno) {
            try self.init(locking: path, deadline)
        } catch .wouldBlock {
            throw KeychainFailure(
                .notAvailable, "another program has been using \(path) for too long; nothing was changed", path: path, subject: .store,
                remedy: .closeElsewhere)
        } catch {
            throw LockedDatabase.failure(error, path)
        }
    }

    private init(locking path: String, _ deadline: Deadline) throws(Errno) {
        let database = try OpenFile(path, .readWrite)
        try database.descriptor.lock(.opening, until: deadline)
        _ = try database.descriptor.status(ofFileAt: path)
        self.database = database
        // Without this file no process has the store open, or those that have it open will notice that the file was removed.
        let sharedMemoryPath = path + "-shm"
        guard FileSystem.exists(sharedMemoryPath) else {
            sharedMemory = nil
            return
        }
        let sharedMemory = try OpenFile(sharedMemoryPath, .readWrite)
        try sharedMemory.descriptor.lock(.writing, until: deadline)
        self.sharedMemory = .some(consume sharedMemory)
    }
}

/// A copy of a store's files in which every page of the database has a valid checksum, whatever its content, and the database's header the
/// fields that identify it.
///
/// The files are removed when this object is released, unless the copy has replaced the store.
final class RepairCopy {
    let path: String
    let pageCount: Int

    private static let chunkByteCount = 1 << 20

    /// Copies the files.
    ///
    /// Throws a failure with `isDamage` for a file whose size is not a multiple of the page size.
    init(of original: LockedDatabase, in location: FileLocation) throws(KeychainFailure) {
        guard original.byteCount > 0, original.byteCount % Int64(StoreSchema.pageByteCount) == 0 else {
            throw KeychainFailure(
                .notAvailable, "the store is damaged: its file ends within a page", subject: .store, isDamage: true)
        }
        path = Self.newPath(in: location)
        pageCount = Int(original.byteCount / Int64(StoreSchema.pageByteCount))
        do throws(Errno) {
            try Self.copy(original.descriptor, to: path, isDatabase: true)
            try Self.copyLog(original.path + "-wal", to: path + "-wal")
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }

    /// Copies a snapshot, and its -wal file if there is one, without changing anything.
    ///
    /// Throws `.itemNotFound` if there is no such file.
    init(ofSnapshot source: String, in location: FileLocation) throws(KeychainFailure) {
        path = Self.newPath(in: location)
        do throws(Errno) {
            let file = try OpenFile(source, .read, followsLinks: true)
            let status = try file.descriptor.status()
            guard status.kind == .regularFile else { throw .notSupported }
            pageCount = Int(status.byteCount) / StoreSchema.pageByteCount
            try Self.copy(file.descriptor, to: path, isDatabase: false)
            try Self.copyLog(source + "-wal", to: path + "-wal")
        } catch {
            // An object whose initializer fails is not deinitialized.
            Self.remove(path)
            switch error {
            case .notFound, .notDirectory:
                throw KeychainFailure(.itemNotFound, "there is no snapshot \(source)", path: source, subject: .snapshot)
            case .notSupported:
                throw KeychainFailure(.notAvailable, "the snapshot \(source) is not a regular file", path: source, subject: .snapshot)
            default:
                let status: KeychainStatus = error.isInputOutputError ? .inputOutput : .notAvailable
                throw KeychainFailure(
                    status, "the snapshot \(source) cannot be copied to \(location.directory): \(error)", path: source, subject: .snapshot,
                    cause: error.isDiskFull ? .diskFull : nil)
            }
        }
    }

    /// Copies the content of the copy's -wal file into the copy's database.
    func checkpoint(_ options: StoreOptions) throws(KeychainFailure) {
        let connection = try SQLiteConnection(
            path: path, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try connection.enablePageVerification()
        try connection.applySafetySettings()
        try connection.apply(options.synchronous)
        // The first read makes SQLite recover the -wal file.
        _ = try connection.integer(of: "PRAGMA user_version")
        guard try connection.checkpointAndTruncate() else {
            throw KeychainFailure(
                .notAvailable, "another program has the copy \(path) open", path: path, subject: .store)
        }
    }

    /// Makes the format in the header that of the tables, because a flipped bit may have changed it, and notes that records of changes may be
    /// lost: nothing authenticates them.
    ///
    /// Best effort: a copy that cannot be read is refused anyway.
    func restoreFormat(_ options: StoreOptions) {
        let connection = try? SQLiteConnection(
            path: path, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        guard let connection, (try? connection.applySafetySettings()) != nil,
            let tableCount = try? connection.integer(of: "SELECT count(*) FROM sqlite_schema WHERE name = 'sync_changes'"),
            let stored = try? connection.integer(of: "PRAGMA user_version")
        else { return }
        let format = tableCount > 0 ? StoreSchema.synchronizingFormat : StoreSchema.formatOfNewStores
        if stored != format { try? connection.execute("PRAGMA user_version = \(format)") }
        if tableCount > 0 { try? connection.execute(SyncSchema.noteOfLackOfRecords) }
    }

    /// Returns a random path, which cannot be guessed and cannot exist already.
    static func newPath(in location: FileLocation) -> String {
        location.directory + "/" + prefix(location) + Identifier128.random().hexadecimal + suffix
    }

    /// Removes files that interrupted repairs have left behind.
    ///
    /// The caller has locked the store, so no other repair is running.
    static func removeLeftovers(in location: FileLocation) {
        for name in (try? FileSystem.names(in: location.directory)) ?? [] where name.hasPrefix(prefix(location)) {
            let isOurs = ([""] + FileLocation.companionSuffixes).contains { name.hasSuffix(suffix + $0) }
            if isOurs { FileSystem.tryUnlink(location.directory + "/" + name) }
        }
    }

    private static let suffix = ".repair"

    private static func prefix(_ location: FileLocation) -> String { "." + location.name + "." }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        for suffix in [""] + FileLocation.companionSuffixes { FileSystem.tryUnlink(path + suffix) }
    }

    private static func copyLog(_ log: String, to path: String) throws(Errno) {
        let file: OpenFile
        do throws(Errno) {
            file = try OpenFile(log, .read)
        } catch .notFound {
            return
        }
        try copy(file.descriptor, to: path, isDatabase: false)
    }

    private static func copy(_ original: FileDescriptor, to path: String, isDatabase: Bool) throws(Errno) {
        try FileSystem.createPrivateFile(path)
        let copy = try OpenFile(path, .append)
        var buffer = [UInt8](repeating: 0, count: isDatabase ? StoreSchema.pageByteCount : chunkByteCount)
        var offset: Int64 = 0
        var zeroByteCount = 0
        // Nothing behind so many zeros is used: no page of a database has only zeros, and a -wal file ends there. The file may have a hole of any
        // size.
        while zeroByteCount < zeroByteLimit {
            let count = try original.read(into: &buffer, at: offset)
            if count == 0 { break }
            zeroByteCount = buffer[..<count].allSatisfy { $0 == 0 } ? zeroByteCount + count : 0
            if isDatabase {
                let number = UInt64(offset) / UInt64(StoreSchema.pageByteCount) + 1
                if number == 1 {
                    let pageCount = try original.status().byteCount / Int64(StoreSchema.pageByteCount)
                    StoreFileHeader.restoreConstants(in: &buffer, pageCount: pageCount)
                }
                PageChecksums.writeChecksum(into: &buffer, number: number)
            }
            try copy.descriptor.writeAll(buffer[..<count])
            offset += Int64(count)
        }
    }

    private static let zeroByteLimit = 8 << 20
}

/// Replaces a store with a copy, and keeps the original files under other names.
///
/// The replacement is atomic: a hard link gives the original file a second name, and a rename moves the copy to the store's path.
struct StoreReplacement {
    let location: FileLocation
    let copy: RepairCopy
    /// Whether the copy contains the changes of the original -wal file.
    ///
    /// Until that file is removed, SQLite applies it to the new file. If the copy contains its changes, that has no effect. Otherwise the name
    /// has to be removed first, so the caller copies its content into the original file before. In a damaged store that is not possible: an
    /// interruption leaves the original file without its last changes, and the kept files have all of them.
    let containsLog: Bool
    /// The second name of the original file; nil if there is no original file.
    let originalPath: String?

    /// The suffixes of files that contain a part of the content.
    ///
    /// A journal is another program's, which needs it to undo its write.
    private static let keptSuffixes = ["-wal", FileLocation.journalSuffix]

    /// Returns the path, with a number if it is taken.
    ///
    /// An interrupted repair may have left a second name of the store's file.
    static func unusedName(_ path: String) throws(KeychainFailure) -> String {
        var name = path
        var number = 1
        while try FileStatus.ifPresent(at: name) != nil {
            number += 1
            name = "\(path)-\(number)"
        }
        return name
    }

    /// The caller has locked the store.
    func run(until deadline: Deadline) throws(KeychainFailure) {
        if let log = try FileStatus.ifPresent(at: copy.path + "-wal"), log.byteCount > 0 {
            throw KeychainFailure(.notAvailable, "the copy is incomplete", subject: .store)
        }
        try throwingFailure { () throws(Errno) in try FileSystem.flush(copy.path) }
        // Processes that open the new file must wait until the original -wal file is removed.
        let lock = try LockedDatabase(copy.path, until: deadline)
        do throws(KeychainFailure) {
            if let originalPath { try throwingFailure { () throws(Errno) in try linkOriginal(originalPath) } }
            // Without an original file the caller has taken the name away.
            if !containsLog, originalPath != nil {
                FileSystem.tryUnlink(location.path + "-wal")
                try throwingFailure { () throws(Errno) in try FileSystem.flush(location.directory) }
            }
            try throwingFailure { () throws(Errno) in try moveCopyIntoPlace() }
        } catch {
            if let originalPath {
                if !containsLog { try? FileSystem.link(originalPath + "-wal", as: location.path + "-wal") }
                unlinkOriginal(originalPath)
            }
            throw error
        }
        do throws(Errno) {
            try FileSystem.flush(location.directory)
            for suffix in FileLocation.companionSuffixes { FileSystem.tryUnlink(location.path + suffix) }
            try FileSystem.flush(location.directory)
        } catch {
            throw KeychainFailure(
                .inputOutput, "the store was replaced, but the disk failed (\(error)): a restart may undo that",
                subject: .store, cause: .outcomeUnknown)
        }
        withExtendedLifetime(lock) {}
    }

    /// Renames the copy to the name of the store; without an original file, fails if there is one now.
    private func moveCopyIntoPlace() throws(Errno) {
        guard originalPath == nil else { return try FileSystem.rename(copy.path, to: location.path) }
        try FileSystem.link(copy.path, as: location.path)
        FileSystem.tryUnlink(copy.path)
    }

    private func linkOriginal(_ originalPath: String) throws(Errno) {
        try FileSystem.link(location.path, as: originalPath)
        // An empty -wal file has no part of the content.
        for suffix in Self.keptSuffixes where (try? FileStatus(of: location.path + suffix))?.byteCount != 0 {
            do throws(Errno) { try FileSystem.link(location.path + suffix, as: originalPath + suffix) } catch .notFound {}
        }
        try FileSystem.flush(location.directory)
    }

    /// Removes the hard links that `linkOriginal` created.
    private func unlinkOriginal(_ originalPath: String) {
        for suffix in [""] + Self.keptSuffixes where FileSystem.isSameFile(location.path + suffix, originalPath + suffix) {
            FileSystem.tryUnlink(originalPath + suffix)
        }
    }

    private func throwingFailure(_ body: () throws(Errno) -> Void) throws(KeychainFailure) {
        do throws(Errno) {
            try body()
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }
}
