// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension UpdateRequest {
    /// The change that the two dictionaries of `SecItemUpdate` describe.
    init(_ query: ItemDictionary, changes: UpdateDictionary) throws(KeychainFailure) {
        guard query.returns.isEmpty else { throw KeychainFailure(.parameter, "an update delivers nothing: no kSecReturn key may be true") }
        try query.checkChangesStoredItems()
        self.init(
            query: try ItemQuery(query), changes: changes.attributes, secret: changes.secret,
            accessControl: changes.accessibility == nil ? changes.accessControl?.accessControl : nil, accessibility: changes.accessibility,
            leavesTombstone: query.leavesTombstone, authentication: query.authentication)
    }
}

extension ItemDictionary {
    /// The rules that updates and deletions have in common.
    func checkChangesStoredItems() throws(KeychainFailure) {
        guard !hasMatchKeys else { throw KeychainFailure(.parameter, "a kSecMatch key is for searches only") }
        guard !skipsItemsThatAsk else { throw KeychainFailure(.parameter, "kSecUseAuthenticationUISkip is for searches only") }
        if case .legacy? = reference, !attributes.isEmpty {
            throw KeychainFailure(.parameter, "a persistent reference of the older form takes no attributes")
        }
    }
}
