// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// A collection of items, with an index that is made at the first search.
final class Collection {
    /// The last part of the path.
    let name: String
    var label: String
    var dates: ItemDates
    let storage: any ItemStorage
    /// Whether its items are in the keychain, and locked with it.
    let isPersistent: Bool
    /// Counts the changes that this process has made to the index.
    private(set) var generation = 0
    private var index: AttributeIndex?

    init(name: String, label: String, dates: ItemDates = ItemDates(), storage: any ItemStorage, isPersistent: Bool) {
        self.name = name
        self.label = label
        self.dates = dates
        self.storage = storage
        self.isPersistent = isPersistent
    }

    private func changeIndex(_ body: (inout AttributeIndex) -> Void) {
        guard var changed = index else { return }
        // No second reference, or the index would be copied.
        index = nil
        body(&changed)
        generation += 1
        index = changed.isSparse ? nil : changed
    }

    private func currentIndex() throws(KeychainFailure) -> AttributeIndex {
        if let index { return index }
        let made = AttributeIndex(try storage.descriptions())
        index = made
        return made
    }

    var hasIndex: Bool { index != nil }

    /// Replaces the index by one that was made from the items of the keychain, and returns the differences.
    func replaceIndex(with new: AttributeIndex) -> (added: [UInt64], removed: [UInt64], changed: [UInt64]) {
        defer { index = new }
        return index?.changes(to: new) ?? ([], [], [])
    }

    // MARK: Searches

    func numbers() throws(KeychainFailure) -> [UInt64] { try currentIndex().numbers }
    func count() throws(KeychainFailure) -> Int { try currentIndex().count }
    func contains(_ number: UInt64) throws(KeychainFailure) -> Bool { try currentIndex().contains(number) }
    func search(_ lookup: ItemLookup) throws(KeychainFailure) -> [UInt64] { try currentIndex().numbers(matching: lookup) }
    func owner(of number: UInt64) throws(KeychainFailure) -> ItemOwner { try currentIndex().owner(of: number) ?? .everyProgram }

    // MARK: Changes

    /// Stores an item of an owner, in place of one with exactly these attributes if `replaces` is true.
    ///
    /// That is the oldest one of the owner, or else the oldest one of every program; without an owner, the oldest one. A superset of the attributes is
    /// another item: one that was replaced would lose attributes of another program. An item of every program becomes that of the owner, because
    /// another program may have stored it to read the secret that replaces its own.
    func store(
        _ lookup: ItemLookup, label: String, _ secret: ItemSecret, replaces: Bool, owner: ItemOwner? = nil
    ) throws(KeychainFailure) -> (number: UInt64, isNew: Bool) {
        // Before the first change, and without a reference to the index, which would be copied then.
        var number = try freeNumber()
        if replaces, let number = try replaceable(lookup, owner) {
            let present = try self.owner(of: number)
            let item = ItemDescription(number: number, label: label, lookup: lookup, owner: owner ?? present)
            do throws(KeychainFailure) {
                try storage.set(secret, of: item)
                changeIndex { $0.update(item, from: item) }
                return (number, false)
            } catch {
                // Another process has removed it, which the index does not know yet.
                guard error.status == .itemNotFound else { throw error }
                changeIndex { $0.remove(number) }
            }
        }
        while true {
            let item = ItemDescription(number: number, label: label, lookup: lookup, owner: owner ?? .everyProgram)
            do throws(KeychainFailure) {
                try storage.add(item, secret)
                changeIndex { $0.append(item) }
                return (number, true)
            } catch {
                // Another process has stored an item at the same moment.
                guard error.status == .duplicateItem else { throw error }
                number += 1
            }
        }
    }

    private func replaceable(_ lookup: ItemLookup, _ owner: ItemOwner?) throws(KeychainFailure) -> UInt64? {
        let index = try currentIndex()
        guard let owner else { return index.number(withExactly: lookup) { _ in true } }
        return index.number(withExactly: lookup) { $0 == owner } ?? index.number(withExactly: lookup) { $0 == .everyProgram }
    }

    /// The time in microseconds, or the number after the largest one.
    ///
    /// So a number is not used again after its item was removed, and no counter has to be stored.
    private func freeNumber() throws(KeychainFailure) -> UInt64 {
        let microseconds = UInt64(clamping: Int64((SystemWallClock().now() + KeychainItems.referenceDateSeconds) * 1_000_000))
        return max(try currentIndex().largestNumber + 1, microseconds)
    }

    func change(_ number: UInt64, _ body: (inout ItemDescription) -> Void) throws(KeychainFailure) {
        let former = try storage.description(of: number).0
        var item = former
        body(&item)
        try storage.set(item)
        changeIndex { $0.update(item, from: former) }
    }

    func set(_ secret: ItemSecret, of number: UInt64) throws(KeychainFailure) {
        try storage.set(secret, of: try storage.description(of: number).0)
        generation += 1
    }

    func remove(_ number: UInt64) throws(KeychainFailure) {
        try storage.remove(number)
        changeIndex { $0.remove(number) }
    }

    func removeAll() throws(KeychainFailure) {
        try storage.removeAll()
        generation += 1
        index = AttributeIndex()
    }
}
#endif
