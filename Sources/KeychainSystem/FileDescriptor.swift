// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
package import KeychainCore

/// A file descriptor that is opened and closed elsewhere.
package struct FileDescriptor: Hashable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static let standardInput = FileDescriptor(rawValue: STDIN_FILENO)
    package static let standardOutput = FileDescriptor(rawValue: STDOUT_FILENO)
    package static let standardError = FileDescriptor(rawValue: STDERR_FILENO)

    package var isTerminal: Bool { isatty(rawValue) == 1 }
    package var isOpen: Bool { fcntl(rawValue, F_GETFD) >= 0 }

    package func status() throws(Errno) -> FileStatus {
        var status = stat()
        // `status` is a local variable and outlives the call.
        guard unsafe fstat(rawValue, &status) == 0 else { throw .current }
        return FileStatus(status)
    }

    /// Flushes the file to the disk.
    package func flush() throws(Errno) {
        guard fsync(rawValue) == 0 else { throw .current }
    }

    /// A lock on a file of a database.
    ///
    /// SQLite's connections take all but the last one too. Sources: SQLite, "Database File Format", section 1.3.2, and "WAL-mode File
    /// Format", section 2.3.
    package enum DatabaseLock: Sendable {
        /// On a database: no connection has it open, none can open it, and no process puts a snapshot in its place.
        case everything
        /// On a database: no connection can open it.
        case opening
        /// On the -shm file of a database: no connection can write.
        case writing
        /// On a database, or on the -wal file of one that is gone: no other process puts a snapshot in its place. The byte follows those that SQLite
        /// locks.
        case replacing
        /// On the lock file of synchronization, which SQLite does not know: no other process synchronizes the database.
        case synchronizing

        fileprivate var bytes: Range<Int64> {
            switch self {
            case .everything: 0x4000_0000..<0x4000_0201
            case .opening: 0x4000_0000..<0x4000_0001
            case .writing: 120..<121
            case .replacing: 0x4000_0200..<0x4000_0201
            case .synchronizing: 0..<1
            }
        }
    }

    /// Locks a file of a database, without waiting, until the descriptor is closed.
    ///
    /// Returns false if a connection is in the way.
    package func tryLock(_ lock: DatabaseLock) throws(Errno) -> Bool {
        let code = keychain_file_try_lock(rawValue, lock.bytes.lowerBound, Int64(lock.bytes.count))
        guard code == 0 || code == EAGAIN || code == EACCES else { throw Errno(rawValue: code) }
        return code == 0
    }

    /// Unlocks a file of a database, also if a child process that was just forked has a copy of the descriptor.
    package func unlock(_ lock: DatabaseLock) throws(Errno) {
        let code = keychain_file_unlock(rawValue, lock.bytes.lowerBound, Int64(lock.bytes.count))
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Whether another descriptor, of any process, has locked the file; false if that cannot be found out.
    package func isLockedByOthers(_ lock: DatabaseLock) -> Bool {
        keychain_file_is_locked_by_others(rawValue, lock.bytes.lowerBound, Int64(lock.bytes.count))
    }

    /// Sets or clears a mark on this file or directory, which the kernel removes when the descriptor is closed.
    ///
    /// Any number of descriptors can have a mark on one file.
    package func setMark(_ isSet: Bool) throws(Errno) {
        let code = keychain_file_set_mark(rawValue, isSet)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Whether another descriptor, of any process, has set a mark on this file; false if that cannot be found out.
    package var isMarkedByOthers: Bool { keychain_file_is_marked_by_others(rawValue) }
}

// MARK: Reading
extension FileDescriptor {
    /// Reads once: returns how many bytes were read, and 0 at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        // As many bytes as the buffer has.
        try readOnce { unsafe Glibc.read(rawValue, buffer.baseAddress, buffer.count) }
    }

    /// Fills the buffer from an offset of the file; returns fewer bytes only at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        var filled = 0
        while filled < buffer.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let count = try readOnce { unsafe pread(rawValue, rest.baseAddress, rest.count, off_t(offset) + off_t(filled)) }
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    /// Fills the array, whose count is the number of bytes to read, from an offset of the file.
    package func read(into buffer: inout [UInt8], at offset: Int64) throws(Errno) -> Int {
        // The buffer is used within the closure only.
        let result: Result<Int, Errno> = unsafe buffer.withUnsafeMutableBytes { bytes in
            Result { () throws(Errno) in try unsafe read(into: bytes, at: offset) }
        }
        return try result.get()
    }

    /// Reads from the current position to the end; nil if there are more than `byteLimit` bytes.
    ///
    /// The chunks are wiped. The caller wipes the result if it is secret.
    package func readToEnd(byteLimit: Int) throws(Errno) -> [UInt8]? {
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: min(byteLimit, 65_535) + 1)
        defer { chunk.wipe() }
        while true {
            // The buffer is used within the closure only.
            let result: Result<Int, Errno> = unsafe chunk.withUnsafeMutableBytes { bytes in
                Result { () throws(Errno) in try unsafe read(into: bytes) }
            }
            let count = try result.get()
            if count == 0 { return contents }
            guard contents.count + count <= byteLimit else {
                contents.wipe()
                return nil
            }
            contents.append(contentsOf: chunk[..<count])
        }
    }

    /// The result of waiting for one byte.
    package enum ByteRead: Equatable {
        case byte(UInt8)
        case endOfFile
        case timedOut
    }

    package func readByte(until deadline: Deadline) throws(Errno) -> ByteRead {
        var byte: UInt8 = 0
        while true {
            guard try !FileDescriptor.wait(for: [self], until: deadline).isEmpty else { return .timedOut }
            do throws(Errno) {
                // `byte` is a local variable of one byte.
                let count = try readOnce { unsafe Glibc.read(rawValue, &byte, 1) }
                return count == 0 ? .endOfFile : .byte(byte)
            } catch .wouldBlock {
                // Another process has read the byte.
            }
        }
    }

    private func readOnce(_ call: () -> Int) throws(Errno) -> Int {
        while true {
            let count = call()
            if count >= 0 { return count }
            guard errno == EINTR else { throw .current }
        }
    }
}

