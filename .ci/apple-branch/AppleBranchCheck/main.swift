// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import Locksmith
import UnchangedSources
import Valet

// That this compiles is the check: only the stand-ins have these two names, and only the branch for Apple platforms exports them.
guard securityStandsIn, localAuthenticationStandsIn else { exit(1) }

// The names of the field reach a program through that branch too.
let query = [kSecClass as String: kSecClassGenericPassword] as CFDictionary
guard SecItemCopyMatching(query, nil) == errSecNotAvailable else { exit(1) }

// So do those of LocalAuthentication. No authentication succeeds, because there is no keychain.
let context = LAContext()
guard context.setCredential(Data("12345".utf8), type: .applicationPassword), context.isCredentialSet(.applicationPassword) else { exit(1) }
do {
    try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
    exit(1)
} catch let error as LAError {
    guard error.code == .authenticationFailed else { exit(1) }
}

// Locksmith is asked too: its calls take that way as Valet's do.
guard Locksmith.loadDataForUserAccount("Skroob") == nil else { exit(1) }

// Sources that import Apple's frameworks are compiled with the same result as on Linux.
guard TokenKeychain.usesLocalAuthentication, TokenKeychain(service: "luggage").save("12345", account: "Skroob") == errSecNotAvailable,
    TokenPrompt().accessControl() != nil
else { exit(1) }

print("KeychainServices, Valet and Locksmith compile through the branch that Apple platforms take.")
