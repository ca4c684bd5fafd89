// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// The keys of a keybag for one call.
///
/// It asks the holder at most once for each slot, under the lock epoch of the session that first needs the slot.
///
/// It caches the first result, even a failure, so that all rows of one call are treated alike.
final class CallScopedKeys: KeyProvider {
    private enum LoadResult {
        case held(HeldKeys)
        case locked
        case failed(KeychainFailure)
    }

    private let keybag: OpenKeybag
    private let purpose: KeyHolderPurpose
    private let results = Mutex(LoadResults())

    /// Two properties rather than a dictionary: one is created for every call.
    private struct LoadResults {
        private var unlocked: LoadResult?
        private var firstUnlock: LoadResult?

        subscript(slot: KeyHolderSlot) -> LoadResult? {
            get { slot == .unlocked ? unlocked : firstUnlock }
            set { if slot == .unlocked { unlocked = newValue } else { firstUnlock = newValue } }
        }
    }

    init(of keybag: OpenKeybag, for purpose: KeyHolderPurpose) {
        self.keybag = keybag
        self.purpose = purpose
    }

    var keybagGeneration: UInt64 { keybag.keybagGeneration }

    func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32 {
        try keybag.currentGeneration(for: accessibility)
    }

    func availability(of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading) -> KeyAvailability {
        keybag.availability(of: ClassKeyID(accessibility, generation: generation)) { slot throws(KeychainFailure) in
            try load(slot, lockEpoch)
        }
    }

    func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try keybag.withClassKey(
            ClassKeyID(accessibility, generation: generation),
            loading: { slot throws(KeychainFailure) in try load(slot, lockEpoch) }, body)
    }

    func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider { self }

    private func load(_ slot: KeyHolderSlot, _ lockEpoch: any LockEpochReading) throws(KeychainFailure) -> HeldKeys? {
        let result = results.withLock { results in
            if let result = results[slot] { return result }
            let result = loadFromHolder(slot, lockEpoch)
            results[slot] = result
            return result
        }
        switch result {
        case .held(let keys): return keys
        case .locked: return nil
        case .failed(let failure): throw failure
        }
    }

    private func loadFromHolder(_ slot: KeyHolderSlot, _ lockEpoch: any LockEpochReading) -> LoadResult {
        do throws(KeychainFailure) {
            guard let keys = try keybag.load(slot, for: purpose, lockEpoch: lockEpoch) else { return .locked }
            return .held(keys)
        } catch {
            return .failed(error)
        }
    }
}
