// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// One item of the keychain, known by its attributes: exactly this item, as it was when they were read.
struct StoredItem {
    private let attributes: [String: Any]
    /// Nil: the item has none.
    let value: Data?
    /// How it is reached: in which of the keychains of macOS it is, and how somebody may be asked for it.
    private let accessOptions: [String: Any]

    init(attributes: [String: Any], value: Data?, accessOptions: [String: Any]) {
        self.attributes = attributes
        self.value = value
        self.accessOptions = accessOptions
    }

    /// The account: text, or whatever another program has put there.
    var account: AnyHashable? {
        switch attributes[kSecAttrAccount as String] {
        case let text as String: AnyHashable(text)
        case let data as Data: AnyHashable(data)
        case let other: other as? AnyHashable
        }
    }

    /// The item, whatever happened to it since.
    ///
    /// Names the primary key and not the persistent reference: the file-based keychain of macOS does not delete by the latter.
    private var itself: [String: Any] {
        let primaryKey = [kSecAttrAccount, kSecAttrService, kSecAttrAccessGroup, kSecAttrSynchronizable].map { $0 as String }
        var query = accessOptions
        query[kSecClass as String] = kSecClassGenericPassword as String
        for key in primaryKey { query[key] = attributes[key] }
        return query
    }

    private var isSynchronizable: Bool {
        (attributes[kSecAttrSynchronizable as String] as? NSNumber)?.boolValue == true
    }

    /// The item, if nobody has written to it since: each write gives it a later date.
    private var unchanged: [String: Any] {
        var query = itself
        query[kSecAttrModificationDate as String] = attributes[kSecAttrModificationDate as String]
        return query
    }

    /// Removes the item unless it was changed since it was read.
    ///
    /// - Returns: Whether it is gone; also true if somebody else removed it.
    func removeIfUnchanged() -> Bool {
        switch SecItem.delete(unchanged) {
        case errSecSuccess: true
        case errSecItemNotFound: SecItem.look(for: itself) == errSecItemNotFound
        default: false
        }
    }

    /// Changes the accessibility of the item unless the item was changed since it was read.
    func changeAccessibilityIfUnchanged(to attribute: String) -> OSStatus {
        SecItem.update(unchanged, to: [kSecAttrAccessible as String: attribute])
    }

    /// Undoes `changeAccessibilityIfUnchanged`.
    ///
    /// Only the accessibility, so a value written since then stays.
    func restoreAccessibility() {
        guard let original = attributes[kSecAttrAccessible as String] else { return }
        _ = SecItem.update(itself, to: [kSecAttrAccessible as String: original])
    }

    /// Puts a removed item back.
    ///
    /// Its dates and its persistent reference are new ones, all else is as before.
    ///
    /// - Returns: Whether there is an item in its place.
    func restore() -> Bool {
        var item = itself
        for key in Self.descriptiveAttributes { item[key] = attributes[key] }
        item[kSecValueData as String] = value
        // Attributes that were read name the protection twice where there is an access control, and only the access
        // control says all of it. A synchronizable item cannot have one.
        if !isSynchronizable, let accessControl = attributes[kSecAttrAccessControl as String] {
            item[kSecAttrAccessControl as String] = accessControl
        } else {
            item[kSecAttrAccessible as String] = attributes[kSecAttrAccessible as String]
        }
        let status = SecItem.add(item)
        return status == errSecSuccess || status == errSecDuplicateItem
    }

    private static var descriptiveAttributes: [String] {
        [
            kSecAttrGeneric, kSecAttrLabel, kSecAttrDescription, kSecAttrComment, kSecAttrCreator, kSecAttrType,
            kSecAttrIsInvisible, kSecAttrIsNegative,
        ].map { $0 as String }
    }

    /// Whether an item of `key` in `sandbox` would have the primary key of this one, so that both cannot be there.
    func hasPrimaryKey(ofKey key: String, in sandbox: Sandbox) -> Bool {
        func text(_ attribute: CFString) -> ExactString? {
            (attributes[attribute as String] as? String).map(ExactString.init)
        }
        return text(kSecAttrAccount) == ExactString(key)
            && text(kSecAttrService) == sandbox.service
            && isSynchronizable == sandbox.isSynchronizable
            && (sandbox.accessGroup == nil || text(kSecAttrAccessGroup) == sandbox.accessGroup)
    }
}
