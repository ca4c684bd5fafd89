// SPDX-License-Identifier: Apache-2.0
internal import Glibc
package import KeychainCore

/// The result of stat(2).
package struct FileStatus: Equatable, Sendable {
    package enum Kind: Sendable { case regularFile, directory, symbolicLink, socket, other }

    /// The file that a name stands for: two names with the same identity are names of one file.
    package struct Identity: Hashable, Sendable {
        package let device: UInt64
        package let inode: UInt64
    }

    package let kind: Kind
    /// The lowest nine mode bits and the three special ones.
    package let permissions: UInt32
    /// The user ID of the owner.
    package let owner: UInt32
    package let byteCount: Int64
    /// The number of names of the file, in all directories.
    package let linkCount: UInt64
    package let identity: Identity
    /// When the content last changed, in nanoseconds since 1970.
    package let modificationNanoseconds: Int64
    /// When the file or its metadata last changed, in nanoseconds since 1970.
    ///
    /// Unlike the modification time, a program cannot choose it.
    package let changeNanoseconds: Int64

    init(_ status: stat) {
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regularFile
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            case S_IFSOCK: .socket
            default: .other
            }
        permissions = UInt32(status.st_mode) & 0o7777
        owner = status.st_uid
        byteCount = Int64(status.st_size)
        linkCount = UInt64(status.st_nlink)
        identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        modificationNanoseconds = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
        changeNanoseconds = Int64(status.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_ctim.tv_nsec)
    }

    /// Whether root is the owner.
    ///
    /// A user namespace without the machine's root shows root as the kernel's overflow user (/proc/sys/kernel/overflowuid).
    var isOwnedByRoot: Bool { owner == 0 || (owner == 65_534 && !CurrentProcess.isInInitialUserNamespace) }

    /// Examines a name without opening the file.
    ///
    /// Unless `followsLinks`, a symbolic link is examined itself.
    package init(of path: String, followsLinks: Bool = false) throws(Errno) {
        var status = stat()
        // `status` is a local variable and outlives the calls.
        guard unsafe (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0 else { throw .current }
        self.init(status)
    }

    /// Examines a name without following a symbolic link; nil if the name does not exist.
    ///
    /// Throws `.notAvailable` if the name cannot be examined.
    package static func ifPresent(at path: String) throws(KeychainFailure) -> FileStatus? {
        do throws(Errno) {
            return try FileStatus(of: path)
        } catch .notFound {
            return nil
        } catch {
            throw KeychainFailure(.notAvailable, "cannot examine \(path): \(error)\(FileSystem.denial(error, of: path))", path: path)
        }
    }
}
