// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainStore
internal import Synchronization

/// Reads a store's count of locks for holders that no lock reaches directly.
///
/// Has a connection of its own, made at the first reading: what is held must outlive the keychain object that unlocked it.
final class LockEpochReader: Sendable {
    private let configuration: KeychainConfiguration
    private let storeID: StoreID
    private let store = Mutex<SQLiteItemStore?>(nil)

    init(configuration: KeychainConfiguration, storeID: StoreID) {
        self.configuration = configuration
        self.storeID = storeID
    }

    deinit {
        store.withLock { $0?.close() }
    }

    /// Throws what opening and reading the store throw, and `.notAvailable` when another store is in its place.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        do throws(KeychainFailure) {
            return try current().read { reading throws(KeychainFailure) in try reading.lockEpoch() }
        } catch {
            guard error.callsForReopening else { throw error }
            close()
        }
        return try current().read { reading throws(KeychainFailure) in try reading.lockEpoch() }
    }

    private func current() throws(KeychainFailure) -> SQLiteItemStore {
        if let store = store.withLock({ $0 }) { return store }
        let fresh = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        guard fresh.storeID == storeID else {
            fresh.close()
            throw KeychainFailure(.notAvailable, "another store has taken the place of the one that was unlocked")
        }
        store.withLock { $0 = fresh }
        return fresh
    }

    private func close() {
        store.withLock { store in
            store?.close()
            store = nil
        }
    }
}
