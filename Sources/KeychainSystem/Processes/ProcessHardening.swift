// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore
internal import Synchronization

/// The protection of a command's process, before it reads a secret.
package enum ProcessHardening {
    /// Call first, while there is one thread.
    package static func apply() {
        InheritedDescriptors.record()
        reserveStandardDescriptors()
        // Best effort: if the system refuses, secrets are as safe as in any other program.
        _ = keychain_process_refuse_dumps()
        setCoreFileLimit(to: 0)
        // Swift's own crash handlers print registers and memory.
        keychain_process_end_on_crash()
    }

    /// Limits this process, for good, to reading files and to answering on sockets that it has.
    ///
    /// It cannot trace, read the memory of other processes, open a socket, write a file, or execute a program afterwards. Call it while there is
    /// one thread. Throws `.notImplemented` on a processor whose system calls are not known.
    package static func confineToInspection() throws(Errno) {
        let code = keychain_process_confine_to_inspection()
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Restores the limit of core files, for the command that replaces this process.
    package static func restoreForExecution() {
        setCoreFileLimit(to: originalCoreFileLimit.withLock { $0 })
    }

    /// The soft limit that the process was started with.
    private static let originalCoreFileLimit = Mutex<rlim_t>(0)

    /// Changes only the soft limit, which the process can raise again.
    private static func setCoreFileLimit(to limit: rlim_t) {
        var limits = rlimit()
        // The pointers are used during the calls only.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limits) == 0 else { return }
        if limit == 0 { originalCoreFileLimit.withLock { $0 = limits.rlim_cur } }
        limits.rlim_cur = limit
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limits)
    }

    /// Opens standard descriptors that are closed: the next file would take their number, and output would go into the keychain.
    ///
    /// Opened in the wrong direction, so that using them is still an error.
    private static func reserveStandardDescriptors() {
        for number: Int32 in 0...2 where !FileDescriptor(rawValue: number).isOpen {
            // The path is a literal.
            _ = unsafe open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}

/// The file descriptors that were open when the process started.
///
/// An option may name a number under which this process has since opened a file, such as the keychain. It must not be read as a passcode.
package enum InheritedDescriptors {
    /// Call first, before any file is opened.
    static func record() { _ = recorded }

    package static func contains(_ descriptor: FileDescriptor) -> Bool {
        // The system assigns the lowest free number, so this process opens none above the limit.
        descriptor.rawValue < limit ? recorded.contains(descriptor.rawValue) : descriptor.isOpen
    }

    private static let limit: Int32 = 256
    private static let recorded = Set((0..<limit).filter { FileDescriptor(rawValue: $0).isOpen })
}

/// A secret in a memory file that can no longer be changed, to be passed to another program as a descriptor.
///
/// The descriptor stays open until the process ends or is replaced.
package struct SealedMemoryFile: Sendable {
    package let descriptor: FileDescriptor

    /// Reserves the descriptor.
    ///
    /// Call while low numbers are free: some shells accept only one digit.
    package init() throws(Errno) {
        descriptor = FileDescriptor(rawValue: try Errno.check { keychain_memory_file_create() })
    }

    /// Writes the secret, moves to its beginning, and seals the file.
    package func fill(with secret: some Collection<UInt8>) throws(Errno) {
        try descriptor.writeAll(secret)
        guard lseek(descriptor.rawValue, 0, SEEK_SET) == 0, keychain_memory_file_seal(descriptor.rawValue) else { throw .current }
    }

    /// Keeps the descriptor open in the program that replaces this one.
    package func keepAcrossExec() throws(Errno) {
        guard keychain_set_close_on_exec(descriptor.rawValue, false) else { throw .current }
    }
}

/// The replacement of this process by another program.
package enum Execution {
    /// Marks every descriptor from `first` on as closed on exec; returns false if the system refuses.
    package static func closeDescriptorsOnExec(from first: Int32) -> Bool { keychain_close_on_exec_from(first) }

    /// Replaces this process by the program that an argument names, looked up along PATH, with the arguments after it, byte for byte.
    ///
    /// Returns only if that failed.
    package static func replaceProcess(withArgumentsFrom index: Int) -> Errno {
        guard index < ProcessArguments.count else { return .notFound }
        // The system ends the arguments with a null pointer.
        return Errno(rawValue: unsafe keychain_execute(keychain_process_arguments() + index))
    }
}

/// The arguments as the system passed them.
///
/// `CommandLine.arguments` repairs invalid UTF-8, which could turn two different keys into one. It is also empty if /proc is not mounted,
/// because the Swift runtime reads the arguments from there.
package enum ProcessArguments {
    package static var count: Int { Int(keychain_process_argument_count()) }

    /// An argument; nil if it is not valid UTF-8.
    package static func text(at index: Int) -> String? {
        // The system keeps the arguments in place for as long as the process lives.
        guard index < count, let argument = unsafe keychain_process_arguments()[index] else { return nil }
        return unsafe String(validatingCString: argument)
    }
}
