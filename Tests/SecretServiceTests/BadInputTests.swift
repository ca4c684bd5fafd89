// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("Bad input on the bus", .blocking, .requiresMessageBus)
struct BadInputTests {
    /// Arguments of each type of D-Bus, with their signatures.
    private static let samples: [(DBusValue, String)] = [
        (.number(1), "y"), (.number(1), "b"), (.number(1), "n"), (.number(1), "q"), (.number(1), "i"), (.number(1), "u"), (.number(1), "x"),
        (.number(1), "t"), (.number(0), "d"), (.text("a"), "s"), (.text("/"), "o"), (.text("s"), "g"), (.list([]), "as"), (.list([]), "ao"),
        (.bytes([]), "ay"), (.list([]), "a{ss}"), (.list([]), "a{sv}"),
        (.list([.text("/"), .bytes([]), .bytes([]), .text("")]), "(oayays)"),
        (.variant(signature: "s", .text("")), "v"),
    ]

    @Test("A method with arguments of another type is refused, and the bridge goes on")
    func wrongTypes() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let item = try client.createItem(["a": "b"], "secret")
        let text = DBusValue.variant(signature: "s", .text(String(repeating: "é", count: 50_000)))
        let label = DBusValue.list([.list([.text("org.freedesktop.Secret.Collection.Label"), text])])
        for _ in 0..<2 { _ = try client.call(Desktop.root, .service, "CreateCollection", [label, .text("")], "a{sv}s") }
        #expect(try client.property("Collections", of: Desktop.root, .service).list?.count == 4)
        let methods: [(String, SecretClient.Interface, String, String)] = [
            (Desktop.root, .service, "OpenSession", "sv"), (Desktop.root, .service, "CreateCollection", "a{sv}s"),
            (Desktop.root, .service, "SearchItems", "a{ss}"), (Desktop.root, .service, "Unlock", "ao"),
            (Desktop.root, .service, "Lock", "ao"), (Desktop.root, .service, "GetSecrets", "aoo"),
            (Desktop.root, .service, "ReadAlias", "s"), (Desktop.root, .service, "SetAlias", "so"),
            (Desktop.login, .collection, "SearchItems", "a{ss}"), (Desktop.login, .collection, "CreateItem", "a{sv}(oayays)b"),
            (Desktop.login, .collection, "Delete", ""), (item, .item, "GetSecret", "o"), (item, .item, "SetSecret", "(oayays)"),
            (item, .item, "Delete", ""), (client.session, .session, "Close", ""),
        ]
        for (path, interface, member, signature) in methods {
            for (value, type) in Self.samples where type != signature {
                #expect(try client.error(path, interface, member, [value], type) == "DBus.Error.InvalidArgs", "\(member) \(type)")
            }
            #expect(try client.error(path, interface, member + "x") == "DBus.Error.UnknownMethod")
        }
        #expect(try client.secret(of: item).text == "secret" && client.search([:]).unlocked == [item])
    }

    @Test("A property with a value of another type is refused, in a call and in a new item")
    func wrongPropertyTypes() throws {
        let client = try Desktop().client()
        let item = try client.createItem(["a": "b"], "secret", label: "label")
        for (name, expected) in [("Label", "s"), ("Attributes", "a{ss}"), ("Type", "s")] {
            for (value, type) in Self.samples where type != expected {
                #expect(try client.setProperty(name, of: item, .item, type, value) == "DBus.Error.InvalidArgs", "\(name) \(type)")
                let property = DBusValue.list([.text("org.freedesktop.Secret.Item.\(name)"), .variant(signature: type, value)])
                #expect(
                    try client.error(
                        Desktop.login, .collection, "CreateItem", [.list([property]), client.secret([1]), .number(0)],
                        SecretClient.itemSignature) == "DBus.Error.InvalidArgs", "\(name) \(type)")
            }
        }
        for name in ["Locked", "Created", "Modified"] {
            #expect(try client.setProperty(name, of: item, .item, "b", .number(1)) == "DBus.Error.PropertyReadOnly")
        }
        #expect(try client.itemAttributes(item) == ["a": "b"] && client.search([:]).unlocked == [item])
    }

    @Test("A secret of a mebibyte is stored and read, alone and among others")
    func largeSecret() throws {
        let client = try Desktop().client()
        let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0) }
        let item = try #require(
            try client.call(
                Desktop.login, .collection, "CreateItem", client.itemArguments([:], client.secret(bytes)), SecretClient.itemSignature
            ).first?.text)
        let reply = try client.call(Desktop.root, .service, "GetSecrets", [.list([.text(item)]), .text(client.session)], "aoo")
        #expect(reply.first?[item]?.list?[2].bytes == bytes)
    }

    @Test("An item with a hundred thousand attributes does not stop the bridge")
    func manyAttributes() throws {
        let client = try Desktop().client()
        let attributes = Dictionary(uniqueKeysWithValues: (0..<100_000).map { ("name\($0)", "value") })
        let item = try client.createItem(attributes, "secret")
        #expect(try client.itemAttributes(item) == attributes)
        #expect(try client.search(["name99999": "value", "name0": "value"]).unlocked == [item])
        #expect(try client.createItem(attributes, "other", replaces: true) == item)
    }

    @Test("Thousands of items are listed in one reply, and found by their attributes")
    func manyItems() throws {
        let desktop = try Desktop()
        let count = Scale.pick(1_200, full: 10_000)
        let client = try desktop.client()
        let items = try (0..<count).map { try client.createItem(["kind": "many", "n": "\($0)"], "secret") }
        #expect(try client.search(["kind": "many"]).unlocked == items)
        #expect(try client.property("Items", of: Desktop.login, .collection).texts == items)
        #expect(try client.search(["n": "\(count / 2)"]).unlocked == [items[count / 2]])
        let reply = try client.call(Desktop.root, .service, "GetSecrets", [.list(items.map(DBusValue.text)), .text(client.session)], "aoo")
        #expect(reply.first?.list?.count == count)
    }

    @Test("Text that is not UTF-8 never reaches the bridge: the bus ends the connection of its sender")
    func invalidText() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let result = try desktop.run(
            "python3",
            [
                "-c",
                """
                import os, socket, sys
                bus = socket.socket(socket.AF_UNIX); bus.connect(os.environ["DBUS_SESSION_BUS_ADDRESS"][len("unix:path="):])
                bus.sendall(b"\\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\\r\\n"); bus.recv(99); bus.sendall(b"BEGIN\\r\\n")
                def pad(data, size): return data + bytes(-len(data) % size)
                def text(value): return len(value).to_bytes(4, "little") + value + bytes(1)
                def field(code, kind, value): return bytes([code, 1]) + kind + bytes(1) + text(value)
                def send(fields, body):
                    header = b"".join(pad(f, 8) for f in fields[:-1]) + fields[-1]
                    head = b"l\\1\\0\\1" + len(body).to_bytes(4, "little") + b"\\1\\0\\0\\0" + len(header).to_bytes(4, "little")
                    bus.sendall(pad(head + header, 8) + body)
                bus_name = b"org.freedesktop.DBus"
                send([field(1, b"o", b"/org/freedesktop/DBus"), field(2, b"s", bus_name), field(3, b"s", b"Hello"), field(6, b"s", bus_name)], b"")
                bus.recv(4096)
                send([field(1, b"o", b"/org/freedesktop/secrets"), field(2, b"s", b"org.freedesktop.Secret.Service"),
                      field(3, b"s", b"ReadAlias"), field(6, b"s", b"org.freedesktop.secrets"), b"\\x08\\1g\\0\\1s\\0"], text(b"\\xc3\\x28"))
                while True:
                    received = bus.recv(4096)
                    if not received: break
                print("ended")
                """,
            ])
        #expect(result.ending == .exited(0) && result.output.contains("ended"))
        #expect(try client.search([:]).unlocked == [])
    }
}
#endif
