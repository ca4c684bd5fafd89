// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import SecretService
@testable import ValetCLI

@Suite("Items of the Secret Service in the keychain", .blocking, .requiresMessageBus)
struct StorageTests {
    @Test("Items survive the end of the bridge, however it ends", arguments: [SIGTERM, SIGKILL])
    func restart(signal: Int32) throws {
        let desktop = try Desktop()
        var client = try desktop.client()
        let item = try client.createItem(["a": "b"], "secret", label: "label", contentType: "a/b")
        let created = try client.property("Created", of: item, .item)
        try desktop.restartBridge(signal: signal)
        client = try desktop.client()
        #expect(try client.search(["a": "b"]).unlocked == [item])
        let secret = try client.secret(of: item)
        #expect(secret.text == "secret" && secret.contentType == "a/b")
        #expect(try client.property("Label", of: item, .item).text == "label" && client.property("Created", of: item, .item) == created)
    }

    @Test("The number of a deleted item is not used again")
    func numbers() throws {
        let desktop = try Desktop()
        var client = try desktop.client()
        var seen: Set<String> = []
        for round in 0..<6 {
            let item = try client.createItem([:], "a")
            #expect(seen.insert(item).inserted)
            #expect(try client.error(item, .item, "Delete") == nil)
            guard round == 2 else { continue }
            try desktop.restartBridge()
            client = try desktop.client()
        }
    }

