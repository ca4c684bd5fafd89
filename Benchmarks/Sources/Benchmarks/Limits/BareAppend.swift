// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The limit of writing: appending 100 bytes to a file and flushing them.
final class BareAppend {
    struct Failure: Error {
        let errorNumber: Int32
    }

    private let descriptor: Int32
    private let bytes = [UInt8](repeating: 0x5a, count: 100)

    init(path: String) throws {
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(errorNumber: errno) }
    }

    deinit { close(descriptor) }

    func append() throws {
        guard unsafe write(descriptor, bytes, bytes.count) == bytes.count, fdatasync(descriptor) == 0 else {
            throw Failure(errorNumber: errno)
        }
    }
}
