// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("Opening a keybag with its recovery key")
struct RecoveryTests {
    private static func secret(_ document: KeybagDocument, _ key: RecoveryKey) throws -> [UInt8] {
        try KeybagDocument.deviceSecret(in: [document.encoded], openedBy: key, storeID: document.storeID).copiedBytes()
    }

    @Test("It gives the device secret, and nothing without it does")
    func deviceSecret() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let change = try store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret)
        #expect(try store.opening(change.document).hasRecoveryKey && !store.original.hasRecoveryKey)
        #expect(try Self.secret(change.document, key) == store.deviceSecret.copiedBytes())
        let failure = #expect(throws: KeychainFailure.self) { _ = try Self.secret(change.document, RecoveryKey()) }
        #expect(failure?.status == .authFailed)
        #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try Self.secret(store.original.document, key) }
    }

    @Test("In another store the same key opens nothing")
    func otherStore() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let change = try store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try KeybagDocument.deviceSecret(in: [change.document.encoded], openedBy: key, storeID: .random())
        }
    }

    @Test("A damaged copy does not stand in the way of the other one")
    func damagedCopy() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let good = try store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret).document.encoded
        for damaged in [[], Array(good.prefix(100)), good.map { $0 ^ 1 }, good.enumerated().map { $0 == 4 ? 9 : $1 }] {
            let found = try KeybagDocument.deviceSecret(in: [damaged, good], openedBy: key, storeID: store.storeID)
            #expect(found.copiedBytes() == store.deviceSecret.copiedBytes())
        }
    }

    @Test("Making one takes the passcode where one is set")
    func takesPasscode() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try store.keybag.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret)
        }
        let change = try store.keybag.settingRecoveryKey(key, keys: store.unlockedKeys(), deviceSecret: store.deviceSecret)
        #expect(try Self.secret(change.document, key) == store.deviceSecret.copiedBytes())
        #expect(change.document.content.recovery?.sealedPasscodeSecret == nil)
    }

    @Test("A later one takes its place")
    func replaced() throws {
        let store = try PasscodeStore()
        let (first, second) = (try RecoveryKey(), try RecoveryKey())
        let once = try store.opening(store.original.settingRecoveryKey(first, keys: nil, deviceSecret: store.deviceSecret).document)
        let twice = try once.settingRecoveryKey(second, keys: nil, deviceSecret: store.deviceSecret).document
        #expect(throws: KeychainFailure(.authFailed, "")) { _ = try Self.secret(twice, first) }
        #expect(try Self.secret(twice, second) == store.deviceSecret.copiedBytes())
    }

    @Test("It gives back what a lost chip kept; the passcode is still needed")
    func lostChip() throws {
        let store = try ChipStore()
        let key = try RecoveryKey()
        let change = try store.keybag.settingRecoveryKey(key, keys: store.unlockedKeys(), deviceSecret: store.deviceSecret.secret)
        let expected = try store.unlockedKeys().copiedKeys(of: store.keybag.document)
        store.chip.clear()
        let keybag = try store.opening(change.document)
        #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try store.unlockedKeys(of: keybag) }
        func keys(_ passcode: String, _ key: RecoveryKey) throws -> UnlockedKeys {
            try keybag.unlockedKeys(passcode: PasscodeStore.code(passcode), deviceSecret: store.deviceSecret.secret, recoveryKey: key)
        }
        #expect(try keys(PasscodeStore.passcode, key).copiedKeys(of: keybag.document) == expected)
        #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keys("wrong", key) }
        #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keys(PasscodeStore.passcode, RecoveryKey()) }
    }

    @Test("It goes on working after every change of the passcode and every move, though it was not at hand")
    func goesOnWorking() throws {
        let store = try ChipStore()
        let key = try RecoveryKey()
        var keybag = try store.opening(
            store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret.secret).document)
        keybag = try store.opening(
            keybag.settingPasscode(
                PasscodeStore.code("first"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret.secret, device: store.chip
            ).document)
        keybag = try store.opening(
            keybag.changingPasscode(
                of: store.unlockedKeys("first", of: keybag), to: PasscodeStore.code("second"), cost: PasscodeStore.cost,
                rotatingKeys: true, deviceSecret: store.deviceSecret.secret, device: store.chip
            ).document)
        let keys = try keybag.unlockedKeys(
            passcode: PasscodeStore.code("second"), deviceSecret: store.deviceSecret.secret, recoveryKey: key)
        let new = SharedSecretBytes(try SecretBytes(randomByteCount: DeviceSecret.byteCount))
        let moved = try keybag.movingProtector(
            to: .init(kind: .keyFile), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret.secret, keys: keys,
            passcode: PasscodeStore.code("second"))
        #expect(try Self.secret(moved.document, key) == new.secret.copiedBytes())
        let removed = try store.opening(moved.document, new).removingPasscode(of: #require(moved.keys), deviceSecret: new.secret)
        #expect(try Self.secret(removed.document, key) == new.secret.copiedBytes())
    }
}
