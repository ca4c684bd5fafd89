// SPDX-License-Identifier: Apache-2.0
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import Synchronization

/// A store that counts a lock, as if another process had asked for it, between two of its writes.
final class LockingStore: ItemStore {
    private struct State {
        var writeCount = 0
        var rowCountAtLock: Int?
    }

    private let base: SQLiteItemStore
    private let lockAfterWrite: Int
    private let state = Mutex(State())

    /// How many rows were still under the first class keys then.
    var rowCountAtLock: Int? { state.withLock { $0.rowCountAtLock } }

    init(base: SQLiteItemStore, lockAfterWrite: Int) {
        self.base = base
        self.lockAfterWrite = lockAfterWrite
    }

    func read<Result>(_ body: (any ItemReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        try base.read(body)
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        let outcome = try base.write(ifKeybagGeneration: generation, body)
        let writeCount = state.withLock { state in
            state.writeCount += 1
            return state.writeCount
        }
        if writeCount == lockAfterWrite {
            try base.advanceLockEpoch(.whenUnlocked)
            let rowCount = try base.read { reading throws(KeychainFailure) in
                try reading.rowCount(underPasscodeKeysBelow: 2)
            }
            state.withLock { $0.rowCountAtLock = rowCount }
        }
        return outcome
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) { try base.advanceLockEpoch(extent) }
}

extension OpenedStore {
    /// The store with the keybag that it has now, over another way to it.
    func reopened(over other: LockingStore) throws(KeychainFailure) -> OpenedKeychain<LockingStore> {
        let holder = try holder(.processMemory)
        let keybag = try OpenKeybag(
            copies: try other.read { reading throws(KeychainFailure) in try reading.keybag().copies }, storeID: store.storeID,
            deviceSecret: deviceSecret, holder: holder)
        let keychain = keychain(keys: keybag, store: other)
        return OpenedKeychain(
            store: other, keybag: keybag, keychain: keychain, protector: protector, holder: holder, isKeybagCurrent: true)
    }
}
