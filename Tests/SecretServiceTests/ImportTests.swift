// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("Importing from another keyring", .blocking, .requiresMessageBus, .requiresGNOMEKeyring)
struct ImportTests {
    private func runImport(from desktop: Desktop, into home: String) throws -> (ending: ChildProcess.Ending, output: String) {
        try ChildProcess.run(
            try BuiltProgram.path(of: "keychain-secret-service"), ["--import"],
            environment: desktop.environment.merging(["KEYCHAIN_HOME": home]) { $1 })
    }

    @Test("The items of GNOME Keyring are copied with their collections, also those with equal attributes, and only once")
    func gnomeKeyring() throws {
        let source = try Desktop(keyring: .gnome)
        let client = try source.client()
        for (attributes, secret) in [(["a": "1"], "first"), (["a": "1"], "second"), (["a": "1", "b": "2"], "third"), ([:], "")] {
            _ = try client.createItem(attributes, secret, label: "label \(secret)")
        }
        _ = try client.createItem(["a": "1"], "in memory", in: "\(Desktop.root)/collection/session")
        let target = try Desktop()
        let reader = try target.client()
        let first = try runImport(from: source, into: target.home)
        #expect(first.ending == .exited(0) && first.output == "copied: 4\npresent: 0\n", "\(first.output)")
        #expect(waitUntil { (try? reader.search([:]).unlocked.count) == 4 })
        func secrets(_ attributes: [String: String]) throws -> [String] {
            try reader.search(attributes).unlocked.map { try reader.secret(of: $0).text }
        }
        #expect(try secrets(["a": "1"]) == ["first", "second", "third"] && secrets(["b": "2"]) == ["third"])
        let item = try #require(try reader.search(["b": "2"]).unlocked.first)
        #expect(try reader.property("Label", of: item, .item).text == "label third")
        let second = try runImport(from: source, into: target.home)
        #expect(second.ending == .exited(0) && second.output == "copied: 0\npresent: 4\n", "\(second.output)")
        #expect(try client.search([:]).unlocked.count == 5)
    }

    @Test("Applications in a sandbox get the secrets here that GNOME Keyring has given them, unless they have others here")
    func applications() throws {
        let source = try Desktop(keyring: .gnome)
        let frontEnd = try PortalFrontEnd(source.environment)
        let secret = try frontEnd.secret(of: "org.example.Mail", backEnd: ActivatingBus.name)
        let other = try frontEnd.secret(of: "org.example.Other", backEnd: ActivatingBus.name)
        let target = try Desktop()
        let reader = try PortalFrontEnd(target.environment)
        let own = try reader.secret(of: "org.example.Other")
        // Until its next start, GNOME Keyring lists these items without serving them.
        let early = try runImport(from: source, into: target.home)
        #expect(early.ending == .exited(1) && early.output.contains("log out"), "\(early.output)")
        try source.restartBridge()
        #expect(try runImport(from: source, into: target.home).output == "copied: 2\npresent: 0\n")
        #expect(try reader.secret(of: "org.example.Mail") == secret)
        #expect(try reader.secret(of: "org.example.Other") == own && own != other)
    }

    @Test("After a repeated import programs get the secret that has changed meanwhile, and the former one is kept")
    func changedSince() throws {
        let source = try Desktop(keyring: .gnome)
        let former = try source.client()
        let target = try Desktop()
        for secret in ["old", "new", "new"] {
            // GNOME Keyring has no items for a moment when it reads its file again.
            _ = try former.createItem(["a": "1"], secret, label: "Mail", replaces: true)
            #expect(try waitUntil { try runImport(from: source, into: target.home).ending == .exited(0) })
        }
        let client = try target.client()
        // The keyring reads what another process has stored a moment later.
        #expect(waitUntil { (try? client.search(["a": "1"]).unlocked.map { try client.secret(of: $0).text }) == ["new", "old"] })
        // What a program of the new keyring has changed later stays what programs get.
        func modified(_ reader: SecretClient) throws -> UInt64 {
            let item = try #require(try reader.search(["a": "1"]).unlocked.first)
            guard case .variant(_, .number(let seconds)) = try reader.property("Modified", of: item, .item) else { return 0 }
            return seconds
        }
        let there = try modified(former)
        #expect(
            try waitUntil {
                _ = try client.createItem(["a": "1"], "newest", label: "Mail", replaces: true)
                return try modified(client) > there
            })
        #expect(try waitUntil { try runImport(from: source, into: target.home).ending == .exited(0) })
        let first = try #require(try client.search(["a": "1"]).unlocked.first)
        #expect(try client.secret(of: first).text == "newest")
    }

    @Test("A locked collection is not imported, and nothing else is")
    func locked() throws {
        let source = try Desktop(keyring: .gnome)
        let client = try source.client()
        _ = try client.createItem(["a": "1"], "secret")
        _ = try client.lock([Desktop.login])
        let target = try Desktop()
        #expect(try runImport(from: source, into: target.home).ending == .exited(1))
        #expect(try target.client().search([:]).unlocked == [])
    }

    @Test("A locked collection is imported after its prompt, and named if the prompt was dismissed", arguments: [true, false])
    func prompt(_ isAnswered: Bool) throws {
        let program = try pinentry(Desktop.passcode)
        let source = try Desktop(pinentry: isAnswered ? program.path : "/usr/bin/false")
        _ = try source.client().createItem(["a": "1"], "secret", label: "Mail")
        let keychain = try Desktop.keychain(home: source.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        let target = try Desktop()
        let imported = try runImport(from: source, into: target.home)
        if isAnswered {
            #expect(imported.ending == .exited(0) && imported.output == "copied: 1\npresent: 0\n", "\(imported.output)")
        } else {
            #expect(imported.ending == .exited(1) && imported.output.contains("\"Login\""), "\(imported.output)")
            #expect(try target.client().search([:]).unlocked == [])
        }
    }

    @Test("Collections other than the default one are found by their labels, and made if they are missing")
    func collections() throws {
        let source = try Desktop()
        let client = try source.client()
        let label = DBusValue.list([.list([.text("org.freedesktop.Secret.Collection.Label"), .variant(signature: "s", .text("Work"))])])
        let work = try #require(try client.call(Desktop.root, .service, "CreateCollection", [label, .text("")], "a{sv}s").first?.text)
        _ = try client.createItem(["a": "1"], "work", in: work)
        _ = try client.createItem(["a": "1"], "home")
        let target = try Desktop()
        let reader = try target.client()
        for output in ["copied: 2\npresent: 0\n", "copied: 0\npresent: 2\n"] {
            #expect(try runImport(from: source, into: target.home).output == output)
        }
        #expect(waitUntil { (try? reader.search(["a": "1"], in: work).count) == 1 })
        #expect(try reader.property("Label", of: work, .collection).text == "Work")
        #expect(try reader.search(["a": "1"], in: Desktop.login).count == 1)
    }
}
#endif
