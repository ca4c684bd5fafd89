// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore
internal import KeychainEngine

/// A search for nothing but the accounts of the items that match.
///
/// `SecItemCopyMatching` delivers a dictionary for each item: two kilobytes, and half the time. A valet wants its keys, of which there may
/// be a hundred thousand.
package enum AccountListing {
    /// The accounts of all items that match, as `kSecAttrAccount` would deliver them; those that are no strings are left out.
    ///
    /// - Parameter query: Which items, as for `SecItemCopyMatching`. It is taken to ask for all of them, and for no results.
    /// - Returns: The status of `SecItemCopyMatching` for such a query, and the accounts, none unless it is `errSecSuccess`.
    package static func accounts(matching query: [String: Any]) -> (status: OSStatus, accounts: [String]) {
        var accounts: [String] = []
        let status = SecItemCall.run { () throws(KeychainFailure) in
            var request = try MatchRequest(try ItemDictionary(query))
            request.limit = nil
            request.includesSecrets = false
            request.attributes = .only(.account)
            let items = try DefaultKeychain.current().copyMatching(request)
            accounts.reserveCapacity(items.count)
            for item in items {
                switch item.attributes[.account] ?? PrimaryKey.defaultValue(of: .account) {
                case .string(let account): accounts.append(account)
                case .data, .number, .date: break
                }
            }
        }
        return (status, accounts)
    }
}
