// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Testing

@testable import KeychainTesting

@Suite("A passcode whose keys cannot be held")
struct UnheldPasscodeTests {
    /// Fails like the kernel's keyring when the quota is used up.
    private struct FullHolder: KeyHolder {
        let kind = KeyHolderKind.processMemory

        func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder { self }

        func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch) -> HeldSecret? { nil }

        func hold(
            _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
        ) throws(KeychainFailure) -> UInt64 {
            throw KeychainFailure(.notAvailable, "no room", remedy: .makeRoomForKeys)
        }

        func remove(_ slot: KeyHolderSlot) {}

        func removeOlder(_ slot: KeyHolderSlot) {}

        func discard(_ slot: KeyHolderSlot, ticket: UInt64) {}
    }

    @Test("The passcode is neither set nor changed, and the error has a remedy")
    func passcode() throws {
        let memory = try InMemoryKeychain()
        let sound = memory.keychain
        var storage = memory.storage
        storage.holder = FullHolder()
        let keychain = LocalKeychain(
            backend: InMemoryBackend(storage: storage, entitlements: Entitlements(applicationIdentifier: "test")))
        let setting = #expect(throws: KeychainFailure.self) {
            try keychain.setPasscode(try Passcode(text: "swordfish"), autoLock: .standard)
        }
        #expect(setting?.remedy == .makeRoomForKeys)
        #expect(try keychain.sessionStatus().isPasscodeSet == false)
        try sound.setPasscode(try Passcode(text: "swordfish"), autoLock: .standard)
        let changing = #expect(throws: KeychainFailure.self) {
            try keychain.changePasscode(
                from: try Passcode(text: "swordfish"), to: try Passcode(text: "another"), rotatingKeys: false, autoLock: .standard)
        }
        #expect(changing?.remedy == .makeRoomForKeys)
        #expect(throws: KeychainFailure(.authFailed, "")) { try sound.unlock(try Passcode(text: "another"), autoLock: .standard) }
        try sound.unlock(try Passcode(text: "swordfish"), autoLock: .standard)
        #expect(try sound.sessionStatus().state == .unlocked)
    }
}
