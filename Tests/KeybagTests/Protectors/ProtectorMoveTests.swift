// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("Moving a keybag to another protector")
struct ProtectorMoveTests {
    private static func newSecret() throws -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: DeviceSecret.byteCount))
    }

    @Test("Without a passcode: every key stays, and the old device secret opens it no longer")
    func withoutPasscode() throws {
        let store = try PasscodeStore()
        let new = try Self.newSecret()
        let change = try store.original.movingProtector(
            to: .init(kind: .systemdCredential), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret, keys: nil, passcode: nil)
        let moved = try OpenKeybag(copies: [change.document.encoded], storeID: store.storeID, deviceSecret: new.secret)
        #expect(moved.document.protector.kind == .systemdCredential && moved.keybagGeneration == store.original.keybagGeneration + 1)
        #expect(try moved.copiedKeys(of: moved.document) == store.original.copiedKeys(of: store.original.document))
        let digests = try [store.original, moved].map { try $0.cipher.digest(of: .string("name"), for: .account, in: .genericPassword) }
        #expect(digests[0] == digests[1])
        #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try store.opening(change.document) }
    }

    @Test("With a passcode: it opens the same class keys, under the new device secret alone")
    func withPasscode() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let new = try Self.newSecret()
        let change = try store.keybag.movingProtector(
            to: .init(kind: .systemdCredential), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret, keys: keys,
            passcode: PasscodeStore.code(PasscodeStore.passcode))
        let moved = try OpenKeybag(copies: [change.document.encoded], storeID: store.storeID, deviceSecret: new.secret)
        let found = try moved.unlockedKeys(passcode: PasscodeStore.code(PasscodeStore.passcode), deviceSecret: new.secret)
        #expect(try found.copiedKeys(of: moved.document) == keys.copiedKeys(of: store.keybag.document))
        #expect(found.presence?.publicKey == keys.presence?.publicKey && moved.passcodeCost == store.keybag.passcodeCost)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try moved.unlockedKeys(passcode: PasscodeStore.code("wrong"), deviceSecret: new.secret)
        }
        #expect(try change.keys?.copiedKeys(of: change.document) == found.copiedKeys(of: moved.document))
    }

    @Test("With a passcode set and not given, nothing is made")
    func passcodeMissing() throws {
        let store = try PasscodeStore()
        let new = try Self.newSecret()
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try store.keybag.movingProtector(
                to: .init(kind: .systemdCredential), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret, keys: nil, passcode: nil
            )
        }
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try store.keybag.movingProtector(
                to: .init(kind: .systemdCredential), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret,
                keys: store.unlockedKeys(), passcode: nil)
        }
    }

    @Test("To a chip and back: the chip's part comes and goes, and the class keys stay")
    func toChipAndBack() throws {
        let store = try PasscodeStore()
        let chip = InMemorySealingDevice()
        let keys = try store.unlockedKeys()
        let onChip = try Self.newSecret()
        let sealed = try chip.seal(onChip.secret, authorization: .none)
        let there = try store.keybag.movingProtector(
            to: .init(sealedDeviceSecret: sealed), newDeviceSecret: onChip.secret, deviceSecret: store.deviceSecret, keys: keys,
            passcode: PasscodeStore.code(PasscodeStore.passcode), device: chip)
        let moved = try OpenKeybag(copies: [there.document.encoded], storeID: store.storeID, deviceSecret: onChip.secret)
        #expect(moved.document.content.sealedPasscodeSecret != nil)
        let found = try moved.unlockedKeys(
            passcode: PasscodeStore.code(PasscodeStore.passcode), deviceSecret: onChip.secret, device: chip)
        #expect(try found.copiedKeys(of: moved.document) == keys.copiedKeys(of: store.keybag.document))

        let again = try Self.newSecret()
        let back = try moved.movingProtector(
            to: .init(kind: .keyFile), newDeviceSecret: again.secret, deviceSecret: onChip.secret, keys: found,
            passcode: PasscodeStore.code(PasscodeStore.passcode))
        let last = try OpenKeybag(copies: [back.document.encoded], storeID: store.storeID, deviceSecret: again.secret)
        #expect(last.document.content.sealedPasscodeSecret == nil)
        let end = try last.unlockedKeys(passcode: PasscodeStore.code(PasscodeStore.passcode), deviceSecret: again.secret)
        #expect(try end.copiedKeys(of: last.document) == keys.copiedKeys(of: store.keybag.document))
    }

    @Test("An altered byte anywhere in a keybag of a chip is damage, whatever is asked of it")
    func altered() throws {
        let store = try ChipStore()
        let key = try RecoveryKey()
        let good = try store.keybag.settingRecoveryKey(key, keys: store.unlockedKeys(), deviceSecret: store.deviceSecret.secret)
            .document.encoded
        for index in good.indices {
            var altered = good
            altered[index] ^= 0x20
            #expect(throws: KeychainFailure(.notAvailable, ""), "byte \(index)") {
                _ = try OpenKeybag(copies: [altered], storeID: store.storeID, deviceSecret: store.deviceSecret.secret)
            }
        }
    }

    @Test("Where a disk lost one copy's write, the newer copy's protector and recovery key are tried first")
    func lostWrite() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let before = try store.opening(store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret).document)
        let new = try Self.newSecret()
        let after = try before.movingProtector(
            to: .init(kind: .systemdCredential), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret, keys: nil, passcode: nil
        ).document
        for copies in [[before.document.encoded, after.encoded], [after.encoded, before.document.encoded]] {
            #expect(try KeybagDocument.protectorHints(in: copies).map(\.kind) == [.systemdCredential, .keyFile])
            let found = try KeybagDocument.deviceSecret(in: copies, openedBy: key, storeID: store.storeID)
            #expect(found.copiedBytes() == new.secret.copiedBytes())
        }
    }

    @Test("Authentic, but with the chip's part where no version writes it, it is refused")
    func combinations() throws {
        let store = try ChipStore()
        let key = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: store.deviceSecret.secret, storeID: store.storeID))
        let recovered = try store.keybag.settingRecoveryKey(
            RecoveryKey(), keys: store.unlockedKeys(), deviceSecret: store.deviceSecret.secret)
        let alterations: [(inout KeybagDocument.Content) -> Void] = [
            { $0.sealedPasscodeSecret = nil },
            { $0.protector = .init(kind: .keyFile) },
            { content in content.recovery = try? content.recovery?.with(passcodeSecret: nil, storeID: store.storeID) },
        ]
        for (index, alter) in alterations.enumerated() {
            var content = recovered.document.content
            alter(&content)
            let document = KeybagDocument(storeID: store.storeID, content: content, authenticatedBy: key)
            #expect(throws: KeychainFailure(.notAvailable, ""), "alteration \(index)") { _ = try store.opening(document) }
        }
        #expect(try store.opening(recovered.document).hasRecoveryKey)
    }
}
