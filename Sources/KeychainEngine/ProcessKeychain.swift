// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Which keychain the calls of this process go to.
package enum ProcessKeychain {
    /// The keychain bound to the task.
    package static func current() throws(KeychainFailure) -> any Keychain {
        if let bound = try CurrentKeychain.boundKeychain() { return bound }
        throw KeychainFailure(.notAvailable, "no keychain is bound to this task")
    }
}
