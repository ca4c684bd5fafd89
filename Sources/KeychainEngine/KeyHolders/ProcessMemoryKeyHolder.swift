// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// A key holder in the memory of this process: an unlock lasts as long as the process and is invisible to other processes.
///
/// It is used where the kernel refuses its keyring, and in tests. Held keys belong to the store: all holders of a store in this process
/// share them. Each load compares the lock epoch of the store. A thread does so too, so that idle processes also drop their keys.
package struct ProcessMemoryKeyHolder: KeyHolder {
    package var kind: KeyHolderKind { .processMemory }

    private let storeID: StoreID
    private let keybag: KeybagIdentity
    private let epochSource: LockEpochSource
    private let keys: ProcessMemoryKeys

    /// If `epochSource` fails for five seconds, the held keys are removed.
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

    private func place(_ slot: KeyHolderSlot) -> ProcessMemoryKeys.Place {
        ProcessMemoryKeys.Place(slot: slot, keybag: keybag)
    }

    package func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? {
        try CurrentProcess.requireNotForked()
        return try keys.load(place(slot), of: storeID, for: purpose, epochSource: epochSource)
    }

    package func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        try CurrentProcess.requireNotForked()
        return try keys.hold(
            secret, in: place(slot), of: storeID, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, epochSource: epochSource)
    }

    package func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try CurrentProcess.requireNotForked()
        keys.remove(slot, of: storeID)
    }

    package func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try CurrentProcess.requireNotForked()
        keys.remove(slot, of: storeID, before: keybag.generation)
    }

    package func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        guard (try? CurrentProcess.requireNotForked()) != nil else { return }
        keys.remove(place(slot), of: storeID, ticket: ticket)
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
    private let state = Mutex(State())

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
        _ place: Place, of storeID: StoreID, for purpose: KeyHolderPurpose, epochSource: @escaping LockEpochSource
    ) throws(KeychainFailure) -> HeldSecret? {
        for _ in 0..<Self.attemptLimit {
            guard let ticket = state.withLock({ $0.key(place, of: storeID, at: time.nowNanoseconds())?.ticket }) else { return nil }
            // Outside the lock, because reading the store takes time. Secrets that survive locks need no epoch.
            let epoch = place.slot.survivesLocks ? nil : try epochSource()
            let now = time.nowNanoseconds()
            let result = try state.withLock { state throws(KeychainFailure) -> Loaded in
                guard let key = state.key(place, of: storeID, at: now) else { return .nothing }
                // Replaced since, possibly at a later epoch than the one that was read.
                guard key.ticket == ticket else { return .replaced }
                guard epoch.map({ key.lockEpoch.isValid(for: place.slot, at: $0) }) ?? true else {
                    state.remove(place, of: storeID)
                    return .nothing
                }
                // The bytes are copied within the closure.
                let copy = try unsafe key.box.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
                if purpose == .use, !place.slot.survivesLocks { state.recordUse(of: place, of: storeID, at: now, epochSource: epochSource) }
                return .secret(HeldSecret(secret: copy, ticket: ticket, timeoutSeconds: key.timeoutSeconds))
            }
            switch consume result {
            case .secret(let secret): return secret
            case .nothing: return nil
            case .replaced: continue
            }
        }
        throw KeychainFailure(.notAvailable, "the keys in this process's memory change faster than they can be read")
    }

    /// How often a load is repeated if another thread replaces the key while the lock epoch is read.
    private static let attemptLimit = 8

    func hold(
        _ secret: borrowing SecretBytes, in place: Place, of storeID: StoreID, timeoutSeconds: UInt32?, lockEpoch: LockEpoch,
        epochSource: @escaping LockEpochSource
    ) throws(KeychainFailure) -> UInt64 {
        // The bytes are copied within the closure.
        let copy = try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        let box = SecretBox(copy)
        let now = time.nowNanoseconds()
        return try state.withLock { state throws(KeychainFailure) in
            if isWatched, !place.slot.survivesLocks, !state.isWatcherRunning {
                // Without the thread, the keys of an idle process would outlast a lock.
                guard ExpiryWatcher.start(watching: self) else {
                    throw KeychainFailure(.notAvailable, "the system cannot create the thread that removes expired keys")
                }
                state.isWatcherRunning = true
            }
            return state.hold(
                box, in: place, of: storeID, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, at: now, epochSource: epochSource)
        }
    }

    /// Removes the secret with that ticket.
    func remove(_ place: Place, of storeID: StoreID, ticket: UInt64) {
        state.withLock { $0.remove(place, of: storeID, ticket: ticket) }
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
        let inventories = state.withLock { state in
            state.removeExpired(at: now)
            let inventories = state.inventories
            if inventories.isEmpty { state.isWatcherRunning = false }
            return inventories
        }
        for inventory in inventories {
            let epoch = try? inventory.epochSource()
            let now = time.nowNanoseconds()
            state.withLock { $0.apply(epoch, to: inventory, at: now) }
        }
        return !inventories.isEmpty
    }

    private enum Loaded: ~Copyable {
        case secret(HeldSecret)
        case nothing
        case replaced
    }
}
