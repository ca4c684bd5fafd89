// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

extension ChildCommand {
    /// [--as-effective-user UID]: prints the settings that this process takes from its environment, one on each line.
    static func printSettings(_ arguments: [String]) throws {
        if arguments.first == "--as-effective-user" {
            guard let user = arguments.last.flatMap({ UInt32($0) }), setegid(user) == 0, seteuid(user) == 0 else { throw BadArguments() }
        }
        let configuration = try KeychainConfiguration.fromEnvironment()
        say("store \(configuration.storePath)")
        say("keys \(configuration.keyDirectory)")
        say("protector \(configuration.protectorForNewStore?.name ?? "default")")
        say("credentials \(configuration.credentialsDirectory ?? "none")")
        say("tpm \(configuration.tpmTCTI)")
        say("pinentry \(configuration.pinentry)")
        say("prompt variables \(configuration.promptEnvironment.variables.keys.sorted().joined(separator: " "))")
        say("identifier \(try CallerEntitlements.ofThisProcess().resolve().applicationIdentifier)")
        say("holder \(configuration.keyHolder.holderKindForNewStore)")
    }

    /// PASSCODE: stores an item in the keychain of the environment, sets the passcode, and leaves the keychain unlocked until its input
    /// ends.
    static func stayUnlocked(_ arguments: [String]) throws {
        guard let passcode = arguments.first else { throw BadArguments() }
        let keychain = LocalKeychain(
            configuration: try .fromEnvironment(), entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
        try keychain.addItem("Skroob", "12345")
        try keychain.setPasscode(try Passcode(text: passcode), autoLock: .standard)
        say("\(try keychain.sessionStatus().state)")
        while readLine() != nil {}
    }
}
