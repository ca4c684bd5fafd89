// SPDX-License-Identifier: Apache-2.0

package import KeychainCore

/// What SecurityAPI needs of the engine.
package enum DefaultKeychain {
    /// The keychain bound to the task; there is no other here.
    package static func current() throws(KeychainFailure) -> any Keychain {
        if let bound = try CurrentKeychain.boundKeychain() { return bound }
        throw KeychainFailure(.notAvailable, "the engine has a stand-in here")
    }
}
