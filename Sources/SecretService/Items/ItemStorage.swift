// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Where the items of a collection are.
///
/// A method that needs an item throws `.itemNotFound` if there is none, and one that needs a secret `.interactionNotAllowed` while the keychain is
/// locked.
protocol ItemStorage: Sendable {
    func descriptions() throws(KeychainFailure) -> [ItemDescription]
    func description(of number: UInt64) throws(KeychainFailure) -> (ItemDescription, ItemDates)
    func secret(of number: UInt64) throws(KeychainFailure) -> ItemSecret
    /// Throws `.duplicateItem` if the number is taken.
    func add(_ item: ItemDescription, _ secret: ItemSecret) throws(KeychainFailure)
    func set(_ item: ItemDescription) throws(KeychainFailure)
    func set(_ secret: ItemSecret, of item: ItemDescription) throws(KeychainFailure)
    func remove(_ number: UInt64) throws(KeychainFailure)
    func removeAll() throws(KeychainFailure)
}

/// Items that end with the process.
final class MemoryItems: ItemStorage {
    private struct Item {
        var description: ItemDescription
        var secret: ItemSecret
        var dates: ItemDates
    }

    private let items = Mutex<[UInt64: Item]>([:])

    private static let notFound = KeychainFailure(.itemNotFound, "no such item")

    private static var now: UInt64 { UInt64(clamping: Int64(SystemWallClock().now() + KeychainItems.referenceDateSeconds)) }

    private func change(_ number: UInt64, _ body: (inout Item) -> Void) throws(KeychainFailure) {
        let isFound = items.withLock { items in
            guard var item = items[number] else { return false }
            body(&item)
            item.dates.modified = Self.now
            items[number] = item
            return true
        }
        guard isFound else { throw Self.notFound }
    }

    private func item(_ number: UInt64) throws(KeychainFailure) -> Item {
        guard let item = items.withLock({ $0[number] }) else { throw Self.notFound }
        return item
    }

    func descriptions() -> [ItemDescription] { items.withLock { $0.values.map(\.description) } }

    func description(of number: UInt64) throws(KeychainFailure) -> (ItemDescription, ItemDates) {
        let item = try item(number)
        return (item.description, item.dates)
    }

    func secret(of number: UInt64) throws(KeychainFailure) -> ItemSecret { try item(number).secret }

    func add(_ item: ItemDescription, _ secret: ItemSecret) throws(KeychainFailure) {
        let isNew = items.withLock { items in
            guard items[item.number] == nil else { return false }
            items[item.number] = Item(description: item, secret: secret, dates: ItemDates(created: Self.now, modified: Self.now))
            return true
        }
        guard isNew else { throw KeychainFailure(.duplicateItem, "the number is taken") }
    }

    func set(_ item: ItemDescription) throws(KeychainFailure) { try change(item.number) { $0.description = item } }

    func set(_ secret: ItemSecret, of item: ItemDescription) throws(KeychainFailure) { try change(item.number) { $0.secret = secret } }

    func remove(_ number: UInt64) throws(KeychainFailure) {
        guard items.withLock({ $0.removeValue(forKey: number) }) != nil else { throw Self.notFound }
    }

    func removeAll() { items.withLock { $0 = [:] } }
}
#endif
