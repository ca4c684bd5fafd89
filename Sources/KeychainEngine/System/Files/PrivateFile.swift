// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore

/// Small files that hold a secret: read into key memory, written whole and durably, never through a link.
enum PrivateFile {
    static func exists(atPath path: String) -> Bool {
        var information = stat()
        return unsafe lstat(path, &information) == 0
    }

    /// As `exists`, where "cannot look" must not be taken for "no".
    static func isPresent(atPath path: String, what: String) throws(KeychainFailure) -> Bool {
        var information = stat()
        guard unsafe lstat(path, &information) != 0 else { return true }
        let code = errno
        guard code == ENOENT else { throw readFailure(code, what, path) }
        return false
    }

    /// The path without symbolic links, as far as it leads.
    static func resolved(_ path: String) -> String {
        if let resolved = unsafe realpath(path, nil) {
            // With a null buffer realpath allocates the answer, which is ours to free.
            defer { unsafe free(resolved) }
            return unsafe String(cString: resolved)
        }
        let parent = directory(of: path)
        guard parent != path, let slash = path.lastIndex(of: "/") else { return path }
        let name = path[path.index(after: slash)...]
        let resolvedParent = resolved(parent)
        return name.isEmpty ? resolvedParent : resolvedParent == "/" ? "/" + name : resolvedParent + "/" + name
    }

    /// Reads a file whole.
    ///
    /// Throws `.notAvailable` when it cannot be read, is larger than `byteLimit`, or is open to others.
    static func secretContents(
        atPath path: String, byteLimit: Int, what: String, checkingPermissions: Bool = true
    ) throws(KeychainFailure) -> SecretBytes {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT {
                throw KeychainFailure(.notAvailable, "\(what) \(path) is gone: restore it, nothing can be read without it")
            }
            if code == ELOOP { throw KeychainFailure(.notAvailable, "\(what) \(path) is a symbolic link, which is not followed") }
            throw readFailure(code, what, path)
        }
        defer { close(descriptor) }
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            throw KeychainFailure(.notAvailable, "\(what) \(path) is not a regular file")
        }
        if checkingPermissions {
            guard information.st_uid == geteuid() else {
                throw KeychainFailure(.notAvailable, "\(what) \(path) belongs to another user: give it back with chown")
            }
            guard information.st_mode & 0o077 == 0 else {
                throw KeychainFailure(.notAvailable, "\(what) \(path) is open to other users: run chmod 600 on it")
            }
        }
        let byteCount = Int(information.st_size)
        guard byteCount > 0, byteCount <= byteLimit else {
            throw KeychainFailure(.notAvailable, "\(what) \(path) has a wrong size (\(byteCount) bytes)")
        }
        // The region belongs to the secret being made and has `byteCount` bytes.
        return try unsafe SecretBytes(byteCount: byteCount) { buffer throws(KeychainFailure) in
            var filled = 0
            while filled < byteCount {
                let got = unsafe read(descriptor, buffer.baseAddress.map { unsafe $0 + filled }, byteCount - filled)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { throw KeychainFailure(.notAvailable, "\(what) \(path) could not be read whole") }
                filled += got
            }
        }
    }

    /// Writes a new file, mode 0600, flushed.
    ///
    /// Throws when `path` exists: nothing is replaced.
    static func create(atPath path: String, contents: borrowing SecretBytes, what: String) throws(KeychainFailure) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw writeFailure(errno, what, path) }
        // The umask may have taken bits away that the owner needs.
        var code: Int32 = fchmod(descriptor, 0o600) == 0 ? 0 : errno
        unsafe contents.withBytes { bytes in
            var written = 0
            while written < bytes.count, code == 0 {
                let count = unsafe write(descriptor, bytes.baseAddress.map { unsafe $0 + written }, bytes.count - written)
                if count < 0 { code = errno == EINTR ? 0 : errno } else { written += count }
            }
        }
        if code == 0, fsync(descriptor) != 0 { code = errno }
        if close(descriptor) != 0, code == 0 { code = errno }
        guard code == 0 else {
            _ = unsafe unlink(path)
            throw writeFailure(code, what, path)
        }
    }

    /// Gives a file its name without replacing another one, and makes that durable.
    static func rename(_ old: String, to new: String, what: String) throws(KeychainFailure) {
        // link(2) fails where the name is taken; rename(2) would replace.
        guard unsafe link(old, new) == 0 else { throw writeFailure(errno, what, new) }
        try removeSecondName(old, of: new, what: what)
    }

    /// Takes a name away from a file that has another one.
    ///
    /// Does nothing where the two names are not the same file's.
    static func removeSecondName(_ second: String, of path: String, what: String) throws(KeychainFailure) {
        guard isSameFile(second, path) else { return }
        // Two changes of a directory may reach the disk in any order: the name that stays first, or a power cut takes both.
        try synchronizeDirectory(of: path, what: what)
        _ = unsafe unlink(second)
        try synchronizeDirectory(of: second, what: what)
    }

    /// Removes a file, and makes that durable.
    static func remove(_ path: String, what: String) throws(KeychainFailure) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else { throw writeFailure(errno, what, path) }
        try synchronizeDirectory(of: path, what: what)
    }

    private static func isSameFile(_ one: String, _ other: String) -> Bool {
        var (first, second) = (stat(), stat())
        guard unsafe lstat(one, &first) == 0, unsafe lstat(other, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    static func synchronizeDirectory(of path: String, what: String) throws(KeychainFailure) {
        let directory = directory(of: path)
        let descriptor = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw writeFailure(errno, what, directory) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw writeFailure(errno, what, directory) }
    }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func readFailure(_ code: Int32, _ what: String, _ path: String) -> KeychainFailure {
        KeychainFailure(.notAvailable, "\(what) \(path) cannot be read: \(systemMessage(code))")
    }

    private static func writeFailure(_ code: Int32, _ what: String, _ path: String) -> KeychainFailure {
        let status: KeychainStatus = code == EROFS ? .readOnly : .notAvailable
        return KeychainFailure(status, "\(what) \(path) cannot be written: \(systemMessage(code))")
    }

    private static func systemMessage(_ code: Int32) -> String {
        // strerror gives a constant string for every known code.
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
    }
}
