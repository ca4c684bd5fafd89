// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// The secrets in the Secret Service of a desktop, under `LABEL/USER`, or `LABEL` for an entry without a user.
///
/// A secret may be any bytes. They are stored unchanged, whatever type of content the entry names. Attributes are not stored.
struct SecretServiceSource: SecretSource {
    /// How long to wait for an answer, and for a person who unlocks something.
    struct Timeouts {
        /// Longer than a bus waits for a service that it starts, which is 25 s.
        var answerMilliseconds: UInt64 = 30_000
        var promptMilliseconds: UInt64 = 5 * 60_000
    }

    /// The label or identifier of the only collection to read; nil for all.
    let collection: String?
    /// Whether the service may ask a person to unlock what is locked.
    let unlocks: Bool
    let bus: [LocalSocket.Address]
    var timeouts = Timeouts()

    private struct Entry {
        let collection: String
        let item: SecretService.Item

        /// Where the entry is; labels of entries need not be unique.
        var place: String { "\(ItemListing.escapingUnprintable(collection))/\(SecretService.identifier(item.path))" }
        /// What a person calls it.
        var name: String { item.label.isEmpty ? place : ItemListing.escapingUnprintable("\(collection)/\(item.label)") }
    }

    func read() throws(CommandFailure) -> SourceContent {
        let service = try ask { () throws(DBusFailure) in
            try SecretService(DBusConnection(bus, timeoutMilliseconds: timeouts.answerMilliseconds))
        }
        let entries = try unlockedEntries(of: service)
        guard !entries.isEmpty else {
            throw CommandFailure(
                .notFound, "the Secret Service has no entries\(collection == nil ? "" : " in this collection"); nothing was stored",
                advice: "Check that it has your passwords. KeePassXC shows only the groups that the settings of a database name.")
        }
        var content = SourceContent(
            removalAdvice: """
                The Secret Service still has the secrets, and programs that look there need them. Remove the others, for example with \
                `secret-tool clear` or in Passwords and Keys (Seahorse).
                """)
        for entry in entries {
            var secret = try ask(entry.place) { () throws(DBusFailure) in try service.secret(of: entry.item) }
            defer { secret.wipe() }
            try content.add(FoundSecret(key: Self.key(entry.item) ?? entry.place, value: Data(secret), place: entry.place))
        }
        return content
    }

    // MARK: Keys

    /// The attributes in which programs store the name of a user: libsecret and python-keyring, git and GNOME, KeePassXC, and keytar.
    private static let userAttributes = ["username", "user", "UserName", "account"]
    /// The attributes that stand in for an empty label.
    private static let nameAttributes = ["service", "server", "application"]

    private static func key(_ item: SecretService.Item) -> String? {
        func first(_ names: [String]) -> String? { names.lazy.compactMap { item.attributes[$0] }.first { !$0.isEmpty } }
        guard let name = item.label.isEmpty ? first(nameAttributes) : item.label else { return nil }
        // Labels such as "alice@example.com" have the user already.
        guard let user = first(userAttributes), !name.contains(user) else { return name }
        return "\(name)/\(user)"
    }

    // MARK: Unlocking

    /// Has the service ask for the passwords of the collections that are locked.
    private func unlockCollections(of service: SecretService) throws(CommandFailure) -> [SecretService.Collection] {
        try whenUnlocked(
            service, load: { () throws(CommandFailure) in try selectedCollections(of: service) },
            locked: { $0.filter(\.isLocked).map { ($0.path, ItemListing.escapingUnprintable($0.label)) } })
    }

    /// Returns the entries of the collections, after everything in them is unlocked.
    private func unlockedEntries(of service: SecretService) throws(CommandFailure) -> [Entry] {
        let collections = try unlockCollections(of: service)
        // Some services lock single entries, to ask for consent.
        return try whenUnlocked(
            service,
            load: { () throws(CommandFailure) in
                var entries: [Entry] = []
                for collection in collections {
                    for path in collection.items {
                        let place = "\(ItemListing.escapingUnprintable(collection.label))/\(SecretService.identifier(path))"
                        let item = try ask(place) { () throws(DBusFailure) in try service.item(path) }
                        entries.append(Entry(collection: collection.label, item: item))
                    }
                }
                return entries
            },
            locked: { $0.filter(\.item.isLocked).map { ($0.item.path, $0.name) } })
    }

