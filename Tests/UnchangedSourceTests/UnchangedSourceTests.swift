// SPDX-License-Identifier: Apache-2.0

import KeychainTestingTraits
import Security
import Testing

@Suite("Sources that import Security and LocalAuthentication, without changes", .inMemoryKeychain)
struct UnchangedSourceTests {
    @Test("A token is saved, overwritten, and read, and `canImport` finds both modules")
    func tokens() {
        let keychain = TokenKeychain(service: "luggage")
        #expect(keychain.token(account: "Skroob") == nil)
        #expect(keychain.save("1234", account: "Skroob") == errSecSuccess)
        #expect(keychain.save("12345", account: "Skroob") == errSecSuccess)
        #expect(keychain.token(account: "Skroob") == "12345")
        #expect(TokenKeychain.usesLocalAuthentication)
    }

    @Test("Qualified names, an import of one declaration, and Foundation through LocalAuthentication")
    func prompt() {
        let prompt = TokenPrompt()
        #expect(prompt.nonce()?.count == 16)
        #expect(prompt.accessControl() != nil)
        #expect(prompt.deadline > .now)
        // Without a passcode, presence cannot be proved.
        #expect(!prompt.canAsk())
    }
}
