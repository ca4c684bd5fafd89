// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore

/// Which keychain the calls of this process go to.
package enum DefaultKeychain {
    /// The keychain bound to the task, else the one of the process's user.
    ///
    /// Throws `.notAvailable` when there is no place for one, `.missingEntitlement` when the program's entitlements cannot
    /// be read, and `.notAvailable` in a process under test outside every keychain scope.
    package static func current() throws(KeychainFailure) -> any Keychain {
        if let bound = try CurrentKeychain.boundKeychain() { return bound }
        return try own.get()
    }

    // Made once: the environment and the program do not change beneath a running process.
    private static let own: Result<LocalKeychain, KeychainFailure> = Result { () throws(KeychainFailure) in
        LocalKeychain(
            configuration: try .fromEnvironment(),
            entitlements: try CallerEntitlements.ofThisProcess(environment: ProcessInfo.processInfo.environment).resolve()
        )
    }
}
