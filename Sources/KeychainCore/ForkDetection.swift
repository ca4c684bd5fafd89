// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// The detection of processes that were forked, without exec, from one that uses the keychain.
///
/// Such a child has no keys, and copies of locks that no thread will release. So each entry point checks for a fork before it takes a
/// lock. Code that runs in a child nevertheless, such as a deinitializer, takes no lock that another thread may have held.
package enum ForkDetection {
    /// Marks this process as one that uses the keychain.
    ///
    /// Returns false in a child that was forked from a marked process, and if there is no memory for the mark. Later calls cost two loads.
    package static func beginUse() -> Bool { keychain_fork_guard_passes() }

    /// Marks this process as `beginUse()` does; throws `.notAvailable` where that returns false.
    package static func requireNotForked() throws(KeychainFailure) {
        guard beginUse() else { throw failure }
    }

    /// Whether this process was forked from a marked one.
    ///
    /// Does not mark this process. Costs two loads.
    package static var isForkedChild: Bool { keychain_process_is_forked() }

    package static var failure: KeychainFailure {
        KeychainFailure(.notAvailable, "this process was forked from one that uses the keychain; start it with exec")
    }
}
