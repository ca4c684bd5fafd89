// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import ValetCLI

/// A question that both keyrings answer: the text of the answer.
private struct Probe: Sendable {
    let name: String
    /// Why the answers differ; nil if they have to be the same.
    let difference: String?
    let answer: @Sendable (SecretClient) throws -> String

    init(_ name: String, differs difference: String? = nil, _ answer: @escaping @Sendable (SecretClient) throws -> String) {
        self.name = name
        self.difference = difference
        self.answer = answer
    }
}

/// What a call answers: the name of its error, or its values without the parts of paths that a keyring chooses.
private func outcome(
    _ client: SecretClient, _ path: String, _ interface: SecretClient.Interface, _ member: String,
    _ arguments: [DBusValue] = [], _ signature: String = ""
) throws -> String {
    do {
        return plain("\(try client.call(path, interface, member, arguments, signature))")
    } catch .error(let name) {
        return name
    } catch {
        throw error
    }
}

private func propertyNames(_ client: SecretClient, _ path: String, _ interface: SecretClient.Interface) throws -> String {
    let properties = try client.call(path, .properties, "GetAll", [.text(interface.rawValue)], "s").first?.list ?? []
    return properties.compactMap { $0.list?.first?.text }.sorted().joined(separator: " ")
}

private func plain(_ text: String) -> String {
    text.replacing(/(collection\/[A-Za-z0-9_]+|aliases\/[a-z]+)\/[0-9]+/) { "\($0.output.1)/N" }
        .replacing(/(session|prompt)\/[a-z][0-9]+/) { "\($0.output.1)/N" }
}

private let memory = "\(Desktop.root)/collection/session"

