// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import ValetCLI

// What was observed with GNOME Keyring 42.1, which is what programs expect, and where the bridge differs on purpose.

@Suite("Behavior that programs expect", .blocking, .requiresMessageBus)
struct ReferenceBehaviorTests {
    private typealias Interface = SecretClient.Interface

    @Test("An unknown algorithm is not supported, and \"plain\" accepts any input")
    func sessions() throws {
        let client = try Desktop().client()
        #expect(
            try client.error(Desktop.root, .service, "OpenSession", [.text("bogus"), .variant(signature: "s", .text(""))], "sv")
                == "DBus.Error.NotSupported")
        let reply = try client.openSession("plain", .variant(signature: "ay", .bytes([1])))
        #expect(reply.first == .variant(signature: "s", .text("")) && reply.last?.text?.hasPrefix("\(Desktop.root)/session/") == true)
    }

    @Test(
        "Aliases",
        arguments: [("default", Desktop.login), ("login", Desktop.login), ("session", "\(Desktop.root)/collection/session"), ("x", "/")])
    func aliases(name: String, path: String) throws {
        #expect(try Desktop().client().call(Desktop.root, .service, "ReadAlias", [.text(name)], "s").first?.text == path)
    }

    @Test("Other aliases can be set and removed, but only those of a collection, and survive a restart")
    func setAlias() throws {
        let desktop = try Desktop()
        var client = try desktop.client()
        let collection = try #require(
            try client.call(Desktop.root, .service, "CreateCollection", [.list([]), .text("")], "a{sv}s").first?.text)
        #expect(
            try client.error(Desktop.root, .service, "SetAlias", [.text("work"), .text("\(Desktop.root)/collection/none")], "so")
                == "Secret.Error.NoSuchObject")
        for alias in ["work", "default"] {
            #expect(try client.error(Desktop.root, .service, "SetAlias", [.text(alias), .text(collection)], "so") == nil)
        }
        try desktop.restartBridge(signal: 9)
        client = try desktop.client()
        let item = try client.createItem([:], "a", in: "\(Desktop.root)/aliases/work")
        #expect(item.hasPrefix(collection + "/"))
        #expect(try client.call(Desktop.root, .service, "ReadAlias", [.text("default")], "s").first?.text == collection)
        #expect(try client.error(Desktop.root, .service, "SetAlias", [.text("work"), .text("/")], "so") == nil)
        #expect(try client.call(Desktop.root, .service, "ReadAlias", [.text("work")], "s").first?.text == "/")
        #expect(try client.call(collection, .collection, "Delete").first?.text == "/")
        #expect(try client.call(Desktop.root, .service, "ReadAlias", [.text("default")], "s").first?.text == Desktop.login)
    }

    @Test("Without replacement, the same attributes are a second item")
    func secondItem() throws {
        let client = try Desktop().client()
        let items = try ["1", "2"].map { try client.createItem(["k": "1"], $0) }
        #expect(items[0] != items[1])
        #expect(try client.search(["k": "1"]).unlocked == items)
    }

    @Test("A replacement updates the oldest item with exactly these attributes in place, and leaves others alone")
    func replacement() throws {
        let client = try Desktop().client()
        let items = try [["k": "1", "z": "9"], ["k": "1"], ["k": "1"]].map { try client.createItem($0, "old", label: "old") }
        #expect(try client.createItem(["k": "1"], "new", label: "new", contentType: "a/b", replaces: true) == items[1])
        #expect(try items.map { try client.secret(of: $0).text } == ["old", "new", "old"])
        #expect(try client.secret(of: items[1]).contentType == "a/b")
        #expect(try client.property("Label", of: items[1], .item).text == "new")
    }

    @Test("A replacement with a part of an item's attributes is a new item: GNOME Keyring overwrites the other one")
    func noReplacementOfSuperset() throws {
        let client = try Desktop().client()
        let item = try client.createItem(["k": "1", "z": "9"], "old")
        #expect(try client.createItem(["z": "9"], "new", replaces: true) != item)
        #expect(try client.secret(of: item).text == "old" && client.itemAttributes(item) == ["k": "1", "z": "9"])
    }

    @Test("A search finds the items that have all its attributes, compares case, and lists the oldest first")
    func search() throws {
        let client = try Desktop().client()
        let items = try [["a": "1", "b": "2"], ["a": "1"], ["a": "1", "b": "2", "c": "3"], ["A": "1"], [:]].map {
            try client.createItem($0, "s")
        }
        #expect(try client.search(["a": "1"]).unlocked == [items[0], items[1], items[2]])
        #expect(try client.search(["b": "2", "a": "1"]).unlocked == [items[0], items[2]])
        #expect(try client.search(["a": "1", "b": "3"]).unlocked == [])
        #expect(try client.search(["A": "1"]).unlocked == [items[3]])
        #expect(try client.search([:]).unlocked == items && client.search([:], in: Desktop.login) == items)
    }

    @Test("Texts that Unicode takes for equivalent are different attributes")
    func equivalentTexts() throws {
        let client = try Desktop().client()
        let items = try ["e\u{301}", "\u{e9}"].map { try client.createItem(["name": $0], $0, replaces: true) }
        #expect(items[0] != items[1])
        #expect(try client.search(["name": "\u{e9}"]).unlocked == [items[1]])
    }

    @Test("A locked collection refuses secrets and changes")
    func locked() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let item = try client.createItem(["a": "b"], "secret", label: "label")
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        #expect(try client.lock([Desktop.login, "\(Desktop.root)/collection/none"]) == [Desktop.login])
        #expect(try client.property("Locked", of: Desktop.login, .collection).boolean == true)
        #expect(try client.property("Label", of: item, .item).text == "label")
        let secret = client.secret([1])
        let session = DBusValue.text(client.session)
        #expect(try client.error(item, .item, "GetSecret", [session], "o") == "Secret.Error.IsLocked")
        #expect(try client.error(item, .item, "SetSecret", [secret], "(oayays)") == "Secret.Error.IsLocked")
        #expect(try client.error(item, .item, "Delete") == "Secret.Error.IsLocked")
        #expect(try client.error(Desktop.login, .collection, "Delete") == "Secret.Error.IsLocked")
        #expect(try client.setProperty("Label", of: item, .item, "s", .text("x")) == "Secret.Error.IsLocked")
        #expect(try client.setProperty("Label", of: Desktop.login, .collection, "s", .text("x")) == "Secret.Error.IsLocked")
        #expect(
            try client.error(Desktop.login, .collection, "CreateItem", client.itemArguments([:], secret), SecretClient.itemSignature)
                == "Secret.Error.IsLocked")
        let none = "\(Desktop.login)/1"
        let secrets = try client.call(Desktop.root, .service, "GetSecrets", [.list([.text(item), .text(none)]), session], "aoo")
        #expect(secrets.first?.list == [])
        #expect(try client.lock([Desktop.login]) == [Desktop.login])
    }

    @Test("Without a passcode, and for `session`, a lock is acknowledged, and the collection stays unlocked")
    func unlockable() throws {
        let client = try Desktop().client()
        for path in [Desktop.login, "\(Desktop.root)/collection/session"] {
            #expect(try client.lock([path]) == [path])
            #expect(try client.property("Locked", of: path, .collection).boolean == false)
        }
    }

    @Test("Unlocking what is unlocked, unknown, or nothing needs no prompt")
    func unlockUnlocked() throws {
        let client = try Desktop().client()
        let item = try client.createItem([:], "a")
        let unlocked = try client.unlock([Desktop.login, item, "\(Desktop.root)/collection/none", "\(Desktop.root)/aliases/default"])
        #expect(unlocked.unlocked == [Desktop.login, item, "\(Desktop.root)/aliases/default"] && unlocked.prompt == "/")
        let nothing = try client.unlock([])
        #expect(nothing.unlocked == [] && nothing.prompt == "/")
    }

    @Test("Sessions and prompts belong to the connection that made them")
    func foreignSession() throws {
        let desktop = try Desktop(hasPasscode: true)
        let (client, other) = (try desktop.client(), try desktop.client())
        let item = try client.createItem([:], "a", in: "\(Desktop.root)/collection/session")
        #expect(try other.error(item, .item, "GetSecret", [.text(client.session)], "o") == "Secret.Error.NoSession")
        #expect(
            try other.error(
                Desktop.login, .collection, "CreateItem", other.itemArguments([:], other.secret([1], session: client.session)),
                SecretClient.itemSignature) == "Secret.Error.NoSession")
        #expect(try other.error(client.session, .session, "Close") == "DBus.Error.AccessDenied")
        let prompt = try client.unlock([Desktop.login]).prompt
        #expect(try other.error(prompt, .prompt, "Dismiss") == "DBus.Error.AccessDenied")
        #expect(try other.error(prompt, .prompt, "Prompt", [.text("")], "s") == "DBus.Error.AccessDenied")
    }

    @Test("Empty secrets, attributes, and labels, and all content types, are stored as they are")
    func unusualItems() throws {
        let client = try Desktop().client()
        let item = try client.createItem(["": ""], "", label: "", contentType: "text/plain; charset=utf-8")
        let secret = try client.secret(of: item)
        #expect(secret.text == "" && secret.contentType == "text/plain; charset=utf-8")
        #expect(try client.itemAttributes(item) == ["": ""] && client.property("Label", of: item, .item).text == "")
        #expect(try client.search(["": ""]).unlocked == [item])
    }

    @Test("An unknown property of a new item is ignored")
    func unknownProperty() throws {
        let client = try Desktop().client()
        let unknown = DBusValue.list([
            .text("org.example.Unknown"), .variant(signature: "a{si}", .list([.list([.text("a"), .number(1)])])),
        ])
        let item = try client.createItem(["a": "b"], "secret", label: "label", others: [unknown])
        #expect(try client.property("Label", of: item, .item).text == "label")
    }

    @Test("The type of an item is its schema, and setting one sets the other")
    func type() throws {
        let client = try Desktop().client()
        let property = DBusValue.list([.text("org.freedesktop.Secret.Item.Type"), .variant(signature: "s", .text("org.foo"))])
        let item = try client.createItem(["a": "b"], "secret", others: [property])
        #expect(try client.itemAttributes(item) == ["a": "b", "xdg:schema": "org.foo"])
        #expect(try client.property("Type", of: item, .item).text == "org.foo")
        #expect(
            try client.setProperty("Attributes", of: item, .item, "a{ss}", SecretClient.attributes(["xdg:schema": "org.bar"])) == nil)
        #expect(try client.property("Type", of: item, .item).text == "org.bar")
        #expect(try client.setProperty("Type", of: item, .item, "s", .text("org.baz")) == nil)
        #expect(try client.search(["xdg:schema": "org.baz"]).unlocked == [item] && client.search(["a": "b"]).unlocked == [])
    }

    @Test("An item without a schema keeps its attributes, and is found by the generic schema")
    func genericSchema() throws {
        let client = try Desktop().client()
        let items = try [["a": "b"], ["a": "b", "xdg:schema": "org.freedesktop.Secret.Generic"], ["a": "b", "xdg:schema": "org.foo"]].map {
            try client.createItem($0, "s")
        }
        #expect(try client.itemAttributes(items[0]) == ["a": "b"])
        #expect(try client.search(["a": "b", "xdg:schema": "org.freedesktop.Secret.Generic"]).unlocked == [items[0], items[1]])
        #expect(try client.search(["xdg:schema": "org.freedesktop.Secret.Generic"]).unlocked == [items[0], items[1]])
    }

    @Test("A collection is created at once, with a path from its label; two with one label have two paths")
    func collections() throws {
        let desktop = try Desktop()
        var client = try desktop.client()
        let label = DBusValue.list([.list([.text("org.freedesktop.Secret.Collection.Label"), .variant(signature: "s", .text("My wörk"))])])
        let paths = try (0..<2).map { _ in
            try client.call(Desktop.root, .service, "CreateCollection", [label, .text("")], "a{sv}s").compactMap(\.text)
        }
        #expect(paths == [["\(Desktop.root)/collection/My_20w_c3_b6rk", "/"], ["\(Desktop.root)/collection/My_20w_c3_b6rk_2", "/"]])
        let item = try client.createItem(["a": "b"], "secret", in: paths[0][0])
        try desktop.restartBridge(signal: 9)
        client = try desktop.client()
        #expect(try client.property("Label", of: paths[0][0], .collection).text == "My wörk")
        let session = "\(Desktop.root)/collection/session"
        #expect(try client.property("Collections", of: Desktop.root, .service).texts == [Desktop.login, paths[0][0], paths[1][0], session])
        #expect(try client.secret(of: item).text == "secret")
        #expect(try client.call(paths[0][0], .collection, "Delete").first?.text == "/")
        #expect(try client.property("Collections", of: Desktop.root, .service).texts == [Desktop.login, paths[1][0], session])
        #expect(try client.search(["a": "b"]).unlocked == [])
    }

    @Test("A collection with the alias of another one is that one")
    func collectionWithAlias() throws {
        let client = try Desktop().client()
        let reply = try client.call(Desktop.root, .service, "CreateCollection", [.list([]), .text("default")], "a{sv}s")
        #expect(reply.compactMap(\.text) == [Desktop.login, "/"])
    }

    @Test(
        "Every object describes itself and answers a ping",
        arguments: [(0, "Service"), (1, "Collection"), (2, "Item"), (3, "Session"), (4, "Prompt")])
    func interfaces(index: Int, name: String) throws {
        let desktop = try Desktop(hasPasscode: true)
        let client = try desktop.client()
        let item = try client.createItem([:], "a", in: "\(Desktop.root)/collection/session")
        let prompt = try client.unlock([Desktop.login]).prompt
        let path = [Desktop.root, Desktop.login, item, client.session, prompt][index]
        let description = try #require(try client.call(path, .introspectable, "Introspect").first?.text)
        #expect(description.contains("<interface name=\"org.freedesktop.Secret.\(name)\">"))
        let others = ["Service", "Collection", "Item", "Session", "Prompt"].filter { $0 != name }
        for other in others { #expect(!description.contains("org.freedesktop.Secret.\(other)\">")) }
        #expect(try client.error(path, .peer, "Ping") == nil)
        #expect(try client.error(path, .properties, "GetAll", [.text("org.freedesktop.Secret.\(name)")], "s") == nil)
    }
}
#endif
