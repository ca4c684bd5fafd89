// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
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

private func plain(_ text: String) -> String {
    text.replacing(/(collection\/[A-Za-z0-9_]+|aliases\/[a-z]+)\/[0-9]+/) { "\($0.output.1)/N" }
        .replacing(/(session|prompt)\/[a-z][0-9]+/) { "\($0.output.1)/N" }
}

/// Each with collections of its own, so that no probe depends on another one.
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
        let path = "\(Desktop.root)/collection/session"
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
        let item = try client.createItem(["probe": "type"], "s", others: [property])
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
    Probe("deleting the collection in memory", differs: "it always exists") {
        try outcome($0, "\(Desktop.root)/collection/session", .collection, "Delete")
    },
]

@Suite("Comparison with GNOME Keyring", .blocking, .requiresMessageBus, .requiresGNOMEKeyring)
struct ComparisonTests {
    @Test("Both answer each probe in the same way, or differ for the given reason")
    func comparison() throws {
        let (ours, theirs) = (try Desktop().client(), try Desktop(keyring: .gnome).client())
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
