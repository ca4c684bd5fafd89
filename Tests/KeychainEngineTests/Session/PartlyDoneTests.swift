// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import KeychainTesting

@Suite("What is done in part is not said to be undone")
struct PartlyDoneTests {
    /// As the kernel's keyring when the quota of keys is used up.
    private struct FullHolder: KeyHolder {
        let kind = KeyHolderKind.processMemory

        func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) -> HeldSecret? { nil }

        func hold(
            _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
        ) throws(KeychainFailure) {
            throw KeychainFailure(.notAvailable, "no room")
        }

        func remove(_ slot: KeyHolderSlot) {}

        func discard(_ slot: KeyHolderSlot, ticket: UInt64) {}
    }

    @Test("A passcode whose keys cannot be held is set or changed, and the failure says so")
    func passcode() throws {
        let sound = try InMemoryKeychain().keychain
        let parts = sound.parts
        let keychain = MemoryKeychain(
            parts: MemoryKeychain.Parts(
                store: parts.store, protector: parts.protector, holder: FullHolder(), clock: parts.clock, policy: parts.policy),
            entitlements: Entitlements(applicationIdentifier: "test"))
        let setting = #expect(throws: KeychainFailure.self) {
            try keychain.setPasscode(try Passcode(text: "swordfish"), autoLock: .standard)
        }
        #expect(setting?.remedy == .unlockWithNewPasscode)
        #expect(setting?.reason.hasPrefix("the passcode is in force") == true)
        let changing = #expect(throws: KeychainFailure.self) {
            try keychain.changePasscode(
                from: try Passcode(text: "swordfish"), to: try Passcode(text: "another"), rotatingKeys: false, autoLock: .standard)
        }
        #expect(changing?.remedy == .unlockWithNewPasscode)
        try sound.unlock(try Passcode(text: "another"), autoLock: .standard)
        #expect(try sound.sessionStatus().state == .unlocked)
    }
}