/// Each with attributes of its own, so that no probe depends on another one.
private let probes: [Probe] = [
    Probe("unknown algorithm") {
        try outcome($0, Desktop.root, .service, "OpenSession", [.text("x"), .variant(signature: "s", .text(""))], "sv")
    },
    Probe("plain session") {
        try outcome($0, Desktop.root, .service, "OpenSession", [.text("plain"), .variant(signature: "s", .text(""))], "sv")
    },
    Probe("plain session with bytes", differs: "the input has no meaning, so any is accepted") {
        try outcome($0, Desktop.root, .service, "OpenSession", [.text("plain"), .variant(signature: "ay", .bytes([1]))], "sv")
    },
    Probe("public key 1", differs: "everyone knows the result of the agreement") {
        let reply = try outcome(
            $0, Desktop.root, .service, "OpenSession", [.text(Desktop.agreement), .variant(signature: "ay", .bytes([1]))], "sv")
        return reply.contains("Error") ? reply : "accepted"
    },
    Probe("public key as text") {
        try outcome($0, Desktop.root, .service, "OpenSession", [.text(Desktop.agreement), .variant(signature: "s", .text(""))], "sv")
    },
    Probe("alias default") { try outcome($0, Desktop.root, .service, "ReadAlias", [.text("default")], "s") },
    Probe("alias login") { try outcome($0, Desktop.root, .service, "ReadAlias", [.text("login")], "s") },
    Probe("alias session") { try outcome($0, Desktop.root, .service, "ReadAlias", [.text("session")], "s") },
    Probe("unknown alias") { try outcome($0, Desktop.root, .service, "ReadAlias", [.text("none")], "s") },
    Probe("setting another alias", differs: "aliases are kept") {
        try outcome($0, Desktop.root, .service, "SetAlias", [.text("other"), .text(Desktop.login)], "so")
    },
    Probe("alias of an unknown collection") {
        try outcome($0, Desktop.root, .service, "SetAlias", [.text("default"), .text("\(Desktop.root)/collection/none")], "so")
    },
    Probe("label of the default collection") {
        try outcome(
            $0, "\(Desktop.root)/aliases/default", .properties, "Get", [.text("org.freedesktop.Secret.Collection"), .text("Label")], "ss")
    },
    Probe("search in an unknown collection") {
        try outcome($0, "\(Desktop.root)/collection/none", .collection, "SearchItems", [.list([])], "a{ss}")
    },
    Probe("secret of an unknown item") { try outcome($0, "\(Desktop.login)/99999", .item, "GetSecret", [.text($0.session)], "o") },
    Probe("properties of an unknown item") {
        try outcome($0, "\(Desktop.login)/99999", .properties, "GetAll", [.text("org.freedesktop.Secret.Item")], "s")
    },
    Probe("closing an unknown session") { try outcome($0, "\(Desktop.root)/session/s99999", .session, "Close") },
    Probe("unlocking nothing") { try outcome($0, Desktop.root, .service, "Unlock", [.list([])], "ao") },
    Probe("unlocking what is unlocked") { try outcome($0, Desktop.root, .service, "Unlock", [.list([.text(Desktop.login)])], "ao") },
    Probe("unlocking what is unknown") {
        try outcome($0, Desktop.root, .service, "Unlock", [.list([.text("\(Desktop.root)/collection/none")])], "ao")
    },
    Probe("locking the collection in memory") {
        let path = memory
        let locked = try outcome($0, Desktop.root, .service, "Lock", [.list([.text(path)])], "ao")
        return "\(locked) \(try $0.property("Locked", of: path, .collection))"
    },
    Probe("secrets of unknown items") {
        try outcome($0, Desktop.root, .service, "GetSecrets", [.list([.text("\(Desktop.login)/99999")]), .text($0.session)], "aoo")
    },
    Probe("secrets in an unknown session") {
        try outcome($0, Desktop.root, .service, "GetSecrets", [.list([]), .text("\(Desktop.root)/session/s99999")], "aoo")
    },
    Probe("an item and its paths") { client in
        let item = try client.createItem(["probe": "paths"], "s", label: "l")
        return "\(plain(item)) \(try client.secret(of: item)) \(try client.property("Label", of: item, .item))"
    },
    Probe("two items without replacement") { client in
        let items = try (0..<2).map { _ in try client.createItem(["probe": "two"], "s") }
        // GNOME Keyring lists them in no order.
        return "\(items[0] != items[1]) \(Set(try client.search(["probe": "two"]).unlocked) == Set(items))"
    },
    Probe("replacement of equal attributes") { client in
        let items = try ["a", "b"].map { try client.createItem(["probe": "equal"], $0, replaces: true) }
        return "\(items[0] == items[1]) \(try client.secret(of: items[0]).text)"
    },
    Probe("replacement with a part of the attributes", differs: "attributes of another program would be lost") { client in
        let items = try [["probe": "part", "k": "1"], ["probe": "part"]].map { try client.createItem($0, "s", replaces: true) }
        return "\(items[0] == items[1])"
    },
    Probe("search with another case") { client in
        _ = try client.createItem(["probe": "Case"], "s")
        return "\(try client.search(["probe": "case"]).unlocked.count) \(try client.search(["Probe": "Case"]).unlocked.count)"
    },
    Probe("content type", differs: "it is stored") { client in
        try client.secret(of: try client.createItem(["probe": "content"], "s", contentType: "data/null")).contentType
    },
    Probe("empty secret") { client in try client.secret(of: try client.createItem(["probe": "empty"], "")).text },
    Probe("type of a new item") { client in
        let property = DBusValue.list([.text("org.freedesktop.Secret.Item.Type"), .variant(signature: "s", .text("org.foo"))])
        // In memory: GNOME Keyring replaces the type when it reads its file again, which it does after each change, at any time.
        let item = try client.createItem(["probe": "type"], "s", in: memory, others: [property])
        return "\(try client.property("Type", of: item, .item)) \(try client.itemAttributes(item)["xdg:schema"] ?? "none")"
    },
    Probe("unknown property of a new item", differs: "it is ignored") { client in
        let property = DBusValue.list([.text("org.example.Unknown"), .variant(signature: "s", .text(""))])
        let reply = try outcome(
            client, Desktop.login, .collection, "CreateItem", client.itemArguments([:], client.secret([1]), others: [property]),
            SecretClient.itemSignature)
        return reply.contains("Error") ? reply : "created"
    },
    Probe("new item in an unknown session") { client in
        try outcome(
            client, Desktop.login, .collection, "CreateItem",
            client.itemArguments([:], client.secret([1], session: "\(Desktop.root)/session/s99999")), SecretClient.itemSignature)
    },
    Probe("secret in an unknown session") { client in
        let item = try client.createItem(["probe": "session"], "s")
        return try outcome(client, item, .item, "GetSecret", [.text("\(Desktop.root)/session/s99999")], "o")
    },
    Probe("deleting an item") { client in
        let item = try client.createItem(["probe": "delete"], "s")
        return "\(try outcome(client, item, .item, "Delete")) \(try outcome(client, item, .item, "Delete"))"
    },
    Probe("changing attributes") { client in
        let item = try client.createItem(["probe": "attributes"], "s")
        let change = try client.setProperty("Attributes", of: item, .item, "a{ss}", SecretClient.attributes(["probe": "changed"]))
        return "\(change ?? "changed") \(try client.search(["probe": "changed"]).unlocked == [item])"
    },
    Probe("changing a property that is read-only", differs: "sd-bus has an error of its own for it") { client in
        let item = try client.createItem(["probe": "locked"], "s")
        return try client.setProperty("Locked", of: item, .item, "b", .number(1)) ?? "changed"
    },
    Probe("new collection", differs: "the keychain has one passcode, so there is nothing to ask") { client in
        let label = DBusValue.list([.list([.text("org.freedesktop.Secret.Collection.Label"), .variant(signature: "s", .text("New"))])])
        return try outcome(client, Desktop.root, .service, "CreateCollection", [label, .text("")], "a{sv}s")
    },
    Probe("signature of the properties of the service") {
        "\(try $0.call(Desktop.root, .properties, "GetAll", [.text("org.freedesktop.Secret.Service")], "s").first?.list?.count ?? -1)"
    },
    Probe("names of the properties of a collection") { try propertyNames($0, Desktop.login, .collection) },
    Probe("names of the properties of an item") { try propertyNames($0, try $0.createItem(["probe": "names"], "s"), .item) },
    Probe("a property that is unknown", differs: "sd-bus has an error of its own for it") {
        try outcome($0, Desktop.login, .properties, "Get", [.text("org.freedesktop.Secret.Collection"), .text("None")], "ss")
    },
    Probe("a property of another interface", differs: "sd-bus has an error of its own for it") {
        try outcome($0, Desktop.login, .properties, "Get", [.text("org.freedesktop.Secret.Item"), .text("Label")], "ss")
    },
    Probe("an unknown method") { try outcome($0, Desktop.root, .service, "None") },
    Probe("a method with other arguments") { try outcome($0, Desktop.root, .service, "SearchItems", [.text("x")], "s") },
    Probe("ping of an object") { try outcome($0, Desktop.login, .peer, "Ping") },
    Probe("a second session, and closing it twice") { client in
        let session = try #require(try client.openSession("plain", .variant(signature: "s", .text(""))).last?.text)
        return "\(try outcome(client, session, .session, "Close")) \(try outcome(client, session, .session, "Close"))"
    },
    Probe("label of an item, changed") { client in
        let item = try client.createItem(["probe": "label"], "s", label: "old")
        return
            "\(try client.setProperty("Label", of: item, .item, "s", .text("new")) ?? "changed") \(try client.property("Label", of: item, .item))"
    },
    Probe("label of another type") { client in
        let item = try client.createItem(["probe": "label type"], "s")
        return try client.setProperty("Label", of: item, .item, "b", .number(1)) ?? "changed"
    },
    Probe("secret, changed") { client in
        let item = try client.createItem(["probe": "secret"], "old")
        return "\(try outcome(client, item, .item, "SetSecret", [client.secret([110])], "(oayays)")) \(try client.secret(of: item).text)"
    },
    Probe("bytes that are no text") { client in
        let reply = try client.call(
            Desktop.login, .collection, "CreateItem", client.itemArguments(["probe": "bytes"], client.secret([0, 255, 10])),
            SecretClient.itemSignature)
        let item = try #require(reply.first?.text)
        return "\(try client.call(item, .item, "GetSecret", [.text(client.session)], "o").first?.list?[2].bytes ?? [])"
    },
    Probe("no attributes, no label") { client in
        let item = try client.createItem([:], "s", in: memory)
        return "\(try client.property("Label", of: item, .item)) \(try client.secret(of: item).text)"
    },
    Probe("an item below an alias") { client in
        let item = try client.createItem(["probe": "alias"], "s")
        let number = try #require(item.split(separator: "/").last)
        return try outcome(client, "\(Desktop.root)/aliases/default/\(number)", .item, "GetSecret", [.text(client.session)], "o")
    },
    Probe("path of an item made through an alias") { client in
        plain(try client.createItem(["probe": "through alias"], "s", in: "\(Desktop.root)/aliases/default"))
    },
    Probe("search for all attributes of an item and one more") { client in
        _ = try client.createItem(["probe": "more"], "s")
        return "\(try client.search(["probe": "more", "another": "1"]).unlocked.count)"
    },
    Probe("search in the collection in memory") { client in
        let session = memory
        _ = try client.createItem(["probe": "memory"], "s", in: session)
        return "\(try client.search(["probe": "memory"], in: session).count) \(try client.search(["probe": "memory"]).unlocked.count)"
    },
    Probe("secrets of several items") { client in
        let items = try (0..<3).map { try client.createItem(["probe": "several \($0)"], "secret \($0)") }
        let reply = try client.call(
            Desktop.root, .service, "GetSecrets", [.list(items.map(DBusValue.text)), .text(client.session)], "aoo")
        return "\(reply.first?.list?.count ?? -1)"
    },
    Probe("attributes, emptied") { client in
        let item = try client.createItem(["probe": "emptied"], "s", in: memory)
        return
            "\(try client.setProperty("Attributes", of: item, .item, "a{ss}", .list([])) ?? "changed") \(try client.itemAttributes(item))"
    },
    Probe("the type of an item, changed") { client in
        let item = try client.createItem(["probe": "change of type"], "s", in: memory)
        let change = try client.setProperty("Type", of: item, .item, "s", .text("org.bar"))
        return "\(change ?? "changed") \(try client.itemAttributes(item)["xdg:schema"] ?? "none")"
    },
    Probe("label of the default collection, changed") { client in
        try client.setProperty("Label", of: Desktop.login, .collection, "s", .text("Renamed")) ?? "changed"
    },
    Probe("prompt of nothing") { try outcome($0, "\(Desktop.root)/prompt/p99999", .prompt, "Prompt", [.text("")], "s") },
    Probe("a session of another program") { client in
        let other = try client.another()
        return try outcome(
            other, Desktop.login, .collection, "CreateItem", other.itemArguments([:], client.secret([1])), SecretClient.itemSignature)
    },
    Probe("closing a session of another program") { client in
        try outcome(try client.another(), client.session, .session, "Close")
    },
    Probe("replacement among several items of equal attributes") { client in
        let attributes = ["probe": "several equal"]
        let items = try (0..<2).map { try client.createItem(attributes, "\($0)") }
        let replaced = try client.createItem(attributes, "new", replaces: true)
        return "\(items.contains(replaced)) \(try client.search(attributes).unlocked.count) \(try client.secret(of: replaced).text)"
    },
    Probe("search without attributes") { client in
        let item = try client.createItem(["probe": "search for all"], "s")
        return "\(try client.search([:]).unlocked.contains(item)) \(try client.search([:], in: Desktop.login).contains(item))"
    },
    Probe("search by the generic type", differs: "GNOME Keyring gives an item this type only when it reads its file again") { client in
        // In memory, where it never does.
        let item = try client.createItem(["probe": "generic"], "s", in: memory)
        return "\(try client.search(["probe": "generic", "xdg:schema": "org.freedesktop.Secret.Generic"]).unlocked == [item])"
    },
    Probe("public key with a leading zero") { client in
        let key = DBusValue.variant(signature: "ay", .bytes([0] + Array(repeating: 2, count: 128)))
        let reply = try outcome(client, Desktop.root, .service, "OpenSession", [.text(Desktop.agreement), key], "sv")
        return reply.contains("Error") ? reply : "accepted"
    },
    Probe("unlocking an item and something unknown") { client in
        let item = try client.createItem(["probe": "unlocked together"], "s")
        let paths = DBusValue.list([.text(item), .text("\(Desktop.root)/collection/none")])
        return try outcome(client, Desktop.root, .service, "Unlock", [paths], "ao")
    },
    Probe("secret of a collection") { try outcome($0, Desktop.login, .item, "GetSecret", [.text($0.session)], "o") },
    Probe("label of a new item, of another type") { client in
        let label = DBusValue.list([.text("org.freedesktop.Secret.Item.Label"), .variant(signature: "b", .number(1))])
        return try outcome(
            client, Desktop.login, .collection, "CreateItem",
            [.list([label]), client.secret([1]), .number(0)], SecretClient.itemSignature)
    },
    Probe("deleting the collection in memory", differs: "it always exists") {
        try outcome($0, memory, .collection, "Delete")
    },
]

