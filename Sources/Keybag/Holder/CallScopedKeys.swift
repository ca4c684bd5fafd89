// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// The keys of a keybag for one call.
///
/// It asks the holder at most once for each slot.
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

    func currentGeneration(for accessibility: Accessibility) throws(KeychainFailure) -> UInt32 {
        try keybag.currentGeneration(for: accessibility)
    }

    func availability(of accessibility: Accessibility, generation: UInt32) -> KeyAvailability {
        keybag.availability(of: ClassKeyID(accessibility, generation: generation), loading: load)
    }

    func withClassKey<Result>(
        for accessibility: Accessibility, generation: UInt32,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try keybag.withClassKey(ClassKeyID(accessibility, generation: generation), loading: load, body)
    }

    func scopedToCall() -> any KeyProvider { self }

    private func load(_ slot: KeyHolderSlot) throws(KeychainFailure) -> HeldKeys? {
        let answer = answers.withLock { answers in
            if let answer = answers[slot] { return answer }
            let answer = ask(slot)
            answers[slot] = answer
            return answer
        }
        switch answer {
        case .held(let keys): return keys
        case .locked: return nil
        case .failed(let failure): throw failure
        }
    }

    private func ask(_ slot: KeyHolderSlot) -> Answer {
        do throws(KeychainFailure) {
            guard let keys = try keybag.loadForUse(slot) else { return .locked }
            return .held(keys)
        } catch {
            return .failed(error)
        }
    }
}
