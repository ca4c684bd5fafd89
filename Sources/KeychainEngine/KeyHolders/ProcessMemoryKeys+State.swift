// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension ProcessMemoryKeys {
    /// What is held, for whoever has the lock: no reference to a secret leaves it.
    struct State {
        /// For how long a store's count of locks may be unreadable before its keys go: whoever cannot see a lock is locked.
        static let unreadableEpochLimitNanoseconds: UInt64 = 5_000_000_000

        var isWatcherRunning = false
        private var stores: [StoreID: HeldStore] = [:]
        private var lastTicket: UInt64 = 0

        /// What is to be compared with each store's count of locks; nothing of what outlasts them.
        var inventories: [Inventory] {
            stores.compactMap { id, store in
                let keys = store.keys.filter { !$0.key.slot.survivesLocks }
                return keys.isEmpty ? nil : Inventory(storeID: id, epochSource: store.epochSource, tickets: keys.mapValues(\.ticket))
            }
        }

        /// What is held there and has not come to its end.
        mutating func key(_ place: Place, of storeID: StoreID, at now: UInt64) -> HeldKey? {
            guard let key = stores[storeID]?.keys[place] else { return nil }
            guard !key.isExpired(at: now) else {
                remove(place, of: storeID)
                return nil
            }
            return key
        }

        func isHolding(_ slot: KeyHolderSlot, of storeID: StoreID) -> Bool {
            stores[storeID]?.keys.keys.contains { $0.slot == slot } ?? false
        }

        mutating func hold(
            _ box: SecretBox, in place: Place, of storeID: StoreID, timeoutSeconds: UInt32?, lockEpoch: LockEpoch,
            at now: UInt64, epochSource: @escaping LockEpochSource
        ) -> UInt64 {
            lastTicket += 1
            let key = HeldKey(box: box, ticket: lastTicket, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, usedAt: now)
            var store = stores[storeID] ?? HeldStore(epochSource: epochSource)
            store.keys[place] = key
            store.recordEpochSource(by: epochSource)
            stores[storeID] = store
            return key.ticket
        }

        mutating func recordUse(of place: Place, of storeID: StoreID, at now: UInt64, epochSource: @escaping LockEpochSource) {
            stores[storeID]?.keys[place]?.usedAt = now
            stores[storeID]?.recordEpochSource(by: epochSource)
        }

        /// Lets go of what is held there; with a ticket, of exactly that.
        mutating func remove(_ place: Place, of storeID: StoreID, ticket: UInt64? = nil) {
            if let ticket, stores[storeID]?.keys[place]?.ticket != ticket { return }
            stores[storeID]?.keys[place] = nil
            if stores[storeID]?.keys.isEmpty == true { stores[storeID] = nil }
        }

        /// Lets go of what is held in a slot for every generation of the keybag, or for those before one.
        mutating func remove(_ slot: KeyHolderSlot, of storeID: StoreID, before keybagGeneration: UInt64?) {
            let places = stores[storeID]?.keys.keys.filter { place in
                place.slot == slot && keybagGeneration.map { place.keybag.generation < $0 } ?? true
            }
            for place in places ?? [] { remove(place, of: storeID) }
        }

        mutating func removeExpired(at now: UInt64) {
            for (id, store) in stores {
                for (place, key) in store.keys where key.isExpired(at: now) { remove(place, of: id) }
            }
        }

        /// Lets go of what a lock was meant for; a nil count: it could not be read.
        ///
        /// It concerns what the inventory names: what came since was held at a later count.
        mutating func apply(_ epoch: LockEpoch?, to inventory: Inventory, at now: UInt64) {
            let id = inventory.storeID
            guard let store = stores[id] else { return }
            if let epoch {
                stores[id]?.unreadableSince = nil
                for (place, ticket) in inventory.tickets where store.keys[place]?.lockEpoch.keeps(place.slot, at: epoch) == false {
                    remove(place, of: id, ticket: ticket)
                }
            } else if let since = store.unreadableSince {
                guard ProcessMemoryKeys.elapsed(since: since, at: now) >= Self.unreadableEpochLimitNanoseconds else { return }
                for (place, ticket) in inventory.tickets { remove(place, of: id, ticket: ticket) }
            } else {
                stores[id]?.unreadableSince = now
            }
        }
    }

    /// None when `now` is the earlier one: whoever waited for the lock looked at the clock before, and meanwhile a key was used.
    private static func elapsed(since start: UInt64, at now: UInt64) -> UInt64 {
        now > start ? now - start : 0
    }

    /// Where a secret of one store is held.
    struct Place: Hashable, Sendable {
        let slot: KeyHolderSlot
        let keybag: KeybagIdentity
    }

    /// What was held for a store when its count of locks was about to be read.
    struct Inventory: Sendable {
        let storeID: StoreID
        let epochSource: LockEpochSource
        let tickets: [Place: UInt64]
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

    /// A secret that a dictionary can hold; wiped with the last reference.
    final class SecretBox: Sendable {
        let secret: SecretBytes

        init(_ secret: consuming SecretBytes) {
            self.secret = secret
        }
    }

    private struct HeldStore: Sendable {
        private(set) var epochSource: LockEpochSource
        var unreadableSince: UInt64?
        var keys: [Place: HeldKey] = [:]

        init(epochSource: @escaping LockEpochSource) {
            self.epochSource = epochSource
        }

        /// The count was just read this way: it is the way to read it from now on, since an earlier one may be closed by now.
        mutating func recordEpochSource(by source: @escaping LockEpochSource) {
            epochSource = source
            unreadableSince = nil
        }
    }
}