    @Test("What another process stores, changes, and deletes is found, and announced")
    func otherProcess() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let first = try client.createItem(["a": "1"], "first")
        let keychain = try Desktop.keychain(home: desktop.home)
        let items = KeychainItems(keychain, collection: "login")
        let number = UInt64.max / 2
        let path = "\(Desktop.login)/\(number)"
        for (member, body) in [
            (
                "ItemCreated",
                {
                    try items.add(
                        ItemDescription(number: number, label: "x", lookup: ItemLookup([("a", "2")])),
                        ItemSecret(bytes: Data("other".utf8), contentType: "text/plain"))
                }
            ),
            ("ItemChanged", { try items.set(ItemDescription(number: number, label: "x", lookup: ItemLookup([("a", "3")]))) }),
            ("ItemDeleted", { try items.remove(number) }),
        ] as [(String, () throws -> Void)] {
            let listener = try desktop.connect()
            try listener.subscribe(path: Desktop.login, interface: "org.freedesktop.Secret.Collection", member)
            try body()
            #expect(try listener.signal(until: .after(seconds: 60)).first?.text == path)
            switch member {
            case "ItemCreated":
                #expect(try client.search(["a": "2"]).unlocked == [path] && client.secret(of: path).text == "other")
            case "ItemChanged": #expect(try client.search(["a": "3"]).unlocked == [path] && client.search(["a": "2"]).unlocked == [])
            default: #expect(try client.search([:]).unlocked == [first])
            }
        }
    }

    @Test("Two bridges on two buses share a keychain")
    func twoBridges() throws {
        let (desktop, bus) = (try Desktop(), try Desktop())
        let (client, other) = (try desktop.client(), try bus.client(ofKeychainAt: desktop.home))
        #expect(try other.search([:]).unlocked == [])
        let item = try client.createItem(["a": "b"], "secret")
        #expect(waitUntil { (try? other.search(["a": "b"]).unlocked) == [item] })
        #expect(try other.secret(of: item).text == "secret")
        #expect(try other.error(item, .item, "Delete") == nil)
        #expect(waitUntil { (try? client.search([:]).unlocked) == [] })
    }

    @Test("The keychain has two passwords for an item, and only that with the secret is locked")
    func protection() throws {
        let desktop = try Desktop()
        _ = try desktop.client().createItem(["a": "b"], "secret", label: "label")
        let keychain = try Desktop.keychain(home: desktop.home)
        let items = try keychain.copyMatching(
            MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: true))
        #expect(
            items.map { ($0.attributes.text(.service) ?? "") + " \($0.accessControl.accessibility)" } == [
                "secrets/login whenUnlocked", "attributes/login always",
            ])
        #expect(items.map(\.secret) == [Data("secret".utf8), nil])
    }

    @Test("Both passwords of an item are added, changed, and removed in one transaction, or neither is")
    func transactions() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let keychain = try Desktop.keychain(home: directory.path)
        defer { keychain.forgetKeys() }
        // Every write outside of a transaction fails.
        let items = KeychainItems(OnlyTransactions(keychain), collection: "login")
        let item = ItemDescription(number: 7, label: "Mail", lookup: ItemLookup([("a", "b")]))
        try items.add(item, ItemSecret(bytes: Data("first".utf8), contentType: ""))
        try items.set(ItemSecret(bytes: Data("second".utf8), contentType: ""), of: item)
        #expect(try items.secret(of: 7).bytes == Data("second".utf8) && items.descriptions() == [item])
        #expect { try items.add(item, ItemSecret(bytes: Data("third".utf8), contentType: "")) } throws: {
            ($0 as? KeychainFailure)?.status == .duplicateItem
        }
        try items.remove(7)
        #expect(try items.descriptions().isEmpty)
        // The attributes of an item that has lost its secret: a secret that is added first must not stay.
        let query = ItemAttributes([.service: .string("attributes/login"), .account: .string("8")])
        _ = try keychain.add(
            AddRequest(
                itemClass: .genericPassword, attributes: query, secret: nil, accessControl: AccessControl(.always),
                authentication: .withoutPrompt))
        let other = ItemDescription(number: 8, label: "", lookup: ItemLookup([]))
        #expect(throws: KeychainFailure.self) { try items.add(other, ItemSecret(bytes: Data("fourth".utf8), contentType: "")) }
        #expect(throws: KeychainFailure.self) { try items.secret(of: 8) }
    }

    @Test("Signals come from the objects themselves, and properties announce their changes")
    func signals() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        func listen(_ path: String, _ interface: String, _ member: String) throws -> DBusConnection {
            let connection = try desktop.connect()
            try connection.subscribe(path: path, interface: interface, member)
            return connection
        }
        let properties = "org.freedesktop.DBus.Properties"
        let created = try listen(Desktop.login, "org.freedesktop.Secret.Collection", "ItemCreated")
        let items = try listen(Desktop.login, properties, "PropertiesChanged")
        let collections = try listen(Desktop.root, "org.freedesktop.Secret.Service", "CollectionCreated")
        let item = try client.createItem(["a": "b"], "secret")
        #expect(try created.signal(until: .after(seconds: 60)).first?.text == item)
        let change = try items.signal(until: .after(seconds: 60))
        #expect(change.first?.text == "org.freedesktop.Secret.Collection" && change[1]["Items"]?.texts == [item])
        let label = try listen(item, properties, "PropertiesChanged")
        #expect(try client.setProperty("Label", of: item, .item, "s", .text("new")) == nil)
        #expect(try label.signal(until: .after(seconds: 60))[1]["Label"]?.text == "new")
        let collection = try client.call(Desktop.root, .service, "CreateCollection", [.list([]), .text("")], "a{sv}s").first
        #expect(try collections.signal(until: .after(seconds: 60)).first == collection)
    }

    @Test("A lock by another program is announced")
    func announcedLock() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let item = try client.createItem([:], "a")
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        let listeners = try [Desktop.login, item].map { path in
            let connection = try desktop.connect()
            try connection.subscribe(path: path, interface: "org.freedesktop.DBus.Properties", "PropertiesChanged")
            return connection
        }
        try keychain.lock(.whenUnlocked)
        for listener in listeners { #expect(try listener.signal(until: .after(seconds: 60))[1]["Locked"]?.boolean == true) }
    }
}

@Suite("Index of attributes")
struct AttributeIndexTests {
    private func item(_ number: UInt64, _ attributes: [String: String]) -> ItemDescription {
        ItemDescription(number: number, label: "", lookup: ItemLookup(attributes.map { ($0.key, $0.value) }))
    }

    /// What a search must find.
    private func expected(_ items: [ItemDescription], _ lookup: ItemLookup) -> [UInt64] {
        items.filter { item in lookup.attributes.allSatisfy { item.lookup.attributes.contains($0) } }.map(\.number).sorted()
    }

