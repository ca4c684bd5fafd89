// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import KeychainCore

/// Loads one slot's class keys from the holder, and verifies that they are exactly this keybag's.
final class HeldKeyLoader: Sendable {
    private let holder: any KeyHolder
    private let slot: KeyHolderSlot
    private let keybag: KeybagIdentity
    private let cipher: HolderPayloadCipher
    private let payload: HolderPayload
    private let ids: [ClassKeyID]
    /// The seal of the payload whose keys were last found valid, so that the next call does not derive a check value of each key.
    private let validSeal = LockedValue<HolderPayloadCipher.Seal?>(nil)

    init(_ holder: any KeyHolder, slot: KeyHolderSlot, of document: KeybagDocument, _ cipher: HolderPayloadCipher) {
        self.holder = holder
        self.slot = slot
        self.cipher = cipher
        keybag = document.identity
        payload = HolderPayload(of: document, slot: slot)
        ids = payload.ids
    }

    /// Loads the slot's keys; nil while it is locked.
    ///
    /// Discards keys that are not this keybag's. Throws `.interactionNotAllowed` if the holder fails or the lock epoch cannot be read.
    func load(for purpose: KeyHolderPurpose, lockEpoch: any LockEpochReading) throws(KeychainFailure) -> HeldKeys? {
        guard let held = try heldSecret(for: purpose, lockEpoch) else { return nil }
        guard let keys = try cipher.open(held.secret, in: slot, of: keybag, at: held.lockEpoch) else {
            holder.discard(slot, ticket: held.ticket)
            return nil
        }
        let timeoutSeconds = held.timeoutSeconds
        let seal = HolderPayloadCipher.Seal(of: held.secret)
        if validSeal.withLock({ $0 == seal }) { return HeldKeys(keys, ids: ids, timeoutSeconds) }
        guard try payload.isValid(keys) else {
            holder.discard(slot, ticket: held.ticket)
            return nil
        }
        validSeal.withLock { $0 = seal }
        return HeldKeys(keys, ids: ids, timeoutSeconds)
    }

    /// Loads the payload.
    ///
    /// A failure of the holder must never be reported as damage of the store.
    private func heldSecret(
        for purpose: KeyHolderPurpose, _ lockEpoch: any LockEpochReading
    ) throws(KeychainFailure) -> HeldSecret? {
        do throws(KeychainFailure) {
            return try holder.load(slot, for: purpose, lockEpoch: lockEpoch.lockEpoch())
        } catch {
            throw KeychainFailure(
                .interactionNotAllowed, "the keys of the unlocked keychain cannot be loaded: \(error.reason)", cause: error.cause,
                requiresReopening: error.requiresReopening)
        }
    }
}

/// The loaders of all slots of class keys.
struct HeldKeyLoaders: Sendable {
    private let unlocked: HeldKeyLoader
    private let firstUnlock: HeldKeyLoader

    init(_ holder: any KeyHolder, of document: KeybagDocument, _ cipher: HolderPayloadCipher) {
        unlocked = HeldKeyLoader(holder, slot: .unlocked, of: document, cipher)
        firstUnlock = HeldKeyLoader(holder, slot: .firstUnlock, of: document, cipher)
    }

    /// Nil for a slot that holds no class keys.
    subscript(slot: KeyHolderSlot) -> HeldKeyLoader? {
        switch slot {
        case .unlocked: unlocked
        case .firstUnlock: firstUnlock
        case .device: nil
        }
    }
}

/// The verified keys of one slot.
///
/// Released at the end of the call.
final class HeldKeys: Sendable {
    private let keys: SecretBytes
    private let ids: [ClassKeyID]
    private let timeoutSeconds: UInt32?

    var autoLock: AutoLock { timeoutSeconds.map(AutoLock.after) ?? .never }

    init(_ keys: consuming SecretBytes, ids: [ClassKeyID], _ timeoutSeconds: UInt32?) {
        self.keys = keys
        self.ids = ids
        self.timeoutSeconds = timeoutSeconds
    }

    func withClassKey<Result>(
        _ id: ClassKeyID, _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard let index = ids.firstIndex(of: id) else { throw KeychainFailure(.internal, "a class key is not in its slot") }
        let secret = try HolderPayload.key(at: index, in: keys)
        return try body(ClassKey(accessibility: id.accessibility, generation: id.generation, secret: secret))
    }
}
