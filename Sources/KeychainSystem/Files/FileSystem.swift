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
        while true {
            // At the end of the directory, `errno` stays as it is.
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                guard errno == 0 else { throw .current }
                return names
            }
            // The entry is valid until the next call; the name is copied at once.
            names.append(
                unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                    unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                })
        }
    }

    // MARK: Questions

    /// Whether the name can be examined and exists, a dangling symbolic link included.
    package static func exists(_ path: String) -> Bool { (try? FileStatus(of: path)) != nil }

    /// Whether the two paths lead to the same file.
    package static func isSameFile(_ one: String, _ other: String, followsLinks: Bool = false) -> Bool {
        guard let first = try? FileStatus(of: one, followsLinks: followsLinks) else { return false }
        return first.identity == (try? FileStatus(of: other, followsLinks: followsLinks))?.identity
    }

    /// Whether something is mounted on the name itself, as with a bind mount of one file; false if that cannot be found out.
    package static func isMountPoint(_ path: String) -> Bool {
        // The string lives until the call returns.
        unsafe keychain_file_is_mount_point(path)
    }

    /// Whether the file is where an ordinary user may have mounted a file system: on FUSE, or on a mount that ignores setuid.
    package static func isOnMountOfUser(_ path: String) throws(Errno) -> Bool {
        var isUsers = false
        // The path lives until the call returns, and `isUsers` is a local variable.
        let code = unsafe keychain_file_is_on_mount_of_user(path, &isUsers)
        guard code == 0 else { throw Errno(rawValue: code) }
        return isUsers
    }

    /// Whether the effective user may read the file.
    package static func canRead(_ path: String) -> Bool {
        unsafe faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0
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

    /// Gives an existing file a second name; fails if the name is taken.
    package static func link(_ existing: String, as name: String) throws(Errno) {
        guard unsafe Glibc.link(existing, name) == 0 else { throw .current }
    }

    /// Creates a symbolic link; fails if the name is taken.
    package static func createSymbolicLink(_ path: String, to target: String) throws(Errno) {
        guard unsafe symlink(target, path) == 0 else { throw .current }
    }

    /// Renames a file atomically; fails if the new name is taken.
    package static func renameWithoutReplacing(_ existing: String, to name: String) throws(Errno) {
        // The strings live until the call returns.
        let code = unsafe keychain_file_rename_without_replacing(existing, name)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Renames a file, replacing a file of the new name atomically.
    package static func rename(_ existing: String, to name: String) throws(Errno) {
        guard unsafe Glibc.rename(existing, name) == 0 else { throw .current }
    }

    /// Removes a name; succeeds if it does not exist.
    package static func unlink(_ path: String) throws(Errno) {
        guard unsafe Glibc.unlink(path) == 0 || errno == ENOENT else { throw .current }
    }

    /// Removes a directory, which must be empty.
    package static func removeDirectory(_ path: String) throws(Errno) {
        guard unsafe rmdir(path) == 0 else { throw .current }
    }

    /// Removes a name; best effort.
    package static func tryUnlink(_ path: String) {
        _ = unsafe Glibc.unlink(path)
    }

    /// Sets the date of the last modification; best effort.
    package static func trySetModificationDateToNow(_ path: String) {
        // Without times, the current one is set.
        _ = unsafe utimensat(AT_FDCWD, path, nil, AT_SYMLINK_NOFOLLOW)
    }

    /// Sets the permissions of a regular file, in a directory that only this user can change.
    package static func setPermissions(_ permissions: UInt32, of path: String) throws(Errno) {
        guard unsafe chmod(path, permissions & 0o777) == 0 else { throw .current }
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

    /// The failure of creating a file in a directory.
    package static func creationFailure(_ error: Errno, in directory: String) -> KeychainFailure {
        if error.isDiskFull {
            return KeychainFailure(
                .notAvailable, "the disk is full: nothing was created in \(directory)", path: directory, cause: .diskFull)
        }
        let status: KeychainStatus = error.isWriteDenied ? .readOnly : error.isInputOutputError ? .inputOutput : .notAvailable
        return KeychainFailure(
            status, "cannot create files in \(directory): \(error)\(denial(error, of: directory))\(remedy(error, for: directory))",
            path: directory)
    }

    /// Returns how to make a directory that this user may not make, for example on a new volume of a container.
    private static func remedy(_ error: Errno, for directory: String) -> String {
        let user = CurrentProcess.effectiveUserID
        guard error == .accessDenied, user != 0, parent(of: directory) != "/", !exists(directory) else { return "" }
        return "; to make it for this user, run as root: install -d -m 700 -o \(user) \(directory)"
    }

    /// Returns the end of the reason for a denied access: the directory that denies it, its owner, and its mode.
    ///
    /// Empty for other errors.
    package static func denial(_ error: Errno, of path: String) -> String {
        guard error == .accessDenied, path.hasPrefix("/") else { return "" }
        var directory = path
        // A name that does not exist, or cannot be examined, is in a directory that can be.
        while true {
            if let status = try? FileStatus(of: directory, followsLinks: true), status.kind == .directory {
                let mode = String(status.permissions, radix: 8)
                let user = CurrentProcess.effectiveUserID
                return "; \(directory) belongs to user \(status.owner) and has mode \(mode), and this is user \(user)"
            }
            guard directory != "/" else { return "" }
            directory = parent(of: directory)
        }
    }
}

/// The kind of file system that a directory is on; a port, so that a test can simulate a network file system.
package struct FileSystemProbe: Sendable {
    /// The number that statfs(2) returns as `f_type`; nil if it cannot be determined.
    package let typeNumber: @Sendable (_ directory: String) -> UInt32?
    /// The name of the type in /proc/self/mountinfo, such as "fuse.sshfs"; nil if it cannot be determined.
    package let typeName: @Sendable (_ directory: String) -> String?

    package init(
        typeNumber: @escaping @Sendable (_ directory: String) -> UInt32?,
        typeName: @escaping @Sendable (_ directory: String) -> String? = { _ in nil }
    ) {
        self.typeNumber = typeNumber
        self.typeName = typeName
    }

    package static let system = FileSystemProbe(
        typeNumber: { directory in
            var type: UInt32 = 0
            // `type` is a local variable and outlives the call.
            return unsafe keychain_file_system_type(directory, &type) == 0 ? type : nil
        }, typeName: MountTable.typeName)

    /// The name of the network file system that a directory is on, whose machines cannot share the memory that WAL needs; nil for others.
    package func networkFileSystemName(of directory: String, typeNumber: UInt32) -> String? {
        guard typeNumber == Self.fuse else { return Self.networkFileSystems[typeNumber] }
        // FUSE has local file systems, too. An unknown one is accepted: many containers and encrypted directories are on FUSE.
        guard let name = typeName(directory), name.hasPrefix("fuse.") else { return nil }
        let kind = String(name.dropFirst("fuse.".count))
        return Self.networkFileSystemsOnFUSE.contains(kind) ? kind : nil
    }

    /// Whether the kernel reports every change of a directory to inotify: no other machine, and no program behind FUSE, changes it.
    ///
    /// False if that cannot be determined.
    package func reportsAllChanges(of directory: String) -> Bool {
        guard let number = typeNumber(directory) else { return false }
        return number != Self.fuse && Self.networkFileSystems[number] == nil
    }

    /// The name of the file system of a directory, if its content is lost at a restart or together with a container; nil for others.
    ///
    /// Nil too if the type cannot be determined.
    package func temporaryFileSystemName(of directory: String) -> String? {
        guard let number = typeNumber(directory) else { return nil }
        // A container's own layer without the kernel's overlayfs, as with an unprivileged Podman.
        guard number == Self.fuse else { return Self.temporaryFileSystems[number] }
        return typeName(directory) == "fuse.fuse-overlayfs" ? "fuse-overlayfs" : nil
    }

    /// Sources of the numbers: linux/magic.h and statfs(2).
    private static let temporaryFileSystems: [UInt32: String] = [
        0x794C_7630: "overlay", 0x0102_1994: "tmpfs", 0x8584_58F6: "ramfs",
    ]

    private static let fuse: UInt32 = 0x6573_5546

    /// Sources of the numbers: linux/magic.h, statfs(2), and `stat` of GNU coreutils.
    private static let networkFileSystems: [UInt32: String] = [
        0x6969: "nfs", 0x517B: "smb", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2", 0x0102_1997: "9p", 0x5346_414F: "afs", 0x6B41_4653: "afs",
        0x00C3_6400: "ceph", 0x0BD0_0BD0: "lustre", 0x4750_4653: "gpfs", 0x1983_0326: "beegfs", 0x786F_4256: "vboxsf", 0x564C: "ncp",
        0x7375_7245: "coda", 0xBACB_ACBC: "vmhgfs", 0x7C7C_6673: "prl_fs", 0xAAD7_AAEA: "panfs", 0x0116_1970: "gfs2",
        0x7461_636F: "ocfs2", 0x6163_6673: "acfs", 0x0131_11A8: "ibrix", 0xBEEF_DEAD: "snfs",
    ]

    private static let networkFileSystemsOnFUSE: Set<String> = [
        "sshfs", "glusterfs", "ceph-fuse", "s3fs", "goofys", "gcsfuse", "rclone", "davfs2", "gvfsd-fuse", "juicefs", "seaweedfs", "mfs",
        "curlftpfs", "smbnetfs", "blobfuse", "blobfuse2",
    ]
}

/// The file systems that this process has mounted.
///
/// Source: proc(5), "/proc/pid/mountinfo".
enum MountTable {
    @Sendable static func typeName(of directory: String) -> String? {
        guard let device = (try? FileStatus(of: directory, followsLinks: true))?.identity.device else { return nil }
        // The encoding of st_dev in glibc.
        let major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
        let minor = device & 0xFF | (device >> 12) & ~0xFF
        guard let file = try? OpenFile("/proc/self/mountinfo", .read), let table = try? file.descriptor.readToEnd(byteLimit: 4 << 20) else {
            return nil
        }
        return typeName(ofDevice: "\(major):\(minor)", in: String(decoding: table, as: UTF8.self))
    }

    /// Finds the type in the lines `ID PARENT DEVICE ROOT PLACE OPTIONS [FIELD ...] - TYPE SOURCE OPTIONS`.
    static func typeName(ofDevice device: String, in table: String) -> String? {
        for line in table.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 2, fields[2] == device, let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count else { continue }
            return String(fields[dash + 1])
        }
        return nil
    }
}
