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
    static func restoreForExecution() {
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
