// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore

/// A copy of a descriptor of any kind that another process has sent, and uses too.
///
/// The kernel keeps one set of flags for both, so none is changed here: the descriptor of the other process would not block any more either.
package final class SharedFile: Sendable {
    private let file: OpenFile

    package init(copying descriptor: FileDescriptor) throws(Errno) {
        file = try OpenFile(copying: descriptor)
    }

    /// Writes all of the bytes; throws `.wouldBlock` or `.timedOut` if the deadline passes before there is room for them.
    ///
    /// The process must ignore SIGPIPE.
    package func writeAll(_ bytes: [UInt8], until deadline: Deadline) throws(Errno) {
        let flags = try Errno.check { fcntl(file.descriptor.rawValue, F_GETFL) }
        // A pipe could otherwise be opened for more than the sender was given.
        guard flags & O_ACCMODE != O_RDONLY else { throw .badDescriptor }
        switch try file.descriptor.status().kind {
        case .socket: try file.descriptor.sendAll(bytes, until: deadline)
        // The kernel does not wait for room in them.
        case .regularFile: try file.descriptor.writeAll(bytes)
        case .other, .directory, .symbolicLink:
            let reopened = try OpenFile("/proc/self/fd/\(file.descriptor.rawValue)", .writeNow, followsLinks: true)
            try reopened.descriptor.writeAll(bytes, until: deadline)
        }
    }
}
