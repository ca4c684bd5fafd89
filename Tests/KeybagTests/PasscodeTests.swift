// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("A keybag's passcode")
struct PasscodeTests {
    private static let protected: [Accessibility] = [
        .whenUnlocked, .whenUnlockedThisDeviceOnly, .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
    ]

    @Test("Setting one makes a new generation of every class that it protects, and new writes use that")
    func setting() throws {
        let store = try PasscodeStore()
        #expect(store.keybag.isPasscodeSet && !store.original.isPasscodeSet)
        #expect(store.keybag.keybagGeneration == store.original.keybagGeneration + 1)
        #expect(store.keybag.currentPasscodeGeneration == 2 && store.keybag.holdsOlderGenerations)
        for accessibility in Self.protected { #expect(try store.keybag.currentGeneration(for: accessibility) == 2) }
        #expect(try store.keybag.currentGeneration(for: .always) == 1)
        #expect(store.keybag.passcodeCost == PasscodeStore.lowCost && store.original.passcodeCost == nil)
    }

    @Test("With the right passcode all keys are there, the older ones as they were")
    func unlocking() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let found = try keys.copiedKeys(of: store.keybag.document)
        let before = try store.original.copiedKeys(of: store.original.document)
        #expect(found.count == 11 && Set(found.values).count == 11)
        #expect(before.allSatisfy { found[$0.key] == $0.value })
        let made = try #require(store.change.keys)
        #expect(try made.copiedKeys(of: store.change.document) == found)
        #expect(KeyProviderContract.violations(of: keys, isPasscodeSet: true) == [])
        #expect(KeyProviderContract.violations(of: made, isPasscodeSet: true) == [])
    }

    @Test("A wrong passcode is 'authentication failed'", arguments: ["1234", "123456", "12345 ", "Skroob"])
    func wrongPasscode(_ text: String) throws {
        let store = try PasscodeStore()
        let failure = #expect(throws: KeychainFailure.self) { try store.unlockedKeys(text) }
        #expect(failure?.status == .authFailed && failure?.reason == "the passcode is wrong")
    }
}
