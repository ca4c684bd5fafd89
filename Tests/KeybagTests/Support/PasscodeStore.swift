// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

/// A store with a passcode, and everything that is known of it.
final class PasscodeStore: Sendable {
    static let passcode = "12345"
    /// The least that is allowed: these tests derive often.
    static let cost = PasscodeCost(roundsExponent: 10, blockSize: 1, parallelism: 1) ?? .standard

    let storeID = StoreID.random()
    let deviceSecret: SecretBytes
    /// Before a passcode was set.
    let original: OpenKeybag
    let change: KeybagChange
    let keybag: OpenKeybag
    let holder = SampleHolder()

    init() throws {
        deviceSecret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: deviceSecret, protector: KeybagDocument.ProtectorRecord(kind: .keyFile))
        original = try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: deviceSecret)
        change = try original.settingPasscode(Self.code(Self.passcode), cost: Self.cost, deviceSecret: deviceSecret)
        keybag = try OpenKeybag(
            copies: [change.document.encoded], storeID: storeID, deviceSecret: deviceSecret, holder: holder)
    }

    static func code(_ text: String) throws -> Passcode {
        let bytes = Array(text.utf8)
        // The bytes are copied within the closure.
        return try Passcode(normalized: unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) })
    }

    /// The keybag of another document of this store, with the same holder.
    func opening(_ document: KeybagDocument) throws -> OpenKeybag {
        try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: deviceSecret, holder: holder)
    }

    func unlockedKeys(_ passcode: String = passcode, of keybag: OpenKeybag? = nil) throws -> UnlockedKeys {
        try (keybag ?? self.keybag).unlockedKeys(passcode: Self.code(passcode), deviceSecret: deviceSecret)
    }

    /// Fills the holder, as unlocking does.
    func unlock(_ slots: [KeyHolderSlot] = KeyHolderSlot.ofClassKeys, timeoutSeconds: UInt32? = nil) throws {
        let keys = try unlockedKeys()
        for slot in slots {
            _ = try holder.hold(keys.payload(for: slot), in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: LockEpoch(rawValue: 0))
        }
    }
}

extension KeyProvider {
    /// A copy of a class key, to be compared.
    func copiedKey(_ accessibility: Accessibility, _ generation: UInt32) throws(KeychainFailure) -> [UInt8] {
        try withClassKey(for: accessibility, generation: generation) { (key: borrowing ClassKey) throws(KeychainFailure) in
            key.copiedBytes()
        }
    }

    /// All keys that can be had.
    func copiedKeys(of document: KeybagDocument) throws(KeychainFailure) -> [ClassKeyID: [UInt8]] {
        var keys: [ClassKeyID: [UInt8]] = [:]
        for entry in document.classKeys { keys[entry.id] = try copiedKey(entry.id.accessibility, entry.id.generation) }
        return keys
    }
}
