// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

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
        try CurrentProcess.requireNotForked()
        let opening = StoreOpener(path: path, options: options)
        try opening.examine()
        let refused = try opening.damage()
        guard refused.description != nil, let location = try FileLocation(path) else { return .notNeeded }
        let deadline = Deadline.after(milliseconds: UInt64(clamping: options.busyTimeoutMilliseconds))
        let original = try LockedDatabase(location.path, until: deadline)
        RepairCopy.removeLeftovers(in: location)
        let copy = try RepairCopy(of: original, in: location)
        let unreachableChangeCount = try truncateUnreachableChanges(copy)
        try settle(copy)
        let isAccepted = try accepts(
            Copy(
                path: copy.path, pageCount: copy.pageCount, refusedPageCount: refused.pages.count,
                unreachableChangeCount: unreachableChangeCount))
        guard isAccepted else { return .declined }
        let publication = StoreReplacement(location: location, copy: copy, originalPath: try unusedName(location.path + originalSuffix))
        try withExtendedLifetime(original) { () throws(KeychainFailure) in try publication.run(until: deadline) }
        return .done(original: publication.originalPath)
    }

    /// One that was interrupted may have left a second name of the store's file a moment ago.
    private func unusedName(_ path: String) throws(KeychainFailure) -> String {
        var name = path
        var number = 1
        while try FileStatus.ifPresent(at: name) != nil {
            number += 1
            name = "\(path)-\(number)"
        }
        return name
    }

    /// Ends the copy's -wal file where damage begins in it, if there are changes behind that, and tells how many.
    private func truncateUnreachableChanges(_ copy: RepairCopy) throws(KeychainFailure) -> Int {
        guard let damage = try StoreOpener(path: copy.path, options: options).damage().log else { return 0 }
        do throws(Errno) {
            try FileSystem.truncate(copy.path + "-wal", toByteCount: damage.soundByteCount)
        } catch {
            throw LockedDatabase.failure(error, copy.path)
        }
        return damage.unreachableChangeCount
    }

    /// Brings what is in the copy's -wal file into the copy.
    private func settle(_ copy: RepairCopy) throws(KeychainFailure) {
        let connection = try SQLiteConnection(
            path: copy.path, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try connection.enablePageVerification()
        try connection.applySafetySettings()
        try connection.apply(options.synchronous)
        // SQLite finds the -wal file, or a journal, with the first read.
        _ = try connection.integer(of: "PRAGMA user_version")
        guard try connection.checkpointAndTruncate() else {
            throw KeychainFailure(.notAvailable, "another program has the copy \(copy.path) open; nothing was changed")
        }
    }
}

/// A database file that nobody else can use until this is let go of: SQLite has it open in no process.
///
/// Read past SQLite. Nothing in this process may use the file meanwhile: letting go of this would drop its locks.
final class LockedDatabase {
    let path: String
    let byteCount: Int64
    private let file: OpenFile

    private static let pauseNanoseconds: UInt64 = 2_000_000

