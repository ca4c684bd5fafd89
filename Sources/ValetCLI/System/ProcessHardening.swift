// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Foundation
import Synchronization

/// What the process does with itself before it touches a secret.
enum ProcessHardening {
    /// Called first, while there is one thread.
    static func apply() {
        InheritedDescriptors.note()
        reserveStandardDescriptors()
        // If either is refused, secrets are no worse off than in any other program: no reason not to work.
        _ = keychain_process_refuse_dumps()
        setCoreFileLimit(to: 0)
        // Swift's own handlers print registers and memory, or ask on the terminal whether to.
        keychain_process_end_on_crash()
    }

    /// Gives the command that replaces this process the limit it would have had.
    static func restoreCoreFileLimit() {
        setCoreFileLimit(to: coreFileLimit.withLock { $0 })
    }

    /// The soft limit as it was found.
    private static let coreFileLimit = Mutex<rlim_t>(0)

    /// Only the soft limit, so that it can be given back.
    private static func setCoreFileLimit(to limit: rlim_t) {
        var limits = rlimit()
        // The pointers are used during the calls only.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limits) == 0 else { return }
        if limit == 0 { coreFileLimit.withLock { $0 = limits.rlim_cur } }
        limits.rlim_cur = limit
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limits)
    }

    /// A program may be started with standard descriptors closed; the next file opened would take their place, and what is meant for
    /// standard output would be written into the keychain.
    ///
    /// Opened the wrong way round, so that using them is still an error.
    private static func reserveStandardDescriptors() {
        // The path is a literal.
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 {
            _ = unsafe open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}

/// The file descriptors that whoever started the command has opened for it.
///
/// A number that an option names may by then be a file of ours, the keychain even: that must not be read as a passcode.
enum InheritedDescriptors {
    /// Called first, before anything is opened.
    static func note() { _ = noted }

    static func contains(_ descriptor: Int32) -> Bool {
        // The system gives the lowest number that is free, so a higher one than these is none of ours.
        descriptor < limit ? noted.contains(descriptor) : isOpen(descriptor)
    }

    private static let limit: Int32 = 256
    private static let noted = Set((0..<limit).filter(isOpen))

    private static func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }
}

/// A secret in a memory file that nobody can change any more, to be handed to another program as a descriptor.
struct SealedMemoryFile {
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
    func keepAcrossExec() throws(CommandFailure) {
        guard keychain_set_close_on_exec(descriptor, false) else { throw Self.failure(errno) }
    }

    private static func failure(_ errorNumber: Int32) -> CommandFailure {
        CommandFailure(
            .unavailable, "no sealed memory for the secret: \(FileDescriptor.message(errorNumber))",
            advice: "Nothing was run. --env hands the secret over in the environment, where other programs of yours can read it."
        )
    }
}
