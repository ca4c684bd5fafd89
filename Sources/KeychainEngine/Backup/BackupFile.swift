// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import Keybag
internal import KeychainCore

/// A backup that is read through one descriptor, as often as need be: another file put in its place meanwhile is not looked at.
final class BackupFile {
    private let path: String
    private let descriptor: Int32

    /// Throws `.itemNotFound` when there is no such file, `.notAvailable` when it cannot be read.
    init(atPath path: String) throws(KeychainFailure) {
        // Not to wait for the other end of a pipe, which is then refused.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR { throw KeychainFailure(.itemNotFound, "there is no backup \(path)") }
            throw PrivateFile.readFailure(code, "the backup", path)
        }
        self.path = path
        self.descriptor = descriptor
        var information = stat()
        // `information` is ours and outlives the call.
        guard unsafe fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            throw KeychainFailure(.notAvailable, "the backup \(path) is not a regular file")
        }
    }

    deinit { close(descriptor) }

    /// A `BackupSource`.
    func read(at offset: Int64, byteCount: Int) throws(KeychainFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        var filled = 0
        while filled < byteCount {
            // The rest of the buffer, and its size.
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(descriptor, buffer.baseAddress.map { unsafe $0 + filled }, byteCount - filled, off_t(offset) + filled)
            }
            if count < 0 {
                let code = errno
                guard code == EINTR else { throw PrivateFile.readFailure(code, "the backup", path) }
            } else if count == 0 {
                break
            } else {
                filled += count
            }
        }
        bytes.removeLast(byteCount - filled)
        return bytes
    }
}
