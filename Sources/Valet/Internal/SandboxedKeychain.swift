// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// The keychain as one valet sees it: keys and values, in one sandbox.
///
/// It holds no lock and no state: each operation is one call of the keychain, which is atomic, except writing, which is
/// a short sequence of such calls that never leaves a key without a value.
struct SandboxedKeychain: Sendable {
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

    func object(forKey key: String) throws(KeychainError) -> Data {
        guard !key.isEmpty else { throw .emptyKey }
        let (status, data) = SecItem.copyData(matching: value.forAccount(key))
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        // An item without a value, which only other programs write, holds nothing for this key.
        guard let data else { throw .itemNotFound }
        return data
    }

    func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        guard !key.isEmpty else { throw .emptyKey }
        switch SecItem.look(for: items.forAccount(key)) {
        case errSecSuccess: return true
        case errSecItemNotFound: return false
        case let status: throw KeychainError(status: status)
        }
    }

    func allKeys() throws(KeychainError) -> Set<String> {
        let query = items.with([
            kSecMatchLimit as String: kSecMatchLimitAll as String,
            kSecReturnAttributes as String: true,
        ])
        let (status, found) = SecItem.copyAllAttributes(matching: query.entries)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        guard let found else { throw .couldNotAccessKeychain }
        var keys = Set<String>(minimumCapacity: found.count)
        for attributes in found {
            guard let key = attributes[kSecAttrAccount as String] as? String, key != Canary.key else { continue }
            keys.insert(key)
        }
        return keys
    }

    /// Stores a value under a key, in place of the one that may be there.
    ///
    /// At no moment is there none.
    func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        guard !key.isEmpty else { throw .emptyKey }
        guard !object.isEmpty else { throw .emptyValue }
        let item = items.forAccount(key)
        var newItem = item
        newItem[kSecValueData as String] = object
        let change: [String: Any] = [kSecValueData as String: object]
        // One round is enough unless somebody else adds or removes the same item between two calls.
        for _ in 0..<8 {
            switch SecItem.update(item, to: change) {
            case errSecSuccess: return
            // A damaged item cannot be updated, but one can be added over it; the keychain puts the damaged one aside.
            case errSecItemNotFound, errSecDecode: break
            case let status: throw KeychainError(statusOfWriting: status)
            }
            switch SecItem.add(newItem) {
            case errSecSuccess: return
            case errSecDuplicateItem: continue
            case let status: throw KeychainError(statusOfWriting: status)
            }
        }
        // An explicitly named valet of another accessibility holds the item: it is there, and not visible here.
        throw .couldNotAccessKeychain
    }

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
