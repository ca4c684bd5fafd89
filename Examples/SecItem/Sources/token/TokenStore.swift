// SPDX-License-Identifier: Apache-2.0
import Foundation
// On Apple platforms this imports Security. On Linux it is the keychain.
import KeychainServices

/// The token of each account, as a generic password.
struct TokenStore {
    let service = "com.example.token"

    private func query(_ account: String) -> [String: Any] {
        [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
        ]
    }

    func save(_ token: Data, account: String) throws {
        let value: [String: Any] = [kSecValueData as String: token]
        var status = SecItemUpdate(query(account) as CFDictionary, value as CFDictionary)
        if status == errSecItemNotFound {
            let item = query(account).merging(value) { _, new in new }
                .merging([kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlock]) { _, new in new }
            status = SecItemAdd(item as CFDictionary, nil)
        }
        guard status == errSecSuccess else { throw StatusError(status: status) }
    }

    /// Returns nil only if it is certain that no token is stored.
    func token(account: String) throws -> Data? {
        var query = query(account)
        query[kSecReturnData as String] = true
        query[kSecMatchLimit as String] = kSecMatchLimitOne
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess, let token = result as? Data else { throw StatusError(status: status) }
        return token
    }

    func remove(account: String) throws {
        let status = SecItemDelete(query(account) as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else { throw StatusError(status: status) }
    }
}

struct StatusError: LocalizedError {
    let status: OSStatus

    var errorDescription: String? {
        SecCopyErrorMessageString(status, nil).map { $0 as String } ?? "status \(status)"
    }
}
