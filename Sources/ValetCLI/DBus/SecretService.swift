// SPDX-License-Identifier: Apache-2.0
import KeychainSystem

/// A client of the Secret Service of a desktop, such as GNOME Keyring, KWallet, or KeePassXC.
///
/// It only reads. The secrets come unencrypted over the local socket of the bus, as they do for most programs ("plain").
///
/// Source: Secret Service API Draft, version 0.2.
struct SecretService {
    struct Collection {
        let path: String
        let label: String
        let isLocked: Bool
        let items: [String]
    }

    struct Item {
        let path: String
        let label: String
        let attributes: [String: String]
        let isLocked: Bool
    }

    /// The result of a request to unlock objects.
    enum Unlocking {
        case done
        /// A person refused, or the service could not ask.
        case dismissed
    }

    private static let name = "org.freedesktop.secrets"
    private static let path = "/org/freedesktop/secrets"
    private static let interface = "org.freedesktop.Secret."
    /// The path that stands for no prompt.
    private static let noPrompt = "/"

    private let connection: DBusConnection
    private let session: String

    /// Opens a session, which ends with the connection.
    init(_ connection: DBusConnection) throws(DBusFailure) {
        self.connection = connection
        let reply = try connection.call(
            Self.name, path: Self.path, interface: Self.interface + "Service", "OpenSession",
            [.text("plain"), .variant(signature: "s", .text(""))], signature: "sv")
        guard let session = reply.last?.text else { throw .malformed }
        self.session = session
    }

    func collections() throws(DBusFailure) -> [Collection] {
        guard let paths = try properties(of: Self.path, "Service")["Collections"]?.texts else { throw .malformed }
        var collections: [Collection] = []
        for path in paths {
            let properties = try properties(of: path, "Collection")
            guard let isLocked = properties["Locked"]?.boolean, let items = properties["Items"]?.texts else { throw .malformed }
            // The services have no order of their own. Their identifiers are numbers, or all of one length.
            let sortedItems = items.sorted { ($0.utf8.count, $0) < ($1.utf8.count, $1) }
            let label = properties["Label"]?.text ?? ""
            collections.append(
                Collection(
                    path: path, label: label.isEmpty ? Self.identifier(path) : label, isLocked: isLocked,
                    items: sortedItems))
        }
        return collections
    }

    func item(_ path: String) throws(DBusFailure) -> Item {
        let properties = try properties(of: path, "Item")
        guard let isLocked = properties["Locked"]?.boolean, let label = properties["Label"]?.text,
            let attributes = properties["Attributes"]?.list
        else { throw .malformed }
        var texts: [String: String] = [:]
        for attribute in attributes {
            guard let parts = attribute.texts, parts.count == 2 else { throw .malformed }
            texts[parts[0]] = parts[1]
        }
        return Item(path: path, label: label, attributes: texts, isLocked: isLocked)
    }

    /// Returns the secret of an unlocked item, which may be any bytes.
    func secret(of item: Item) throws(DBusFailure) -> [UInt8] {
        let reply = try connection.call(
            Self.name, path: item.path, interface: Self.interface + "Item", "GetSecret", [.text(session)], signature: "o")
        // The session, parameters of its encryption, the secret, and the type of its content.
        guard let parts = reply.first?.list, parts.count == 4, let secret = parts[2].bytes else { throw .malformed }
        return secret
    }

    /// Unlocks objects, for which the service may show a prompt of its own until the deadline.
    func unlock(_ paths: [String], until deadline: Deadline) throws(DBusFailure) -> Unlocking {
        let reply = try connection.call(
            Self.name, path: Self.path, interface: Self.interface + "Service", "Unlock", [.list(paths.map(DBusValue.text))],
            signature: "ao")
        guard let prompt = reply.last?.text else { throw .malformed }
        guard prompt != Self.noPrompt else { return .done }
        try connection.subscribe(path: prompt, interface: Self.interface + "Prompt", "Completed")
        _ = try connection.call(
            Self.name, path: prompt, interface: Self.interface + "Prompt", "Prompt", [.text("")], signature: "s")
        let completed = try connection.signal(until: deadline)
        guard let isDismissed = completed.first?.boolean else { throw .malformed }
        return isDismissed ? .dismissed : .done
    }

    /// The last part of an object's path, which is unique in its collection.
    static func identifier(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

    private func properties(of path: String, _ kind: String) throws(DBusFailure) -> DBusValue {
        let reply = try connection.call(
            Self.name, path: path, interface: "org.freedesktop.DBus.Properties", "GetAll", [.text(Self.interface + kind)],
            signature: "s")
        guard let properties = reply.first else { throw .malformed }
        return properties
    }
}
