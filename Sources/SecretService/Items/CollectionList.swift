// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import FoundationEssentials
internal import KeychainCore

/// The collections and their aliases, which are kept in the keychain too.
///
/// `login`, the default, and `session`, whose items are only in memory, are always there: programs ask again and again for a default
/// collection that is missing, and gvfs needs `session`.
final class CollectionList {
    static let login = "login"
    static let session = "session"
    static let defaultAlias = "default"
    private static let collectionService = "collections"
    private static let aliasService = "aliases"

    private let keychain: any Keychain
    private var byName: [String: Collection] = [:]
    /// The names of collections by alias.
    private var targets: [String: String] = [:]
    private var isLoaded = false

    init(_ keychain: any Keychain) {
        self.keychain = keychain
        byName[Self.login] = persistent(Self.login, label: "Login")
        byName[Self.session] = Collection(name: Self.session, label: "Session", storage: MemoryItems(), isPersistent: false)
    }

    private func persistent(_ name: String, label: String, dates: ItemDates = ItemDates()) -> Collection {
        Collection(name: name, label: label, dates: dates, storage: KeychainItems(keychain, collection: name), isPersistent: true)
    }

    private func query(_ service: String, _ name: String? = nil) -> ItemQuery {
        var attributes = ItemAttributes([.service: .string(service)])
        if let name { attributes[.account] = .string(name) }
        return ItemQuery(itemClass: .genericPassword, attributes: attributes)
    }

    private func records(_ service: String) throws(KeychainFailure) -> [(name: String, text: String, dates: ItemDates)] {
        try keychain.matches(MatchRequest(query: query(service), limit: nil, authentication: .withoutPrompt)).compactMap { item in
            guard let name = item.attributes.text(.account), let data = item.genericData,
                let text = String(validating: data, as: UTF8.self)
            else { return nil }
            return (name, text, item.dates)
        }
    }

    /// Stores a text under a name, or replaces the one that is there.
    private func store(_ text: String, _ service: String, _ name: String) throws(KeychainFailure) {
        let content = ItemAttributes([.generic: .data(Data(text.utf8)), .label: .string(text)])
        do throws(KeychainFailure) {
            try keychain.update(UpdateRequest(query: query(service, name), changes: content, authentication: .withoutPrompt))
        } catch {
            guard error.status == .itemNotFound else { throw error }
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: content.updated(with: query(service, name).attributes),
                    accessControl: AccessControl(.always), authentication: .withoutPrompt))
        }
    }

    // MARK: Reading

    /// Reads the collections and aliases from the keychain; returns the names that were added and removed.
    @discardableResult
    func load() throws(KeychainFailure) -> (added: [String], removed: [String]) {
        let records = try records(Self.collectionService)
        let aliases = try self.records(Self.aliasService)
        let former = Set(byName.keys)
        for record in records {
            if let collection = byName[record.name] {
                collection.label = record.text
                collection.dates = record.dates
            } else {
                byName[record.name] = persistent(record.name, label: record.text, dates: record.dates)
            }
        }
        let kept = Set(records.map(\.name)).union([Self.login, Self.session])
        for name in former.subtracting(kept) { byName[name] = nil }
        targets = Dictionary(aliases.map { ($0.name, $0.text) }) { first, _ in first }
        isLoaded = true
        return (kept.subtracting(former).sorted(), former.subtracting(kept).sorted())
    }

    private func loadIfNeeded() throws(KeychainFailure) { if !isLoaded { try load() } }

    /// All collections: `login`, then the others by name.
    func all() throws(KeychainFailure) -> [Collection] {
        try loadIfNeeded()
        return byName.values.sorted { ($0.name == Self.login ? 0 : 1, $0.name) < ($1.name == Self.login ? 0 : 1, $1.name) }
    }

    func collection(named name: String) throws(KeychainFailure) -> Collection? {
        try loadIfNeeded()
        return byName[name]
    }

    /// The collection of an alias, which is one in its encoded form.
    ///
    /// An alias of a collection that does not exist any more is unknown, except for the default.
    func collection(alias: String) throws(KeychainFailure) -> Collection? {
        try loadIfNeeded()
        if let collection = targets[alias].flatMap({ byName[$0] }) { return collection }
        return [Self.defaultAlias, Self.login].contains(alias) ? byName[Self.login] : alias == Self.session ? byName[Self.session] : nil
    }

    // MARK: Changes

    /// Makes a collection, or returns the one that has the alias.
    func make(label: String, alias: String) throws(KeychainFailure) -> (Collection, isNew: Bool) {
        if !alias.isEmpty, let present = try collection(alias: alias) { return (present, false) }
        try loadIfNeeded()
        // A path of an object has a limit, and a list of paths with a longer one cannot be sent.
        let wanted = String(ObjectPath.encode(label.isEmpty ? "collection" : label).prefix(ObjectPath.largestNameByteCount))
        var name = wanted
        var suffix = 2
        while byName[name] != nil {
            name = "\(wanted)_\(suffix)"
            suffix += 1
        }
        try store(label, Self.collectionService, name)
        let collection = persistent(name, label: label)
        byName[name] = collection
        if !alias.isEmpty { try setAlias(alias, to: name) }
        // For the dates.
        try load()
        return (byName[name] ?? collection, true)
    }

    func setLabel(_ label: String, of collection: Collection) throws(KeychainFailure) {
        if collection.isPersistent { try store(label, Self.collectionService, collection.name) }
        collection.label = label
    }

    /// Gives a collection an alias, or with nil removes it.
    func setAlias(_ alias: String, to name: String?) throws(KeychainFailure) {
        if let name { try store(name, Self.aliasService, alias) } else { try keychain.deleteIfPresent(query(Self.aliasService, alias)) }
        targets[alias] = name
    }

    /// Removes a collection with its items; of the default one only the items.
    func remove(_ collection: Collection) throws(KeychainFailure) {
        try collection.removeAll()
        try keychain.deleteIfPresent(query(Self.collectionService, collection.name))
        if collection.name != Self.login { byName[collection.name] = nil }
        for (alias, name) in targets where name == collection.name { try setAlias(alias, to: nil) }
    }
}
#endif
