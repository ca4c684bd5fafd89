// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

/// A store with the protector tpm2 and a passcode, over a chip in memory.
struct ChipStore {
    let storeID = StoreID.random()
    let chip = InMemorySealingDevice()
    let deviceSecret: SharedSecretBytes
    let original: OpenKeybag
    let keybag: OpenKeybag

    init() throws {
        deviceSecret = SharedSecretBytes(try SecretBytes(randomByteCount: DeviceSecret.byteCount))
        let sealed = try chip.seal(deviceSecret.secret, authorization: .none)
        let document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: deviceSecret.secret, protector: .init(sealedDeviceSecret: sealed))
        original = try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: deviceSecret.secret)
        let change = try original.settingPasscode(
            PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost, deviceSecret: deviceSecret.secret, device: chip)
        keybag = try OpenKeybag(copies: [change.document.encoded], storeID: storeID, deviceSecret: deviceSecret.secret)
    }

    func opening(_ document: KeybagDocument, _ deviceSecret: SharedSecretBytes? = nil) throws -> OpenKeybag {
        try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: (deviceSecret ?? self.deviceSecret).secret)
    }

    func unlockedKeys(
        _ passcode: String = PasscodeStore.passcode, of keybag: OpenKeybag? = nil, on chip: (any SealingDevice)? = nil
    ) throws -> UnlockedKeys {
        try (keybag ?? self.keybag).unlockedKeys(
            passcode: PasscodeStore.code(passcode), deviceSecret: deviceSecret.secret, device: chip ?? self.chip)
    }
}
