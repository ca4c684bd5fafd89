// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainServices
import Valet

// What a valet cannot say or do, asked of Keychain Services with the valet's own query.

extension SelectedValet {
    /// Every item of the valet.
    ///
    /// Secrets are opened one at a time, only to be measured.
    func items(of valet: ListableValet) throws -> [ListedItem] {
        let found = try valet.withItemQuery(Self.attributes(matching:))
        let keys = try valet.allKeys()
        return found.compactMap { attributes in
            guard let key = attributes[kSecAttrAccount as String] as? String, keys.contains(key) else { return nil }
            return ListedItem(
                key: key, accessibility: accessibility,
                created: attributes[kSecAttrCreationDate as String] as? Date,
                modified: attributes[kSecAttrModificationDate as String] as? Date,
                byteCount: try? valet.object(forKey: key).count
            )
        }
    }

    /// Stores a secret only if there is none under the key: whether there is one is decided by the write itself.
    func add(_ secret: Data, forKey key: String) throws {
        guard !secret.isEmpty else { throw KeychainError.emptyValue }
        let status = SecItemAdd(try valet.newItem(forKey: key, value: secret) as CFDictionary, nil)
        guard status == errSecSuccess else { throw Self.failure(status) }
    }

    private static func attributes(matching query: [String: Any]) throws -> [[String: Any]] {
        var query = query
        query[kSecMatchLimit as String] = kSecMatchLimitAll as String
        query[kSecReturnAttributes as String] = true
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let found = result as? [[String: Any]] else { throw Self.failure(status) }
        return found
    }

    private static func failure(_ status: OSStatus) -> KeychainFailure {
        KeychainFailure(KeychainStatus(rawValue: status), SecCopyErrorMessageString(status, nil) ?? "status \(status)")
    }
}
