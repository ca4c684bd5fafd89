// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// The keys and values in one namespace of the keychain.
///
/// It has no lock and no state. Each operation is one atomic call of the keychain, except writing: a short sequence of such calls that
/// never leaves a key without a value.
struct NamespaceKeychain: Sendable {
    let namespace: KeychainNamespace
    /// Every item of the namespace.
    let items: QueryTemplate
    /// The same query, for the calls that programs make often.
    private let prepared: PreparedQuery

    init(namespace: KeychainNamespace) {
        self.namespace = namespace
        items = namespace.items
        prepared = PreparedQuery(items.entries)
    }

    /// Returns whether items can be written and read.
    ///
    /// Adds the canary if it does not exist yet.
    func isAccessible() -> Bool {
        if canReadCanary() { return true }
        let status = prepared.forAccount(Canary.key).add(Canary.value, accessControl: nil)
        // The canary of an explicitly named valet can be that of another accessibility. Adding found it, so the class of this one is not locked.
        if status == errSecDuplicateItem, (try? containsObject(forKey: Canary.key)) == false { return true }
        // Otherwise the status is ignored: reading the canary is the test.
        return canReadCanary()
    }

    private func canReadCanary() -> Bool {
        prepared.forAccount(Canary.key).copySecret([:]) == (errSecSuccess, Canary.value)
    }

    func object(forKey key: String, _ promptOptions: PromptOptions = .unspecified) throws(KeychainError) -> Data {
        guard !key.isEmpty else { throw .emptyKey }
        let (status, data) = prepared.forAccount(key).copySecret(promptOptions.entries)
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        // Only other programs store items without a value.
        guard let data else { throw .itemNotFound }
        return data
    }

    /// Returns the text under a key.
    ///
    /// A value that is not text is reported as not found.
    func string(forKey key: String, _ promptOptions: PromptOptions = .unspecified) throws(KeychainError) -> String {
        guard let string = String(exactUTF8: try object(forKey: key, promptOptions)) else { throw .itemNotFound }
        return string
    }

