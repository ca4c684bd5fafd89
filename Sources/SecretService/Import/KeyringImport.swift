// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
package import KeychainCore

/// Copies the items of the keyring that a session has into the keychain, for a person who changes from one to the other.
///
/// Nothing is removed or replaced, neither there nor here. An item whose secret has changed since an earlier import is stored as another one.
package enum KeyringImport {
    package struct Outcome: Equatable, Sendable {
        package var copiedCount = 0
        /// The number of items that the keychain had already, with the same attributes and secret.
        package var presentCount = 0
    }

    /// Reads all items, stores those that are missing, and compares each with what the keychain has then.
    ///
    /// Throws before anything is stored if a collection is locked, or if an item cannot be read.
    package static func run(into keychain: any Keychain) throws(KeychainFailure) -> Outcome {
        let client = try KeyringClient(try Bus())
        let defaultPath = try client.collection(alias: CollectionList.defaultAlias)
        var sources: [(label: String, isDefault: Bool, items: [KeyringClient.Item])] = []
        // The items of the collection in memory end with the session.
        for path in try client.collections() where path != ObjectPath.collection(CollectionList.session).text {
            let label = try client.label(ofCollection: path)
            guard try !client.isLocked(collection: path) else {
                throw KeychainFailure(
                    .interactionNotAllowed, "the collection \"\(label)\" is locked: unlock it, and repeat the import", cause: .locked)
            }
            sources.append((label, path == defaultPath, try client.items(ofCollection: path)))
        }
        let collections = CollectionList(keychain)
        var outcome = Outcome()
        for source in sources where !source.items.isEmpty {
            let target = try collection(for: source.label, source.isDefault, in: collections)
            for item in source.items {
                if try has(item, target) {
                    outcome.presentCount += 1
                } else {
                    _ = try target.store(item.lookup, label: item.label, item.secret, replaces: false)
                    outcome.copiedCount += 1
                }
            }
            for item in source.items {
                guard try has(item, target) else {
                    throw KeychainFailure(.decode, "the item \"\(item.label)\" is not in the keychain after it was stored")
                }
            }
        }
        // GNOME Keyring and oo7 keep the secrets of sandboxed applications as items, and these applications need the same ones.
        let secrets = ApplicationSecrets(keychain)
        for item in sources.flatMap(\.items) {
            if let application = item.lookup.application { try secrets.add(item.secret.bytes, for: application) }
        }
        return outcome
    }

    /// The default collection for the default one, otherwise one with the same label.
    private static func collection(
        for label: String, _ isDefault: Bool, in collections: CollectionList
    ) throws(KeychainFailure) -> Collection {
        if isDefault, let target = try collections.collection(alias: CollectionList.defaultAlias) { return target }
        let present = try collections.all().first { $0.isPersistent && $0.label.hasSameBytes(as: label) }
        if let present { return present }
        return try collections.make(label: label, alias: "").0
    }

    private static func has(_ item: KeyringClient.Item, _ collection: Collection) throws(KeychainFailure) -> Bool {
        for number in try collection.search(item.lookup) {
            let (description, _) = try collection.storage.description(of: number)
            guard description.lookup == item.lookup, description.label.hasSameBytes(as: item.label) else { continue }
            if try collection.storage.secret(of: number) == item.secret { return true }
        }
        return false
    }
}

extension ItemLookup {
    /// The application for whose sandbox the portal of another keyring has made the item; nil if none has.
    fileprivate var application: String? {
        let names = attributes.map(\.name)
        guard names.allSatisfy({ $0 == Self.applicationName || $0 == ItemAttribute.schema }) else { return nil }
        return self[Self.applicationName]
    }

    private static var applicationName: String { "app_id" }
}
#endif
