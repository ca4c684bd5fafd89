// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A key holder in the memory of this process: an unlock lasts as long as the process and is invisible to other processes.
///
/// It is used where the kernel refuses its keyring, and in tests. Held keys belong to the store: all holders of a store in this process
/// share them. Each load compares the lock epoch that its call has read. A thread reads the epoch too, so that idle processes also drop
/// their keys.
package struct ProcessMemoryKeyHolder: KeyHolder {
    package var kind: KeyHolderKind { .processMemory }

    private let storeID: StoreID
    private let keybag: KeybagIdentity
    private let epochSource: LockEpochSource
    private let keys: ProcessMemoryKeys

    /// Creates a holder; if `epochSource`, which the thread reads, fails for five seconds, the held keys are removed.
    package init(
        storeID: StoreID, keybag: KeybagIdentity = KeybagIdentity(generation: 0), epochSource: @escaping LockEpochSource,
        keys: ProcessMemoryKeys = .shared
    ) {
        self.storeID = storeID
        self.keybag = keybag
        self.epochSource = epochSource
        self.keys = keys
    }

    package func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder {
        ProcessMemoryKeyHolder(storeID: storeID, keybag: identity, epochSource: epochSource, keys: keys)
    }

    private func keyID(for slot: KeyHolderSlot) -> ProcessMemoryKeys.HeldKeyID {
        ProcessMemoryKeys.HeldKeyID(slot: slot, keybag: keybag)
    }

    package func load(
        _ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> HeldSecret? {
        try ForkDetection.requireNotForked()
        return try keys.load(keyID(for: slot), of: storeID, for: purpose, lockEpoch: lockEpoch, epochSource: epochSource)
    }

    package func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        try ForkDetection.requireNotForked()
        return try keys.hold(
            secret, as: keyID(for: slot), of: storeID, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, epochSource: epochSource)
    }

    package func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        keys.remove(slot, of: storeID)
    }

    package func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        keys.remove(slot, of: storeID, before: keybag.generation)
    }

    package func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        guard ForkDetection.beginUse() else { return }
        keys.remove(keyID(for: slot), of: storeID, ticket: ticket)
    }
}

/// The unlocked keys of all stores in the memory of a process.
package final class ProcessMemoryKeys: ExpiringSecrets {
    /// The keys that the holders of this process share.
    ///
    /// A thread removes expired keys.
    package static let shared = ProcessMemoryKeys(time: SystemContinuousTime(), isWatched: true)

    private let time: any ContinuousTime
    private let isWatched: Bool
    private let state = LockedValue(State())

    /// Creates a separate set of keys.
    ///
    /// Only loads and `removeExpired` detect that keys have expired.
    package convenience init(time: any ContinuousTime) {
        self.init(time: time, isWatched: false)
    }

    init(time: any ContinuousTime, isWatched: Bool) {
        self.time = time
        self.isWatched = isWatched
    }

    func load(
        _ keyID: HeldKeyID, of storeID: StoreID, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch, epochSource: @escaping LockEpochSource
    ) throws(KeychainFailure) -> HeldSecret? {
        let now = time.nowNanoseconds()
        return try state.withLock { state throws(KeychainFailure) in
            guard let key = state.key(keyID, of: storeID, at: now) else { return nil }
            guard key.lockEpoch.isValid(for: keyID.slot, at: lockEpoch) else {
                if key.lockEpoch.isBefore(lockEpoch) { state.remove(keyID, of: storeID) }
                return nil
            }
            // The bytes are copied within the closure.
            let copy = try unsafe key.box.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
            if purpose == .use, !keyID.slot.survivesLocks { state.recordUse(of: keyID, of: storeID, at: now, epochSource: epochSource) }
            return HeldSecret(secret: copy, ticket: key.ticket, timeoutSeconds: key.timeoutSeconds, lockEpoch: key.lockEpoch)
        }
    }

    func hold(
        _ secret: borrowing SecretBytes, as keyID: HeldKeyID, of storeID: StoreID, timeoutSeconds: UInt32?, lockEpoch: LockEpoch,
        epochSource: @escaping LockEpochSource
    ) throws(KeychainFailure) -> UInt64 {
        // The bytes are copied within the closure.
        let copy = try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        let box = SecretBox(copy)
        let now = time.nowNanoseconds()
        return try state.withLock { state throws(KeychainFailure) in
            if isWatched, !keyID.slot.survivesLocks, !state.isWatcherRunning {
                // Without the thread, the keys of an idle process would outlast a lock.
                guard ExpiryWatcher.start(watching: self) else {
                    throw KeychainFailure(.notAvailable, "the system cannot create the thread that removes expired keys")
                }
                state.isWatcherRunning = true
            }
            return state.hold(
                box, as: keyID, of: storeID, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, at: now, epochSource: epochSource)
        }
    }

    /// Removes the secret with that ticket.
    func remove(_ keyID: HeldKeyID, of storeID: StoreID, ticket: UInt64) {
        state.withLock { $0.remove(keyID, of: storeID, ticket: ticket) }
    }

    /// Removes the secrets in a slot for all generations of the keybag, or for those before `keybagGeneration`.
    func remove(_ slot: KeyHolderSlot, of storeID: StoreID, before keybagGeneration: UInt64? = nil) {
        state.withLock { $0.remove(slot, of: storeID, before: keybagGeneration) }
    }

    /// Whether a secret is in memory for that slot, even if it has expired.
    package func isHolding(_ slot: KeyHolderSlot, of storeID: StoreID) -> Bool {
        state.withLock { $0.isHolding(slot, of: storeID) }
    }

    package func removeExpired() -> Bool {
        let now = time.nowNanoseconds()
        let storeTickets = state.withLock { state in
            state.removeExpired(at: now)
            let storeTickets = state.storeTickets
            if storeTickets.isEmpty { state.isWatcherRunning = false }
            return storeTickets
        }
        for earlier in storeTickets {
            let epoch = try? earlier.epochSource()
            let now = time.nowNanoseconds()
            state.withLock { $0.apply(epoch, to: earlier, at: now) }
        }
        return !storeTickets.isEmpty
    }
}
