// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// The keys of a keybag for one call.
///
/// It asks the holder at most once for each slot, under the lock epoch of the session that first needs the slot.
///
/// It caches the first answer, even a failure, so that all rows of one call are treated alike.
final class CallScopedKeys: KeyProvider {
    private enum Answer {
        case held(HeldKeys)
        case locked
        case failed(KeychainFailure)
    }

    private let keybag: OpenKeybag
    private let answers = Mutex(Answers())

    /// Two properties rather than a dictionary: one is created for every call.
    private struct Answers {
        private var unlocked: Answer?
        private var firstUnlock: Answer?

        subscript(slot: KeyHolderSlot) -> Answer? {
            get { slot == .unlocked ? unlocked : firstUnlock }
            set { if slot == .unlocked { unlocked = newValue } else { firstUnlock = newValue } }
        }
    }

    init(of keybag: OpenKeybag) {
        self.keybag = keybag
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

    func scopedToCall() -> any KeyProvider { self }

    private func load(_ slot: KeyHolderSlot, _ lockEpoch: any LockEpochReading) throws(KeychainFailure) -> HeldKeys? {
        let answer = answers.withLock { answers in
            if let answer = answers[slot] { return answer }
            let answer = ask(slot, lockEpoch)
            answers[slot] = answer
            return answer
        }
        switch answer {
        case .held(let keys): return keys
        case .locked: return nil
        case .failed(let failure): throw failure
        }
    }

    private func ask(_ slot: KeyHolderSlot, _ lockEpoch: any LockEpochReading) -> Answer {
        do throws(KeychainFailure) {
            guard let keys = try keybag.load(slot, for: .use, lockEpoch: lockEpoch) else { return .locked }
            return .held(keys)
        } catch {
            return .failed(error)
        }
    }
}