    @Test("After any sequence of changes, searches find what a look at all items finds")
    func searches() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<Scale.pick(20, full: 2_000) {
            var index = AttributeIndex()
            var items: [UInt64: ItemDescription] = [:]
            func attributes() -> [String: String] {
                Dictionary(
                    uniqueKeysWithValues: ["a", "b", "c"].shuffled(using: &generator).prefix(Int.random(in: 0...3)).map {
                        ($0, "\(Int.random(in: 0...2))")
                    })
            }
            for number in 1...60 as ClosedRange<UInt64> {
                let new = item(number, attributes())
                index.append(new)
                items[number] = new
                guard let other = items.values.randomElement() else { continue }
                switch Int.random(in: 0...3) {
                case 0:
                    index.remove(other.number)
                    items[other.number] = nil
                case 1:
                    let changed = item(other.number, attributes())
                    index.update(changed, from: other)
                    items[other.number] = changed
                default: break
                }
                let lookup = item(0, attributes()).lookup
                let all = Array(items.values)
                #expect(index.numbers(matching: lookup) == expected(all, lookup))
                #expect(index.number(withExactly: lookup, ownedBy: { _ in true }) == all.filter { $0.lookup == lookup }.map(\.number).min())
            }
            #expect(index.count == items.count && index.numbers == items.keys.sorted())
            #expect(items.keys.allSatisfy { index.contains($0) } && !index.contains(61) && !index.contains(0))
            let changes = index.changes(to: AttributeIndex(Array(items.values)))
            #expect(changes == ([], [], []))
        }
    }

    @Test("A description of an item is encoded as it is, and no damaged encoding is accepted as another one")
    func encoding() {
        let description = ItemDescription(
            number: 7, label: "Ünlock", lookup: ItemLookup([("b", ""), ("a", "1"), ("a", "2"), ("", "x")]),
            owner: ItemOwner("program:/usr/bin/a"))
        let encoded = description.encoded
        #expect(ItemDescription(encoded: encoded) == description)
        #expect(description.lookup.attributes.map(\.name) == ["", "a", "b"] && description.lookup["a"] == "2")
        for count in 0..<encoded.count {
            let parsed = ItemDescription(encoded: encoded.prefix(count))
            #expect(parsed.map { $0.encoded == encoded.prefix(count) } ?? true)
        }
        #expect(ItemDescription(encoded: Data([1]) + encoded.dropFirst()) == nil)
    }

    @Test(
        "Paths have one form", arguments: ["", "/", "/org/freedesktop/secret", "/org/freedesktop/secretsx", "/org/freedesktop/secrets/x"])
    func unknownPaths(path: String) {
        #expect(ObjectPath(path) == nil)
    }

    @Test("A path is parsed as it is written, and numbers have no zeros or signs in front")
    func paths() {
        let paths: [ObjectPath] = [
            .service, .folder("aliases"), .collection("a_20b"), .alias("default"), .item(collection: "login", .max),
            .aliasedItem(alias: "default", 0), .session(1), .prompt(2),
        ]
        for path in paths { #expect(ObjectPath(path.text) == path) }
        for number in ["01", "+1", "-1", "18446744073709551616", "1x", ""] {
            #expect(ObjectPath("\(ObjectPath.root)/collection/login/\(number)") == nil)
            #expect(ObjectPath("\(ObjectPath.root)/session/s\(number)") == nil)
        }
        #expect(ObjectPath.encode("aZ_0 é/") == "aZ_0_20_c3_a9_2f")
    }
}

/// A keychain that writes only in transactions.
private struct OnlyTransactions: TransactionalKeychain {
    private let keychain: any TransactionalKeychain
    private static let failure = KeychainFailure(.internal, "a write outside of a transaction")

    init(_ keychain: any TransactionalKeychain) { self.keychain = keychain }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem { throw Self.failure }
    func update(_ request: UpdateRequest) throws(KeychainFailure) { throw Self.failure }
    func delete(_ request: DeleteRequest) throws(KeychainFailure) { throw Self.failure }
    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] { try keychain.copyMatching(request) }
    func transaction(_ body: (any Keychain) -> Bool) throws(KeychainFailure) -> Bool { try keychain.transaction(body) }
}
#endif
