// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import FoundationEssentials
package import KeychainCore

/// What a person lets a program do: use the items of an owner.
struct ItemGrant: Hashable, Sendable {
    let program: ItemOwner
    let owner: ItemOwner
}

/// The grants in the keychain: generic passwords without a secret, whose accounts are the two names with a line feed between them.
///
/// Neither name can have a line feed.
package struct GrantStorage {
    /// The access group that only the registered program has, so that no other one can have put a grant there before.
    package static let accessGroup = "group:secret-service"
    private static let service = "access"
    private let keychain: any Keychain

    package init(_ keychain: any Keychain) {
        self.keychain = keychain
    }

    private func query(_ account: String? = nil) -> ItemQuery {
        var attributes = ItemAttributes([.service: .string(Self.service), .accessGroup: .string(Self.accessGroup)])
        if let account { attributes[.account] = .string(account) }
        return ItemQuery(itemClass: .genericPassword, attributes: attributes)
    }

    func all() throws(KeychainFailure) -> [ItemGrant] {
        try keychain.matches(MatchRequest(query: query(), limit: nil, authentication: .withoutPrompt)).compactMap { item in
            let names = item.attributes.text(.account)?.split(separator: "\n", omittingEmptySubsequences: false) ?? []
            guard names.count == 2 else { return nil }
            return ItemGrant(program: ItemOwner(String(names[0])), owner: ItemOwner(String(names[1])))
        }
    }

    private func account(_ grant: ItemGrant) -> String { "\(grant.program.text)\n\(grant.owner.text)" }

    func add(_ grant: ItemGrant) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: query(account(grant)).attributes, accessControl: AccessControl(.always),
                    authentication: .withoutPrompt))
        } catch {
            guard error.status == .duplicateItem else { throw error }
        }
    }

    /// The grants as pairs of names, sorted: the program, and whose items it may use.
    package func list() throws(KeychainFailure) -> [(program: String, owner: String)] {
        try all().map { ($0.program.text, $0.owner.text) }.sorted { ($0.program, $0.owner) < ($1.program, $1.owner) }
    }

    /// Removes all grants of a program; throws `.itemNotFound` if it has none.
    package func revoke(_ program: String) throws(KeychainFailure) {
        let present = try all().filter { $0.program == ItemOwner(program) }
        guard !present.isEmpty else { throw KeychainFailure(.itemNotFound, "the program \(program) has no grant") }
        for grant in present { try keychain.deleteIfPresent(query(account(grant))) }
    }
}
#endif
