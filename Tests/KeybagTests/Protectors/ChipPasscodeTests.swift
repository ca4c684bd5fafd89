// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("A passcode that a chip checks")
struct ChipPasscodeTests {
    @Test("The right one opens every class key, through the chip")
    func right() throws {
        let store = try ChipStore()
        let count = store.chip.unsealCount
        let keys = try store.unlockedKeys()
        #expect(store.chip.unsealCount == count + 1)
        #expect(try keys.copiedKeys(of: store.keybag.document).count == 11)
    }

    @Test("A wrong one is told by the chip, which counts it")
    func wrong() throws {
        let store = try ChipStore()
        let failure = #expect(throws: KeychainFailure.self) { _ = try store.unlockedKeys("wrong") }
        #expect(failure?.status == .authFailed && failure?.refusal == nil)
        #expect(try store.chip.status().failedTryCount == 1)
    }

    @Test("Locked out, the right one does not open it either, and the reason says when to try again")
    func lockedOut() throws {
        let store = try ChipStore()
        for _ in 0..<3 { _ = try? store.unlockedKeys("wrong") }
        let failure = #expect(throws: KeychainFailure.self) { _ = try store.unlockedKeys() }
        #expect(failure?.status == .authFailed && failure?.refusal == .lockedOut(seconds: 600))
        #expect(failure?.reason.contains("try again in 600 s") == true)
    }

    @Test("Without the chip, with another one, and with it cleared, the passcode is not called wrong, and recovery is named")
    func withoutChip() throws {
        let store = try ChipStore()
        let other = InMemorySealingDevice()
        let failures = [
            #expect(throws: KeychainFailure.self) {
                _ = try store.keybag.unlockedKeys(
                    passcode: PasscodeStore.code(PasscodeStore.passcode), deviceSecret: store.deviceSecret.secret)
            },
            #expect(throws: KeychainFailure.self) { _ = try store.unlockedKeys(on: other) },
            #expect(throws: KeychainFailure.self) {
                store.chip.setReachable(false)
                defer { store.chip.setReachable(true) }
                _ = try store.unlockedKeys()
            },
            #expect(throws: KeychainFailure.self) {
                store.chip.clear()
                _ = try store.unlockedKeys()
            },
        ]
        for failure in failures {
            #expect(failure?.status == .notAvailable)
            #expect(failure?.reason.contains("Nothing was deleted") == true && failure?.reason.contains("recovery key") == true)
        }
    }

    @Test("Every new passcode has a secret of its own in the chip, and a salt of its own")
    func changed() throws {
        let store = try ChipStore()
        let keys = try store.unlockedKeys()
        let change = try store.keybag.changingPasscode(
            of: keys, to: PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost, rotatingKeys: false,
            deviceSecret: store.deviceSecret.secret, device: store.chip)
        let (old, new) = (store.keybag.document.content, change.document.content)
        #expect(old.sealedPasscodeSecret != nil && old.sealedPasscodeSecret != new.sealedPasscodeSecret)
        #expect(old.passcode?.salt != new.passcode?.salt)
        #expect(try store.unlockedKeys(of: store.opening(change.document)).copiedKeys(of: change.document).count == 11)
        #expect(keys.passcodeSecret?.bytes.copiedBytes() != change.keys?.passcodeSecret?.bytes.copiedBytes())
    }

    @Test("What the chip keeps is needed: the scrypt of the passcode and the device secret alone open nothing")
    func secretIsNeeded() throws {
        let store = try ChipStore()
        let record = try #require(store.keybag.document.content.passcode)
        let key = try PasscodeKey.derive(
            from: PasscodeStore.code(PasscodeStore.passcode), record, deviceSecret: store.deviceSecret.secret, storeID: store.storeID)
        for entry in store.keybag.document.classKeys where entry.wrapping == .passcodeKey {
            #expect(try ClassKeyBox(unwrapping: entry, under: key, storeID: store.storeID) == nil)
        }
    }

    @Test("Removing the passcode takes the chip's part away")
    func removed() throws {
        let store = try ChipStore()
        let change = try store.keybag.removingPasscode(of: store.unlockedKeys(), deviceSecret: store.deviceSecret.secret)
        #expect(change.document.content.sealedPasscodeSecret == nil)
        #expect(try !store.opening(change.document).isPasscodeSet)
    }

    @Test("A passcode cannot be set without the chip")
    func setWithoutChip() throws {
        let store = try ChipStore()
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try store.original.settingPasscode(
                PasscodeStore.code("other"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret.secret)
        }
    }
}
