// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
package import KeychainCore

/// The few system calls of the store, as functions that answer an error number instead of setting one.
package enum POSIX {
    /// An error number that a system call answered.
    package struct SystemError: Error, Hashable {
        package let rawValue: Int32

        package static let exists = SystemError(rawValue: EEXIST)
        package static let noEntry = SystemError(rawValue: ENOENT)
        package static let notPermitted = SystemError(rawValue: EPERM)
        /// Somebody else has locked it.
        package static let isLocked = SystemError(rawValue: EAGAIN)
        package static let notSupported = SystemError(rawValue: EOPNOTSUPP)

        package var isOutOfSpace: Bool { rawValue == ENOSPC || rawValue == EDQUOT }
        package var isIOError: Bool { rawValue == EIO }
        package var isPermissionError: Bool { rawValue == EROFS || rawValue == EACCES || rawValue == EPERM }

        /// The system's own words, such as "Permission denied".
        package var message: String {
            // strerror answers a valid C string for every number.
            unsafe String(cString: strerror(rawValue))
        }
    }

    /// What lstat tells about a name.
    package struct FileStatus: Equatable {
        package enum Kind { case regularFile, directory, symbolicLink, other }

        package let kind: Kind
        /// The permission bits, the lowest nine and the three special ones.
        package let mode: UInt32
        package let owner: UInt32
        package let byteCount: Int64
        package let identity: FileIdentity
        /// When the content last changed, in nanoseconds since 1970.
        package let modificationNanoseconds: Int64
    }

    /// Which file a name stands for: two names, or one name at two times, are the same file when this is equal.
    package struct FileIdentity: Hashable {
        package let device: UInt64
        package let inode: UInt64
    }

    package static var effectiveUser: UInt32 { geteuid() }

    /// Looks at the name itself: a symbolic link is not followed, and nothing is opened.
    package static func facts(of path: String) throws(SystemError) -> FileStatus {
        var status = stat()
        // `status` is ours and outlives the call.
        guard unsafe lstat(path, &status) == 0 else { throw SystemError(rawValue: errno) }
        let kind: FileStatus.Kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regularFile
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            default: .other
            }
        return FileStatus(
            kind: kind, mode: UInt32(status.st_mode) & 0o7777, owner: status.st_uid, byteCount: Int64(status.st_size),
            identity: FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)),
            modificationNanoseconds: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
    }

    /// What lstat tells about a name; nil if nothing has that name.
    package static func factsIfPresent(of path: String) throws(KeychainFailure) -> FileStatus? {
        do throws(SystemError) {
            return try facts(of: path)
        } catch .noEntry {
            return nil
        } catch {
            throw KeychainFailure(.notAvailable, "cannot look at \(path): \(error.message)", path: path)
        }
    }

    /// The directory's path without symbolic links.
    package static func resolvedPath(of path: String) throws(SystemError) -> String {
        // With a null buffer realpath allocates the answer, which is ours to free.
        guard let resolved = unsafe realpath(path, nil) else { throw SystemError(rawValue: errno) }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Whether the effective user may make files in that directory.
    package static func canCreateFiles(in directory: String) -> Bool {
        unsafe faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0
    }

    /// Makes an empty file that only its owner can use; fails when the name is taken, also by a symbolic link.
    ///
    /// `allowsFixedMode`: also on a file system where the mode cannot be chosen, such as a memory stick's.
    package static func makeFile(_ path: String, allowsFixedMode: Bool = false) throws(SystemError) {
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError(rawValue: errno) }
        // The umask may have taken bits away that the owner needs.
        let failure = fchmod(descriptor, 0o600) == 0 ? nil : SystemError(rawValue: errno)
        close(descriptor)
        guard let failure, !(allowsFixedMode && failure == .notPermitted) else { return }
        removeFile(path)
        throw failure
    }

    /// Opens an existing file to write at its end; the descriptor is the caller's to close.
    package static func openForAppending(_ path: String) throws(SystemError) -> Int32 {
        let descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(rawValue: errno) }
        return descriptor
    }

    /// Writes all of the bytes.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            // The buffer holds for the call, which reads from `written` to its end.
            let count = unsafe bytes.withUnsafeBytes { buffer in
                let start = unsafe buffer.baseAddress.map { unsafe $0 + written }
                return unsafe Glibc.write(descriptor, start, buffer.count - written)
            }
            if count < 0 {
                guard errno == EINTR else { throw SystemError(rawValue: errno) }
            } else {
                written += count
            }
        }
    }

    /// Waits until what was written through the descriptor is on the disk.
    package static func flush(_ descriptor: Int32) throws(SystemError) {
        guard fsync(descriptor) == 0 else { throw SystemError(rawValue: errno) }
    }

    package static func closeDescriptor(_ descriptor: Int32) {
        close(descriptor)
    }

    /// Makes a directory that only its owner can use.
    package static func makeDirectory(_ path: String) throws(SystemError) {
        guard unsafe mkdir(path, 0o700) == 0 else { throw SystemError(rawValue: errno) }
        guard unsafe chmod(path, 0o700) == 0 else { throw SystemError(rawValue: errno) }
    }

    /// Waits until the file or directory is on the disk.
    ///
    /// Opens and closes it, which drops every lock this process has on it: never for a database in use.
    package static func flush(_ path: String) throws(SystemError) {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(rawValue: errno) }
        let failure = fsync(descriptor) == 0 ? nil : SystemError(rawValue: errno)
        close(descriptor)
        if let failure { throw failure }
    }

    /// Gives an existing file a second name, unless that name is taken.
    package static func link(_ existing: String, as name: String) throws(SystemError) {
        let result = unsafe Glibc.link(existing, name)
        guard result == 0 else { throw SystemError(rawValue: errno) }
    }

    /// Gives a file another name, in the place of the file that has it.
    package static func rename(_ existing: String, to name: String) throws(SystemError) {
        let result = unsafe Glibc.rename(existing, name)
        guard result == 0 else { throw SystemError(rawValue: errno) }
    }

    /// Removes a name, if it is there.
    package static func removeFile(_ path: String) {
        _ = unsafe unlink(path)
    }

    package static func fileSystemType(of path: String) throws(SystemError) -> UInt32 {
        var type: UInt32 = 0
        let result = unsafe keychain_file_system_type(path, &type)
        guard result == 0 else { throw SystemError(rawValue: result) }
        return type
    }
}

