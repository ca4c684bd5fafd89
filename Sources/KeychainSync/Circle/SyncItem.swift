// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// What tells an item from others, without its secret.
public struct SyncItem: Hashable, Sendable, CustomStringConvertible {
    /// `kSecAttrService` or `kSecAttrServer`.
    public let service: String?
    /// `kSecAttrAccount`.
    public let account: String?
    /// `kSecAttrLabel`.
    public let label: String?
    /// `kSecAttrAccessGroup`.
    public let accessGroup: String?
    /// `kSecAttrAccessible`.
    package let accessibility: ItemAccessibility

    /// The service and the account.
    public var description: String { [service, account].compactMap(\.self).joined(separator: ", ") }

    /// Orders items by access group, service, and account.
    func isOrdered(before other: SyncItem) -> Bool {
        (accessGroup ?? "", service ?? "", account ?? "") < (other.accessGroup ?? "", other.service ?? "", other.account ?? "")
    }

    /// Creates the description of an opened item; nil if its attributes are not those of an item.
    init?(_ content: SyncContent) {
        guard let attributes = ItemAttributes(encoded: content.attributes) else { return nil }
        func text(_ attribute: Attribute) -> String? { if case .string(let text)? = attributes[attribute] { text } else { nil } }
        service = text(.service) ?? text(.server)
        account = text(.account)
        label = text(.label)
        accessGroup = text(.accessGroup)
        accessibility = content.accessibility
    }
}

extension [SyncItem] {
    /// Sorts by access group, service, and account.
    func sorted() -> [SyncItem] { sorted { $0.isOrdered(before: $1) } }
}
#endif
