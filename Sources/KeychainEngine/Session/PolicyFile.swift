// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Glibc
internal import KeychainCore

/// The administrator's file.
enum PolicyFile {
    /// What is in it; nil where there is none.
    ///
    /// Throws `.notAvailable` when that cannot be said.
    static func contents(atPath path: String, byteLimit: Int) throws(KeychainFailure) -> Data? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR { return nil }
            throw PrivateFile.readFailure(code, "the policy", path)
        }
        defer { close(descriptor) }
        var contents = [UInt8](repeating: 0, count: byteLimit + 1)
        var filled = 0
        while filled < contents.count {
            // The rest of the buffer, and its size.
            let count = unsafe contents.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw PrivateFile.readFailure(errno, "the policy", path) }
            if count == 0 { break }
            filled += count
        }
        guard filled <= byteLimit else { throw KeychainFailure(.notAvailable, "the policy \(path) is larger than \(byteLimit) bytes") }
        return Data(contents.prefix(filled))
    }
}
