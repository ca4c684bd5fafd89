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
        #expect(store.original.currentPasscodeGeneration == 1 && !store.original.holdsOlderGenerations)
        #expect(store.keybag.currentPasscodeGeneration == 2 && store.keybag.holdsOlderGenerations)
        for accessibility in Self.protected { #expect(try store.keybag.currentGeneration(for: accessibility) == 2) }
        #expect(try store.keybag.currentGeneration(for: .always) == 1)
        #expect(store.keybag.passcodeCost == PasscodeStore.cost && store.original.passcodeCost == nil)
    }

    @Test("With the right passcode all keys are there, the older ones as they were")
    func unlocking() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let found = try keys.copiedKeys(of: store.keybag.document)
        let before = try store.original.copiedKeys(of: store.original.document)
        #expect(found.count == 11 && Set(found.values).count == 11)
        #expect(before.count == 6 && before.allSatisfy { found[$0.key] == $0.value })
        let made = try #require(store.change.keys)
        #expect(try made.copiedKeys(of: store.change.document) == found)
        #expect(KeyProviderContract.violations(of: keys, isPasscodeSet: true) == [])
        #expect(KeyProviderContract.violations(of: made, isPasscodeSet: true) == [])
    }

    @Test("A wrong passcode is 'authentication failed'", arguments: ["1234", "123456", "12345 ", "\012345", "Skroob"])
    func wrongPasscode(_ text: String) throws {
        let store = try PasscodeStore()
        let failure = #expect(throws: KeychainFailure.self) { try store.unlockedKeys(text) }
        #expect(failure?.status == .authFailed && failure?.reason == "the passcode is wrong")
    }

    @Test("The right passcode is none on another device: without the device secret no guess can be tried")
    func otherDevice() throws {
        let store = try PasscodeStore()
        let other = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.unlockedKeys(passcode: PasscodeStore.code(PasscodeStore.passcode), deviceSecret: other)
        }
        #expect(failure?.status == .notAvailable)
    }

    @Test("The same passcode gives another key in each keybag: the salt is fresh")
    func salts() throws {
        let one = try PasscodeStore()
        let changed = try one.keybag.changingPasscode(
            of: one.unlockedKeys(), to: PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost, rotatingKeys: false,
            deviceSecret: one.deviceSecret)
        let before = try #require(one.keybag.document.content.passcode)
        let after = try #require(changed.document.content.passcode)
        #expect(before.salt != after.salt && before.cost == after.cost)
        let wrapped = Set(one.keybag.document.classKeys.filter { $0.wrapping == .passcodeKey }.map(\.wrappedKey))
        #expect(wrapped.count == 9 && wrapped.isDisjoint(with: changed.document.classKeys.map(\.wrappedKey)))
    }

    @Test("A second one cannot be set over the first")
    func settingTwice() throws {
        let store = try PasscodeStore()
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.settingPasscode(
                PasscodeStore.code("other"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret)
        }
        #expect(failure?.status == .duplicateItem)
    }

    @Test("Without one there is nothing to unlock, to change or to remove")
    func nothingSet() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let code = try PasscodeStore.code(PasscodeStore.passcode)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try store.original.unlockedKeys(passcode: code, deviceSecret: store.deviceSecret)
        }
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try store.original.changingPasscode(
                of: keys, to: code, cost: PasscodeStore.cost, rotatingKeys: false, deviceSecret: store.deviceSecret)
        }
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try store.original.removingPasscode(of: keys, deviceSecret: store.deviceSecret)
        }
    }
}
