// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("A passcode verified by a TPM")
struct ChipPasscodeTests {
    @Test("The correct passcode unlocks all class keys")
    func right() throws {
        let store = try ChipStore()
        let count = store.chip.unsealCount
        let keys = try store.unlockedKeys()
        #expect(store.chip.unsealCount == count + 1)
        #expect(try keys.copiedKeys(of: store.keybag.document).count == 11)
    }

    @Test("The TPM detects and counts a wrong passcode")
    func wrong() throws {
        let store = try ChipStore()
        let failure = #expect(throws: KeychainFailure.self) { _ = try store.unlockedKeys("wrong") }
        #expect(failure?.status == .authFailed && failure?.refusal == .wrongPasscode)
        #expect(try store.chip.status().failedTryCount == 1)
    }

    @Test("During a lockout even the correct passcode fails, with the remaining time")
    func lockedOut() throws {
        let store = try ChipStore()
        for _ in 0..<3 { _ = try? store.unlockedKeys("wrong") }
        let failure = #expect(throws: KeychainFailure.self) { _ = try store.unlockedKeys() }
        #expect(failure?.status == .authFailed && failure?.refusal == .lockedOut(seconds: 600))
    }

    @Test("A missing, foreign, or cleared TPM is not reported as a wrong passcode")
    func withoutChip() throws {
        let store = try ChipStore()
        let other = InMemorySealingDevice()
        // No TPM given, another TPM, an unreachable one, a cleared one.
        let remedies: [KeychainRemedy] = [.reachTPM, .useRecoveryKey, .reachTPM, .useRecoveryKey]
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
        for (failure, remedy) in zip(failures, remedies) {
            #expect(failure?.status == .notAvailable && failure?.subject == .tpm && failure?.remedy == remedy)
        }
    }

    @Test("Every new passcode gets its own sealed secret and its own salt")
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

    @Test("The stretched passcode and the device secret unlock nothing without the TPM's secret")
    func secretIsNeeded() throws {
        let store = try ChipStore()
        let record = try #require(store.keybag.document.content.passcode)
        let key = try PasscodeKey.derive(
            from: PasscodeStore.code(PasscodeStore.passcode), record, deviceSecret: store.deviceSecret.secret, storeID: store.storeID)
        for entry in store.keybag.document.classKeys where entry.wrapping == .passcodeKey {
            #expect(try SharedClassKey(unwrapping: entry, under: key, storeID: store.storeID) == nil)
        }
    }

    @Test("Removing the passcode removes the TPM's part")
    func removed() throws {
        let store = try ChipStore()
        let change = try store.keybag.removingPasscode(of: store.unlockedKeys(), deviceSecret: store.deviceSecret.secret)
        #expect(change.document.content.sealedPasscodeSecret == nil)
        #expect(try !store.opening(change.document).isPasscodeSet)
    }

    @Test("A passcode cannot be set without the TPM")
    func setWithoutChip() throws {
        let store = try ChipStore()
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try store.original.settingPasscode(
                PasscodeStore.code("other"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret.secret)
        }
    }
}

@Suite("Moving a keybag to another protector")
struct ProtectorMoveTests {
    private static func newSecret() throws -> SharedSecretBytes {
        SharedSecretBytes(try SecretBytes(randomByteCount: DeviceSecret.byteCount))
    }

    @Test("Without a passcode: all keys stay, and the old device secret becomes useless")
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

    @Test("With a passcode: it unlocks the same class keys, with the new device secret only")
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

    @Test("A move without the passcode that is set fails")
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

    @Test("To a TPM and back: the TPM's part is added and removed, and the class keys stay")
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

    @Test("An altered byte in a keybag with a TPM is damage, for every operation")
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

    @Test("After a lost write of one copy, the newer copy's protector and recovery key are tried first")
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
            let found = try OpenKeybag.recovering(copies, with: key, storeID: store.storeID).deviceSecret.secret.copiedBytes()
            #expect(found == new.secret.copiedBytes())
        }
    }

    @Test("An authentic keybag with a misplaced TPM part is refused")
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

@Suite("The encoding of sealed objects")
struct SealedObjectTests {
    private static func object() throws -> SealedObject {
        try InMemorySealingDevice().seal(SecretBytes(randomByteCount: 32), authorization: .none)
    }

    @Test("Encoding and decoding give the same object")
    func readAgain() throws {
        let object = try Self.object()
        #expect(try SealedObject(encoded: object.encoded) == object)
    }

    @Test("Truncated or extended bytes are refused")
    func cut() throws {
        let encoded = try Self.object().encoded
        for count in encoded.indices {
            #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: encoded.prefix(count)) }
        }
        #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: encoded + [0]) }
    }

    @Test("A newer version is distinguished from damage")
    func newer() throws {
        var encoded = try Self.object().encoded
        encoded[0] = 2
        #expect(throws: SealedObject.EncodingFailure.newerVersion) { try SealedObject(encoded: encoded) }
        encoded[0] = 0
        #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: encoded) }
    }

    @Test("A part that is too long or has a wrong size is refused")
    func sizes() throws {
        let object = try Self.object()
        func refuses(name: [UInt8]? = nil, publicArea: [UInt8]? = nil, privateArea: [UInt8]? = nil) {
            let altered = SealedObject(
                rootKeyName: name ?? object.rootKeyName, publicArea: publicArea ?? object.publicArea,
                privateArea: privateArea ?? object.privateArea)
            #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: altered.encoded) }
        }
        refuses(name: [])
        refuses(name: Array(repeating: 1, count: 67))
        refuses(publicArea: [])
        refuses(publicArea: [0, 2, 1])
        refuses(publicArea: [4, 0] + Array(repeating: 1, count: 1_024))
        refuses(privateArea: [1, 0, 1])
        refuses(privateArea: [0, 0])
    }

    @Test("The sealed device secret can be read before the keybag is authenticated")
    func hint() throws {
        let store = try ChipStore()
        let hints = try KeybagDocument.protectorHints(in: [store.keybag.document.encoded])
        let secret = try store.chip.unseal(try #require(hints.first).sealedDeviceSecret(), authorization: .none)
        #expect(secret.copiedBytes() == store.deviceSecret.secret.copiedBytes())
    }
}
