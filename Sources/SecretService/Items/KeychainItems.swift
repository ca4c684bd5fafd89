// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import FoundationEssentials
internal import KeychainCore

/// The items of a collection in the keychain.
///
/// An item is two generic passwords with its number as the account. The first has the secret and is available while the keychain is unlocked. The
/// second has the attributes and the label and is always available, because programs search for an item first and unlock the keychain then.
/// Both are changed in one transaction, which costs one flush. keychaind has no transactions of several calls. There the item exists if the second
/// one does: that is added last and removed first, so a process that ends in between leaves no half of an item that programs see.
struct KeychainItems: ItemStorage {
    /// Seconds from 1970-01-01 to 2001-01-01.
    static let referenceDateSeconds = 978_307_200.0

    let keychain: any Keychain
    private let secretService: String
    private let descriptionService: String

    init(_ keychain: any Keychain, collection: String) {
        self.keychain = keychain
        secretService = "secrets/\(collection)"
        descriptionService = "attributes/\(collection)"
    }

    /// The same items, through a keychain whose calls are parts of a transaction.
    private init(_ part: any Keychain, of items: KeychainItems) {
        keychain = part
        secretService = items.secretService
        descriptionService = items.descriptionService
    }

    /// Runs `body` in a transaction, if the keychain has them.
    private func inTransaction(_ body: (KeychainItems) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        guard let keychain = keychain as? any TransactionalKeychain else { return try body(self) }
        var failure: KeychainFailure?
        do throws(KeychainFailure) {
            let isDone = try keychain.transaction { part in
                failure = nil
                do throws(KeychainFailure) {
                    try body(KeychainItems(part, of: self))
                    return true
                } catch {
                    failure = error
                    return false
                }
            }
            guard !isDone else { return }
        } catch {
            // Before anything was called.
            guard error.status == .unimplemented else { throw error }
            return try body(self)
        }
        throw failure ?? KeychainFailure(.internal, "the change of an item was rolled back")
    }

    private func query(_ service: String, _ number: UInt64? = nil) -> ItemQuery {
        var attributes = ItemAttributes([.service: .string(service)])
        if let number { attributes[.account] = .string("\(number)") }
        return ItemQuery(itemClass: .genericPassword, attributes: attributes)
    }

    private func add(
        _ service: String, _ number: UInt64, _ attributes: ItemAttributes, _ secret: Data?, _ accessibility: ItemAccessibility
    ) throws(KeychainFailure) {
        _ = try keychain.add(
            AddRequest(
                itemClass: .genericPassword, attributes: attributes.updated(with: query(service, number).attributes), secret: secret,
                accessControl: AccessControl(accessibility), authentication: .withoutPrompt))
    }

    private func attributes(_ item: ItemDescription) -> ItemAttributes {
        ItemAttributes([.generic: .data(item.encoded), .label: .string(item.label)])
    }

    func descriptions() throws(KeychainFailure) -> [ItemDescription] {
        try keychain.matches(
            MatchRequest(
                query: query(descriptionService), limit: nil, attributes: .only(.generic), authentication: .withoutPrompt)
        ).compactMap(\.itemDescription)
    }

    func description(of number: UInt64) throws(KeychainFailure) -> (ItemDescription, ItemDates) {
        let found = try keychain.copyMatching(
            MatchRequest(query: query(descriptionService, number), failsIfUnreadable: true, authentication: .withoutPrompt))
        guard let item = found.first, let description = item.itemDescription, description.number == number else {
            throw KeychainFailure(.decode, "the attributes of the item cannot be read")
        }
        return (description, item.dates)
    }

    func secret(of number: UInt64) throws(KeychainFailure) -> ItemSecret {
        let found = try keychain.copyMatching(
            MatchRequest(
                query: query(secretService, number), includesSecrets: true, failsIfUnreadable: true, authentication: .withoutPrompt))
        guard let item = found.first, let secret = item.secret else { throw KeychainFailure(.decode, "the item has no secret") }
        return ItemSecret(bytes: secret, contentType: item.attributes.text(.description) ?? "")
    }

