// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport

extension ChildCommand {
    /// FILE PASSWORD: restores the backup into the keychain of the environment; says `restoring`, and then `restored` and how many items were added.
    static func restoreBackup(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw BadArguments() }
        let keychain = LocalKeychain(
            configuration: try .fromEnvironment(), entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
        say("restoring")
        let summary = try keychain.restoreBackup(atPath: arguments[0], password: Passcode(text: arguments[1]), dryRun: false)
        say("restored \(summary.addedCount)")
    }
}
