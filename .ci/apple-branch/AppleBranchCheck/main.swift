// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import Locksmith
import Valet

// That this compiles is the check: only the stand-ins have these two names, and only the branch for Apple platforms exports them.
guard securityStandsIn, localAuthenticationStandsIn else { exit(1) }

// The names of the field reach a program through that branch too.
let query = [kSecClass as String: kSecClassGenericPassword] as CFDictionary
guard SecItemCopyMatching(query, nil) == errSecNotAvailable else { exit(1) }

// Locksmith is asked too: its calls take that way as Valet's do.
guard Locksmith.loadDataForUserAccount("Skroob") == nil else { exit(1) }

print("KeychainServices, Valet and Locksmith compile through the branch that Apple platforms take.")
