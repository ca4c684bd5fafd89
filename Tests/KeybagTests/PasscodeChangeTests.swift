// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("Changing a keybag's passcode")
struct PasscodeChangeTests {
    @Test("The class keys stay, and the old passcode no longer unlocks them")
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

    @Test("Rotation adds a new generation, which new writes use")
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

    @Test("After removal of the passcode all keys stay, except those of the class that needs one")
    func removing() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let change = try store.keybag.removingPasscode(of: keys, deviceSecret: store.deviceSecret)
        let keybag = try store.opening(change.document)
        #expect(!keybag.isPasscodeSet && keybag.passcodeCost == nil && keybag.keybagGeneration == 3)
        #expect(try keybag.lockState(at: PasscodeStore.lockEpoch) == .unlocked && keybag.currentGeneration(for: .whenUnlocked) == 2)
        let expected = try keys.copiedKeys(of: store.keybag.document)
            .filter { $0.key.accessibility != .whenPasscodeSetThisDeviceOnly }
        #expect(try keybag.copiedKeys(of: keybag.document) == expected && expected.count == 10)
        #expect(try change.keys?.copiedKeys(of: change.document) == expected)
        #expect(KeyProviderContract.violations(of: keybag, isPasscodeSet: false) == [])
        let removed = try #require(change.keys)
        #expect(throws: KeychainFailure(.internal, "")) { _ = try removed.payload(for: .unlocked, at: .unused) }
    }

    @Test("Setting a passcode again uses a generation that never existed, for every class")
    func settingAgain() throws {
        let store = try PasscodeStore()
        let removed = try store.opening(store.keybag.removingPasscode(of: store.unlockedKeys(), deviceSecret: store.deviceSecret).document)
        let change = try removed.settingPasscode(
            PasscodeStore.code("again"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret)
        let keybag = try store.opening(change.document)
        #expect(keybag.currentPasscodeGeneration == 3)
        #expect(keybag.availability(of: .whenPasscodeSetThisDeviceOnly, generation: 2) == .missing)
        #expect(try keybag.currentGeneration(for: .whenPasscodeSetThisDeviceOnly) == 3)
    }

    @Test("A change with keys of another keybag fails and requires reopening")
    func foreignKeys() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let later = try store.opening(
            store.keybag.changingPasscode(
                of: keys, to: PasscodeStore.code("other"), cost: PasscodeStore.cost, rotatingKeys: false,
                deviceSecret: store.deviceSecret
            ).document)
        let failure = #expect(throws: KeychainFailure.self) { try later.removingPasscode(of: keys, deviceSecret: store.deviceSecret) }
        #expect(failure?.status == .notAvailable && failure?.requiresReopening == true)
    }

    @Test("A change with another device secret fails")
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

    @Test("Unused older generations are dropped; the newest and used ones stay")
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

@Suite("Memory after a passcode check")
struct PasscodeResidueTests {
    /// Secrets used in no other test, because the search would find those too.
    private static let passcode = OwnMemory.Needle(masked: [
        0x3B, 0x30, 0x30, 0x31, 0x39, 0x30, 0x75, 0x25, 0x34, 0x26, 0x26, 0x36, 0x3A, 0x31, 0x30, 0x75, 0x65, 0x6D,
        0x64, 0x60,
    ])

    /// The stretched passcode.
    ///
    /// Together with the device secret, which may be in a file, it yields the passcode key.
    private static let stretchedPasscode = OwnMemory.Needle(masked: [
        0xB7, 0xA1, 0xBD, 0x43, 0xC2, 0x26, 0xC8, 0x4C, 0x99, 0xFA, 0xBF, 0x8E, 0xDA, 0x83, 0xA6, 0x1E, 0x53, 0xBD,
        0xBD, 0x13, 0xB7, 0x11, 0x69, 0xDD, 0x1A, 0xAD, 0xB6, 0x82, 0x9A, 0xD3, 0x51, 0xBC,
    ])

    private static let passcodeKey = OwnMemory.Needle(masked: [
        0x69, 0xF7, 0x2B, 0x03, 0xAB, 0xE0, 0x89, 0xF5, 0x42, 0xE7, 0xEF, 0x6D, 0xC5, 0xFB, 0xE6, 0x9A, 0x4E, 0xCC,
        0x9E, 0xE5, 0x16, 0x30, 0x8E, 0xA4, 0xAE, 0x37, 0xCA, 0xA5, 0x88, 0x02, 0x6F, 0xC3,
    ])

    private func record() throws -> PasscodeRecord {
        var encoded: [UInt8] = [1] + Array(0..<32) + [10]
        encoded.append(littleEndian: UInt32(8))
        encoded.append(littleEndian: UInt32(1))
        return try PasscodeRecord(encoded: encoded[...])
    }

    private func deviceSecret() throws -> SecretBytes {
        // The region is written within its bounds.
        try unsafe SecretBytes(byteCount: DeviceSecret.byteCount) { buffer in
            for index in buffer.indices { unsafe buffer[index] = UInt8(100 + index) }
        }
    }

    private func derive() throws -> SecretBytes {
        try PasscodeKey.derive(
            from: Passcode(normalized: Self.passcode.secret()), record(), deviceSecret: deviceSecret(), storeID: storeID())
    }

    private func storeID() throws -> StoreID { try #require(StoreID(Array(0..<16))) }

    @Test("After use, neither the key nor the passcode nor intermediate values are in memory")
    func nothingIsLeft() throws {
        do {
            let passcode = try Self.passcode.secret()
            #expect(try OwnMemory.holds(Self.passcode))
            #expect(passcode.byteCount > 0)
        }
        // Several rounds, because the next derivation often overwrites remains of the previous one.
        for _ in 0..<4 { _ = try derive() }
        do {
            let key = try derive()
            #expect(try OwnMemory.holds(Self.passcodeKey))
            #expect(key.byteCount == ClassKey.byteCount)
        }
        #expect(try !OwnMemory.holds(Self.passcode))
        #expect(try !OwnMemory.holds(Self.stretchedPasscode))
        #expect(try !OwnMemory.holds(Self.passcodeKey))

        // Last, because it leaves traces: verifies that the values searched for are the right ones.
        let combined = try Self.stretchedPasscode.secret().copiedBytes() + deviceSecret().copiedBytes()
        // The bytes are copied within the closure.
        let secret = try unsafe SecretBytes(byteCount: combined.count) { unsafe $0.copyBytes(from: combined) }
        let key = try KeyPurpose.passcodeKey.derive(from: secret, storeID: storeID())
        #expect(try key.copiedBytes() == Self.passcodeKey.secret().copiedBytes())
    }
}
