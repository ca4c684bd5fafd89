// SPDX-License-Identifier: Apache-2.0
import Testing
import Valet

func enclaveValet(_ name: String = "Druidia", _ accessControl: SecureEnclaveAccessControl = .userPresence) throws -> SecureEnclaveValet {
    SecureEnclaveValet.valet(with: try identifier(name), accessControl: accessControl)
}

func singlePromptValet(
    _ name: String = "Druidia", _ accessControl: SecureEnclaveAccessControl = .userPresence
) throws -> SinglePromptSecureEnclaveValet {
    SinglePromptSecureEnclaveValet.valet(with: try identifier(name), accessControl: accessControl)
}

#if !canImport(Darwin)
import KeychainTesting

/// The keychain of the test, with a passcode set.
func keychainWithPasscode() throws -> InMemoryKeychain {
    let keychain = try #require(InMemoryKeychain.current)
    try keychain.setPasscode("swordfish")
    return keychain
}
#endif