// MARK: Writing
extension FileDescriptor {
    /// Writes all of the bytes.
    ///
    /// If the descriptor does not block, waits until `deadline` for room and then throws `.wouldBlock`.
    package func writeAll(_ bytes: UnsafeRawBufferPointer, until deadline: Deadline = .never) throws(Errno) {
        var rest = unsafe bytes[...]
        while unsafe !rest.isEmpty {
            let count = unsafe Glibc.write(rawValue, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count >= 0 {
                unsafe rest = unsafe rest.dropFirst(count)
                continue
            }
            switch Errno.current {
            case .interrupted: continue
            case .wouldBlock where try !FileDescriptor.wait(for: [self], readable: false, until: deadline).isEmpty: continue
            case let error: throw error
            }
        }
    }

    package func writeAll(_ bytes: some Collection<UInt8>, until deadline: Deadline = .never) throws(Errno) {
        let written: Result<Void, Errno>? = bytes.withContiguousStorageIfAvailable { buffer in
            // The buffer is used within the closure only.
            Result { () throws(Errno) in try unsafe writeAll(UnsafeRawBufferPointer(buffer), until: deadline) }
        }
        guard let written else { return try writeAll(Array(bytes), until: deadline) }
        try written.get()
    }

    /// Writes the bytes in one call at an offset of the file.
    ///
    /// Returns false if the system wrote only a part of them.
    package func write(_ bytes: [UInt8], at offset: Int64) throws(Errno) -> Bool {
        // The buffer is used within the closure only.
        let count = unsafe bytes.withUnsafeBytes { unsafe pwrite(rawValue, $0.baseAddress, $0.count, off_t(offset)) }
        guard count >= 0 else { throw .current }
        return count == bytes.count
    }

    package func writeAll(_ secret: borrowing SecretBytes) throws(Errno) {
        // The bytes are read within the closure.
        try unsafe secret.withBytes { (bytes) throws(Errno) in try unsafe writeAll(bytes) }
    }

    package func truncate(toByteCount byteCount: Int64) throws(Errno) {
        guard ftruncate(rawValue, off_t(byteCount)) == 0 else { throw .current }
    }
}

// MARK: Waiting
extension FileDescriptor {
    /// Waits until at least one descriptor can be read (or written), has reached its end, or has failed.
    ///
    /// Returns the indices of those; empty at the deadline. Negative descriptors are never ready.
    package static func wait(
        for descriptors: [FileDescriptor], readable: Bool = true, until deadline: Deadline
    ) throws(Errno) -> Set<Int> {
        var requests = descriptors.map { pollfd(fd: $0.rawValue, events: Int16(readable ? POLLIN : POLLOUT), revents: 0) }
        while true {
            // As many requests as there are.
            let count = unsafe poll(&requests, nfds_t(requests.count), deadline.remainingMilliseconds)
            if count > 0 { return Set(requests.indices.filter { requests[$0].revents != 0 }) }
            guard count == 0 || errno == EINTR else { throw .current }
            if deadline.isOver { return [] }
        }
    }
}

/// A file that is open until this value goes out of scope.
///
/// Opening waits for the other end of a pipe only if asked to, and never makes a terminal the process's controlling one. The descriptor is
/// closed on exec.
package struct OpenFile: ~Copyable, Sendable {
    package enum Access: Sendable {
        case read, readWrite, append
        /// As `read`, but waits for the writer of a pipe, and for its bytes.
        case readWaiting
        /// Creates the file, mode 0600; fails if the name is taken.
        case createExclusively
        /// Writes without waiting for room in a pipe; fails with `ENXIO` if nothing reads it.
        case writeNow
    }

    package let descriptor: FileDescriptor

    /// Opens a file.
    ///
    /// Unless `followsLinks`, fails with `.symbolicLinkLoop` if the path is a symbolic link.
    package init(_ path: String, _ access: Access, followsLinks: Bool = false) throws(Errno) {
        let flags: Int32 =
            switch access {
            case .read: O_RDONLY | O_NONBLOCK
            case .readWaiting: O_RDONLY
            case .readWrite: O_RDWR
            case .append: O_WRONLY | O_APPEND
            case .createExclusively: O_RDWR | O_CREAT | O_EXCL
            case .writeNow: O_WRONLY | O_NONBLOCK
            }
        let links = followsLinks ? 0 : O_NOFOLLOW
        let number = try Errno.check { unsafe open(path, flags | links | O_CLOEXEC | O_NOCTTY, 0o600) }
        descriptor = FileDescriptor(rawValue: try Self.aboveStandardStreams(number))
    }

    /// Returns the descriptor with a number above those of the standard streams, and closes the other one.
    ///
    /// In a program that has closed a standard stream, its next output would otherwise be written to the file.
    static func aboveStandardStreams(_ number: Int32) throws(Errno) -> Int32 {
        guard number <= STDERR_FILENO else { return number }
        defer { _ = Glibc.close(number) }
        return try Errno.check { fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) }
    }

