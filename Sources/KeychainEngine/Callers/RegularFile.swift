// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Glibc

/// A file that somebody else wrote: read whole, if it is a file, and not too large.
enum RegularFile {
    /// Nil when it cannot be read, is larger, or is something that one could wait for, such as a pipe or a device.
    static func contents(atPath path: String, byteLimit: Int) -> Data? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var information = stat()
        // `information` is ours and outlives the call.
        guard unsafe fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        var contents = [UInt8](repeating: 0, count: min(max(0, Int(information.st_size)), byteLimit) + 1)
        var filled = 0
        while filled < contents.count {
            // The rest of the buffer, and its size.
            let count = unsafe contents.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return Data(contents.prefix(filled)) }
            filled += count
        }
        // More than it had when it was asked, or more than is allowed.
        return nil
    }
}
