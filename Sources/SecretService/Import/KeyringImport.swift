// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
package import KeychainCore
internal import KeychainSystem

/// Copies the items of the keyring that a session has into the keychain, for a person who changes from one to the other.
///
/// Nothing is removed there, and no secret is lost here. If an item has changed there since an earlier import, programs get the present secret, and the
/// former one is kept in another item.
package enum KeyringImport {
    package struct Outcome: Equatable, Sendable {
        package var copiedCount = 0
        /// The number of items that the keychain had already, with the same attributes and secret.
        package var presentCount = 0
    }

    /// The time that a person has for all prompts together.
    private static let promptSeconds: UInt32 = 5 * 60
    private static let largestNamedCount = 5

    private struct Source {
        let label: String
        let isDefault: Bool
        let items: [KeyringClient.Item]
    }

    /// Reads all items, stores those that are missing, and compares each with what the keychain has then.
    ///
    /// Has the keyring ask for the passwords of locked collections, and for consent if it locks single items. Throws, with the names of the
    /// collections and items that cannot be read, after the others were copied.
    package static func run(into keychain: any Keychain) throws(KeychainFailure) -> Outcome {
        let client = try KeyringClient(try Bus())
        var problems: [String] = []
        let sources = try read(client, &problems)
        let outcome = try store(sources, in: keychain)
        guard problems.isEmpty else {
            let others = problems.count > largestNamedCount ? "; and \(problems.count - largestNamedCount) others" : ""
            throw KeychainFailure(
                .notAvailable,
                """
                not copied: \(printable(problems.prefix(largestNamedCount).joined(separator: "; ")))\(others). \
                Of the others, copied: \(outcome.copiedCount), present: \(outcome.presentCount)
                """)
        }
        return outcome
    }

    /// The text without control characters: a label of another program must not change the terminal, or hide the rest of a message.
    private static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
    }

    // MARK: Reading

    private static func read(_ client: KeyringClient, _ problems: inout [String]) throws(KeychainFailure) -> [Source] {
        let defaultPath = try client.collection(alias: CollectionList.defaultAlias)
        let deadline = Deadline.after(seconds: promptSeconds)
        var sources: [Source] = []
        // The items of the collection in memory end with the session.
        for path in try client.collections() where path != ObjectPath.collection(CollectionList.session).text {
            do throws(KeychainFailure) {
                if try client.isLocked(collection: path) { try client.unlock([path], until: deadline) }
                // KeePassXC tells the label only of an unlocked database.
                let label = try client.label(ofCollection: path)
                guard try !client.isLocked(collection: path) else {
                    problems.append("the collection \"\(label)\" is locked: \(client.program.adviceForLock)")
                    continue
                }
                let items = try readItems(ofCollection: path, label, client, until: deadline, &problems)
                sources.append(Source(label: label, isDefault: path == defaultPath, items: items))
            } catch {
                guard !KeyringClient.isNoReply(error) else { throw error }
                problems.append("the collection \(path.split(separator: "/").last ?? ""): \(error.reason)")
            }
        }
        return sources
    }

    private static func readItems(
        ofCollection path: String, _ label: String, _ client: KeyringClient, until deadline: Deadline, _ problems: inout [String]
    ) throws(KeychainFailure) -> [KeyringClient.Item] {
        let paths = try client.items(ofCollection: path)
        let formerlyLocked = try locked(paths, client)
        // In one prompt. If it cannot be shown, the items stay locked.
        if !formerlyLocked.isEmpty { try? client.unlock(formerlyLocked, until: deadline) }
        let stillLocked = formerlyLocked.isEmpty ? [] : Set(try locked(paths, client))
        var items: [KeyringClient.Item] = []
        for path in paths {
            do throws(KeychainFailure) {
                guard !stillLocked.contains(path) else {
                    throw KeychainFailure(.interactionNotAllowed, "locked: \(client.program.adviceForLock)", cause: .locked)
                }
                items.append(try client.item(path))
            } catch {
                guard !KeyringClient.isNoReply(error) else { throw error }
                let name =
                    (try? client.label(ofItem: path)).flatMap { $0.isEmpty ? nil : $0 } ?? String(path.split(separator: "/").last ?? "")
                problems.append("the item \"\(name)\" of \"\(label)\": \(error.reason)")
            }
        }
        return items
    }

    private static func locked(_ paths: [String], _ client: KeyringClient) throws(KeychainFailure) -> [String] {
        var locked: [String] = []
        for path in paths {
            do throws(KeychainFailure) {
                if try client.isLocked(item: path) { locked.append(path) }
            } catch {
                // What else is wrong shows when the item is read.
                guard !KeyringClient.isNoReply(error) else { throw error }
            }
        }
        return locked
    }

    // MARK: Storing

    private static func store(_ sources: [Source], in keychain: any Keychain) throws(KeychainFailure) -> Outcome {
        let collections = CollectionList(keychain)
        var outcome = Outcome()
        for source in sources where !source.items.isEmpty {
            let target = try collection(for: source.label, source.isDefault, in: collections)
            for item in source.items {
                if try has(item, target) {
                    outcome.presentCount += 1
                } else {
                    try add(item, of: source, to: target)
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
        for (number, _) in try same(as: item, in: collection) where try collection.storage.secret(of: number) == item.secret { return true }
        return false
    }

    /// The items with the same attributes and label, the oldest one first.
    private static func same(
        as item: KeyringClient.Item, in collection: Collection
    ) throws(KeychainFailure) -> [(number: UInt64, dates: ItemDates)] {
        var found: [(UInt64, ItemDates)] = []
        for number in try collection.search(item.lookup) {
            let (description, dates) = try collection.storage.description(of: number)
            if description.lookup == item.lookup, description.label.hasSameBytes(as: item.label) { found.append((number, dates)) }
        }
        return found
    }

    /// Stores an item whose secret the keychain does not have.
    ///
    /// Programs take the oldest item that they find. If the keyring has changed the item since it was stored here, that one gets the secret. Of
    /// several such items there, nothing tells which one it is.
    private static func add(_ item: KeyringClient.Item, of source: Source, to collection: Collection) throws(KeychainFailure) {
        guard let oldest = try same(as: item, in: collection).first, item.modifiedSeconds >= oldest.dates.modified,
            source.items.count(where: { $0.lookup == item.lookup && $0.label.hasSameBytes(as: item.label) }) == 1
        else {
            _ = try collection.store(item.lookup, label: item.label, item.secret, replaces: false)
            return
        }
        let former = try collection.storage.secret(of: oldest.number)
        // It may be one of a program, which other programs do not read.
        let owner = try collection.owner(of: oldest.number)
        _ = try collection.store(item.lookup, label: item.label, former, replaces: false, owner: owner)
        try collection.set(item.secret, of: oldest.number)
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