    /// Waits until the deadline for whoever has it open.
    ///
    /// Throws `.notAvailable` when somebody still has, and `.readOnly` for a file that cannot be written.
    convenience init(_ path: String, until deadline: Deadline) throws(KeychainFailure) {
        do throws(Errno) {
            try self.init(opening: path, deadline)
        } catch  where error == .wouldBlock {
            throw KeychainFailure(.notAvailable, "another program has \(path) open; nothing was changed", remedy: .closeElsewhere)
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

    /// Gives the file's size.
    private static func lock(_ descriptor: FileDescriptor, _ path: String, _ deadline: Deadline) throws(Errno) -> Int64 {
        while try !descriptor.tryLockDatabase() {
            guard !deadline.isOver else { throw .wouldBlock }
            MonotonicClock.sleep(nanoseconds: pauseNanoseconds)
        }
        let status = try descriptor.status()
        // Another file may have been given the name before the lock was there.
        guard try FileStatus(of: path).identity == status.identity else { throw .notFound }
        return status.byteCount
    }

    static func failure(_ error: Errno, _ path: String) -> KeychainFailure {
        let status: KeychainStatus = error.isWriteDenied ? .readOnly : error.isInputOutputError ? .inputOutput : .notAvailable
        return KeychainFailure(status, "\(path) cannot be copied: \(error); nothing was changed")
    }
}

/// A copy of a store's files in which every page of the database has the right checksum, whatever is in it.
///
/// Removed when this is let go of, unless it was given the store's name.
final class RepairCopy {
    let path: String
    let pageCount: Int

    private static let chunkByteCount = 1 << 20
    /// What SQLite may have left beside a database that belongs to its content.
    static let logSuffixes = ["-wal", "-journal"]

    /// Throws, calling it damage, for a file that is not a whole number of pages of a store.
    init(of original: LockedDatabase, in location: FileLocation) throws(KeychainFailure) {
        guard original.byteCount > 0, original.byteCount % Int64(StoreSchema.pageByteCount) == 0 else {
            throw KeychainFailure(
                .notAvailable, "the store is damaged: its file is cut off in the midst of a page; nothing was changed", isDamage: true)
        }
        // A name that nobody can guess or have left behind.
        path = location.directory + "/" + Self.prefix(location) + Identifier128.random().hexadecimal + Self.suffix
        pageCount = Int(original.byteCount / Int64(StoreSchema.pageByteCount))
        do throws(Errno) {
            try Self.copy(original.descriptor, to: path, writingChecksums: true)
            for suffix in Self.logSuffixes { try Self.copyLog(original.path + suffix, to: path + suffix) }
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }

    /// Removes what repairs that were killed have left behind.
    ///
    /// The caller has locked the store, so none is under way.
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
        try copy(file.descriptor, to: path, writingChecksums: false)
    }

    private static func copy(_ original: FileDescriptor, to path: String, writingChecksums: Bool) throws(Errno) {
        try FileSystem.createPrivateFile(path)
        let copy = try OpenFile(path, .append)
        var buffer = [UInt8](repeating: 0, count: writingChecksums ? StoreSchema.pageByteCount : chunkByteCount)
        var offset: Int64 = 0
        while true {
            let count = try original.read(into: &buffer, at: offset)
            if count == 0 { break }
            if writingChecksums { PageChecksums.stamp(&buffer, number: UInt64(offset) / UInt64(StoreSchema.pageByteCount) + 1) }
            try copy.descriptor.writeAll(buffer[..<count])
            offset += Int64(count)
        }
    }
}

/// Puts a copy in the place of a store, which keeps its files under other names.
///
/// There is no moment without a store: the old file gets a second name, and the new one takes its first in one step. Between that step and
/// the removal of the old -wal file the new file has the old one's log; its changes are in the file already, so applying them again changes
/// nothing.
struct StoreReplacement {
    let location: FileLocation
    let copy: RepairCopy
    /// The second name of the old file.
    let originalPath: String

    /// The caller has locked the store.
    func run(until deadline: Deadline) throws(KeychainFailure) {
        if let log = try FileStatus.ifPresent(at: copy.path + "-wal"), log.byteCount > 0 {
            throw KeychainFailure(.notAvailable, "the copy is not whole; nothing was changed")
        }
        try naming { () throws(Errno) in try FileSystem.flush(copy.path) }
        // Whoever opens the new file has to wait until the old one's log is out of its way.
        let lock = try LockedDatabase(copy.path, until: deadline)
        do throws(KeychainFailure) {
            try naming { () throws(Errno) in try linkOriginal() }
            try naming { () throws(Errno) in try FileSystem.rename(copy.path, to: location.path) }
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
                .inputOutput,
                "the repaired file is in its place, but the disk failed (\(error)): after a restart it may be the old one again")
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

    /// Whether the second name is one that was given here: it stands for the same file as the first.
    private func isOriginal(_ suffix: String) -> Bool {
        guard let first = try? FileStatus(of: location.path + suffix), let second = try? FileStatus(of: originalPath + suffix) else {
            return false
        }
        return first.identity == second.identity
    }

    private func naming(_ body: () throws(Errno) -> Void) throws(KeychainFailure) {
        do throws(Errno) {
            try body()
        } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }
}