    /// Returns whether there is a value under a key, without prompting the user.
    func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        guard !key.isEmpty else { throw .emptyKey }
        switch prepared.forAccount(key).search(withoutPrompt.entries) {
        case errSecSuccess: return true
        // The item requires authentication or its class is locked. Either way it exists.
        case errSecInteractionNotAllowed where requiresAuthentication: return true
        case errSecItemNotFound: return false
        case let status: throw KeychainError(status: status)
        }
    }

    func allKeys(_ promptOptions: PromptOptions = .unspecified) throws(KeychainError) -> Set<String> {
        Set(try keyList(promptOptions).keys)
    }

    /// Returns all keys.
    ///
    /// With `isComplete`, an item that cannot be read is an error. Otherwise it is left out if others can be read.
    func keyList(_ promptOptions: PromptOptions = .unspecified, isComplete: Bool = false) throws(KeychainError) -> KeyList {
        let options = isComplete ? PlatformRules.failIfUnreadable.merging(promptOptions.entries) { _, new in new } : promptOptions.entries
        let (status, found) = prepared.copyAccounts(options)
        if status == errSecItemNotFound { return KeyList() }
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        guard let found else { throw .couldNotAccessKeychain }
        let keys = found.compactMap(\.self)
        return KeyList(keys: keys.filter { $0 != Canary.key }, unnamedCount: found.count - keys.count)
    }

    /// Returns all keys with their values, in no particular order.
    func allObjects() throws(KeychainError) -> [(key: String, value: Data)] {
        let query = items.entries.merging(PlatformRules.failIfUnreadable) { _, new in new }
            .merging([
                kSecMatchLimit as String: kSecMatchLimitAll as String, kSecReturnAttributes as String: true, kSecReturnData as String: true,
            ]) { _, new in new }
        let (status, found) = SecItemClient.copyAllAttributes(matching: query)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        guard let found else { throw .couldNotAccessKeychain }
        return found.compactMap { item in
            guard let key = ItemKey.text(ofAccount: item[kSecAttrAccount as String]), key != Canary.key,
                let value = item[kSecValueData as String] as? Data
            else { return nil }
            return (key, value)
        }
    }

    /// Stores a value under a key, without prompting the user.
    ///
    /// Replaces an existing value atomically, except as described at `PlatformRules.overwritesByRemoving`.
    func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        guard !key.isEmpty else { throw .emptyKey }
        guard !object.isEmpty else { throw .emptyValue }
        let item = prepared.forAccount(key)
        let accessControl = try newAccessControl()
        let options = withoutPrompt.entries
        // One round is enough unless another thread or process adds or removes the same item between two calls.
        for _ in 0..<Self.roundLimit {
            var isLockedOrPrompts = false
            switch item.update(object, accessControl: accessControl, options) {
            case errSecSuccess: return
            // A damaged item cannot be updated, but adding an item replaces it; the keychain moves the damaged one to quarantine.
            case errSecItemNotFound, errSecDecode: break
            case errSecInteractionNotAllowed where requiresAuthentication && PlatformRules.overwritesByRemoving: isLockedOrPrompts = true
            case let status: throw KeychainError(statusOfWriting: status)
            }
            switch item.add(object, accessControl: accessControl) {
            case errSecSuccess: return
            // Adding found the existing item, so the class is not locked: the update failed because it would have prompted.
            case errSecDuplicateItem where isLockedOrPrompts: try removeObject(forKey: key)
            case errSecDuplicateItem: try requireOwnItem(forKey: key)
            case let status: throw KeychainError(statusOfWriting: status)
            }
        }
        throw .couldNotAccessKeychain
    }

    /// Stores a value under a key that has none, without prompting the user; returns false if there is one.
    func addObject(_ object: Data, forKey key: String) throws(KeychainError) -> Bool {
        guard !key.isEmpty else { throw .emptyKey }
        guard !object.isEmpty else { throw .emptyValue }
        // Adding alone would replace a damaged item.
        guard try !containsObject(forKey: key) else { return false }
        switch prepared.forAccount(key).add(object, accessControl: try newAccessControl()) {
        case errSecSuccess: return true
        // For an explicitly named valet it can be the item of one with another accessibility.
        case errSecDuplicateItem: return false
        case let status: throw KeychainError(statusOfWriting: status)
        }
    }

    /// Passes the value under a key, or nil, to `change`, and stores, replaces, or removes it accordingly.
    ///
    /// `change` runs again if another thread or process has changed the value meanwhile.
    func modifyObject(
        forKey key: String, _ promptOptions: PromptOptions, _ change: (inout Data?) -> Void
    ) throws(KeychainError) {
        guard !key.isEmpty else { throw .emptyKey }
        for _ in 0..<Self.roundLimit {
            let item = try storedItem(forKey: key, promptOptions)
            var object = item?.value
            change(&object)
            guard object != item?.value else { return }
            if let object, object.isEmpty { throw .emptyValue }
            let status =
                switch (item, object) {
                case (let item?, let object?): item.replaceValueIfUnchanged(with: object)
                case (let item?, nil): item.deleteIfUnchanged()
                case (nil, let object?): prepared.forAccount(key).add(object, accessControl: try newAccessControl())
                case (nil, nil): errSecSuccess
                }
            switch status {
            case errSecSuccess: return
            case errSecItemNotFound: break
            case errSecDuplicateItem: try requireOwnItem(forKey: key)
            default: throw KeychainError(statusOfWriting: status)
            }
        }
        throw .couldNotAccessKeychain
    }

    /// Reads the item of a key; nil if there is none.
    private func storedItem(forKey key: String, _ promptOptions: PromptOptions) throws(KeychainError) -> StoredItem? {
        var query = items.forAccount(key, promptOptions)
        query[kSecReturnData as String] = true
        query[kSecReturnAttributes as String] = true
        let (status, found) = SecItemClient.copyDataAndAttributes(matching: query)
        switch status {
        case errSecSuccess: break
        case errSecItemNotFound: return nil
        default: throw KeychainError(status: status)
        }
        guard let found else { throw .couldNotAccessKeychain }
        let accessOptions = items.keychainSelector.merging(promptOptions.entries) { _, new in new }
        return StoredItem(attributes: found.attributes, value: found.data, accessOptions: accessOptions)
    }

    /// Throws if the item that a new one would duplicate belongs to an explicitly named valet of another accessibility.
    ///
    /// Such an item has the same primary key, but this valet does not find it. If there is no item, or if it belongs to this valet, another
    /// thread or process has added or removed it meanwhile, and the caller tries again.
    private func requireOwnItem(forKey key: String) throws(KeychainError) {
        // Valets with access control search without accessibility, so they find every item with the key.
        guard !requiresAuthentication else { return }
        var query = items.forAccount(key)
        query[kSecAttrAccessible as String] = nil
        query[kSecReturnAttributes as String] = true
        switch SecItemClient.copyAttributes(matching: query) {
        case (errSecSuccess, let attributes?):
            let accessibility = attributes[kSecAttrAccessible as String] as? String
            guard accessibility == namespace.accessibilityAttribute else {
                LastCall.noteOtherAccessibility()
                throw .couldNotAccessKeychain
            }
        case (errSecItemNotFound, _): return
        case (errSecSuccess, nil): throw .couldNotAccessKeychain
        case (let status, _): throw KeychainError(statusOfWriting: status)
        }
    }

    /// The number of rounds after which writing gives up.
    ///
    /// Each round after the first needs two changes of the same item by others. Only a keychain that contradicts itself reaches the limit.
    private static let roundLimit = 1_000

    /// Returns the attributes and the value to add an item with.
    func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        var item = items.forAccount(key)
        if let accessControl = try newAccessControl() { item[kSecAttrAccessControl as String] = accessControl }
        item[kSecValueData as String] = value
        return item
    }

    /// Returns the access control of a new item.
    ///
    /// Without one, `items` contains the accessibility.
    private func newAccessControl() throws(KeychainError) -> SecAccessControl? {
        guard let accessControl = namespace.accessControl else { return nil }
        // Without it the item would not require authentication.
        guard let object = SecItemClient.accessControl(accessControl.flags) else { throw .couldNotAccessKeychain }
        return object
    }

    private var requiresAuthentication: Bool { namespace.accessControl != nil }

    private var withoutPrompt: PromptOptions { requiresAuthentication ? .never : .unspecified }

    func removeObject(forKey key: String) throws(KeychainError) {
        guard !key.isEmpty else { throw .emptyKey }
        try remove(prepared.forAccount(key))
    }

    func removeAllObjects() throws(KeychainError) {
        try remove(prepared)
    }

    private func remove(_ query: PreparedQuery) throws(KeychainError) {
        let status = query.delete()
        guard status == errSecSuccess || status == errSecItemNotFound else { throw KeychainError(status: status) }
    }
}

