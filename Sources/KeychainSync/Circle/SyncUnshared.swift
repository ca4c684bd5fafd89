// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// An item that this keychain shared in the circle before it left, and that the circle does not have now.
///
/// It was probably deleted on another device long ago, and the storage has no trace of it. So it is not shared again unless a person wants it.
public struct SyncUnsharedItem: Hashable, Identifiable, Sendable {
    /// Identifies the item on this device: 32 hexadecimal digits.
    public let id: String
    /// The item, without its secret; nil while the keychain is locked, or if it is damaged.
    public let item: SyncItem?
}

extension KeychainSync {
    /// Lists the items that stay on this device because the circle, which it has entered again, does not have them.
    ///
    /// An item that was changed after this keychain had left the circle is shared, and is not listed. A program that changes a listed one shares it.
    ///
    /// - Returns: The items by access group, service, and account; empty if this keychain was never in the circle before.
    /// - Throws: `.notStarted` and `.keychain`. While the keychain is locked, the items are nil.
    public static func unsharedItems() throws(SyncFailure) -> [SyncUnsharedItem] {
        let local = try LocalCircle.current()
        _ = try local.membership()
        return try local.attempt { () throws(KeychainFailure) in
            try local.keychain.synchronize { ledger, items throws(KeychainFailure) in
                var unshared: [SyncUnsharedItem] = []
                for version in try FormerVersions.unshared(in: ledger) {
                    let item = try content(of: version, items).flatMap { SyncItem($0) }
                    unshared.append(SyncUnsharedItem(id: version.name.hexadecimal, item: item))
                }
                return unshared.sorted { left, right in
                    guard let leftItem = left.item, let rightItem = right.item else { return left.item != nil && right.item == nil }
                    return leftItem.isOrdered(before: rightItem)
                }
            }
        }
    }

    /// Shares items that stay on this device.
    ///
    /// An item is left out that was changed, deleted, or received meanwhile.
    ///
    /// - Parameters:
    ///   - items: Some of ``unsharedItems()``.
    ///   - storage: The storage of the circle.
    /// - Returns: Why the items were not sent yet, as when the storage cannot be reached; nil if they were.
    /// - Throws: `.notStarted`, `.notOwner` on a reader, `.locked`, and `.keychain`.
    @discardableResult
    public static func share(_ items: [SyncUnsharedItem], on storage: any SyncStorage) async throws(SyncFailure) -> SyncFailure? {
        let local = try LocalCircle.current()
        guard try local.roster().members[local.membership().device]?.role.mayWrite == true else {
            throw SyncFailure(.notOwner, "this device is a reader of the circle, so it shares no items")
        }
        try await EngineHost(local.keychain, clock: local.clock).perform(.decide(names(of: items), shares: true))
        return await local.exchange(over: storage)
    }

    /// Deletes items that stay on this device.
    ///
    /// An item is left out that was changed or received meanwhile.
    ///
    /// - Parameter items: Some of ``unsharedItems()``.
    /// - Throws: `.notStarted`, `.locked`, and `.keychain`.
    public static func delete(_ items: [SyncUnsharedItem]) async throws(SyncFailure) {
        let local = try LocalCircle.current()
        _ = try local.membership()
        try await EngineHost(local.keychain, clock: local.clock).perform(.decide(names(of: items), shares: false))
    }

    private static func names(of items: [SyncUnsharedItem]) -> [ItemName] {
        Set(items.compactMap { Identifier128(hexadecimal: $0.id).map { ItemName($0) } }).sorted()
    }

    /// Opens the content of a version; nil while its class is locked, or if it is damaged.
    static func content(of version: LiveVersion, _ items: any SyncItemReading) throws(KeychainFailure) -> SyncContent? {
        do throws(KeychainFailure) {
            return try items.content(of: version)
        } catch {
            guard error.status == .interactionNotAllowed else { throw error }
            return nil
        }
    }
}
#endif
