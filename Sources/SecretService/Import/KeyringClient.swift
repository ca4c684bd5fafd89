// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// A client of the keyring that a session has, which only reads.
struct KeyringClient {
    struct Item {
        let label: String
        let lookup: ItemLookup
        let secret: ItemSecret
    }

    private let bus: Bus
    private let session: String

    /// Opens a session without encryption, as most programs do.
    init(_ bus: Bus) throws(KeychainFailure) {
        self.bus = bus
        session = try bus.call(
            "OpenSession", at: ObjectPath.root, SecretServiceBridge.Interface.service,
            { message throws(BusError) in
                try message.append("plain")
                try message.appendContainer(BusType.variant, "s") { () throws(BusError) in try message.append("") }
            },
            { reply throws(BusError) in
                try reply.skipVariant()
                return try reply.readPath()
            })
    }

    func collections() throws(KeychainFailure) -> [String] {
        try property("Collections", of: ObjectPath.root, SecretServiceBridge.Interface.service, "ao") { reply throws(BusError) in
            try reply.readPaths()
        }
    }

    func collection(alias: String) throws(KeychainFailure) -> String {
        try bus.call(
            "ReadAlias", at: ObjectPath.root, SecretServiceBridge.Interface.service,
            { message throws(BusError) in try message.append(alias) }, { reply throws(BusError) in try reply.readPath() })
    }

    func label(ofCollection path: String) throws(KeychainFailure) -> String {
        try property("Label", of: path, SecretServiceBridge.Interface.collection, "s") { reply throws(BusError) in try reply.readText() }
    }

    func isLocked(collection path: String) throws(KeychainFailure) -> Bool {
        try property("Locked", of: path, SecretServiceBridge.Interface.collection, "b") { reply throws(BusError) in
            try reply.readBoolean()
        }
    }

    func items(ofCollection path: String) throws(KeychainFailure) -> [Item] {
        let paths = try property("Items", of: path, SecretServiceBridge.Interface.collection, "ao") { reply throws(BusError) in
            try reply.readPaths()
        }
        // Keyrings list them in no order; their identifiers are numbers, or all of one length.
        var items: [Item] = []
        for path in paths.sorted(by: { ($0.utf8.count, $0) < ($1.utf8.count, $1) }) { items.append(try item(path)) }
        return items
    }

    private func item(_ path: String) throws(KeychainFailure) -> Item {
        let interface = SecretServiceBridge.Interface.item
        let label = try property("Label", of: path, interface, "s") { reply throws(BusError) in try reply.readText() }
        let lookup = try property("Attributes", of: path, interface, "a{ss}") { reply throws(BusError) in try reply.readAttributes() }
        let secret = try bus.call(
            "GetSecret", at: path, interface, { message throws(BusError) in try message.append(path: session) },
            { reply throws(BusError) in try reply.readSecret() })
        return Item(label: label, lookup: lookup, secret: ItemSecret(bytes: secret.value, contentType: secret.contentType))
    }

    private func property<Value>(
        _ name: String, of path: String, _ interface: String, _ type: String, _ read: (BusMessage) throws(BusError) -> Value
    ) throws(KeychainFailure) -> Value {
        try bus.call(
            "Get", at: path, "org.freedesktop.DBus.Properties",
            { message throws(BusError) in
                try message.append(interface)
                try message.append(name)
            },
            { reply throws(BusError) in
                var value: Value?
                try reply.readContainer(BusType.variant, type) { () throws(BusError) in value = try read(reply) }
                guard let value else { throw .invalidArguments("a property is missing") }
                return value
            })
    }
}

extension Bus {
    /// Calls a method of the keyring, and waits for its reply.
    func call<Value>(
        _ member: String, at path: String, _ interface: String, _ append: (BusMessage) throws(BusError) -> Void,
        _ read: (BusMessage) throws(BusError) -> Value
    ) throws(KeychainFailure) -> Value {
        do throws(BusError) {
            return try performCall(member, at: path, interface, append, read)
        } catch {
            // GNOME Keyring 42 lists the secret that its portal has made for an application, and serves it after the next start.
            let advice = error.isNoObject ? ": log out and in, and repeat the import" : ""
            throw KeychainFailure(.notAvailable, "the keyring of this session: \(error.text)\(advice)")
        }
    }
}
#endif
