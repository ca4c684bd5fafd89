// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// What copying a database past SQLite needs.
extension POSIX {
    /// Opens an existing file to read and write; the descriptor is the caller's to close.
    ///
    /// Closing it drops every lock this process has on the file, those of open files aside.
    static func openToReadAndWrite(_ path: String) throws(ErrorNumber) -> Int32 {
        let descriptor = unsafe open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw ErrorNumber(rawValue: errno) }
        return descriptor
    }

    /// Which file a descriptor stands for, and its size.
    static func identityAndByteCount(of descriptor: Int32) throws(ErrorNumber) -> (FileIdentity, Int64) {
        var status = stat()
        // `status` is ours and outlives the call.
        guard unsafe fstat(descriptor, &status) == 0 else { throw ErrorNumber(rawValue: errno) }
        return (FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)), Int64(status.st_size))
    }

    /// Fills the buffer from a place in the file, or as much of it as there is before the file ends; answers how much.
    static func read(into buffer: inout [UInt8], from descriptor: Int32, at offset: Int64) throws(ErrorNumber) -> Int {
        var filled = 0
        while filled < buffer.count {
            // The rest of the buffer, and its size.
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe pread(descriptor, bytes.baseAddress.map { unsafe $0 + filled }, bytes.count - filled, off_t(offset) + off_t(filled))
            }
            if count == 0 { break }
            if count < 0 {
                guard errno == EINTR else { throw ErrorNumber(rawValue: errno) }
            } else {
                filled += count
            }
        }
        return filled
    }

    static func truncate(_ path: String, toByteCount byteCount: Int64) throws(ErrorNumber) {
        let descriptor = try openToReadAndWrite(path)
        defer { closeDescriptor(descriptor) }
        guard ftruncate(descriptor, off_t(byteCount)) == 0 else { throw ErrorNumber(rawValue: errno) }
    }

    /// Locks a database against every connection of SQLite's; false when somebody has it open.
    static func lockDatabase(_ descriptor: Int32) throws(ErrorNumber) -> Bool {
        let code = keychain_lock_database(descriptor)
        guard code == 0 || code == EAGAIN || code == EACCES else { throw ErrorNumber(rawValue: code) }
        return code == 0
    }
}
