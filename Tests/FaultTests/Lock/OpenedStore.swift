// SPDX-License-Identifier: Apache-2.0
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport

/// A store that a test opens directly, with its keybag and device secret, beside any keychain that uses it.
final class OpenedStore: Sendable {
    let store: SQLiteItemStore
    let keybag: OpenKeybag
    let protector: KeyFile
    let deviceSecret: SecretBytes

    init(home: String) throws {
        store = try SQLiteItemStore(openingAt: home + "/keychain.db")
        protector = KeyFile(directory: home + "/keys", storePath: home + "/keychain.db")
        deviceSecret = try protector.deviceSecret(for: store.storeID)
        keybag = try OpenKeybag(copies: store.keybag().copies, storeID: store.storeID, deviceSecret: deviceSecret)
        try store.protect(
            with: keybag.stateCipher, using: keybag.usedCopy,
            anchorPaths: KeychainConfiguration(home: home).anchorPaths(for: store.storeID), checking: .nothing)
    }

    /// Returns a keychain on this store, with the entitlements of the tests' child.
    func keychain(keys: (any KeyProvider)? = nil, store other: (any ItemStore)? = nil) -> SealedKeychain {
        SealedKeychain(
            store: other ?? store, keys: keys ?? keybag, cipher: keybag.cipher, clock: SystemWallClock(),
            entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"), log: { _ in })
    }

    func unlockedKeys(_ passcode: String) throws -> UnlockedKeys {
        try keybag.unlockedKeys(passcode: Passcode(text: passcode), deviceSecret: deviceSecret)
    }

    /// Returns copies of all class keys that `keys` provides.
    func classKeys(of keys: any KeyProvider) throws -> [ClassKeyID: [UInt8]] {
        var copies: [ClassKeyID: [UInt8]] = [:]
        for accessibility in ItemAccessibility.allCases {
            for generation in 1...max(1, keybag.currentPasscodeGeneration) {
                guard case .available = keys.availability(of: accessibility, generation: generation, lockEpoch: store) else { continue }
                copies[ClassKeyID(accessibility, generation: generation)] = try keys.withClassKey(
                    for: accessibility, generation: generation, lockEpoch: store
                ) { (key: borrowing ClassKey) throws(KeychainFailure) in
                    // The bytes are copied within the closure.
                    unsafe key.secret.withBytes { unsafe Array($0) }
                }
            }
        }
        return copies
    }

    /// Returns the content of a key holder's payload; nil if it does not open.
    func openedPayload(_ payload: [UInt8], in slot: KeyHolderSlot) throws -> [UInt8]? {
        // Here and below: the bytes are copied within the closure.
        let sealed = try unsafe SecretBytes(byteCount: payload.count) { unsafe $0.copyBytes(from: payload) }
        guard let opened = try keybag.payloadCipher.open(sealed, in: slot, of: keybag.identity, at: store.lockEpoch()) else { return nil }
        return unsafe opened.withBytes { unsafe Array($0) }
    }

    /// Seals a payload as a process can that has the device secret.
    func sealedPayload(_ content: [UInt8], in slot: KeyHolderSlot, of identity: KeybagIdentity) throws -> [UInt8] {
        let secret = try unsafe SecretBytes(byteCount: content.count) { unsafe $0.copyBytes(from: content) }
        let sealed = try keybag.payloadCipher.seal(secret, in: slot, of: identity, at: store.lockEpoch())
        return unsafe sealed.withBytes { unsafe Array($0) }
    }

    /// Returns the payload that the holder has for the present keybag; nil if it has none.
    func heldPayload(_ slot: KeyHolderSlot) throws -> [UInt8]? {
        guard let held = try holder().forKeybag(keybag.identity).load(slot, for: .inspection, lockEpoch: store.lockEpoch()) else {
            return nil
        }
        return unsafe held.secret.withBytes { unsafe Array($0) }
    }

    /// Returns the payload that a key holder stores while the keychain is unlocked.
    func payload(for slot: KeyHolderSlot, _ passcode: String) throws -> [UInt8] {
        let payload = try unlockedKeys(passcode).payload(for: slot, at: store.lockEpoch())
        // The bytes are copied within the closure.
        return unsafe payload.withBytes { unsafe Array($0) }
    }

    func holder(_ selection: KeyHolderSelection = .automatic) throws(KeychainFailure) -> any KeyHolder {
        let store = store
        return try selection.makeHolder(storeID: store.storeID, epochSource: { () throws(KeychainFailure) in try store.lockEpoch() })
    }

    /// Removes all keys held for the store, including the device secret, without opening the keybag.
    static func removeAllHeldKeys(home: String) throws {
        let store = try SQLiteItemStore(openingAt: home + "/keychain.db")
        defer { store.close() }
        let holder = try KeyHolderSelection.automatic.makeHolder(
            storeID: store.storeID, epochSource: { () throws(KeychainFailure) in try store.lockEpoch() })
        for slot in KeyHolderSlot.allCases { try holder.remove(slot) }
    }

    /// Removes the class keys held for this store, as a restart does, without advancing the lock epoch.
    func removeHeldKeys() throws {
        let holder = try holder()
        for slot in KeyHolderSlot.ofClassKeys { try holder.remove(slot) }
    }
}

extension LocalKeychain {
    /// Reads all secrets, by account.
    func secrets() throws(KeychainFailure) -> [String: String] {
        let items = try copyMatching(
            MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: true))
        var secrets: [String: String] = [:]
        for item in items { secrets[item.attributes.text(.account) ?? ""] = String(decoding: item.secret ?? Data(), as: UTF8.self) }
        return secrets
    }

    /// Adds one item for each accessibility, with that as its account, and returns the secrets by account.
    @discardableResult
    func addItemOfEachClass(_ prefix: String = "", includingBoundToPasscode: Bool = false) throws(KeychainFailure) -> [String: String] {
        var secrets: [String: String] = [:]
        for accessibility in ItemAccessibility.allCases where includingBoundToPasscode || accessibility != .whenPasscodeSetThisDeviceOnly {
            let account = prefix + accessibility.rawValue
            try addItem(account, "secret of \(account)", accessibility)
            secrets[account] = "secret of \(account)"
        }
        return secrets
    }
}
