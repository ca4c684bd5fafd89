// SPDX-License-Identifier: Apache-2.0

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
    static func networkName(ofType typeNumber: UInt32) -> String? {
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
