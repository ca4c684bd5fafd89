// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainSystem

/// Resealing rows under the current class keys, and dropping the older ones.
extension LocalKeychain {
    /// Reseals all rows under the current class keys.
    ///
    /// Returns the keys of the keybag that is then in the store; nil if a lock interrupted the work. The next unlock continues.
    func rewrap(
        _ opened: OpenKeychain, _ keys: UnlockedKeys, _ autoLock: AutoLock, lockEpoch: LockEpoch, _ deviceSecret: borrowing SecretBytes
    ) throws(KeychainFailure) -> UnlockedKeys? {
        guard opened.keybag.holdsOlderGenerations else { return keys }
        let keychain = opened.keychain.with(keys: keys)
        guard try rewrapRows(of: keychain, opened.keybag.currentPasscodeGeneration, lockEpoch) else { return nil }
        let inUse = try opened.store.read { reading throws(KeychainFailure) in try reading.classKeysInUse() }
        let change = try opened.keybag.droppingGenerations(notIn: inUse, of: keys, deviceSecret: deviceSecret)
        guard let change, let remaining = change.keys else { return keys }
        try replaceKeybag(of: opened, with: change, autoLock, lockEpoch: lockEpoch) { writing throws(KeychainFailure) in
            // After a lock, another process may have unlocked the keybag that is stored, and must not lose it.
            guard try writing.lockEpoch() == lockEpoch else { return true }
            // Checked again within the transaction: a key that is still needed must never be dropped.
            for id in try writing.classKeysInUse() where !inUse.contains(id) {
                guard try keys.currentGeneration(for: id.accessibility) == id.generation else { return true }
            }
            return false
        }
        return remaining
    }

    /// Returns false if a lock interrupted the work.
    private func rewrapRows(
        of keychain: SealedKeychain, _ currentGeneration: UInt32, _ lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> Bool {
        let time = SystemContinuousTime()
        var number: Int64 = 0
        while true {
            let batch = try keychain.rewrapBatch(after: number, currentGeneration: currentGeneration, lockEpoch: lockEpoch, time: time)
            switch batch.end {
            case .finished: return true
            case .locked: return false
            case .continues(let after): number = after
            }
            let batchLength = time.nowNanoseconds() - batch.startNanoseconds
            MonotonicClock.sleep(nanoseconds: RewrappingPause.length(afterNanoseconds: batchLength))
        }
    }
}

/// The pause between two batches, in which other writers get the store's lock.
///
/// Writers poll for that lock instead of queueing. Without a pause, rewrapping would nearly always win.
package enum RewrappingPause {
    private static let shortest: UInt64 = 1_000_000
    private static let longest: UInt64 = 50_000_000

    /// The pause after a batch, in nanoseconds: about as long as the batch held the lock.
    package static func length(afterNanoseconds batchLength: UInt64) -> UInt64 {
        min(max(batchLength, shortest), longest)
    }
}