/// What copying a database past SQLite needs.
extension POSIX {
    /// Opens an existing file to read and write; the descriptor is the caller's to close.
    ///
    /// Closing it drops every lock this process has on the file, those of open files aside.
    package static func openToReadAndWrite(_ path: String) throws(SystemError) -> Int32 {
        let descriptor = unsafe open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(rawValue: errno) }
        return descriptor
    }

    /// Which file a descriptor stands for, and its size.
    package static func identityAndByteCount(of descriptor: Int32) throws(SystemError) -> (FileIdentity, Int64) {
        var status = stat()
        // `status` is ours and outlives the call.
        guard unsafe fstat(descriptor, &status) == 0 else { throw SystemError(rawValue: errno) }
        return (FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)), Int64(status.st_size))
    }

    /// Fills the buffer from a place in the file, or as much of it as there is before the file ends; answers how much.
    package static func read(into buffer: inout [UInt8], from descriptor: Int32, at offset: Int64) throws(SystemError) -> Int {
        var filled = 0
        while filled < buffer.count {
            // The rest of the buffer, and its size.
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe pread(descriptor, bytes.baseAddress.map { unsafe $0 + filled }, bytes.count - filled, off_t(offset) + off_t(filled))
            }
            if count == 0 { break }
            if count < 0 {
                guard errno == EINTR else { throw SystemError(rawValue: errno) }
            } else {
                filled += count
            }
        }
        return filled
    }

    /// The names in a directory; none where it cannot be read.
    package static func names(inDirectory path: String) -> [String] {
        guard let stream = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        // readdir's entry is valid until the next call; the name is copied at once.
        while let entry = unsafe readdir(stream) {
            names.append(
                unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                    unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                })
        }
        return names
    }

    package static func truncate(_ path: String, toByteCount byteCount: Int64) throws(SystemError) {
        let descriptor = try openToReadAndWrite(path)
        defer { closeDescriptor(descriptor) }
        guard ftruncate(descriptor, off_t(byteCount)) == 0 else { throw SystemError(rawValue: errno) }
    }

    /// Locks a database against every connection of SQLite's; false when somebody has it open.
    package static func lockDatabase(_ descriptor: Int32) throws(SystemError) -> Bool {
        let code = keychain_file_try_lock(descriptor)
        guard code == 0 || code == EAGAIN || code == EACCES else { throw SystemError(rawValue: code) }
        return code == 0
    }
}

/// Tells which kind of file system a directory is on.
///
/// A port, so that a test can say "nfs".
package struct FileSystemProbe: Sendable {
    /// The number that statfs(2) gives as `f_type`; nil when it cannot be told.
    package let typeNumber: @Sendable (_ directory: String) -> UInt32?

    package init(typeNumber: @escaping @Sendable (_ directory: String) -> UInt32?) {
        self.typeNumber = typeNumber
    }

    package static let system = FileSystemProbe { directory in try? POSIX.fileSystemType(of: directory) }

    /// The name of a network file system, where several machines cannot share the memory that WAL needs; nil for others.
    ///
    /// Source of the numbers: linux/magic.h and statfs(2).
    package static func networkFileSystemName(ofType typeNumber: UInt32) -> String? {
        switch typeNumber {
        case 0x6969: "nfs"
        case 0x517B: "smb"
        case 0xFF53_4D42: "cifs"
        case 0xFE53_4D42: "smb2"
        case 0x0102_1997: "9p"
        case 0x5346_414F, 0x6B41_4653: "afs"
        default: nil
        }
    }
}
