// SPDX-License-Identifier: Apache-2.0
package import Foundation
internal import KeychainCore
internal import KeychainEngine

/// A query that is parsed once and used for many calls.
///
/// Each call behaves as the SecItem function with the same entries, but a dictionary is neither created nor parsed: that takes a fifth of the
/// instructions of reading a value.
package struct PreparedQuery: Sendable {
    private let parsed: ParsedQuery
    private var account: String?

    /// Parses a query.
    ///
    /// If it is not valid, each call returns the status.
    package init(_ dictionary: [String: Any]) {
        parsed = ParsedQuery(dictionary)
    }

    /// Returns the query for the items of one account among those of this query.
    package func forAccount(_ account: String) -> PreparedQuery {
        var query = self
        query.account = account
        return query
    }

    private func dictionary(adding options: [String: Any]) throws(KeychainFailure) -> ParsedItemDictionary {
        var dictionary = try parsed.dictionary.get()
        if let account { dictionary.attributes[.account] = .string(account) }
        return options.isEmpty ? dictionary : try dictionary.adding(options)
    }

    /// Returns the request of a search that returns nothing.
    private func searchRequest(adding options: [String: Any]) throws(KeychainFailure) -> MatchRequest {
        guard options.isEmpty else { return try MatchRequest(try dictionary(adding: options)) }
        var request = try parsed.search.get()
        if let account { request.query.attributes[.account] = .string(account) }
        return request
    }
}

/// The parsed form of a query.
///
/// A class, because calls copy a prepared query, and the dictionary has many fields.
private final class ParsedQuery: Sendable {
    let dictionary: Result<ParsedItemDictionary, KeychainFailure>
    /// The request of a search, which most calls make.
    let search: Result<MatchRequest, KeychainFailure>

    init(_ entries: [String: Any]) {
        let dictionary = Result { () throws(KeychainFailure) in
            // Parsing uses locks of the runtime, which another thread may have held at the fork.
            guard !ForkDetection.isForkedChild else { throw ForkDetection.failure }
            return try ParsedItemDictionary(entries)
        }
        self.dictionary = dictionary
        search = Result { () throws(KeychainFailure) in try MatchRequest(try dictionary.get()) }
    }
}

/// The calls. `options` are the entries of the call's dictionary that control prompts.
extension PreparedQuery {
    /// Returns the status of a search that returns nothing.
    package func search(_ options: [String: Any]) -> OSStatus {
        SecItemCall.run { () throws(KeychainFailure) in
            let request = try searchRequest(adding: options)
            _ = try DefaultKeychain.current().copyMatching(request)
        }
    }

    /// Returns the secret of the first item.
    ///
    /// Success with nil: the item has no secret.
    package func copySecret(_ options: [String: Any]) -> (OSStatus, Data?) {
        var secret: Data?
        let status = SecItemCall.run { () throws(KeychainFailure) in
            var request = try searchRequest(adding: options)
            request.includesSecrets = true
            secret = try DefaultKeychain.current().copyMatching(request).first?.secret
        }
        return (status, secret)
    }

    /// Returns the accounts of all items; nil for one that is neither a string nor the UTF-8 bytes of one.
    ///
    /// A search compares bytes, so it finds an account that is data by the string with these bytes.
    package func copyAccounts(_ options: [String: Any]) -> (OSStatus, [String?]?) {
        var accounts: [String?] = []
        let status = SecItemCall.run { () throws(KeychainFailure) in
            var request = try searchRequest(adding: options)
            request.limit = nil
            request.attributes = .only(.account)
            let items = try DefaultKeychain.current().copyMatching(request)
            accounts.reserveCapacity(items.count)
            for item in items {
                switch item.attributes[.account] ?? PrimaryKey.defaultValue(of: .account) {
                case .string(let account): accounts.append(account)
                case .data(let account): accounts.append(String(validating: account, as: UTF8.self))
                default: accounts.append(nil)
                }
            }
        }
        return (status, accounts)
    }

    /// Adds an item with the attributes of the query.
    package func add(_ secret: Data, accessControl: SecAccessControl?) -> OSStatus {
        SecItemCall.run { () throws(KeychainFailure) in
            var dictionary = try dictionary(adding: [:])
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
            let request = try DeleteRequest(try dictionary(adding: [:]))
            try DefaultKeychain.current().delete(request)
        }
    }
}