/// The keys of a valet, in no particular order.
package struct KeyList {
    /// Canonically equivalent keys, which a `Set` treats as equal, have separate values.
    package var keys: [String] = []
    /// The number of items whose account is not text, so that no key finds them.
    ///
    /// Only other programs store such items.
    package var unnamedCount = 0
}

/// The key under which a valet finds an item.
package enum ItemKey {
    /// Returns the account as text; nil if no text has its bytes.
    ///
    /// A search compares bytes, so an account that another library has stored as data is found by the text with the same bytes.
    package static func text(ofAccount account: Any?) -> String? {
        if let text = account as? String { return text }
        return (account as? Data).flatMap { String(exactUTF8: $0) }
    }
}

/// The item that a valet writes and reads to find out whether the keychain can be used.
///
/// It is never listed and never migrated.
package enum Canary {
    package static let key = "VAL_KeychainCanaryUsername"
    static let value = Data("VAL_KeychainCanaryPassword".utf8)
}

extension String {
    /// Creates the text whose UTF-8 bytes are exactly `data`, or nil if there is none.
    init?(exactUTF8 data: Data) {
        guard let text = String(data: data, encoding: .utf8) else { return nil }
        // Foundation drops a byte order mark, which would change the value.
        self = text.utf8.count == data.count ? text : String(decoding: data, as: UTF8.self)
    }
}
