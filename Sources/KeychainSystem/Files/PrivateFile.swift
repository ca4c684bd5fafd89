// SPDX-License-Identifier: Apache-2.0
internal import Glibc
package import KeychainCore

/// Small files with a secret: read into key memory, written completely and durably, and never written through a symbolic link.
///
/// `subject` is the noun that errors begin with, such as "the key file".
package enum PrivateFile {
    /// Whether a name exists.
    ///
    /// Throws `.notAvailable` if it cannot be examined: that does not prove absence.
    package static func isPresent(_ path: String, subject: String) throws(KeychainFailure) -> Bool {
        do throws(Errno) {
            _ = try FileStatus(of: path)
            return true
        } catch .notFound {
            return false
        } catch {
            throw readFailure(error, subject, path)
        }
    }

    /// Reads a whole file.
    ///
    /// Throws `.notAvailable` if it cannot be read, is empty, is larger than `byteLimit`, or, with `requiresPrivateMode`, belongs to or is
    /// accessible to other users, or is a symbolic link. Without it, the directory is trusted to contain what it should.
    package static func read(
        _ path: String, byteLimit: Int, subject: String, requiresPrivateMode: Bool = true
    ) throws(KeychainFailure) -> SecretBytes {
        let file = try open(path, subject, followsLinks: !requiresPrivateMode)
        guard let status = try? file.descriptor.status(), status.kind == .regularFile else {
            throw KeychainFailure(.notAvailable, "\(subject) \(path) is not a regular file", cause: .notRegularFile)
        }
        if requiresPrivateMode {
            guard status.owner == geteuid() else { throw wrongOwner(status, subject, path) }
            guard status.permissions & 0o077 == 0 else {
                throw KeychainFailure(
                    .notAvailable, "\(subject) \(path) is open to other users: run chmod 600 on it", cause: .accessibleToOthers)
            }
        }
        let byteCount = Int(status.byteCount)
        guard byteCount > 0, byteCount <= byteLimit else {
            throw KeychainFailure(.notAvailable, "\(subject) \(path) has a wrong size (\(byteCount) bytes)", cause: .malformed)
        }
        let descriptor = file.descriptor
        // The region belongs to the secret being made and has `byteCount` bytes.
        return try unsafe SecretBytes(byteCount: byteCount) { buffer throws(KeychainFailure) in
            guard unsafe (try? descriptor.read(into: buffer, at: 0)) == byteCount else {
                throw KeychainFailure(.notAvailable, "\(subject) \(path) could not be read whole")
            }
        }
    }

    private static func open(_ path: String, _ subject: String, followsLinks: Bool) throws(KeychainFailure) -> OpenFile {
        do throws(Errno) {
            return try OpenFile(path, .read, followsLinks: followsLinks)
        } catch .notFound {
            throw KeychainFailure(
                .notAvailable, "\(subject) \(path) is gone: restore it, or use the recovery key if one was made", cause: .missing)
        } catch .symbolicLinkLoop {
            throw KeychainFailure(
                .notAvailable, "\(subject) \(path) is a symbolic link, which is not followed: put the file itself there",
                cause: .symbolicLink)
        } catch .accessDenied {
            throw accessDenied(subject, path)
        } catch {
            throw readFailure(error, subject, path)
        }
    }

    private static func accessDenied(_ subject: String, _ path: String) -> KeychainFailure {
        guard let status = try? FileStatus(of: path) else {
            // The directory denies access.
            return readFailure(.accessDenied, subject, path, hint: FileSystem.denial(.accessDenied, of: path))
        }
        guard status.owner == geteuid() else { return wrongOwner(status, subject, path) }
        return readFailure(.accessDenied, subject, path, hint: "; run: chmod u+r \(path)")
    }

    private static func wrongOwner(_ status: FileStatus, _ subject: String, _ path: String) -> KeychainFailure {
        let (owner, user) = (status.owner, geteuid())
        return KeychainFailure(
            .notAvailable,
            "\(subject) \(path) belongs to user \(owner), not to user \(user); to give it to this user, run as root: "
                + "chown \(user) \(path)", cause: .wrongOwner)
    }

    /// Writes a new file, mode 0600, and flushes it.
    ///
    /// Throws if `path` exists. The directory is not flushed.
    package static func create(_ path: String, contents: borrowing SecretBytes, subject: String) throws(KeychainFailure) {
        let file: OpenFile
        do throws(Errno) { file = try OpenFile(path, .createExclusively) } catch { throw writeFailure(error, subject, path) }
        do throws(Errno) {
            // The umask may have removed bits that the owner needs.
            guard fchmod(file.descriptor.rawValue, 0o600) == 0 else { throw .current }
            try file.descriptor.writeAll(contents)
            try file.descriptor.flush()
            try file.close()
        } catch {
            FileSystem.tryUnlink(path)
            throw writeFailure(error, subject, path)
        }
    }

    /// Renames a file durably, without replacing another one.
    ///
    /// In one step if the file system can do that. Otherwise the file has both names for a moment, and a file that another process gives the old
    /// name meanwhile would be removed. `isAtomic: false` is for tests: the file system then appears to have hard links only.
    package static func renameWithoutReplacing(
        _ old: String, to new: String, subject: String, isAtomic: Bool = true
    ) throws(KeychainFailure) {
        do throws(Errno) {
            guard isAtomic else { throw .notSupported }
            try FileSystem.renameWithoutReplacing(old, to: new)
        } catch {
            guard [.invalidArgument, .notImplemented, .notSupported].contains(error) else { throw writeFailure(error, subject, new) }
            do throws(Errno) { try FileSystem.link(old, as: new) } catch { throw writeFailure(error, subject, new) }
            return try removeSecondName(old, of: new, subject: subject)
        }
        try flushDirectory(of: new, subject: subject)
    }

    /// Removes one of the two names of a file durably.
    ///
    /// Does nothing if the two names are not names of the same file.
    package static func removeSecondName(_ second: String, of path: String, subject: String) throws(KeychainFailure) {
        guard FileSystem.isSameFile(second, path) else { return }
        // Two changes of a directory may reach the disk in any order. Flush the remaining name first, or a power cut could lose both.
        try flushDirectory(of: path, subject: subject)
        FileSystem.tryUnlink(second)
        try flushDirectory(of: second, subject: subject)
    }

    /// Removes a file durably; succeeds if it does not exist.
    package static func remove(_ path: String, subject: String) throws(KeychainFailure) {
        do throws(Errno) { try FileSystem.unlink(path) } catch { throw writeFailure(error, subject, path) }
        try flushDirectory(of: path, subject: subject)
    }

    /// Flushes the directory that a file is in.
    package static func flushDirectory(of path: String, subject: String) throws(KeychainFailure) {
        let directory = FileSystem.parent(of: path)
        do throws(Errno) { try FileSystem.flush(directory, followsLinks: true) } catch { throw writeFailure(error, subject, directory) }
    }

    /// `hint` is the end of the reason.
    package static func readFailure(_ error: Errno, _ subject: String, _ path: String, hint: String = "") -> KeychainFailure {
        KeychainFailure(error.isShortage ? .allocate : .notAvailable, "\(subject) \(path) cannot be read: \(error)\(hint)")
    }

    private static func writeFailure(_ error: Errno, _ subject: String, _ path: String) -> KeychainFailure {
        KeychainFailure(error == .readOnlyFileSystem ? .readOnly : .notAvailable, "\(subject) \(path) cannot be written: \(error)")
    }
}
