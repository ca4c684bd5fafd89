// SPDX-License-Identifier: Apache-2.0
internal import Glibc

// KeychainSystem confines the operating system: files, clocks, processes, the kernel's keyring, and the terminal. No module above it
// calls the C library.
//
// It does not use swift-system: a package that depends on this one resolves swift-crypto, swift-log, and swift-argument-parser, and
// nothing else.

/// An error number of a system call.
package struct Errno: Error, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// The error number of the calling thread's last failed system call.
    static var current: Errno { Errno(rawValue: errno) }

    package static let accessDenied = Errno(rawValue: EACCES)
    package static let argumentsTooLarge = Errno(rawValue: E2BIG)
    package static let badDescriptor = Errno(rawValue: EBADF)
    package static let badMessage = Errno(rawValue: EBADMSG)
    package static let brokenPipe = Errno(rawValue: EPIPE)
    package static let connectionRefused = Errno(rawValue: ECONNREFUSED)
    package static let connectionReset = Errno(rawValue: ECONNRESET)
    package static let exists = Errno(rawValue: EEXIST)
    package static let isDirectory = Errno(rawValue: EISDIR)
    package static let interrupted = Errno(rawValue: EINTR)
    package static let invalidArgument = Errno(rawValue: EINVAL)
    package static let messageTooLong = Errno(rawValue: EMSGSIZE)
    package static let noMemory = Errno(rawValue: ENOMEM)
    package static let notDirectory = Errno(rawValue: ENOTDIR)
    package static let notFound = Errno(rawValue: ENOENT)
    package static let notImplemented = Errno(rawValue: ENOSYS)
    package static let notPermitted = Errno(rawValue: EPERM)
    package static let notSupported = Errno(rawValue: EOPNOTSUPP)
    package static let quotaExceeded = Errno(rawValue: EDQUOT)
    package static let readOnlyFileSystem = Errno(rawValue: EROFS)
    package static let symbolicLinkLoop = Errno(rawValue: ELOOP)
    package static let timedOut = Errno(rawValue: ETIMEDOUT)
    /// The call would block, or another process holds the lock.
    package static let wouldBlock = Errno(rawValue: EAGAIN)

    package var isDiskFull: Bool { rawValue == ENOSPC || self == .quotaExceeded }
    /// The process or the system has no memory or no descriptors left, perhaps only for a moment.
    package var isShortage: Bool { self == .noMemory || rawValue == EMFILE || rawValue == ENFILE }
    package var isInputOutputError: Bool { rawValue == EIO }
    /// The file, directory, or file system cannot be written by this user.
    package var isWriteDenied: Bool { self == .readOnlyFileSystem || self == .accessDenied || self == .notPermitted }
    /// The disk or the server of a file system is gone, or the file system was unmounted by force.
    package var isFileSystemGone: Bool {
        [
            ENODEV, ENXIO, ENOMEDIUM, ESTALE, ETIMEDOUT, ENOTCONN, ECONNREFUSED, ECONNRESET, ECONNABORTED, EHOSTDOWN, EHOSTUNREACH,
            ENETDOWN, ENETUNREACH, ESHUTDOWN,
        ].contains(rawValue)
    }
    /// The key does not exist, was revoked, or has expired.
    package var isMissingKey: Bool { rawValue == ENOKEY || rawValue == EKEYREVOKED || rawValue == EKEYEXPIRED }

    /// The message of the C library, such as "Permission denied".
    package var description: String {
        // Longer than every message of glibc in every language.
        var message = [CChar](repeating: 0, count: 256)
        // strerror_r, because strerror is not thread-safe. It writes at most as many bytes as the buffer has, with a NUL at the end.
        _ = unsafe strerror_r(rawValue, &message, message.count)
        return String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Runs a system call that returns a negative number on failure, and returns its result.
    static func check(_ call: () -> Int32) throws(Errno) -> Int32 {
        let result = call()
        guard result >= 0 else { throw .current }
        return result
    }
}
