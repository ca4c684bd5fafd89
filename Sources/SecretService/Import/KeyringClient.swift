// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// A client of the keyring that a session has, which reads, and has the keyring unlock what is locked.
struct KeyringClient {
    struct Item {
        let label: String
        let lookup: ItemLookup
        let secret: ItemSecret
        /// In seconds since 1970; 0 if the keyring does not tell it.
        let modifiedSeconds: UInt64
    }

    private let bus: Bus
    private let session: String
    let program: FormerKeyring

    /// Opens a session without encryption, as most programs do.
    init(_ bus: Bus) throws(KeychainFailure) {
        self.bus = bus
        program = FormerKeyring(program: bus.ownerProgram ?? "")
        session = try KeyringClient.explaining(program) { () throws(BusError) in
            try bus.performCall(
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
    }

    func collections() throws(KeychainFailure) -> [String] {
        try property("Collections", of: ObjectPath.root, SecretServiceBridge.Interface.service, "ao") { reply throws(BusError) in
            try reply.readPaths()
        }
    }

    func collection(alias: String) throws(KeychainFailure) -> String {
        try call(
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

    /// The paths of the items in the order in which most keyrings have made them: their identifiers are numbers, or all of one length.
    func items(ofCollection path: String) throws(KeychainFailure) -> [String] {
        try property("Items", of: path, SecretServiceBridge.Interface.collection, "ao") { reply throws(BusError) in
            try reply.readPaths()
        }.sorted { ($0.utf8.count, $0) < ($1.utf8.count, $1) }
    }

    func isLocked(item path: String) throws(KeychainFailure) -> Bool {
        try property("Locked", of: path, SecretServiceBridge.Interface.item, "b") { reply throws(BusError) in try reply.readBoolean() }
    }

    func label(ofItem path: String) throws(KeychainFailure) -> String {
        try property("Label", of: path, SecretServiceBridge.Interface.item, "s") { reply throws(BusError) in try reply.readText() }
    }

    func item(_ path: String) throws(KeychainFailure) -> Item {
        let interface = SecretServiceBridge.Interface.item
        let label = try label(ofItem: path)
        let lookup = try property("Attributes", of: path, interface, "a{ss}") { reply throws(BusError) in try reply.readAttributes() }
        let secret = try call(
            "GetSecret", at: path, interface, { message throws(BusError) in try message.append(path: session) },
            { reply throws(BusError) in try reply.readSecret() })
        let modified = try? property("Modified", of: path, interface, "t") { reply throws(BusError) in try reply.readTime() }
        return Item(
            label: label, lookup: program == .keePassXC ? lookup.withoutEntryAttributes(path: path, label: label) : lookup,
            secret: ItemSecret(bytes: secret.value, contentType: secret.contentType), modifiedSeconds: modified ?? 0)
    }

    /// Unlocks objects, for which the keyring may ask a person until the deadline.
    ///
    /// Whether they are unlocked then is in their properties.
    func unlock(_ paths: [String], until deadline: Deadline) throws(KeychainFailure) {
        let prompt = try call(
            "Unlock", at: ObjectPath.root, SecretServiceBridge.Interface.service,
            { message throws(BusError) in try message.append(paths: paths) },
            { reply throws(BusError) in
                _ = try reply.readPaths()
                return try reply.readPath()
            })
        guard prompt != ObjectPath.none else { return }
        let interface = SecretServiceBridge.Interface.prompt
        try asking { () throws(BusError) in try bus.subscribe(to: "Completed", from: prompt, interface) }
        try call("Prompt", at: prompt, interface, { message throws(BusError) in try message.append("") }, { _ in })
        _ = try asking { () throws(BusError) in
            try bus.signal("Completed", from: prompt, interface, until: deadline) { reply throws(BusError) in try reply.readBoolean() }
        }
    }

    private func property<Value>(
        _ name: String, of path: String, _ interface: String, _ type: String, _ read: (BusMessage) throws(BusError) -> Value
    ) throws(KeychainFailure) -> Value {
        try call(
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

    /// Calls a method of the keyring, and waits for its reply.
    private func call<Value>(
        _ member: String, at path: String, _ interface: String, _ append: (BusMessage) throws(BusError) -> Void,
        _ read: (BusMessage) throws(BusError) -> Value
    ) throws(KeychainFailure) -> Value {
        try asking { () throws(BusError) in try bus.performCall(member, at: path, interface, append, read) }
    }

    private func asking<Value>(_ body: () throws(BusError) -> Value) throws(KeychainFailure) -> Value {
        try Self.explaining(program, body)
    }

    private static func explaining<Value>(
        _ program: FormerKeyring, _ body: () throws(BusError) -> Value
    ) throws(KeychainFailure) -> Value {
        do throws(BusError) {
            return try body()
        } catch {
            guard !error.isNoReply else {
                throw KeychainFailure(
                    .notAvailable, "the keyring of this session does not answer (\(error.name))", cause: .system(errno: noReplyErrno))
            }
            let advice = error.isNoObject ? program.adviceForMissingObject : ""
            throw KeychainFailure(.notAvailable, "the keyring of this session: \(error.text)\(advice)")
        }
    }

    private static var noReplyErrno: Int32 { Errno.timedOut.rawValue }

    /// Whether a call failed because the keyring does not answer, so that the next one would wait too.
    static func isNoReply(_ failure: KeychainFailure) -> Bool {
        if case .system(noReplyErrno)? = failure.cause { true } else { false }
    }
}
#endif
