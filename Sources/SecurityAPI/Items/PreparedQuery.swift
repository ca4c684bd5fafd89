// SPDX-License-Identifier: Apache-2.0
package import Foundation
internal import KeychainCore
internal import KeychainEngine

/// A query that is parsed once and used for many calls.
///
/// Each call behaves as the SecItem function with the same entries, but a dictionary is neither created nor parsed: that takes a fifth of the
/// instructions of reading a value.
package struct PreparedQuery: Sendable {
    private var parsed: Result<ParsedItemDictionary, KeychainFailure>

    /// Parses a query.
    ///
    /// If it is not valid, each call returns the status.
    package init(_ dictionary: [String: Any]) {
        // Parsing uses locks of the runtime, which another thread may have held at the fork.
        guard !ForkDetection.isForkedChild else {
            parsed = .failure(ForkDetection.failure)
            return
        }
        parsed = Result { () throws(KeychainFailure) in try ParsedItemDictionary(dictionary) }
    }

    /// Returns the query for the items of one account among those of this query.
    package func forAccount(_ account: String) -> PreparedQuery {
        guard case .success(var dictionary) = parsed else { return self }
        dictionary.attributes[.account] = .string(account)
        var query = self
        query.parsed = .success(dictionary)
        return query
    }

    private func dictionary(adding options: [String: Any]) throws(KeychainFailure) -> ParsedItemDictionary {
        let dictionary = try parsed.get()
        return options.isEmpty ? dictionary : try dictionary.adding(options)
    }
}

/// The calls. `options` are the entries of the call's dictionary that control prompts.
extension PreparedQuery {
    /// Returns the status of a search that returns nothing.
    package func search(_ options: [String: Any]) -> OSStatus {
        SecItemCall.run { () throws(KeychainFailure) in
            let dictionary = try dictionary(adding: options)
            _ = try DefaultKeychain.current().copyMatching(try MatchRequest(dictionary))
        }
    }

    /// Returns the secret of the first item.
    ///
    /// Success with nil: the item has no secret.
    package func copySecret(_ options: [String: Any]) -> (OSStatus, Data?) {
        var secret: Data?
        let status = SecItemCall.run { () throws(KeychainFailure) in
            var dictionary = try dictionary(adding: options)
            dictionary.returns = .data
            secret = try DefaultKeychain.current().copyMatching(try MatchRequest(dictionary)).first?.secret
        }
        return (status, secret)
    }

    /// Returns the accounts of all items; accounts that are not strings are left out.
    package func copyAccounts(_ options: [String: Any]) -> (OSStatus, [String]?) {
        var accounts: [String] = []
        let status = SecItemCall.run { () throws(KeychainFailure) in
            let dictionary = try dictionary(adding: options)
            var request = try MatchRequest(dictionary)
            request.limit = nil
            request.attributes = .only(.account)
            let items = try DefaultKeychain.current().copyMatching(request)
            accounts.reserveCapacity(items.count)
            for item in items {
                if case .string(let account) = item.attributes[.account] ?? PrimaryKey.defaultValue(of: .account) {
                    accounts.append(account)
                }
            }
        }
        return (status, accounts)
    }

    /// Adds an item with the attributes of the query.
    package func add(_ secret: Data, accessControl: SecAccessControl?) -> OSStatus {
        SecItemCall.run { () throws(KeychainFailure) in
            var dictionary = try parsed.get()
            dictionary.secret = secret
            dictionary.accessControl = accessControl
            try ProtectionRules.check(dictionary.accessibility, accessControl)
            _ = try DefaultKeychain.current().add(try AddRequest(dictionary))
        }
    }

    /// Replaces the secret of all items, and their access control if one is given.
    package func update(_ secret: Data, accessControl: SecAccessControl?, _ options: [String: Any]) -> OSStatus {
        SecItemCall.run { () throws(KeychainFailure) in
            let dictionary = try dictionary(adding: options)
            let changes = ParsedUpdateDictionary(secret: secret, accessControl: accessControl, of: dictionary.itemClass)
            try DefaultKeychain.current().update(try UpdateRequest(dictionary, changes: changes))
        }
    }

    /// Deletes all items.
    package func delete() -> OSStatus {
        SecItemCall.run { () throws(KeychainFailure) in
            let request = try DeleteRequest(try parsed.get())
            try DefaultKeychain.current().delete(request)
        }
    }
}
