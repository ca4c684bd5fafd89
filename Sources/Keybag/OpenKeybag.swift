// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// A keybag with its device-bound keys unwrapped.
///
/// It provides class keys and the row cipher. The initializer uses the device secret but does not store it.
package final class OpenKeybag: Sendable {
    package let document: KeybagDocument
    /// How many of the stored copies are unusable: absent, altered, or not the keybag in use.
    package let damagedCopyCount: Int
    package let cipher: RowCipher
    package let stateCipher: StoreStateCipher
    /// The keys that the device key wraps.
    ///
    /// The keys under a passcode are in the holder.
    let deviceBoundKeys: [ClassKeyID: SharedClassKey]
    /// The keys that a holder has while the keychain is unlocked.
    let heldIDs: Set<ClassKeyID>
    /// Seals the class keys in the holder.
    package let payloadCipher: HolderPayloadCipher
    private let loaders: HeldKeyLoaders?

    package var storeID: StoreID { document.storeID }

    /// Opens the newest authentic copy of a store's keybag.
    ///
    /// While a passcode is set, the class keys under it come from `holder`; without a holder the keychain is locked. Throws
    /// `.notAvailable` if no copy is authentic, or if a newer version wrote the keybag.
    package init(
        copies: [[UInt8]], storeID: StoreID, deviceSecret: borrowing SecretBytes, holder: (any KeyHolder)? = nil,
        applicationPasswordCost: PasscodeCost = .standard
    ) throws(KeychainFailure) {
        let authenticationKey = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: deviceSecret, storeID: storeID))
        var newest: KeybagDocument?
        // A disk that lost a write may have left one copy from before the last change.
        for copy in copies where KeybagDocument.isAuthentic(copy, by: authenticationKey) {
            let document = try KeybagDocument(authentic: copy, storeID: storeID)
            if document.generation > newest?.generation ?? 0 { newest = document }
        }
        guard let document = newest else {
            throw KeychainFailure(
                .notAvailable, "the keybag is damaged, or the device secret is that of another store",
                subject: .keybag, cause: .damaged, isDamage: true
            )
        }
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)

        self.document = document
        damagedCopyCount = max(0, KeybagDocument.copyCount - copies.count { $0 == document.encoded })
        let rowTagKey = try Self.unwrap(document.content.wrappedRowTagKey, under: deviceKey)
        stateCipher = try StoreStateCipher(rowTagKey: rowTagKey, storeID: storeID)
        cipher = try RowCipher(
            storeID: storeID, indexKey: Self.unwrap(document.content.wrappedIndexKey, under: deviceKey), rowTagKey: rowTagKey,
            presencePublicKey: document.content.presence?.publicKey, applicationPasswordCost: applicationPasswordCost
        )
        var keys: [ClassKeyID: SharedClassKey] = [:]
        for entry in document.classKeys where entry.wrapping == .deviceKey {
            guard let key = try SharedClassKey(unwrapping: entry, under: deviceKey, storeID: storeID) else {
                throw KeybagDocument.malformed()
            }
            keys[entry.id] = key
        }
        deviceBoundKeys = keys
        heldIDs = Set(document.classKeys.filter { $0.wrapping == .passcodeKey }.map(\.id))
        let holder = document.content.passcode == nil ? nil : holder?.forKeybag(document.identity)
        let payloadCipher = try HolderPayloadCipher(deviceSecret: deviceSecret, storeID: storeID)
        self.payloadCipher = payloadCipher
        loaders = holder.map { HeldKeyLoaders($0, of: document, payloadCipher) }
    }

    /// Creates the keybag of a new store, with random keys.
    ///
    /// Throws `.notAvailable` if the kernel's random generator fails.
    package static func make(
        storeID: StoreID, deviceSecret: borrowing SecretBytes, protector: KeybagDocument.ProtectorRecord
    ) throws(KeychainFailure) -> KeybagDocument {
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        var entries: [KeybagDocument.ClassKeyEntry] = []
        for accessibility in deviceBoundClasses {
            let key = try SharedClassKey(random: ClassKeyID(accessibility, generation: 1))
            entries.append(try key.entry(.deviceKey, under: deviceKey, storeID: storeID))
        }
        let content = KeybagDocument.Content(
            generation: 1, protector: protector, wrappedIndexKey: try wrapFreshKey(under: deviceKey),
            wrappedRowTagKey: try wrapFreshKey(under: deviceKey), classKeys: entries
        )
        let authenticationKey = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: deviceSecret, storeID: storeID))
        return KeybagDocument(storeID: storeID, content: content, authenticatedBy: authenticationKey)
    }

    /// The classes of a keybag without a passcode, in the order of their codes.
    private static let deviceBoundClasses =
        ItemAccessibility.allCases
        .filter { $0 != .whenPasscodeSetThisDeviceOnly }
        .sorted { $0.code < $1.code }

    private static func wrapFreshKey(under deviceKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        let key = try SecretBytes(randomByteCount: KeyWrapping.keyByteCount)
        return try KeyWrapping.wrap(SymmetricKey(key), under: deviceKey)
    }

    static func unwrap(_ wrapped: [UInt8], under deviceKey: borrowing SecretBytes) throws(KeychainFailure) -> SecretBytes {
        guard let key = KeyWrapping.unwrap(wrapped, under: deviceKey) else { throw KeybagDocument.malformed() }
        return try SecretBytes(copying: key)
    }

    /// Loads a slot's keys; nil while it is locked.
    func load(
        _ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: any LockEpochReading
    ) throws(KeychainFailure) -> HeldKeys? {
        try loaders?[slot]?.load(for: purpose, lockEpoch: lockEpoch)
    }
}