    /// Copies a descriptor that is open already.
    init(copying other: FileDescriptor) throws(Errno) {
        descriptor = FileDescriptor(rawValue: try Errno.check { fcntl(other.rawValue, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) })
    }

    /// Opens a terminal to read and write without blocking.
    package init(terminal path: String) throws(Errno) {
        descriptor = FileDescriptor(rawValue: try Errno.check { unsafe open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK) })
    }

    /// Creates a file without a name, accessible only to its owner, which is gone with the process unless it gets a name.
    ///
    /// Fails on file systems that have no such files, and without /proc.
    init(unnamedIn directory: String) throws(Errno) {
        // The path lives until the call returns.
        let number = try Errno.check { unsafe keychain_file_open_unnamed(directory) }
        descriptor = FileDescriptor(rawValue: try Self.aboveStandardStreams(number))
    }

    /// The same in an open directory.
    init(unnamedIn directory: FileDescriptor) throws(Errno) {
        // The path lives until the call returns.
        let number = try Errno.check { unsafe keychain_file_open_unnamed_at(directory.rawValue, ".") }
        descriptor = FileDescriptor(rawValue: try Self.aboveStandardStreams(number))
    }

    /// Opens a regular file of a directory to read, or creates it exclusively, mode 0600, to write; never follows a symbolic link.
    init(_ name: String, in directory: FileDescriptor, creating: Bool) throws(Errno) {
        let flags = (creating ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY | O_NONBLOCK) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY
        while true {
            // The name is copied for the call.
            let number = unsafe openat(directory.rawValue, name, flags, 0o600)
            if number >= 0 {
                descriptor = FileDescriptor(rawValue: try Self.aboveStandardStreams(number))
                return
            }
            guard errno == EINTR else { throw .current }
        }
    }

    /// Gives a file that was created without a name one; fails with `.exists` if the name is taken.
    func link(as path: String) throws(Errno) {
        // The path lives until the call returns.
        let code = unsafe keychain_file_link_unnamed(descriptor.rawValue, path)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Opens a directory as a place for names; its content cannot be read through the descriptor.
    ///
    /// With `parent`, `name` is a name in that directory, which must not be a symbolic link. Otherwise it is a path, and links are followed.
    init(directory name: String, in parent: FileDescriptor? = nil) throws(Errno) {
        // The name is copied for the call.
        descriptor = FileDescriptor(
            rawValue: try Errno.check { unsafe keychain_directory_open(parent?.rawValue ?? AT_FDCWD, name, parent == nil) })
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    /// Closes the file, and reports an error that the system kept until then.
    package consuming func close() throws(Errno) {
        let number = descriptor.rawValue
        discard self
        guard Glibc.close(number) == 0 else { throw .current }
    }
}
