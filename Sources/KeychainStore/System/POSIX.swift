// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// The few system calls of the store, as functions that answer an error number instead of setting one.
enum POSIX {
    /// An error number that a system call answered.
    struct ErrorNumber: Error, Hashable {
        let rawValue: Int32

        static let exists = ErrorNumber(rawValue: EEXIST)
        static let noEntry = ErrorNumber(rawValue: ENOENT)
        static let notPermitted = ErrorNumber(rawValue: EPERM)
        /// Somebody else has locked it.
        static let isLocked = ErrorNumber(rawValue: EAGAIN)
        static let notSupported = ErrorNumber(rawValue: EOPNOTSUPP)

        var meansFull: Bool { rawValue == ENOSPC || rawValue == EDQUOT }
        var meansIO: Bool { rawValue == EIO }
        var meansReadOnly: Bool { rawValue == EROFS || rawValue == EACCES || rawValue == EPERM }

        /// The system's own words, such as "Permission denied".
        var message: String {
            // strerror answers a valid C string for every number.
            unsafe String(cString: strerror(rawValue))
        }
    }

    /// What lstat tells about a name.
    struct FileFacts: Equatable {
        enum Kind { case regularFile, directory, symbolicLink, other }

        let kind: Kind
        /// The permission bits, the lowest nine and the three special ones.
        let mode: UInt32
        let owner: UInt32
        let byteCount: Int64
        let identity: FileIdentity
        /// When the content last changed, in nanoseconds since 1970.
        let modificationNanoseconds: Int64
    }

    /// Which file a name stands for: two names, or one name at two times, are the same file when this is equal.
    struct FileIdentity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    static var effectiveUser: UInt32 { geteuid() }

    /// Looks at the name itself: a symbolic link is not followed, and nothing is opened.
    static func facts(of path: String) throws(ErrorNumber) -> FileFacts {
        var status = stat()
        // `status` is ours and outlives the call.
        guard unsafe lstat(path, &status) == 0 else { throw ErrorNumber(rawValue: errno) }
        let kind: FileFacts.Kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regularFile
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            default: .other
            }
        return FileFacts(
            kind: kind, mode: UInt32(status.st_mode) & 0o7777, owner: status.st_uid, byteCount: Int64(status.st_size),
            identity: FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)),
            modificationNanoseconds: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
    }

    /// The directory's path without symbolic links.
    static func resolvedPath(of path: String) throws(ErrorNumber) -> String {
        // With a null buffer realpath allocates the answer, which is ours to free.
        guard let resolved = unsafe realpath(path, nil) else { throw ErrorNumber(rawValue: errno) }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Whether the effective user may make files in that directory.
    static func canMakeFiles(in directory: String) -> Bool {
        unsafe faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0
    }

    /// Makes an empty file that only its owner can use; fails when the name is taken, also by a symbolic link.
    ///
    /// `acceptsFixedMode`: also on a file system where the mode cannot be chosen, such as a memory stick's.
    static func makeFile(_ path: String, acceptsFixedMode: Bool = false) throws(ErrorNumber) {
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ErrorNumber(rawValue: errno) }
        // The umask may have taken bits away that the owner needs.
        let failure = fchmod(descriptor, 0o600) == 0 ? nil : ErrorNumber(rawValue: errno)
        close(descriptor)
        guard let failure, !(acceptsFixedMode && failure == .notPermitted) else { return }
        removeName(path)
        throw failure
    }

    /// Opens an existing file to write at its end; the descriptor is the caller's to close.
    static func openForAppending(_ path: String) throws(ErrorNumber) -> Int32 {
        let descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw ErrorNumber(rawValue: errno) }
        return descriptor
    }

    /// Writes all of the bytes.
    static func write(_ bytes: [UInt8], to descriptor: Int32) throws(ErrorNumber) {
        var written = 0
        while written < bytes.count {
            // The buffer holds for the call, which reads from `written` to its end.
            let count = unsafe bytes.withUnsafeBytes { buffer in
                let start = unsafe buffer.baseAddress.map { unsafe $0 + written }
                #if canImport(Glibc)
                return unsafe Glibc.write(descriptor, start, buffer.count - written)
                #elseif canImport(Musl)
                return unsafe Musl.write(descriptor, start, buffer.count - written)
                #elseif canImport(Android)
                return unsafe Android.write(descriptor, start, buffer.count - written)
                #endif
            }
            if count < 0 {
                guard errno == EINTR else { throw ErrorNumber(rawValue: errno) }
            } else {
                written += count
            }
        }
    }

    /// Waits until what was written through the descriptor is on the disk.
    static func flush(_ descriptor: Int32) throws(ErrorNumber) {
        guard fsync(descriptor) == 0 else { throw ErrorNumber(rawValue: errno) }
    }

    static func closeDescriptor(_ descriptor: Int32) {
        close(descriptor)
    }

    /// Makes a directory that only its owner can use.
    static func makeDirectory(_ path: String) throws(ErrorNumber) {
        guard unsafe mkdir(path, 0o700) == 0 else { throw ErrorNumber(rawValue: errno) }
        guard unsafe chmod(path, 0o700) == 0 else { throw ErrorNumber(rawValue: errno) }
    }

    /// Waits until the file or directory is on the disk.
    ///
    /// Opens and closes it, which drops every lock this process has on it: never for a database in use.
    static func flush(_ path: String) throws(ErrorNumber) {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw ErrorNumber(rawValue: errno) }
        let failure = fsync(descriptor) == 0 ? nil : ErrorNumber(rawValue: errno)
        close(descriptor)
        if let failure { throw failure }
    }

    /// Gives an existing file a second name, unless that name is taken.
    static func link(_ existing: String, as name: String) throws(ErrorNumber) {
        #if canImport(Glibc)
        let result = unsafe Glibc.link(existing, name)
        #elseif canImport(Musl)
        let result = unsafe Musl.link(existing, name)
        #elseif canImport(Android)
        let result = unsafe Android.link(existing, name)
        #endif
        guard result == 0 else { throw ErrorNumber(rawValue: errno) }
    }

    /// Gives a file another name, in the place of the file that has it.
    static func rename(_ existing: String, to name: String) throws(ErrorNumber) {
        #if canImport(Glibc)
        let result = unsafe Glibc.rename(existing, name)
        #elseif canImport(Musl)
        let result = unsafe Musl.rename(existing, name)
        #elseif canImport(Android)
        let result = unsafe Android.rename(existing, name)
        #endif
        guard result == 0 else { throw ErrorNumber(rawValue: errno) }
    }

    /// Removes a name, if it is there.
    static func removeName(_ path: String) {
        _ = unsafe unlink(path)
    }

    static func fileSystemType(of path: String) throws(ErrorNumber) -> UInt32 {
        var type: UInt32 = 0
        let result = unsafe keychain_file_system_type(path, &type)
        guard result == 0 else { throw ErrorNumber(rawValue: result) }
        return type
    }
}