/// Asked while the collection `login` is locked, with an item of the attribute `locked`.
private let lockedProbes: [Probe] = [
    Probe("search while locked") { client in
        let found = try client.search(["locked": "1"])
        return "\(found.unlocked.count) \(found.locked.count) \(try client.search(["locked": "1"], in: Desktop.login).count)"
    },
    Probe("properties of a locked item") { client in
        let item = try lockedItem(client)
        return try ["Locked", "Label", "Attributes"].map { "\(try client.property($0, of: item, .item))" }.joined(separator: " ")
    },
    Probe("lock of a collection") { "\(try $0.property("Locked", of: Desktop.login, .collection))" },
    Probe("secret of a locked item") {
        try outcome($0, try lockedItem($0), .item, "GetSecret", [.text($0.session)], "o")
    },
    Probe("secret of a locked item in an unknown session") {
        try outcome($0, try lockedItem($0), .item, "GetSecret", [.text("\(Desktop.root)/session/s99999")], "o")
    },
    Probe("secrets of locked items") {
        try outcome($0, Desktop.root, .service, "GetSecrets", [.list([.text(try lockedItem($0))]), .text($0.session)], "aoo")
    },
    Probe("new item in a locked collection") {
        try outcome($0, Desktop.login, .collection, "CreateItem", $0.itemArguments([:], $0.secret([1])), SecretClient.itemSignature)
    },
    Probe("new secret of a locked item") {
        try outcome($0, try lockedItem($0), .item, "SetSecret", [$0.secret([1])], "(oayays)")
    },
    Probe("new label of a locked item") {
        try $0.setProperty("Label", of: try lockedItem($0), .item, "s", .text("x")) ?? "changed"
    },
    Probe("new attributes of a locked item") {
        try $0.setProperty("Attributes", of: try lockedItem($0), .item, "a{ss}", SecretClient.attributes(["a": "b"])) ?? "changed"
    },
    Probe("deleting a locked item") { try outcome($0, try lockedItem($0), .item, "Delete") },
    Probe("new label of a locked collection") {
        try $0.setProperty("Label", of: Desktop.login, .collection, "s", .text("x")) ?? "changed"
    },
    Probe("locking what is locked") { try outcome($0, Desktop.root, .service, "Lock", [.list([.text(Desktop.login)])], "ao") },
    Probe("locking an item") { try outcome($0, Desktop.root, .service, "Lock", [.list([.text(try lockedItem($0))])], "ao") },
    Probe("locking what is unknown") {
        try outcome($0, Desktop.root, .service, "Lock", [.list([.text("\(Desktop.root)/collection/none")])], "ao")
    },
    Probe("unlocking with a prompt that cannot be shown") { client in
        let unlocking = try client.unlock([Desktop.login])
        let completion = try client.complete(unlocking.prompt)
        let path = try outcome(client, unlocking.prompt, .prompt, "Dismiss")
        return "\(unlocking.unlocked) \(completion.isDismissed) \(completion.result) \(path)"
    },
    Probe("dismissing a prompt that is not shown") { client in
        let prompt = try client.unlock([Desktop.login]).prompt
        try client.connection.subscribe(path: prompt, interface: SecretClient.Interface.prompt.rawValue, "Completed")
        let reply = try outcome(client, prompt, .prompt, "Dismiss")
        return "\(reply) \(try client.completion())"
    },
    Probe("dismissing a prompt of another program") { client in
        try outcome(try client.another(), try client.unlock([Desktop.login]).prompt, .prompt, "Dismiss")
    },
    Probe("showing a prompt of another program") { client in
        try outcome(try client.another(), try client.unlock([Desktop.login]).prompt, .prompt, "Prompt", [.text("")], "s")
    },
    Probe("the collection in memory while the other one is locked") { client in
        let item = try client.createItem(["in": "memory"], "s", in: memory)
        return try client.secret(of: item).text
    },
]

