// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// The keychain as one valet sees it: keys and values, in one sandbox.
///
/// It holds no lock and no state: each operation is one call of the keychain, which is atomic, except writing, which is
/// a short sequence of such calls that never leaves a key without a value.
struct NamespaceKeychain: Sendable {
    let sandbox: Sandbox
    /// Every item of the sandbox.
    let items: ItemQuery
    private let value: ItemQuery

    init(sandbox: Sandbox) {
        self.sandbox = sandbox
        items = sandbox.items
        value = items.with([
            kSecMatchLimit as String: kSecMatchLimitOne as String,
            kSecReturnData as String: true,
        ])
    }

    /// Whether an item can be written and read: the canary is added if it is not there yet.
    func isAccessible() -> Bool {
        if canReadCanary() { return true }
        var attributes = items.forAccount(Canary.key)
        attributes[kSecValueData as String] = Canary.value
        // Whatever this answers: only that the canary can be read afterwards shows that all is well.
        _ = SecItem.add(attributes)
        return canReadCanary()
    }

    private func canReadCanary() -> Bool {
        SecItem.copyData(matching: value.forAccount(Canary.key)) == (errSecSuccess, Canary.value)
    }

    func object(forKey key: String, _ asking: PromptOptions = .unspecified) throws(KeychainError) -> Data {
        guard !key.isEmpty else { throw .emptyKey }
        let (status, data) = SecItem.copyData(matching: value.forAccount(key, asking))
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        // An item without a value, which only other programs write, holds nothing for this key.
        guard let data else { throw .itemNotFound }
        return data
    }

    /// The text under a key; bytes that are no text are nothing for whoever asks for text.
    func string(forKey key: String, _ asking: PromptOptions = .unspecified) throws(KeychainError) -> String {
        guard let string = String(exactUTF8: try object(forKey: key, asking)) else { throw .itemNotFound }
        return string
    }

    /// Nobody is asked.
    func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        guard !key.isEmpty else { throw .emptyKey }
        switch SecItem.look(for: items.forAccount(key, withoutPrompt)) {
        case errSecSuccess: return true
        // An item that somebody has to release, or whose class is locked: only one that is there answers so.
        case errSecInteractionNotAllowed where requiresAuthentication: return true
        case errSecItemNotFound: return false
        case let status: throw KeychainError(status: status)
        }
    }

    func allKeys(_ asking: PromptOptions = .unspecified) throws(KeychainError) -> Set<String> {
        Set(try keyList(asking))
    }

    /// Each key by itself, in no order: those that a `Set` takes for equal, because they are canonically equivalent, have values of their own.
    func keyList(_ asking: PromptOptions = .unspecified) throws(KeychainError) -> [String] {
        let (status, found) = PlatformRules.accounts(matching: items.with(asking.entries).entries)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        guard let found else { throw .couldNotAccessKeychain }
        return found.filter { $0 != Canary.key }
    }

    /// Stores a value under a key, in place of the one that may be there.
    ///
    /// At no moment is there none, but for what `PlatformRules.overwritesByRemoving` says. Nobody is asked.
    func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        guard !key.isEmpty else { throw .emptyKey }
        guard !object.isEmpty else { throw .emptyValue }
        let item = items.forAccount(key, withoutPrompt)
        var change = try newProtection()
        change[kSecValueData as String] = object
        let newItem = try self.newItem(forKey: key, value: object)
        // One round is enough unless somebody else adds or removes the same item between two calls.
        for _ in 0..<8 {
            var isLockedOrAsks = false
            switch SecItem.update(item, to: change) {
            case errSecSuccess: return
            // A damaged item cannot be updated, but one can be added over it; the keychain puts the damaged one aside.
            case errSecItemNotFound, errSecDecode: break
            case errSecInteractionNotAllowed where requiresAuthentication && PlatformRules.overwritesByRemoving: isLockedOrAsks = true
            case let status: throw KeychainError(statusOfWriting: status)
            }
            switch SecItem.add(newItem) {
            case errSecSuccess: return
            // Adding it came as far as to find the other one, so the class is not locked, and the other one only asks.
            case errSecDuplicateItem where isLockedOrAsks: try removeObject(forKey: key)
            case errSecDuplicateItem: continue
            case let status: throw KeychainError(statusOfWriting: status)
            }
        }
        // An explicitly named valet of another accessibility holds the item: it is there, and not visible here.
        throw .couldNotAccessKeychain
    }

    /// All that an item is made of when it is added.
    func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        var item = items.forAccount(key)
        item.merge(try newProtection()) { _, new in new }
        item[kSecValueData as String] = value
        return item
    }

    /// The access control; nothing where the accessibility, which `items` has, is all.
    private func newProtection() throws(KeychainError) -> [String: Any] {
        guard let accessControl = sandbox.accessControl else { return [:] }
        // Without it the item would be there for everybody.
        guard let object = SecItem.accessControl(accessControl.flags) else { throw .couldNotAccessKeychain }
        return [kSecAttrAccessControl as String: object]
    }

    private var requiresAuthentication: Bool { sandbox.accessControl != nil }

    private var withoutPrompt: PromptOptions { requiresAuthentication ? .never : .unspecified }

    func removeObject(forKey key: String) throws(KeychainError) {
        guard !key.isEmpty else { throw .emptyKey }
        try remove(items.forAccount(key))
    }

    func removeAllObjects() throws(KeychainError) {
        try remove(items.entries)
    }

    private func remove(_ query: [String: Any]) throws(KeychainError) {
        let status = SecItem.delete(query)
        guard status == errSecSuccess || status == errSecItemNotFound else { throw KeychainError(status: status) }
    }
}

/// The item that shows whether the keychain can be used.
///
/// It is never shown, and never migrated.
enum Canary {
    static let key = "VAL_KeychainCanaryUsername"
    static let value = Data("VAL_KeychainCanaryPassword".utf8)
}

extension String {
    /// The text that `data` is in UTF-8, byte for byte; nil if it is none.
    init?(exactUTF8 data: Data) {
        guard let text = String(data: data, encoding: .utf8) else { return nil }
        // Foundation drops a byte order mark, and then a value would not come back as it was stored.
        self = text.utf8.count == data.count ? text : String(decoding: data, as: UTF8.self)
    }
}
