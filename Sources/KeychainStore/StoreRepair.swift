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
    /// No connection to the store may be open in this process. Throws `.notAvailable` if another process still has the store open at the
    /// deadline. The original file gets its name plus `originalSuffix`, and a number if that name is taken. An interruption leaves the
    /// store either unchanged or repaired.
    package func run(
        originalSuffix: String, _ accepts: (Copy) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> Outcome {
        try CurrentProcess.requireNotForked()
        let opener = StoreOpener(path: path, options: options)
        // A damaged first page prevents opening, but not a repair.
        do throws(KeychainFailure) { try opener.requireStore() } catch { guard error.isDamage else { throw error } }
        let refused = try opener.findDamage()
        guard refused.description != nil, let location = try FileLocation(path) else { return .notNeeded }
        let deadline = Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds))
        let original = try LockedDatabase(location.path, until: deadline)
        RepairCopy.removeLeftovers(in: location)
        let copy = try RepairCopy(of: original, in: location)
        let unreachableChangeCount = try truncateUnreachableChanges(copy)
        try checkpointCopy(copy)
        let isAccepted = try accepts(
            Copy(
                path: copy.path, pageCount: copy.pageCount, refusedPageCount: refused.pages.count,
                unreachableChangeCount: unreachableChangeCount))
        guard isAccepted else { return .declined }
        let replacement = StoreReplacement(location: location, copy: copy, originalPath: try unusedName(location.path + originalSuffix))
        try withExtendedLifetime(original) { () throws(KeychainFailure) in try replacement.run(until: deadline) }
        return .done(original: replacement.originalPath)
    }

    /// Returns the path, with a number if it is taken.
    ///
    /// An interrupted repair may have left a second name of the store's file.
    private func unusedName(_ path: String) throws(KeychainFailure) -> String {
        var name = path
        var number = 1
        while try FileStatus.ifPresent(at: name) != nil {
            number += 1
            name = "\(path)-\(number)"
        }
        return name
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

    /// Copies the content of the copy's -wal file into the copy's database.
    private func checkpointCopy(_ copy: RepairCopy) throws(KeychainFailure) {
        let connection = try SQLiteConnection(
            path: copy.path, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try connection.enablePageVerification()
        try connection.applySafetySettings()
        try connection.apply(options.synchronous)
        // The first read makes SQLite recover the -wal file or a rollback journal.
        _ = try connection.integer(of: "PRAGMA user_version")
        guard try connection.checkpointAndTruncate() else {
            throw KeychainFailure(
                .notAvailable, "another program has the copy \(copy.path) open; nothing was changed", path: copy.path, subject: .store)
        }
    }
}

/// A database file locked exclusively until this object is released: no process has it open with SQLite.
///
/// The file is read without SQLite. Nothing else in this process may use the file meanwhile: closing this descriptor would drop its locks.
final class LockedDatabase {
    let path: String
    let byteCount: Int64
    private let file: OpenFile

    private static let pauseNanoseconds: UInt64 = 2_000_000

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
        byteCount = try Self.lock(file.descriptor, path, deadline)
        self.path = path
        self.file = file
    }

    var descriptor: FileDescriptor { file.descriptor }

    /// Waits for the lock and returns the size of the file.
    private static func lock(_ descriptor: FileDescriptor, _ path: String, _ deadline: Deadline) throws(Errno) -> Int64 {
        while try !descriptor.tryLockDatabase() {
            guard !deadline.isOver else { throw .wouldBlock }
            MonotonicClock.sleep(nanoseconds: pauseNanoseconds)
        }
        let status = try descriptor.status()
        // Another file may have taken the name before the file was locked.
        guard try FileStatus(of: path).identity == status.identity else { throw .notFound }
        return status.byteCount
    }

    static func failure(_ error: Errno, _ path: String) -> KeychainFailure {
        let status: KeychainStatus = error.isWriteDenied ? .readOnly : error.isInputOutputError ? .inputOutput : .notAvailable
        return KeychainFailure(
            status, "\(path) cannot be copied: \(error); nothing was changed", path: path, subject: .store,
            cause: error.isDiskFull ? .diskFull : nil)
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
    /// The suffixes of files that SQLite may have left beside a database and that contain a part of its content.
    static let logSuffixes = ["-wal", "-journal"]

    /// Copies the files.
    ///
    /// Throws a failure with `isDamage` for a file whose size is not a multiple of the page size.
    init(of original: LockedDatabase, in location: FileLocation) throws(KeychainFailure) {
        guard original.byteCount > 0, original.byteCount % Int64(StoreSchema.pageByteCount) == 0 else {
            throw KeychainFailure(
                .notAvailable, "the store is damaged: its file ends within a page; nothing was changed", subject: .store, isDamage: true)
        }
        path = Self.newPath(in: location)
        pageCount = Int(original.byteCount / Int64(StoreSchema.pageByteCount))
        do throws(Errno) {
            try Self.copy(original.descriptor, to: path, isDatabase: true)
            for suffix in Self.logSuffixes { try Self.copyLog(original.path + suffix, to: path + suffix) }
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
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

    deinit { remove() }

    func remove() { for suffix in [""] + FileLocation.companionSuffixes { FileSystem.tryUnlink(path + suffix) } }

    private static func copyLog(_ log: String, to path: String) throws(Errno) {
        let file: OpenFile
        do throws(Errno) {
            file = try OpenFile(log, .readWrite)
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
        // Nothing behind so many zeros in a -wal file is used, and the file may have a hole of any size.
        while isDatabase || zeroByteCount < zeroByteLimit {
            let count = try original.read(into: &buffer, at: offset)
            if count == 0 { break }
            if isDatabase {
                let number = UInt64(offset) / UInt64(StoreSchema.pageByteCount) + 1
                if number == 1 { StoreFileHeader.restoreIdentification(in: &buffer) }
                PageChecksums.writeChecksum(into: &buffer, number: number)
            }
            try copy.descriptor.writeAll(buffer[..<count])
            offset += Int64(count)
            zeroByteCount = buffer[..<count].allSatisfy { $0 == 0 } ? zeroByteCount + count : 0
        }
    }

    private static let zeroByteLimit = 8 << 20
}

/// Replaces a store with a copy, and keeps the original files under other names.
///
/// The replacement is atomic: a hard link gives the original file a second name, and a rename moves the copy to the store's path. Until the
/// original -wal file is removed, SQLite applies it to the new file. That has no effect, because the copy already contains its changes.
struct StoreReplacement {
    let location: FileLocation
    let copy: RepairCopy
    /// The second name of the original file.
    let originalPath: String

    /// The caller has locked the store.
    func run(until deadline: Deadline) throws(KeychainFailure) {
        if let log = try FileStatus.ifPresent(at: copy.path + "-wal"), log.byteCount > 0 {
            throw KeychainFailure(.notAvailable, "the copy is incomplete; nothing was changed", subject: .store)
        }
        try throwingFailure { () throws(Errno) in try FileSystem.flush(copy.path) }
        // Processes that open the new file must wait until the original -wal file is removed.
        let lock = try LockedDatabase(copy.path, until: deadline)
        do throws(KeychainFailure) {
            try throwingFailure { () throws(Errno) in try linkOriginal() }
            try throwingFailure { () throws(Errno) in try FileSystem.rename(copy.path, to: location.path) }
        } catch {
            for suffix in [""] + RepairCopy.logSuffixes where isOriginal(suffix) { FileSystem.tryUnlink(originalPath + suffix) }
            throw error
        }
        do throws(Errno) {
            try FileSystem.flush(location.directory)
            for suffix in FileLocation.companionSuffixes { FileSystem.tryUnlink(location.path + suffix) }
            try FileSystem.flush(location.directory)
        } catch {
            throw KeychainFailure(
                .inputOutput, "the store was repaired, but the disk failed (\(error)): a restart may undo the repair",
                subject: .store, cause: .outcomeUnknown)
        }
        withExtendedLifetime(lock) {}
    }

    private func linkOriginal() throws(Errno) {
        try FileSystem.link(location.path, as: originalPath)
        for suffix in RepairCopy.logSuffixes {
            do throws(Errno) { try FileSystem.link(location.path + suffix, as: originalPath + suffix) } catch .notFound {}
        }
        try FileSystem.flush(location.directory)
    }

    /// Whether the second name was created here: it leads to the same file as the first.
    private func isOriginal(_ suffix: String) -> Bool {
        guard let first = try? FileStatus(of: location.path + suffix), let second = try? FileStatus(of: originalPath + suffix) else {
            return false
        }
        return first.identity == second.identity
    }

    private func throwingFailure(_ body: () throws(Errno) -> Void) throws(KeychainFailure) {
        do throws(Errno) {
            try body()
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }
}
