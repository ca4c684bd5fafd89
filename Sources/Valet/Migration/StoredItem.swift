// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// One item of the keychain, identified by its attributes as they were when it was read.
struct StoredItem {
    private let attributes: [String: Any]
    /// The value; nil if the item has none.
    let value: Data?
    /// The query entries that select a keychain of macOS and control prompts.
    private let accessOptions: [String: Any]

    init(attributes: [String: Any], value: Data?, accessOptions: [String: Any]) {
        self.attributes = attributes
        self.value = value
        self.accessOptions = accessOptions
    }

    /// The account: text, or another type if another program stored the item.
    var account: AnyHashable? {
        switch attributes[kSecAttrAccount as String] {
        case let text as String: AnyHashable(text)
        case let data as Data: AnyHashable(data)
        case let other: other as? AnyHashable
        }
    }

    /// Finds the item even if it was changed since it was read.
    ///
    /// Contains the primary key and not the persistent reference: the file-based keychain of macOS cannot delete by the latter.
    private var primaryKeyQuery: [String: Any] {
        let primaryKey = [kSecAttrAccount, kSecAttrService, kSecAttrAccessGroup, kSecAttrSynchronizable].map { $0 as String }
        var query = accessOptions
        query[kSecClass as String] = kSecClassGenericPassword as String
        for key in primaryKey { query[key] = attributes[key] }
        return query
    }

    private var isSynchronizable: Bool {
        (attributes[kSecAttrSynchronizable as String] as? NSNumber)?.boolValue == true
    }

    /// Finds the item unless it was changed since it was read: each write sets a later modification date.
    private var unchangedItemQuery: [String: Any] {
        var query = primaryKeyQuery
        query[kSecAttrModificationDate as String] = attributes[kSecAttrModificationDate as String]
        return query
    }

    /// Removes the item unless it was changed since it was read.
    ///
    /// - Returns: True if the item no longer exists, even if another program removed it.
    func removeIfUnchanged() -> Bool {
        switch deleteIfUnchanged() {
        case errSecSuccess: true
        case errSecItemNotFound: SecItemClient.status(ofSearch: primaryKeyQuery) == errSecItemNotFound
        default: false
        }
    }

    /// Deletes the item; returns `errSecItemNotFound` if it was changed or removed since it was read.
    func deleteIfUnchanged() -> OSStatus {
        SecItemClient.delete(unchangedItemQuery)
    }

    /// Replaces the value of the item; returns `errSecItemNotFound` if the item was changed or removed since it was read.
    func replaceValueIfUnchanged(with value: Data) -> OSStatus {
        SecItemClient.update(unchangedItemQuery, to: [kSecValueData as String: value])
    }

    /// Changes the accessibility of the item unless the item was changed since it was read.
    func changeAccessibilityIfUnchanged(to attribute: String) -> OSStatus {
        SecItemClient.update(unchangedItemQuery, to: [kSecAttrAccessible as String: attribute])
    }

    /// Undoes `changeAccessibilityIfUnchanged`.
    ///
    /// Changes only the accessibility, so it preserves a value written since then.
    func restoreAccessibility() {
        guard let original = attributes[kSecAttrAccessible as String] else { return }
        _ = SecItemClient.update(primaryKeyQuery, to: [kSecAttrAccessible as String: original])
    }

    /// Adds a removed item again.
    ///
    /// Its dates and its persistent reference are new.
    ///
    /// - Returns: True if an item with this primary key exists afterwards.
    func restore() -> Bool {
        var item = primaryKeyQuery
        for key in Self.descriptiveAttributes { item[key] = attributes[key] }
        item[kSecValueData as String] = value
        // The attributes of an item with access control contain its protection class twice; only the access control is complete. A
        // synchronizable item cannot have one.
        if !isSynchronizable, let accessControl = attributes[kSecAttrAccessControl as String] {
            item[kSecAttrAccessControl as String] = accessControl
        } else {
            item[kSecAttrAccessible as String] = attributes[kSecAttrAccessible as String]
        }
        let status = SecItemClient.add(item)
        return status == errSecSuccess || status == errSecDuplicateItem
    }

    private static var descriptiveAttributes: [String] {
        [
            kSecAttrGeneric, kSecAttrLabel, kSecAttrDescription, kSecAttrComment, kSecAttrCreator, kSecAttrType,
            kSecAttrIsInvisible, kSecAttrIsNegative,
        ].map { $0 as String }
    }

    /// Returns whether an item of `key` in `namespace` would have the same primary key as this one, so that both cannot coexist.
    func hasPrimaryKey(ofKey key: String, in namespace: KeychainNamespace) -> Bool {
        func text(_ attribute: CFString) -> ExactString? {
            (attributes[attribute as String] as? String).map(ExactString.init)
        }
        return ItemKey.text(ofAccount: attributes[kSecAttrAccount as String]).map(ExactString.init) == ExactString(key)
            && text(kSecAttrService) == namespace.service
            && isSynchronizable == namespace.isSynchronizable
            && (namespace.accessGroup == nil || text(kSecAttrAccessGroup) == namespace.accessGroup)
    }
}
