// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import KeychainCore

/// A child that was forked, and runs on without exec, has copies of locks that nobody will give back, and no keys.
enum ForkedProcess {
    /// Throws `.notAvailable` in a child of a process that uses a keychain.
    static func refuse() throws(KeychainFailure) {
        guard keychain_mark_process(), !keychain_process_is_forked() else {
            throw KeychainFailure(.notAvailable, "this process was forked from one that uses the keychain; start it with exec")
        }
    }
}
