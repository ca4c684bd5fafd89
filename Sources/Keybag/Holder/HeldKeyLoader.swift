// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore
internal import Synchronization

/// Fetches one slot's class keys from the holder and uses nothing that is not exactly this keybag's.
final class HeldKeyLoader: Sendable {
    private let holder: any KeyHolder
    private let slot: KeyHolderSlot
    private let payload: HolderPayload
    private let ids: [ClassKeyID]
    /// Of the payload that was last found valid, so that the next call needs one hash and not one for each key.
    private let validDigest = Mutex<SHA256.Digest?>(nil)

    init(_ holder: any KeyHolder, slot: KeyHolderSlot, of document: KeybagDocument) {
        self.holder = holder
        self.slot = slot
        payload = HolderPayload(of: document, slot: slot)
        ids = payload.ids
    }

    /// The slot's keys; nil while it is locked.
    ///
    /// What is held there and is not this keybag's is discarded. Throws `.interactionNotAllowed` when the holder cannot be
    /// asked.
    func load(for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldKeys? {
        guard let held = try heldSecret(for: purpose) else { return nil }
        // The hash reads the bytes within the closure.
        let digest = unsafe held.secret.withBytes { bytes in
            var hash = SHA256()
            unsafe hash.update(bufferPointer: bytes)
            return hash.finalizeWiping()
        }
        if validDigest.withLock({ $0 == digest }) { return HeldKeys(held, ids: ids) }
        guard try payload.isValid(held.secret) else {
            holder.discard(slot, ticket: held.ticket)
            return nil
        }
        validDigest.withLock { $0 = digest }
        return HeldKeys(held, ids: ids)
    }

    /// A failing holder says nothing about the store, so whatever its failure is, it must not look like damage.
    private func heldSecret(for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? {
        do throws(KeychainFailure) {
            return try holder.load(slot, for: purpose)
        } catch {
            throw KeychainFailure(
                .interactionNotAllowed, "the keys of the unlocked keychain cannot be had: \(error.reason)",
                requiresReopening: error.requiresReopening)
        }
    }
}

/// A reader for each slot of class keys.
struct HeldKeyLoaders: Sendable {
    private let unlocked: HeldKeyLoader
    private let firstUnlock: HeldKeyLoader

    init(_ holder: any KeyHolder, of document: KeybagDocument) {
        unlocked = HeldKeyLoader(holder, slot: .unlocked, of: document)
        firstUnlock = HeldKeyLoader(holder, slot: .firstUnlock, of: document)
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

/// What a holder gave for one slot, found valid: lends its keys, and is let go of at the end of the call.
final class HeldKeys: Sendable {
    private let held: HeldSecret
    private let ids: [ClassKeyID]

    var autoLock: AutoLock { held.timeoutSeconds.map(AutoLock.after) ?? .never }

    init(_ held: consuming HeldSecret, ids: [ClassKeyID]) {
        self.held = held
        self.ids = ids
    }

    func withClassKey<Result>(
        _ id: ClassKeyID, _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard let index = ids.firstIndex(of: id) else { throw KeychainFailure(.internal, "a class key is not in its slot") }
        let secret = try HolderPayload.key(at: index, in: held.secret)
        return try body(ClassKey(accessibility: id.accessibility, generation: id.generation, secret: secret))
    }
}
