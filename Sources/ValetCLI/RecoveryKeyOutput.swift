// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore

/// A recovery key on its one way out: alone on standard output, and what is to be said of it on standard error.
enum RecoveryKeyOutput {
    static func write(_ key: SharedSecretBytes, afterDone done: String) throws(CommandFailure) {
        StandardError.write("This recovery key restores access when what protects the keychain is lost. Write it down and keep it apart:")
        // Whoever was to read it may be gone, and that must be said.
        _ = signal(SIGPIPE, SIG_IGN)
        guard let errorNumber = write(key) else { return }
        throw CommandFailure(
            .unavailable, "\(done), but its recovery key cannot be written out: \(FileDescriptor.message(errorNumber))",
            advice: "Nobody has that key. Make another with `valet recovery create --replace`.")
    }

    /// Nil when all of it was written; the bytes go out of the memory for keys, and nowhere else.
    private static func write(_ key: SharedSecretBytes) -> Int32? {
        // The bytes are read within the closure.
        let failure = unsafe key.secret.withBytes { bytes -> Int32? in
            var written = 0
            while written < bytes.count {
                let count = unsafe Foundation.write(STDOUT_FILENO, bytes.baseAddress?.advanced(by: written), bytes.count - written)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return errno }
                written += count
            }
            return nil
        }
        return failure ?? FileDescriptor.write(Data("\n".utf8), to: STDOUT_FILENO)
    }
}
