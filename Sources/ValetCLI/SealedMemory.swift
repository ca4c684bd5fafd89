// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Foundation

/// A secret in a memory file that nobody can change any more, to be handed to another program as a descriptor.
struct SealedMemory {
    let descriptor: Int32

    /// Reserves the descriptor first, while low numbers are free: some shells only take one digit.
    init() throws(CommandFailure) {
        descriptor = keychain_memory_file_create()
        guard descriptor >= 0 else { throw Self.failure(errno) }
    }

    /// Stores the secret, puts the position at its beginning, and seals the file.
    func fill(with secret: Data) throws(CommandFailure) {
        if let errorNumber = FileDescriptor.write(secret, to: descriptor) { throw Self.failure(errorNumber) }
        guard lseek(descriptor, 0, SEEK_SET) == 0, keychain_memory_file_seal(descriptor) else { throw Self.failure(errno) }
    }

    /// Lets the program that replaces this one have the descriptor.
    func keepAcrossExecution() throws(CommandFailure) {
        guard keychain_set_close_on_exec(descriptor, false) else { throw Self.failure(errno) }
    }

    private static func failure(_ errorNumber: Int32) -> CommandFailure {
        CommandFailure(
            .unavailable, "no sealed memory for the secret: \(FileDescriptor.message(errorNumber))",
            advice: "Nothing was run. --env hands the secret over in the environment, where other programs of yours can read it."
        )
    }
}
