// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
package import KeychainCore
package import KeychainEngine

/// The shortest way to an item of a keychain in a file, failures and their reasons included.
extension LocalKeychain {
    /// The keychain below `home`, seen by the program that the tests start as a child.
    package convenience init(home: String, configure: (inout KeychainConfiguration) -> Void = { _ in }) {
        var configuration = KeychainConfiguration(home: home)
        configure(&configuration)
        self.init(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
    }

    /// Nil adds it with the class that items have when none is named.
    package func addItem(_ account: String, _ secret: String, _ accessibility: Accessibility? = nil) throws(KeychainFailure) {
        try addItem(account, secret, protectedBy: accessibility.map { AccessControl($0) })
    }

    package func addItem(_ account: String, _ secret: String, protectedBy control: AccessControl?) throws(KeychainFailure) {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("test")])
        _ = try add(
            AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data(secret.utf8), accessControl: control))
    }

    /// Throws `.itemNotFound` when there is none.
    package func secret(
        of account: String, _ authentication: Authentication = Authentication(interaction: .forbidden)
    ) throws(KeychainFailure) -> String {
        let items = try copyMatching(
            MatchRequest(query: Self.query(account), includesSecrets: true, authentication: authentication))
        return String(decoding: items.first?.secret ?? Data(), as: UTF8.self)
    }

    package func updateItem(_ account: String, to secret: String) throws(KeychainFailure) {
        try update(UpdateRequest(query: Self.query(account), secret: Data(secret.utf8)))
    }

    package func deleteItem(_ account: String) throws(KeychainFailure) {
        try delete(DeleteRequest(query: Self.query(account)))
    }

    private static func query(_ account: String) -> ItemQuery {
        ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account), .service: .string("test")]))
    }
}
