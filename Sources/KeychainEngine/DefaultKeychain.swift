// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The keychain that the calls of this process use.
package enum DefaultKeychain {
    /// The keychain bound to the task; without one, the keychain of the process's user.
    ///
    /// Throws `.notAvailable` if the environment names no location, or in a process under test outside every keychain scope, and
    /// `.missingEntitlement` if the program's entitlements cannot be read.
    package static func current() throws(KeychainFailure) -> any Keychain {
        if let bound = try CurrentKeychain.boundKeychain() { return bound }
        return try own.get()
    }

    // Made once: the environment and the program do not change while the process runs.
    private static let own: Result<LocalKeychain, KeychainFailure> = Result { () throws(KeychainFailure) in
        LocalKeychain(
            configuration: try .fromEnvironment(),
            entitlements: try CallerEntitlements.ofThisProcess().resolve()
        )
    }
}
