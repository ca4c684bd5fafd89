// SPDX-License-Identifier: Apache-2.0
#if canImport(Darwin) || KEYCHAIN_APPLE_BRANCH
internal import Foundation
internal import KeychainServices

/// A query for many calls.
///
/// Apple's functions take a dictionary in each call. On Linux the type of this name is part of KeychainServices.
///
/// `@unchecked Sendable`: the compiler cannot verify a dictionary of `Any`. This one is never changed.
struct PreparedQuery: @unchecked Sendable {
    private let entries: [String: Any]

    init(_ entries: [String: Any]) {
        self.entries = entries
    }

    func forAccount(_ account: String) -> PreparedQuery {
        PreparedQuery(adding([kSecAttrAccount as String: account]))
    }

    private func adding(_ more: [String: Any]) -> [String: Any] {
        entries.merging(more) { _, new in new }
    }
}

extension PreparedQuery {
    func search(_ options: [String: Any]) -> OSStatus {
        SecItemClient.status(ofSearch: adding(options))
    }

    func copySecret(_ options: [String: Any]) -> (OSStatus, Data?) {
        var query = adding(options)
        query[kSecMatchLimit as String] = kSecMatchLimitOne as String
        query[kSecReturnData as String] = true
        return SecItemClient.copyData(matching: query)
    }

    func copyAccounts(_ options: [String: Any]) -> (OSStatus, [String?]?) {
        var query = adding(options)
        query[kSecMatchLimit as String] = kSecMatchLimitAll as String
        query[kSecReturnAttributes as String] = true
        let (status, items) = SecItemClient.copyAllAttributes(matching: query)
        return (status, items?.map { ItemKey.text(ofAccount: $0[kSecAttrAccount as String]) })
    }

    func add(_ secret: Data, accessControl: SecAccessControl?) -> OSStatus {
        SecItemClient.add(adding(Self.values(secret, accessControl)))
    }

    func update(_ secret: Data, accessControl: SecAccessControl?, _ options: [String: Any]) -> OSStatus {
        SecItemClient.update(adding(options), to: Self.values(secret, accessControl))
    }

    func delete() -> OSStatus {
        SecItemClient.delete(entries)
    }

    private static func values(_ secret: Data, _ accessControl: SecAccessControl?) -> [String: Any] {
        var values: [String: Any] = [kSecValueData as String: secret]
        if let accessControl { values[kSecAttrAccessControl as String] = accessControl }
        return values
    }
}
#endif
