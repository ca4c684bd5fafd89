// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// An open directory, in which names are used without following symbolic links.
///
/// A directory that is renamed or replaced meanwhile stays the one that was opened.
package final class OpenDirectory: Sendable {
    /// A name in a directory.
    package struct Entry: Sendable {
        package let name: String
        /// Nil: the file system does not say.
        package let kind: FileStatus.Kind?
    }

    private let file: OpenFile
    private var number: Int32 { file.descriptor.rawValue }

    /// Opens the directory at a path, whose symbolic links are followed.
    package init(_ path: String) throws(Errno) {
        file = try OpenFile(directory: path)
    }

    /// Opens a directory of a directory; fails with `.notDirectory` if it is a symbolic link.
    package init(_ name: String, in parent: OpenDirectory) throws(Errno) {
        file = try OpenFile(directory: name, in: parent.file.descriptor)
    }

    package func status() throws(Errno) -> FileStatus { try file.descriptor.status() }

    /// Examines a name, a symbolic link itself; nil if it does not exist.
    package func status(of name: String) throws(Errno) -> FileStatus? {
        var status = stat()
        // `status` is a local variable, and the name is copied for the call.
        if unsafe fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return FileStatus(status) }
        guard errno == ENOENT else { throw .current }
        return nil
    }

    /// Calls `body` with every name but "." and "..", until it returns false.
    package func forEachEntry(_ body: (Entry) -> Bool) throws(Errno) {
        let readable = try Errno.check { unsafe openat(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = unsafe fdopendir(readable) else {
            let error = Errno.current
            close(readable)
            throw error
        }
        // Closes the descriptor as well.
        defer { unsafe closedir(stream) }
        while true {
            // At the end of the directory, `errno` stays as it is.
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                guard errno == 0 else { throw .current }
                return
            }
            let kind: FileStatus.Kind? =
                switch unsafe Int(entry.pointee.d_type) {
                case Int(DT_REG): .regularFile
                case Int(DT_DIR): .directory
                case Int(DT_LNK): .symbolicLink
                case Int(DT_UNKNOWN): nil
                default: .other
                }
            // The entry is valid until the next call; the name is copied at once.
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            guard body(Entry(name: name, kind: kind)) else { return }
        }
    }

    // MARK: Files

    /// Opens a file to read, without waiting for the writer of a pipe.
    package func open(_ name: String) throws(Errno) -> OpenFile { try OpenFile(name, in: file.descriptor, creating: false) }

    /// Creates a file to write, mode 0600 where the file system has modes; fails with `.exists` if the name is taken.
    package func create(_ name: String) throws(Errno) -> OpenFile {
        let created = try OpenFile(name, in: file.descriptor, creating: true)
        // Best effort: the umask may have removed bits that the owner needs.
        _ = fchmod(created.descriptor.rawValue, 0o600)
        return created
    }

    /// Creates a file without a name to write, which is gone with the process unless it gets a name.
    ///
    /// Fails on file systems that have no such files, and without /proc.
    package func createUnnamed() throws(Errno) -> OpenFile { try OpenFile(unnamedIn: file.descriptor) }

    /// Gives a file without a name one; fails with `.exists` if the name is taken.
    package func link(_ unnamed: borrowing OpenFile, as name: String) throws(Errno) {
        // The name is copied for the call.
        let code = unsafe keychain_file_link_unnamed_at(unnamed.descriptor.rawValue, number, name)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Renames a file atomically; fails with `.exists` if the new name is taken, and with another error if the system cannot do that.
    package func renameWithoutReplacing(_ old: String, to new: String) throws(Errno) {
        // The names are copied for the call.
        let code = unsafe keychain_file_rename_without_replacing_at(number, old, new)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Renames a file, replacing a file of the new name atomically.
    package func rename(_ old: String, to new: String) throws(Errno) {
        guard unsafe renameat(number, old, number, new) == 0 else { throw .current }
    }

    /// Removes the name of a file; succeeds if it does not exist.
    package func unlink(_ name: String) throws(Errno) {
        guard unsafe unlinkat(number, name, 0) == 0 || errno == ENOENT else { throw .current }
    }

    // MARK: Directories

    /// Creates a directory, mode 0700; returns false if the name is taken.
    package func makeDirectory(_ name: String) throws(Errno) -> Bool {
        if unsafe mkdirat(number, name, 0o700) == 0 { return true }
        guard errno == EEXIST else { throw .current }
        return false
    }

    /// Flushes the names to the disk.
    ///
    /// Does nothing on file systems that cannot flush a directory, and in a directory that this user may not read.
    package func flush() throws(Errno) {
        let error = Errno(rawValue: keychain_directory_flush(number))
        guard error.rawValue != 0, error != .invalidArgument, error != .notSupported, error != .accessDenied else { return }
        throw error
    }
}
