// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Holds keys in this process's memory: an unlock lasts as long as the process, and no other process sees it.
///
/// For where the kernel's keyring is refused, and for tests. What is held belongs to the store: every holder of that store in
/// this process gives it out. Each load asks the store whether it was locked since; so does a thread, for when nobody loads.
package struct ProcessMemoryKeyHolder: KeyHolder {
    package var kind: KeyHolderKind { .processMemory }

    private let storeID: StoreID
    private let keybag: KeybagIdentity
    private let epochSource: LockEpochSource
    private let keys: ProcessMemoryKeys

    /// Where nothing can be read from `epochSource` for some seconds, nothing stays held.
    package init(
        storeID: StoreID, keybag: KeybagIdentity = KeybagIdentity(generation: 0), epochSource: @escaping LockEpochSource,
        keys: ProcessMemoryKeys = .ofThisProcess
    ) {
        self.storeID = storeID
        self.keybag = keybag
        self.epochSource = epochSource
        self.keys = keys
    }

    package func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder {
        ProcessMemoryKeyHolder(storeID: storeID, keybag: mark, epochSource: epochSource, keys: keys)
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

/// The unlocked keys in a process's memory, store by store.
package final class ProcessMemoryKeys: ExpiringSecrets {
    /// What all holders of this process share; a thread watches it.
    package static let ofThisProcess = ProcessMemoryKeys(time: SystemContinuousTime(), isWatched: true)

    private let time: any ContinuousTime
    private let isWatched: Bool
    private let state = Mutex(State())

    /// A set of keys of its own, whose deadlines are seen by loads and by `look`.
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
        while let ticket = state.withLock({ $0.key(place, of: storeID, at: time.nowNanoseconds())?.ticket }) {
            // Reading the store takes its time, so nobody waits for it. What outlasts locks is given out whatever it says.
            let epoch = place.slot.survivesLocks ? nil : try epochSource()
            let now = time.nowNanoseconds()
            let result = try state.withLock { state throws(KeychainFailure) -> Loaded in
                guard let key = state.key(place, of: storeID, at: now) else { return .nothing }
                // Held since, at a later count than the one read.
                guard key.ticket == ticket else { return .replaced }
                guard epoch.map({ key.lockEpoch.keeps(place.slot, at: $0) }) ?? true else {
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
        return nil
    }

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
                // Keys that nobody watches would outlast a lock.
                guard ExpiryWatcher.start(watching: self) else {
                    throw KeychainFailure(.notAvailable, "the system has no thread for watching over the unlocked keys")
                }
                state.isWatcherRunning = true
            }
            return state.hold(
                box, in: place, of: storeID, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, at: now, epochSource: epochSource)
        }
    }

    /// Lets go of exactly what has that ticket.
    func remove(_ place: Place, of storeID: StoreID, ticket: UInt64) {
        state.withLock { $0.remove(place, of: storeID, ticket: ticket) }
    }

    /// Lets go of what is held in a slot for every generation of the keybag, or for those before one.
    func remove(_ slot: KeyHolderSlot, of storeID: StoreID, before keybagGeneration: UInt64? = nil) {
        state.withLock { $0.remove(slot, of: storeID, before: keybagGeneration) }
    }

    /// Whether anything is in memory there, whatever may have happened to the store since.
    package func isHolding(_ slot: KeyHolderSlot, of storeID: StoreID) -> Bool {
        state.withLock { $0.isHolding(slot, of: storeID) }
    }

    /// Lets go of what has come to its end or was locked; false when nothing is held, and then the watcher is taken to end.
    package func look() -> Bool {
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