/// The state of the passcode and of the lock.
extension OpenKeybag {
    package var identity: KeybagIdentity { document.identity }

    package var isPasscodeSet: Bool { document.isPasscodeSet }

    /// Nil while no passcode is set.
    package var passcodeCost: PasscodeCost? { document.content.passcode?.cost }

    /// The newest generation of the class keys that a passcode protects or would protect.
    package var currentPasscodeGeneration: UInt32 {
        document.classKeys.filter { $0.id.accessibility.holderSlot != nil }.map(\.id.generation).max() ?? 0
    }

    /// Whether there are class keys that only older rows use.
    package var holdsOlderGenerations: Bool {
        document.classKeys.contains { $0.id.generation != document.newestGeneration(of: $0.id.accessibility) }
    }

    /// The state of the lock, as the holder reports it at a lock epoch.
    ///
    /// Does not extend an unlock.
    ///
    /// Throws `.interactionNotAllowed` if the holder fails.
    package func lockState(at lockEpoch: LockEpoch) throws(KeychainFailure) -> LockState {
        guard isPasscodeSet else { return .unlocked }
        if try load(.unlocked, for: .inspection, lockEpoch: lockEpoch) != nil { return .unlocked }
        return try load(.firstUnlock, for: .inspection, lockEpoch: lockEpoch) == nil ? .neverUnlocked : .locked
    }

    /// When the current unlock ends by itself; nil while locked or without a passcode.
    ///
    /// Asks the holder, and does not extend the unlock. Throws the errors of `lockState`.
    package func autoLock(at lockEpoch: LockEpoch) throws(KeychainFailure) -> AutoLock? {
        try load(.unlocked, for: .inspection, lockEpoch: lockEpoch)?.autoLock
    }
}

extension OpenKeybag: KeyProvider {
    package var keybagGeneration: UInt64 { document.generation }

    /// The copy in use, in the form in which a store has it.
    package var usedCopy: StoredKeybag { StoredKeybag(generation: document.generation, copies: [document.encoded]) }

    package func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32 {
        guard let generation = document.newestGeneration(of: accessibility) else {
            throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet)
        }
        return generation
    }

    package func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider {
        isPasscodeSet ? CallScopedKeys(of: self, for: purpose) : self
    }

    package func availability(
        of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading
    ) -> KeyAvailability {
        availability(of: ClassKeyID(accessibility, generation: generation)) { slot throws(KeychainFailure) in
            try load(slot, for: .use, lockEpoch: lockEpoch)
        }
    }

    package func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try withClassKey(
            ClassKeyID(accessibility, generation: generation),
            loading: { slot throws(KeychainFailure) in try load(slot, for: .use, lockEpoch: lockEpoch) }, body)
    }

    /// Returns the availability of a class key, with held keys from `load`.
    func availability(
        of id: ClassKeyID, loading load: (KeyHolderSlot) throws(KeychainFailure) -> HeldKeys?
    ) -> KeyAvailability {
        if deviceBoundKeys[id] != nil { return .available }
        guard let slot = holderSlot(of: id) else { return .missing }
        do throws(KeychainFailure) {
            return try load(slot) == nil ? .locked : .available
        } catch {
            return .locked
        }
    }

    /// Calls `body` with a class key, with held keys from `load`.
    func withClassKey<Result>(
        _ id: ClassKeyID, loading load: (KeyHolderSlot) throws(KeychainFailure) -> HeldKeys?,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let key = deviceBoundKeys[id] { return try body(key.classKey) }
        guard let slot = holderSlot(of: id) else { throw KeybagDocument.noSuchKey(id) }
        guard let keys = try load(slot) else {
            let time = slot == .firstUnlock ? "after the first unlock" : "when unlocked"
            throw KeychainFailure(
                .interactionNotAllowed, "the keychain is locked for items that are accessible \(time)", cause: .locked)
        }
        return try keys.withClassKey(id, body)
    }

    /// The slot of a held key; nil if this keybag has no such key.
    private func holderSlot(of id: ClassKeyID) -> KeyHolderSlot? {
        heldIDs.contains(id) ? id.accessibility.holderSlot : nil
    }
}