private func lockedItem(_ client: SecretClient) throws -> String {
    try #require(try client.search(["locked": "1"], in: Desktop.login).first)
}

@Suite("Comparison with GNOME Keyring", .blocking, .requiresMessageBus, .requiresGNOMEKeyring)
struct ComparisonTests {
    @Test("Both answer each probe in the same way, or differ for the given reason")
    func comparison() throws {
        try compare(try Desktop().client(), try Desktop(keyring: .gnome).client(), probes)
    }

    @Test("So they do while they are locked")
    func whileLocked() throws {
        let desktop = try Desktop()
        let clients = (ours: try desktop.client(), theirs: try Desktop(keyring: .gnome).client())
        for client in [clients.ours, clients.theirs] { _ = try client.createItem(["locked": "1"], "secret", label: "Locked") }
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        #expect(try clients.theirs.lock([Desktop.login]) == [Desktop.login])
        #expect(waitUntil { (try? clients.ours.property("Locked", of: Desktop.login, .collection).boolean) == true })
        try compare(clients.ours, clients.theirs, lockedProbes)
    }

    private func compare(_ ours: SecretClient, _ theirs: SecretClient, _ probes: [Probe]) throws {
        for probe in probes {
            let answers = (try probe.answer(ours), try probe.answer(theirs))
            if let difference = probe.difference {
                #expect(answers.0 != answers.1, "\(probe.name) does not differ any more: \(difference)")
            } else {
                #expect(answers.0 == answers.1, "\(probe.name)")
            }
        }
    }
}
#endif
