// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import ValetCLI

// Each test is named after what broke with another keyring.

@Suite("Reports from the field", .blocking, .requiresMessageBus)
struct FieldReportTests {
    private typealias Interface = SecretClient.Interface

    @Test("Chromium and gh: who unlocks the collection alone reads its items (KeePassXC 13596, go-keyring 88)")
    func itemsFollowTheirCollection() throws {
        let pinentry = try pinentry(Desktop.passcode)
        let desktop = try Desktop(pinentry: pinentry.path)
        let client = try desktop.client()
        let item = try client.createItem(["application": "chrome"], "key")
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        #expect(waitUntil { (try? client.property("Locked", of: Desktop.login, .collection).boolean) == true })
        #expect(try client.property("Locked", of: item, .item).boolean == true)
        let prompt = try client.unlock([Desktop.login]).prompt
        #expect(try client.complete(prompt).isDismissed == false)
        #expect(try client.property("Locked", of: item, .item).boolean == false)
        #expect(try client.secret(of: item).text == "key")
        #expect(try client.search(["application": "chrome"]).unlocked == [item])
    }

    @Test("SecretStorage: no item of an unlocked collection is locked (KeePassXC 7653)")
    func itemsAreUnlocked() throws {
        let client = try Desktop().client()
        let items = try (0..<3).map { try client.createItem(["n": "\($0)"], "a") }
        for item in items { #expect(try client.property("Locked", of: item, .item).boolean == false) }
        #expect(try client.search([:]).locked == [])
    }

    @Test("Nextcloud, Element, Evolution: the alias is an object, with the items below it (KeePassXC 3860, 7839, 13524)")
    func aliasIsAnObject() throws {
        let client = try Desktop().client()
        let alias = "\(Desktop.root)/aliases/default"
        #expect(try client.property("Label", of: alias, .collection).text == "Login")
        let item = try client.createItem(["a": "b"], "secret", in: alias)
        #expect(item.hasPrefix(Desktop.login + "/"))
        #expect(try client.search(["a": "b"], in: alias) == [item])
        let below = alias + item.dropFirst(Desktop.login.count)
        #expect(try client.secret(of: below).text == "secret")
        #expect(try client.itemAttributes(below) == ["a": "b"])
        #expect(try client.call(alias, .properties, "GetAll", [.text(Interface.collection.rawValue)], "s").first?["Items"]?.texts == [item])
    }

    @Test("Old SecretStorage: an item is created at once, without a prompt (SecretStorage 39, keyring 589)")
    func noPromptForItems() throws {
        let client = try Desktop().client()
        let reply = try client.call(
            Desktop.login, .collection, "CreateItem", client.itemArguments([:], client.secret([1])), SecretClient.itemSignature)
        #expect(reply.first?.text?.hasPrefix(Desktop.login + "/") == true && reply.last?.text == "/")
    }

    @Test("SecretStorage before 3.4.0: a path without an object is an unknown method (SecretStorage 43)")
    func deadPaths() throws {
        let client = try Desktop().client()
        let item = try client.createItem([:], "a")
        #expect(try client.error(item, .item, "Delete") == nil)
        let paths = [item, "\(Desktop.root)/collection/none", "\(Desktop.root)/aliases/none", "\(Desktop.root)/aliases/none/1"]
        for path in paths {
            let interface = path.hasSuffix("none") ? Interface.collection : .item
            #expect(try client.error(path, interface, "Delete") == "DBus.Error.UnknownMethod")
            #expect(
                try client.error(path, .properties, "Get", [.text(interface.rawValue), .text("Label")], "ss") == "DBus.Error.UnknownMethod")
            #expect(try client.error(path, .properties, "GetAll", [.text(interface.rawValue)], "s") == "DBus.Error.UnknownMethod")
        }
    }

