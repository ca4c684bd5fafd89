// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
package import KeychainCore

/// The creation of directories that only their owner can use.
package enum PrivateDirectory {
    /// Creates the missing part of a path, from the top.
    ///
    /// Each new name is flushed before anything is created below it, so the path survives a power cut. Every new directory is created and
    /// examined through the descriptor of the one above it, so that another user who can rename one of them cannot redirect the rest.
    /// `didCreate` is called with the path of each new directory before the directory is opened.
    /// Throws `.readOnly` if the file system or directory cannot be written, and `.notAvailable` if the disk is full, or if the directory
    /// that exists belongs neither to the effective user nor to root: its owner could replace what is created there.
    package static func make(_ directory: String, didCreate: (_ path: String) -> Void = { _ in }) throws(KeychainFailure) {
        var missing: [String] = []
        var path = directory
        while path != "/", try FileStatus.ifPresent(at: path) == nil {
            let (parent, name) = try FileLocation.parentAndName(of: path)
            missing.append(name)
            path = parent
        }
        // Also for an existing directory: another process may have just created it and not flushed it yet.
        try flushParent(of: path)
        guard !missing.isEmpty else { return }
        var parent = try open(path, toMake: directory) { () throws(Errno) in try OpenFile(directory: path) }
        for name in missing.reversed() {
            path = path == "/" ? "/" + name : path + "/" + name
            let isNew = try make(name, in: parent.descriptor, path)
            if isNew { didCreate(path) }
            let above = parent.descriptor
            let child = try open(path, toMake: directory) { () throws(Errno) in try OpenFile(directory: name, in: above) }
            if isNew { try allowOwner(child.descriptor, path) }
            try flush(parent.descriptor, FileSystem.parent(of: path))
            parent = child
        }
    }

    /// Returns false if another process was faster.
    private static func make(_ name: String, in parent: FileDescriptor, _ path: String) throws(KeychainFailure) -> Bool {
        // The name is copied for the call.
        if unsafe mkdirat(parent.rawValue, name, 0o700) == 0 { return true }
        let error = Errno.current
        guard error == .exists else { throw FileSystem.creationFailure(error, in: path) }
        return false
    }

    /// Opens a directory and checks its owner.
    private static func open(
        _ path: String, toMake directory: String, _ body: () throws(Errno) -> OpenFile
    ) throws(KeychainFailure) -> OpenFile {
        let file: OpenFile
        do throws(Errno) { file = try body() } catch { throw FileSystem.creationFailure(error, in: path) }
        let status: FileStatus
        do throws(Errno) { status = try file.descriptor.status() } catch { throw FileSystem.creationFailure(error, in: path) }
        guard status.owner == CurrentProcess.effectiveUserID || status.isOwnedByRoot else {
            throw KeychainFailure(
                .notAvailable,
                """
                \(path) belongs to user \(status.owner), so nothing is created in it; run this as that user, or make \(directory) with mode 700, or \
                choose another place
                """,
                path: path, cause: .wrongOwner)
        }
        return file
    }

    /// Restores the permissions that the umask has removed.
    private static func allowOwner(_ directory: FileDescriptor, _ path: String) throws(KeychainFailure) {
        do throws(Errno) {
            guard try directory.status().permissions & 0o700 != 0o700 else { return }
            // The descriptor of a directory without permissions cannot be used to change them, but its name in /proc can.
            guard unsafe chmod("/proc/self/fd/\(directory.rawValue)", 0o700) == 0 else { throw .current }
        } catch {
            throw FileSystem.creationFailure(error, in: path)
        }
    }

    // MARK: Flushing

    private static func flushParent(of path: String) throws(KeychainFailure) {
        guard path != "/" else { return }
        let parent = try FileLocation.parent(of: path)
        let file: OpenFile
        do throws(Errno) { file = try OpenFile(directory: parent) } catch { throw FileSystem.creationFailure(error, in: parent) }
        try flush(file.descriptor, parent)
    }

    private static func flush(_ directory: FileDescriptor, _ path: String) throws(KeychainFailure) {
        let error = Errno(rawValue: keychain_directory_flush(directory.rawValue))
        // A user who may not open the directory has created nothing in it.
        guard error.rawValue != 0, !error.isWriteDenied else { return }
        throw FileSystem.creationFailure(error, in: path)
    }
}
