// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// A source file as it is written for Apple platforms. It is compiled here without changes: by the product Security on Linux, and by
// .ci/apple-branch.

import Foundation
import Security
#if canImport(LocalAuthentication)
import LocalAuthentication
#endif

public struct TokenKeychain {
    public let service: String

    public init(service: String) {
        self.service = service
    }

    private func query(_ account: String) -> [String: Any] {
        [kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service, kSecAttrAccount as String: account]
    }

    public func save(_ token: String, account: String) -> OSStatus {
        let value = [kSecValueData as String: Data(token.utf8)]
        let status = SecItemUpdate(query(account) as CFDictionary, value as CFDictionary)
        guard status == errSecItemNotFound else { return status }
        return SecItemAdd(query(account).merging(value) { $1 } as CFDictionary, nil)
    }

    public func token(account: String) -> String? {
        var query = query(account)
        query[kSecReturnData as String] = kCFBooleanTrue
        query[kSecMatchLimit as String] = kSecMatchLimitOne
        #if canImport(LocalAuthentication)
        let context = LAContext()
        context.interactionNotAllowed = true
        query[kSecUseAuthenticationContext as String] = context
        #endif
        var result: CFTypeRef?
        guard SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess, let data = result as? Data else { return nil }
        return String(data: data, encoding: .utf8)
    }
}

extension TokenKeychain {
    /// Whether the code for LocalAuthentication is compiled.
    public static var usesLocalAuthentication: Bool {
        #if canImport(Security) && canImport(LocalAuthentication)
        true
        #else
        false
        #endif
    }
}
