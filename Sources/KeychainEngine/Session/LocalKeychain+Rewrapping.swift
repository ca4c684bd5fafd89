// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainSystem

/// Bringing every row under the current class keys, and letting go of the older ones.
extension KeychainAccess {
    /// Answers the keys of the keybag that is then the store's; nil when a lock, which takes these away, came before the end.
    ///
    /// The next unlock goes on.
    func rewrap(
        _ opened: Opened, _ keys: UnlockedKeys, _ autoLock: AutoLock, lockEpoch: LockEpoch, _ deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) -> UnlockedKeys? {
        guard opened.keybag.holdsOlderGenerations else { return keys }
        let keychain = opened.keychain.with(keys: keys)
        guard try rewrapRows(of: keychain, opened.keybag.currentPasscodeGeneration, lockEpoch) else { return nil }
        let inUse = try opened.store.read { reading throws(KeychainFailure) in try reading.classKeysInUse() }
        let change = try opened.keybag.droppingGenerations(notIn: inUse, of: keys, deviceSecret: deviceSecret)
        guard let change, let remaining = change.keys else { return keys }
        try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: lockEpoch) { writing throws(KeychainFailure) in
            // After a lock somebody else may have unlocked the keybag that is there, and must not lose it.
            guard try writing.lockEpoch() == lockEpoch else { return true }
            // Looked at again while nobody else writes: a key that is still needed must never go.
            for id in try writing.classKeysInUse() where !inUse.contains(id) {
                guard try keys.currentGeneration(for: id.accessibility) == id.generation else { return true }
            }
            return false
        }
        return remaining
    }

    /// False when a lock ended it.
    private func rewrapRows(
        of keychain: SealedKeychain, _ currentGeneration: UInt32, _ lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> Bool {
        var number: Int64 = 0
        while true {
            let batch = try keychain.rewrapBatch(after: number, currentGeneration: currentGeneration, lockEpoch: lockEpoch)
            switch batch.end {
            case .finished: return true
            case .locked: return false
            case .goesOn(let after): number = after
            }
            RewrappingPause.take(afterBatchFrom: batch.startNanoseconds)
        }
    }
}

/// The time between two batches in which other writers have their turn.
///
/// Writers ask for the store's lock now and then and stand in no queue: without a pause, a rewrapping would nearly always be first.
package enum RewrappingPause {
    private static let shortest: UInt64 = 1_000_000
    private static let longest: UInt64 = 50_000_000

    /// About as long as the batch held the lock, in nanoseconds.
    package static func length(afterNanoseconds batchLength: UInt64) -> UInt64 {
        min(max(batchLength, shortest), longest)
    }

    /// Sleeps, after a batch that began then and has just ended.
    static func take(afterBatchFrom startNanoseconds: UInt64) {
        let batchLength = MonotonicClock.nowNanoseconds() &- startNanoseconds
        MonotonicClock.sleep(nanoseconds: length(afterNanoseconds: batchLength))
    }
}
