// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension ProcessMemoryKeys {
    /// The held keys.
    ///
    /// Used under the lock only; no reference to a secret leaves it.
    struct State {
        /// How long the lock epoch of a store may be unreadable before its keys are removed, as if the store had been locked.
        static let unreadableEpochLimitNanoseconds: UInt64 = 5_000_000_000

        var isWatcherRunning = false
        private var stores: [StoreID: HeldStore] = [:]
        private var lastTicket: UInt64 = 0

        /// The secrets to compare with the lock epoch of each store.
        ///
        /// Secrets that survive locks are not included.
        var storeTickets: [StoreTickets] {
            stores.compactMap { id, store in
                let keys = store.keys.filter { !$0.key.slot.survivesLocks }
                return keys.isEmpty ? nil : StoreTickets(storeID: id, epochSource: store.epochSource, tickets: keys.mapValues(\.ticket))
            }
        }

        /// Returns the key with that ID; removes it if it has expired.
        mutating func key(_ keyID: HeldKeyID, of storeID: StoreID, at now: UInt64) -> HeldKey? {
            guard let key = stores[storeID]?.keys[keyID] else { return nil }
            guard !key.isExpired(at: now) else {
                remove(keyID, of: storeID)
                return nil
            }
            return key
        }

        func isHolding(_ slot: KeyHolderSlot, of storeID: StoreID) -> Bool {
            stores[storeID]?.keys.keys.contains { $0.slot == slot } ?? false
        }

        mutating func hold(
            _ box: SecretBox, as keyID: HeldKeyID, of storeID: StoreID, timeoutSeconds: UInt32?, lockEpoch: LockEpoch,
            at now: UInt64, epochSource: @escaping LockEpochSource
        ) -> UInt64 {
            lastTicket += 1
            let key = HeldKey(box: box, ticket: lastTicket, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, usedAt: now)
            var store = stores[storeID] ?? HeldStore(epochSource: epochSource)
            store.keys[keyID] = key
            store.recordEpochSource(by: epochSource)
            stores[storeID] = store
            return key.ticket
        }

        mutating func recordUse(of keyID: HeldKeyID, of storeID: StoreID, at now: UInt64, epochSource: @escaping LockEpochSource) {
            stores[storeID]?.keys[keyID]?.usedAt = now
            stores[storeID]?.recordEpochSource(by: epochSource)
        }

        /// Removes the secret with that ID; with a ticket, only if the secret has it.
        mutating func remove(_ keyID: HeldKeyID, of storeID: StoreID, ticket: UInt64? = nil) {
            if let ticket, stores[storeID]?.keys[keyID]?.ticket != ticket { return }
            stores[storeID]?.keys[keyID] = nil
            if stores[storeID]?.keys.isEmpty == true { stores[storeID] = nil }
        }

        /// Removes the secrets in a slot for all generations of the keybag, or for those before `keybagGeneration`.
        mutating func remove(_ slot: KeyHolderSlot, of storeID: StoreID, before keybagGeneration: UInt64?) {
            let keyIDs = stores[storeID]?.keys.keys.filter { keyID in
                keyID.slot == slot && keybagGeneration.map { keyID.keybag.generation < $0 } ?? true
            }
            for keyID in keyIDs ?? [] { remove(keyID, of: storeID) }
        }

        mutating func removeExpired(at now: UInt64) {
            for (id, store) in stores {
                for (keyID, key) in store.keys where key.isExpired(at: now) { remove(keyID, of: id) }
            }
        }

        /// Removes the secrets that a lock has made invalid.
        ///
        /// `epoch` is nil if it could not be read.
        ///
        /// Only secrets in `earlier` are removed: later ones may belong to a later epoch.
        mutating func apply(_ epoch: LockEpoch?, to earlier: StoreTickets, at now: UInt64) {
            let id = earlier.storeID
            guard let store = stores[id] else { return }
            if let epoch {
                stores[id]?.unreadableSince = nil
                for (keyID, ticket) in earlier.tickets where store.keys[keyID]?.lockEpoch.isValid(for: keyID.slot, at: epoch) == false {
                    remove(keyID, of: id, ticket: ticket)
                }
            } else if let since = store.unreadableSince {
                guard ProcessMemoryKeys.elapsed(since: since, at: now) >= Self.unreadableEpochLimitNanoseconds else { return }
                for (keyID, ticket) in earlier.tickets { remove(keyID, of: id, ticket: ticket) }
            } else {
                stores[id]?.unreadableSince = now
            }
        }
    }

    /// Returns 0 if `now` is before `start`: a thread may read the clock, wait for the lock, and then find a key that was used since.
    private static func elapsed(since start: UInt64, at now: UInt64) -> UInt64 {
        now > start ? now - start : 0
    }

    /// The identity of a secret among those of one store.
    struct HeldKeyID: Hashable, Sendable {
        let slot: KeyHolderSlot
        let keybag: KeybagIdentity
    }

    /// The secrets that were held for a store before its lock epoch was read.
    struct StoreTickets: Sendable {
        let storeID: StoreID
        let epochSource: LockEpochSource
        let tickets: [HeldKeyID: UInt64]
    }

    struct HeldKey: Sendable {
        let box: SecretBox
        let ticket: UInt64
        let timeoutSeconds: UInt32?
        let lockEpoch: LockEpoch
        var usedAt: UInt64

        func isExpired(at now: UInt64) -> Bool {
            guard let timeoutSeconds else { return false }
            return ProcessMemoryKeys.elapsed(since: usedAt, at: now) >= UInt64(timeoutSeconds) * 1_000_000_000
        }
    }

    /// A reference to a secret, which a dictionary can contain.
    ///
    /// The secret is wiped with the last reference.
    final class SecretBox: Sendable {
        let secret: SecretBytes

        init(_ secret: consuming SecretBytes) {
            self.secret = secret
        }
    }

    private struct HeldStore: Sendable {
        private(set) var epochSource: LockEpochSource
        var unreadableSince: UInt64?
        var keys: [HeldKeyID: HeldKey] = [:]

        init(epochSource: @escaping LockEpochSource) {
            self.epochSource = epochSource
        }

        /// Reads the lock epoch from this store from now on.
        ///
        /// The file of the previous one may have been deleted.
        mutating func recordEpochSource(by source: @escaping LockEpochSource) {
            epochSource = source
            unreadableSince = nil
        }
    }
}