    func add(_ item: ItemDescription, _ secret: ItemSecret) throws(KeychainFailure) {
        try inTransaction { items throws(KeychainFailure) in try items.addHalves(of: item, secret) }
    }

    private func addHalves(of item: ItemDescription, _ secret: ItemSecret) throws(KeychainFailure) {
        try add(
            secretService, item.number, ItemAttributes([.label: .string(item.label), .description: .string(secret.contentType)]),
            secret.bytes,
            .whenUnlocked)
        do throws(KeychainFailure) {
            try add(descriptionService, item.number, attributes(item), nil, .always)
        } catch {
            // Best effort: without the other half it is not seen.
            try? keychain.deleteIfPresent(query(secretService, item.number))
            throw error
        }
    }

    func set(_ item: ItemDescription) throws(KeychainFailure) {
        try keychain.update(
            UpdateRequest(
                query: query(descriptionService, item.number), changes: attributes(item), authentication: .withoutPrompt))
    }

    func set(_ secret: ItemSecret, of item: ItemDescription) throws(KeychainFailure) {
        try inTransaction { items throws(KeychainFailure) in try items.setHalves(secret, of: item) }
    }

    private func setHalves(_ secret: ItemSecret, of item: ItemDescription) throws(KeychainFailure) {
        let attributes = ItemAttributes([.label: .string(item.label), .description: .string(secret.contentType)])
        do throws(KeychainFailure) {
            try keychain.update(
                UpdateRequest(
                    query: query(secretService, item.number), changes: attributes, secret: secret.bytes, authentication: .withoutPrompt))
        } catch {
            guard error.status == .itemNotFound else { throw error }
            // An item that has lost its secret gets one; an item that is gone does not.
            _ = try description(of: item.number)
            try add(secretService, item.number, attributes, secret.bytes, .whenUnlocked)
        }
        // Advances the date of the modification.
        try set(item)
    }

    func remove(_ number: UInt64) throws(KeychainFailure) {
        try inTransaction { items throws(KeychainFailure) in
            try items.keychain.delete(DeleteRequest(query: items.query(descriptionService, number), authentication: .withoutPrompt))
            try items.keychain.deleteIfPresent(items.query(secretService, number))
        }
    }

    func removeAll() throws(KeychainFailure) {
        try inTransaction { items throws(KeychainFailure) in
            try items.keychain.deleteIfPresent(items.query(descriptionService))
            try items.keychain.deleteIfPresent(items.query(secretService))
        }
    }
}

extension Authentication {
    /// Calls on the thread of the bus never wait for a person.
    static let withoutPrompt = Authentication(interaction: .forbidden)
}

extension Keychain {
    /// Returns the matching items; none if there are none.
    func matches(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        do throws(KeychainFailure) {
            return try copyMatching(request)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return []
        }
    }

    func deleteIfPresent(_ query: ItemQuery) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try delete(DeleteRequest(query: query, authentication: .withoutPrompt))
        } catch {
            guard error.status == .itemNotFound else { throw error }
        }
    }
}

extension KeychainItem {
    var genericData: Data? { if case .data(let data)? = attributes[.generic] { data } else { nil } }

    fileprivate var itemDescription: ItemDescription? { genericData.flatMap { ItemDescription(encoded: $0) } }

    var dates: ItemDates {
        ItemDates(created: seconds(.creationDate), modified: seconds(.modificationDate))
    }

    private func seconds(_ attribute: Attribute) -> UInt64 {
        guard let seconds = attributes.seconds(attribute), seconds.isFinite else { return 0 }
        return UInt64(clamping: Int64(exactly: (seconds + KeychainItems.referenceDateSeconds).rounded(.down)) ?? 0)
    }
}
#endif