    private func selectedCollections(of service: SecretService) throws(CommandFailure) -> [SecretService.Collection] {
        let all = try ask { () throws(DBusFailure) in try service.collections() }
        guard let collection else { return all }
        // KeePassXC tells the label of a database only while it is unlocked.
        let selected = all.filter { $0.label == collection || SecretService.identifier($0.path) == collection }
        guard !selected.isEmpty else {
            let labels = all.map { ItemListing.escapingUnprintable($0.label) }.joined(separator: ", ")
            throw CommandFailure(
                .notFound, "the Secret Service has no collection \(ItemListing.escapingUnprintable(collection)); nothing was stored",
                advice: labels.isEmpty ? "It has no collections." : "It has: \(labels).")
        }
        return selected
    }

    /// Loads objects, and once more after those that are locked were unlocked.
    private func whenUnlocked<Objects>(
        _ service: SecretService, load: () throws(CommandFailure) -> Objects, locked: (Objects) -> [(path: String, name: String)]
    ) throws(CommandFailure) -> Objects {
        let objects = try load()
        let lockedObjects = locked(objects)
        guard !lockedObjects.isEmpty else { return objects }
        let elsewhere = "Unlock it in the desktop session, for example in Passwords and Keys (Seahorse) or KeePassXC"
        guard unlocks else {
            throw lockedFailure(
                lockedObjects.map(\.name), "locked", advice: elsewhere + ", or add --unlock, which shows a prompt there.")
        }
        let unlocking = try ask { () throws(DBusFailure) in
            try service.unlock(lockedObjects.map(\.path), until: .after(milliseconds: timeouts.promptMilliseconds))
        }
        guard unlocking == .done else {
            throw lockedFailure(
                lockedObjects.map(\.name), "still locked: the prompt was canceled or could not be shown", advice: elsewhere + ".")
        }
        let unlocked = try load()
        let remaining = locked(unlocked)
        guard remaining.isEmpty else { throw lockedFailure(remaining.map(\.name), "still locked", advice: elsewhere + ".") }
        return unlocked
    }

    private func lockedFailure(_ names: [String], _ state: String, advice: String) -> CommandFailure {
        let names = names.prefix(5).joined(separator: ", ") + (names.count > 5 ? " and \(names.count - 5) others" : "")
        return CommandFailure(.unavailable, "in the Secret Service, \(names): \(state); nothing was stored", advice: advice)
    }

    // MARK: Failures

    /// Runs `body`, and names the entry that its failure is about.
    private func ask<Result>(_ place: String? = nil, _ body: () throws(DBusFailure) -> Result) throws(CommandFailure) -> Result {
        do throws(DBusFailure) {
            return try body()
        } catch {
            let (problem, advice) = Self.explanation(of: error)
            throw CommandFailure(.unavailable, "\(place.map { "\($0): " } ?? "")\(problem); nothing was stored", advice: advice)
        }
    }

    /// The problem, and what to do.
    static func explanation(of failure: DBusFailure) -> (problem: String, advice: String) {
        let start = "Start GNOME Keyring or KWallet, or turn on the Secret Service in the settings of KeePassXC."
        let desktop = "Run the command in the desktop session, or set DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus."
        switch failure {
        case .noAddress: return ("there is no address of a session bus with a Unix domain socket", desktop)
        case .unreachable(let error): return ("cannot connect to the session bus: \(error)", desktop)
        case .refused: return ("the session bus does not accept this user", "Run the command as the user of the desktop session.")
        case .connectionLost: return ("the session bus closed the connection", "Run the command again.")
        case .timedOut:
            return (
                "the Secret Service did not answer in time",
                "Look for a prompt that it shows, or restart it. Then run the command again."
            )
        case .malformed:
            return ("the answer of the Secret Service cannot be understood", "Export its passwords to a CSV file, and import that.")
        case .error("org.freedesktop.DBus.Error.ServiceUnknown"), .error("org.freedesktop.DBus.Error.NameHasNoOwner"):
            return ("no Secret Service runs in this session", start)
        case .error(let name) where name.hasPrefix("org.freedesktop.DBus.Error.Spawn"):
            return ("the Secret Service could not be started", start)
        case .error(let name):
            // Its message may have anything in it.
            return ("the Secret Service reports the error \(ItemListing.escapingUnprintable(name))", "Run the command again.")
        }
    }
}
