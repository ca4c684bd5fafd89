// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
package import KeychainCore

/// Operations on names and directories.
package enum FileSystem {
    // MARK: Paths

    /// The path without symbolic links; it must exist.
    package static func resolve(_ path: String) throws(Errno) -> String {
        // With a null buffer realpath allocates the result, which the caller must free.
        guard let resolved = unsafe realpath(path, nil) else { throw .current }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// The path without symbolic links in the part that exists.
    package static func resolveExistingPart(of path: String) -> String {
        if let resolved = try? resolve(path) { return resolved }
        let parent = parent(of: path)
        guard parent != path, let slash = path.lastIndex(of: "/") else { return path }
        let name = path[path.index(after: slash)...]
        let resolvedParent = resolveExistingPart(of: parent)
        return name.isEmpty ? resolvedParent : resolvedParent == "/" ? "/" + name : resolvedParent + "/" + name
    }

    /// The path of the current directory; throws `.notFound` if the directory was removed.
    package static func currentDirectory() throws(Errno) -> String {
        // With a null buffer getcwd allocates the result, which the caller must free.
        guard let path = unsafe getcwd(nil, 0) else { throw .current }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }

    /// The path up to the last slash; "." without one, and "/" for the root.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The target of a symbolic link, not resolved.
    package static func target(ofSymbolicLink path: String) throws(Errno) -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        // As many bytes as the buffer has.
        let count = unsafe readlink(path, &target, target.count)
        guard count >= 0 else { throw .current }
        return String(decoding: target.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The names in a directory, "." and ".." among them.
    package static func names(in directory: String) throws(Errno) -> [String] {
        guard let stream = unsafe opendir(directory) else { throw .current }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        // The entry is valid until the next call; the name is copied at once.
        while let entry = unsafe readdir(stream) {
            names.append(
                unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                    unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                })
        }
        return names
    }

    // MARK: Questions

    /// Whether the name can be examined and exists, a dangling symbolic link included.
    package static func exists(_ path: String) -> Bool { (try? FileStatus(of: path)) != nil }

    /// Whether the two paths lead to the same file.
    package static func isSameFile(_ one: String, _ other: String, followsLinks: Bool = false) -> Bool {
        guard let first = try? FileStatus(of: one, followsLinks: followsLinks) else { return false }
        return first.identity == (try? FileStatus(of: other, followsLinks: followsLinks))?.identity
    }

    /// Whether the effective user may create files in the directory.
    package static func canCreateFiles(in directory: String) -> Bool {
        unsafe faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0
    }

    /// Whether the path leads to a regular file that this process may execute.
    package static func isExecutable(_ path: String) -> Bool {
        guard (try? FileStatus(of: path, followsLinks: true))?.kind == .regularFile else { return false }
        return unsafe access(path, X_OK) == 0
    }

    /// Whether the path leads to a terminal.
    package static func isTerminal(_ path: String) -> Bool {
        do throws(Errno) {
            return try OpenFile(terminal: path).descriptor.isTerminal
        } catch {
            return false
        }
    }

    // MARK: Changes

    /// Creates an empty file that only its owner can use; fails if the name is taken, also by a symbolic link.
    ///
    /// With `acceptsFixedMode`, accepts a file system where the mode cannot be changed, such as that of a memory stick.
    package static func createPrivateFile(_ path: String, acceptsFixedMode: Bool = false) throws(Errno) {
        let file = try OpenFile(path, .createExclusively)
        // The umask may have removed bits that the owner needs.
        guard fchmod(file.descriptor.rawValue, 0o600) != 0 else { return }
        let error = Errno.current
        guard !(acceptsFixedMode && error == .notPermitted) else { return }
        tryUnlink(path)
        throw error
    }

    /// Creates a directory that only its owner can use.
    package static func createDirectory(_ path: String) throws(Errno) {
        guard unsafe mkdir(path, 0o700) == 0, unsafe chmod(path, 0o700) == 0 else { throw .current }
    }

    /// Gives an existing file a second name; fails if the name is taken.
    package static func link(_ existing: String, as name: String) throws(Errno) {
        guard unsafe Glibc.link(existing, name) == 0 else { throw .current }
    }

    /// Renames a file, replacing a file of the new name atomically.
    package static func rename(_ existing: String, to name: String) throws(Errno) {
        guard unsafe Glibc.rename(existing, name) == 0 else { throw .current }
    }

    /// Removes a name; succeeds if it does not exist.
    package static func unlink(_ path: String) throws(Errno) {
        guard unsafe Glibc.unlink(path) == 0 || errno == ENOENT else { throw .current }
    }

    /// Removes a name; best effort.
    package static func tryUnlink(_ path: String) {
        _ = unsafe Glibc.unlink(path)
    }

    package static func truncate(_ path: String, toByteCount byteCount: Int64) throws(Errno) {
        let file = try OpenFile(path, .readWrite)
        try file.descriptor.truncate(toByteCount: byteCount)
    }

    /// Flushes a file or directory to the disk.
    ///
    /// Opens and closes it, which drops every lock that this process has on it. Do not call it for a database in use.
    package static func flush(_ path: String, followsLinks: Bool = false) throws(Errno) {
        let file = try OpenFile(path, .read, followsLinks: followsLinks)
        try file.descriptor.flush()
    }

    // MARK: Private directories

    /// Creates the missing part of a private directory, from the top.
    ///
    /// Each new name is flushed before anything is created below it, so the path survives a power cut. Throws `.readOnly` if the file
    /// system or directory cannot be written, and `.notAvailable` if the disk is full.
    package static func createPrivateDirectories(_ directory: String) throws(KeychainFailure) {
        guard directory != "/" else { return }
        let parent = try FileLocation.parent(of: directory)
        if try FileStatus.ifPresent(at: directory) == nil {
            try createPrivateDirectories(parent)
            do throws(Errno) {
                try createDirectory(directory)
            } catch .exists {
                // Another process was faster.
            } catch {
                throw creationFailure(error, in: directory)
            }
        }
        // Also for an existing directory: another process may have just created it and not flushed it yet.
        do throws(Errno) {
            try flush(resolve(parent))
        } catch  where error.isWriteDenied {
            // This user may not open the parent, so this user created nothing in it.
        } catch {
            throw creationFailure(error, in: directory)
        }
    }

    /// The failure of creating a file in a directory.
    package static func creationFailure(_ error: Errno, in directory: String) -> KeychainFailure {
        if error.isDiskFull {
            return KeychainFailure(
                .notAvailable, "the disk is full: nothing was created in \(directory)", path: directory, cause: .diskFull)
        }
        let status: KeychainStatus = error.isWriteDenied ? .readOnly : error.isInputOutputError ? .inputOutput : .notAvailable
        return KeychainFailure(status, "cannot create files in \(directory): \(error)", path: directory)
    }
}

/// The kind of file system that a directory is on; a port, so that a test can simulate a network file system.
package struct FileSystemProbe: Sendable {
    /// The number that statfs(2) returns as `f_type`; nil if it cannot be determined.
    package let typeNumber: @Sendable (_ directory: String) -> UInt32?

    package init(typeNumber: @escaping @Sendable (_ directory: String) -> UInt32?) {
        self.typeNumber = typeNumber
    }

    package static let system = FileSystemProbe { directory in
        var type: UInt32 = 0
        // `type` is a local variable and outlives the call.
        return unsafe keychain_file_system_type(directory, &type) == 0 ? type : nil
    }

    /// The name of a network file system, whose machines cannot share the memory that WAL needs; nil for others.
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