    @Test("kwalletd6: there is a default collection before anything was stored, and after it was deleted (KeePassXC 12755)")
    func defaultCollectionExists() throws {
        let client = try Desktop().client()
        #expect(try client.call(Desktop.root, .service, "ReadAlias", [.text("default")], "s").first?.text == Desktop.login)
        let item = try client.createItem([:], "a")
        #expect(try client.call(Desktop.login, .collection, "Delete").first?.text == "/")
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == "DBus.Error.UnknownMethod")
        #expect(try client.call(Desktop.root, .service, "ReadAlias", [.text("default")], "s").first?.text == Desktop.login)
        #expect(try client.createItem([:], "b").hasPrefix(Desktop.login))
    }

    @Test("gvfs: there is a collection `session`, which ends with the process (KeePassXC 13568)")
    func sessionCollection() throws {
        let desktop = try Desktop()
        let collection = "\(Desktop.root)/collection/session"
        var client = try desktop.client()
        let item = try client.createItem(["a": "b"], "secret", in: collection)
        #expect(try client.secret(of: item).text == "secret" && client.search(["a": "b"]).unlocked == [item])
        try desktop.restartBridge()
        client = try desktop.client()
        #expect(try client.property("Items", of: collection, .collection).texts == [])
        #expect(try client.search([:]).unlocked == [])
    }

    @Test("A dismissed prompt completes with the type of its success, which libsecret needs (KWallet 4e7362e5)")
    func dismissedPrompt() throws {
        let client = try Desktop(hasPasscode: true).client()
        let prompt = try client.unlock([Desktop.login]).prompt
        let completion = try client.complete(prompt)
        #expect(completion.isDismissed && completion.result == .variant(signature: "ao", .list([])))
        #expect(try client.error(prompt, .prompt, "Prompt", [.text("")], "s") == "DBus.Error.UnknownMethod")
    }

    @Test("A second keyring ends at once and with a failure, and lets no caller wait (KWallet c9a9252d)")
    func nameIsTaken() throws {
        let desktop = try Desktop()
        let second = try desktop.startSecondBridge()
        #expect(try second.waitUntilEnded() == .exited(1))
        #expect(try desktop.client().search([:]).unlocked == [])
    }

    @Test("A session ends with its connection, and not before (oo7 530)")
    func sessionLifetime() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        var other: SecretClient? = try desktop.client()
        let path = try #require(other?.session)
        #expect(try client.error(path, .session, "Close") == "DBus.Error.AccessDenied")
        other = nil
        #expect(waitUntil { (try? client.error(path, .session, "Close")) == "DBus.Error.UnknownMethod" })
        let item = try client.createItem([:], "a")
        #expect(try client.secret(of: item).text == "a")
        #expect(try client.error(client.session, .session, "Close") == nil)
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == "Secret.Error.NoSession")
    }

    @Test("nm-applet: a secret that is there is never answered with an empty one (KeePassXC 9884)")
    func neverEmpty() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let item = try client.createItem(["connection-uuid": "1"], "wifi")
        for _ in 0..<5 {
            #expect(try client.secret(of: item).text == "wifi")
            let reply = try client.call(
                Desktop.root, .service, "GetSecrets", [.list([.text(item)]), .text(client.session)], "aoo")
            #expect(reply.first?[item]?.list?[2].bytes == Array("wifi".utf8))
        }
        // The item has lost its secret.
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.delete(
            DeleteRequest(
                query: ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.service: .string("secrets/login")]))))
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == "DBus.Error.Failed")
        #expect(
            try client.error(Desktop.root, .service, "GetSecrets", [.list([.text(item)]), .text(client.session)], "aoo")
                == "DBus.Error.Failed")
        #expect(try client.createItem(["connection-uuid": "1"], "new", replaces: true) == item)
        #expect(try client.secret(of: item).text == "new")
    }

    @Test("A search of a locked keychain finds the items, also after a start in which it was never unlocked (KeePassXC 4443, 6942)")
    func lockedSearch() throws {
        let desktop = try Desktop()
        var client = try desktop.client()
        let items = try ["1", "2"].map { try client.createItem(["a": "b", "n": $0], "secret") }
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        for _ in 0..<2 {
            #expect(waitUntil { (try? client.search(["a": "b"]).locked) == items })
            #expect(try client.search(["n": "2"], in: Desktop.login) == [items[1]])
            #expect(try client.itemAttributes(items[0]) == ["a": "b", "n": "1"])
            #expect(try client.error(items[0], .item, "GetSecret", [.text(client.session)], "o") == "Secret.Error.IsLocked")
            try desktop.restartBridge()
            client = try desktop.client()
        }
    }

    @Test("Prompts that are shown at one time share one dialog (KeePassXC 7753, 7574, 7989)")
    func oneDialog() throws {
        let pinentry = try ScriptedPinentryProgram(
            ["say OK", "until GETPIN", "sleep 300", "say D \(Desktop.passcode)", "say OK"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let clients = try (0..<3).map { _ in try desktop.client() }
        for client in clients {
            let prompt = try client.unlock([Desktop.login]).prompt
            try client.connection.subscribe(path: prompt, interface: Interface.prompt.rawValue, "Completed")
            _ = try client.call(prompt, .prompt, "Prompt", [.text("")], "s")
        }
        for client in clients {
            let completion = try client.completion()
            #expect(!completion.isDismissed && completion.result == .variant(signature: "ao", .list([.text(Desktop.login)])))
        }
        #expect(pinentry.log.split(separator: "\n").count { $0 == "GETPIN" } == 1)
    }

    @Test("Every error has a text, without which libsecret crashes (KeePassXC 3861, 4004)")
    func errorsHaveTexts() throws {
        let desktop = try Desktop()
        let failing = [
            [Desktop.root, "Service.OpenSession", "bogus", "<''>"], [Desktop.root, "Service.SetAlias", "a", "/none"],
            [Desktop.login, "Collection.CreateItem", "{}", "('/', [], [], '')", "false"], ["\(Desktop.login)/1", "Item.Delete"],
        ]
        for words in failing {
            let result = try desktop.run(
                "gdbus",
                ["call", "--session", "--dest", "org.freedesktop.secrets", "--object-path", words[0], "--method"]
                    + ["org.freedesktop.Secret.\(words[1])"] + words.dropFirst(2))
            // As GLib shows it: the name of the error, a colon, and the text.
            #expect(result.output.firstMatch(of: /GDBus\.Error:[A-Za-z.]+: \S+/) != nil, "\(result.output)")
        }
    }

    @Test("Secrets are bytes, whatever their content type says (KWallet d6e87dc9, 9ce699ca)", arguments: ["text/plain", "data/null", ""])
    func binarySecrets(contentType: String) throws {
        let client = try Desktop().client()
        let bytes = (0...255).map { UInt8($0) } + [0xC3, 0x28, 0]
        let reply = try client.call(
            Desktop.login, .collection, "CreateItem", client.itemArguments([:], client.secret(bytes, contentType)),
            SecretClient.itemSignature)
        let item = try #require(reply.first?.text)
        let parts = try client.call(item, .item, "GetSecret", [.text(client.session)], "o").first?.list
        #expect(parts?[2].bytes == bytes && parts?[3].text == contentType)
    }

    @Test("A refused unlock leaves the secret locked, and is no empty reply (docker-credential-helpers 336)")
    func refusedUnlock() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let item = try client.createItem(["server": "a"], "secret")
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        #expect(waitUntil { (try? client.search([:]).locked) == [item] })
        #expect(try client.complete(try client.unlock([item]).prompt).isDismissed)
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == "Secret.Error.IsLocked")
    }

    @Test("The bridge has the standard name (KeePassXC 12298)")
    func standardName() throws {
        let client = try Desktop().client()
        let owner = try client.connection.call(
            "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", "GetNameOwner",
            [.text("org.freedesktop.secrets")], signature: "s")
        #expect(owner.first?.text?.hasPrefix(":") == true)
    }
}
#endif
