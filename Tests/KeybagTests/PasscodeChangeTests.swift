// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("Changing a keybag's passcode")
struct PasscodeChangeTests {
    @Test("The class keys stay, the old passcode opens them no longer")
    func changing() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let cost = try #require(PasscodeCost(roundsExponent: 11, blockSize: 2, parallelism: 2))
        let change = try store.keybag.changingPasscode(
            of: keys, to: PasscodeStore.code("other"), cost: cost, rotatingKeys: false, deviceSecret: store.deviceSecret)
        let keybag = try store.opening(change.document)
        #expect(keybag.keybagGeneration == store.keybag.keybagGeneration + 1 && keybag.passcodeCost == cost)
        #expect(throws: KeychainFailure(.authFailed, "")) { try store.unlockedKeys(of: keybag) }
        let found = try store.unlockedKeys("other", of: keybag).copiedKeys(of: keybag.document)
        #expect(try found == keys.copiedKeys(of: store.keybag.document))
        #expect(try change.keys?.copiedKeys(of: change.document) == found)
    }

    @Test("With rotation there is a new generation too, and new writes use it")
    func rotating() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let change = try store.keybag.changingPasscode(
            of: keys, to: PasscodeStore.code("other"), cost: PasscodeStore.cost, rotatingKeys: true, deviceSecret: store.deviceSecret)
        let keybag = try store.opening(change.document)
        #expect(keybag.currentPasscodeGeneration == 3)
        #expect(try keybag.currentGeneration(for: .whenPasscodeSetThisDeviceOnly) == 3 && keybag.currentGeneration(for: .always) == 1)
        let before = try keys.copiedKeys(of: store.keybag.document)
        let found = try store.unlockedKeys("other", of: keybag).copiedKeys(of: keybag.document)
        #expect(found.count == before.count + 5 && before.allSatisfy { found[$0.key] == $0.value })
        #expect(Set(found.values).count == found.count)
    }

    @Test("Without a passcode the keys are what they were, but for the class that needs one")
    func removing() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let change = try store.keybag.removingPasscode(of: keys, deviceSecret: store.deviceSecret)
        let keybag = try store.opening(change.document)
        #expect(!keybag.isPasscodeSet && keybag.passcodeCost == nil && keybag.keybagGeneration == 3)
        #expect(try keybag.lockState() == .unlocked && keybag.currentGeneration(for: .whenUnlocked) == 2)
        let expected = try keys.copiedKeys(of: store.keybag.document)
            .filter { $0.key.accessibility != .whenPasscodeSetThisDeviceOnly }
        #expect(try keybag.copiedKeys(of: keybag.document) == expected && expected.count == 10)
        #expect(try change.keys?.copiedKeys(of: change.document) == expected)
        #expect(KeyProviderContract.violations(of: keybag, isPasscodeSet: false) == [])
        let removed = try #require(change.keys)
        #expect(throws: KeychainFailure(.internal, "")) { _ = try removed.payload(for: .unlocked) }
    }

    @Test("Set anew it takes a generation that never was, also of the class that needs a passcode")
    func settingAnew() throws {
        let store = try PasscodeStore()
        let removed = try store.opening(store.keybag.removingPasscode(of: store.unlockedKeys(), deviceSecret: store.deviceSecret).document)
        let change = try removed.settingPasscode(
            PasscodeStore.code("again"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret)
        let keybag = try store.opening(change.document)
        #expect(keybag.currentPasscodeGeneration == 3)
        #expect(keybag.availability(of: .whenPasscodeSetThisDeviceOnly, generation: 2) == .missing)
        #expect(try keybag.currentGeneration(for: .whenPasscodeSetThisDeviceOnly) == 3)
    }

    @Test("Keys of another keybag change nothing: the store is to be opened anew")
    func foreignKeys() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let later = try store.opening(
            store.keybag.changingPasscode(
                of: keys, to: PasscodeStore.code("other"), cost: PasscodeStore.cost, rotatingKeys: false,
                deviceSecret: store.deviceSecret
            ).document)
        let failure = #expect(throws: KeychainFailure.self) { try later.removingPasscode(of: keys, deviceSecret: store.deviceSecret) }
        #expect(failure?.status == .notAvailable && failure?.callsForReopening == true)
    }

    @Test("Under another device secret nothing is made: it could never be opened again")
    func otherDeviceSecret() throws {
        let store = try PasscodeStore()
        let other = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try store.original.settingPasscode(PasscodeStore.code("other"), cost: PasscodeStore.cost, deviceSecret: other)
        }
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try store.keybag.removingPasscode(of: store.unlockedKeys(), deviceSecret: other)
        }
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try store.keybag.droppingGenerations(notIn: [], of: nil, deviceSecret: other)
        }
    }

    @Test("Old generations go when nothing uses them; the newest stays, and what is still used")
    func dropping() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let used: Set = [ClassKeyID(.whenUnlocked, generation: 1), ClassKeyID(.always, generation: 1)]
        let first = try #require(try store.keybag.droppingGenerations(notIn: used, of: keys, deviceSecret: store.deviceSecret))
        let keybag = try store.opening(first.document)
        #expect(keybag.document.classKeys.count == 8 && keybag.holdsOlderGenerations && keybag.keybagGeneration == 3)
        let before = try keys.copiedKeys(of: store.keybag.document)
        let after = try store.unlockedKeys(of: keybag).copiedKeys(of: keybag.document)
        #expect(after.allSatisfy { before[$0.key] == $0.value } && after[ClassKeyID(.whenUnlocked, generation: 1)] != nil)
        #expect(try first.keys?.copiedKeys(of: first.document) == after)
        #expect(keybag.availability(of: .afterFirstUnlock, generation: 1) == .missing)

        let second = try #require(try keybag.droppingGenerations(notIn: [], of: nil, deviceSecret: store.deviceSecret))
        let last = try store.opening(second.document)
        #expect(second.keys == nil && last.document.classKeys.count == 7 && !last.holdsOlderGenerations)
        #expect(try store.unlockedKeys(of: last).copiedKeys(of: last.document).count == 7)
        #expect(try last.droppingGenerations(notIn: [], of: nil, deviceSecret: store.deviceSecret) == nil)
    }
}
