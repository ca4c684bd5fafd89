// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainStore
internal import Synchronization

/// Reads a store's count of locks for a key holder.
///
/// Through the open store as long as that is open, and then through one of its own: what is held in a process's memory outlives the
/// keychain object that unlocked it.
final class LockEpochReader: Sendable {
    private let configuration: KeychainConfiguration
    private let storeID: StoreID
    private let own = Mutex<SQLiteItemStore?>(nil)
    private let shared: SQLiteItemStore

    init(_ store: SQLiteItemStore, configuration: KeychainConfiguration) {
        shared = store
        storeID = store.storeID
        self.configuration = configuration
    }

    deinit {
        own.withLock { $0?.close() }
    }

    /// Throws what opening and reading the store throw, and `.notAvailable` when another store is in its place.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        do throws(KeychainFailure) {
            return try Self.lockEpoch(of: shared)
        } catch {
            guard error.callsForReopening else { throw error }
        }
        do throws(KeychainFailure) {
            return try Self.lockEpoch(of: try ownStore())
        } catch {
            guard error.callsForReopening else { throw error }
            closeOwn()
        }
        return try Self.lockEpoch(of: try ownStore())
    }

    private static func lockEpoch(of store: SQLiteItemStore) throws(KeychainFailure) -> LockEpoch {
        try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
    }

    private func ownStore() throws(KeychainFailure) -> SQLiteItemStore {
        if let store = own.withLock({ $0 }) { return store }
        let fresh = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        guard fresh.storeID == storeID else {
            fresh.close()
            throw KeychainFailure(.notAvailable, "another store has taken the place of the one that was unlocked")
        }
        own.withLock { $0 = fresh }
        return fresh
    }

    private func closeOwn() {
        own.withLock { store in
            store?.close()
            store = nil
        }
    }
}
