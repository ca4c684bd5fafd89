// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import ValetCLI

/// A private message bus with `keychain-secret-service`, which has a keychain of its own.
final class Desktop: TestBus {
    static let passcode = "swordfish"
    static let root = "/org/freedesktop/secrets"
    static let login = "\(root)/collection/login"
    static let agreement = "dh-ietf1024-sha256-aes128-cbc-pkcs7"

    let home: String
    private(set) var bridge: ChildProcess
    private let homeDirectory: TemporaryDirectory
    private let busDirectory: TemporaryDirectory
    private let bus: ChildProcess
    private let start: StartKeyring

    /// Starts the keyring of a session.
    private typealias StartKeyring = (_ home: String, _ environment: [String: String]) throws -> ChildProcess

    /// The program that is the keyring of the session.
    enum Keyring {
        case bridge
        case gnome
    }

    /// Starts both; with `hasPasscode`, the keychain is locked.
    ///
    /// `pinentry` is the program that asks for the passcode, by default one that fails. With `keychaindSocket`, keychaind keeps the keychain.
    /// `mounts` are made for the bridge, which is started from `bridgePath` if that is not nil.
    init(
        keyring: Keyring = .bridge, hasPasscode: Bool = false, pinentry: String = "/usr/bin/false", keychaindSocket: String? = nil,
        mounts: [Mount] = [], bridgePath: String? = nil, variables: [String: String] = [:]
    ) throws {
        homeDirectory = try TemporaryDirectory(inMemory: true)
        busDirectory = try TemporaryDirectory()
        home = homeDirectory.path
        start = { home, environment in
            switch keyring {
            case .bridge:
                try Self.startBridge(
                    home: home, environment.merging(variables) { $1 }, pinentry: pinentry, keychaindSocket: keychaindSocket, mounts: mounts,
                    path: bridgePath)
            case .gnome: try Self.startGNOMEKeyring(environment)
            }
        }
        let configuration = """
            <busconfig><type>session</type><listen>unix:path=\(busDirectory.path)/bus</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
            </busconfig>
            """
        try configuration.write(toFile: busDirectory.path + "/bus.conf", atomically: true, encoding: .utf8)
        bus = try ChildProcess(
            "dbus-daemon", ["--config-file=\(busDirectory.path)/bus.conf", "--nofork", "--print-address"],
            environment: ["PATH": "/usr/bin:/bin"])
        _ = try bus.readLine()
        let keychain = try Self.keychain(home: home)
        if hasPasscode {
            try keychain.set(Self.passcode)
            try keychain.lock(.everything)
        }
        if let keychaindSocket { _ = try keychain.handOver(to: DaemonClient.connector(toSocketAt: keychaindSocket)) }
        bridge = try start(home, Self.environment(home: home, bus: busDirectory.path))
        try requireName()
    }

    /// Opens the keychain as another process with the entitlements of the bridge.
    static func keychain(home: String) throws -> LocalKeychain {
        var configuration = KeychainConfiguration(home: home)
        configuration.useTestPolicy(in: home)
        return LocalKeychain(
            configuration: configuration, entitlements: Entitlements(applicationIdentifier: "keychain-secret-service"))
    }

    deinit { (try? Self.keychain(home: home))?.forgetKeys() }

    private static func startBridge(
        home: String, _ environment: [String: String], pinentry: String, keychaindSocket: String?, mounts: [Mount], path: String?
    ) throws -> ChildProcess {
        let variables = environment.merging(["KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": pinentry]) { $1 }
        let program = try path ?? BuiltProgram.path(of: "keychain-secret-service")
        guard let keychaindSocket else { return try ChildProcess(program, environment: variables) }
        // The program knows only the standard socket, so it gets a /run of its own.
        let script = "mount -t tmpfs tmpfs /run && mkdir /run/keychain && ln -s \"$1\" /run/keychain/keychaind.sock && exec \"$2\""
        return try ChildProcess(
            "unshare", Mount.namespace(mounts) + ["sh", "-c", script, "sh", keychaindSocket, program], environment: variables)
    }

    /// Starts GNOME Keyring with a new keyring, which it unlocks with the password of its input.
    private static func startGNOMEKeyring(_ environment: [String: String]) throws -> ChildProcess {
        let keyring = try ChildProcess(
            "gnome-keyring-daemon", ["--unlock", "--components=secrets", "--foreground"], environment: environment)
        keyring.send(passcode)
        keyring.closeInput()
        return keyring
    }

    private func requireName() throws {
        let connection = try connect()
        let hasOwner = try waitUntil {
            try connection.call(
                "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", "NameHasOwner",
                [.text("org.freedesktop.secrets")], signature: "s"
            ).first?.boolean == true
        }
        try #require(hasOwner)
    }

    private static func environment(home: String, bus: String) -> [String: String] {
        [
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "XDG_RUNTIME_DIR": home,
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(bus)/bus",
        ]
    }

    /// The variables of a program in this session.
    var environment: [String: String] { Self.environment(home: home, bus: busDirectory.path) }

    func connect() throws -> DBusConnection {
        try DBusConnection([.path(busDirectory.path + "/bus")], timeoutMilliseconds: 60_000)
    }

    /// Connects a program, which opens a session.
    func client() throws -> SecretClient { try SecretClient(try connect(), of: self) }

    /// Ends the bridge and starts one with another keychain, to which a program connects.
    func client(ofKeychainAt home: String) throws -> SecretClient {
        bridge.send(signal: SIGTERM)
        _ = try bridge.waitUntilEnded()
        bridge = try start(home, environment)
        try requireName()
        return try client()
    }

    /// Ends the bridge by a signal and starts it again.
    func restartBridge(signal: Int32 = SIGTERM) throws {
        bridge.send(signal: signal)
        _ = try bridge.waitUntilEnded()
        bridge = try start(home, environment)
        try requireName()
    }

    /// Starts a second bridge in the session.
    func startSecondBridge() throws -> ChildProcess {
        try start(home, environment)
    }

    func run(_ program: String, _ arguments: [String], input: String? = nil) throws -> (ending: ChildProcess.Ending, output: String) {
        let child = try ChildProcess(program, arguments, environment: environment)
        if let input { child.send(input) }
        child.closeInput()
        let output = try child.readToEnd()
        return (try child.waitUntilEnded(), output)
    }
}

/// A directory that root mounts in the place of another one for a program.
struct Mount {
    let source: String
    let target: String

    /// The arguments of unshare, before a command that sees the directories there.
    static func namespace(_ mounts: [Mount]) -> [String] {
        let script = mounts.map { "mount --bind '\($0.source)' '\($0.target)'" } + ["exec \"$@\""]
        return ["-m", "/bin/sh", "-c", script.joined(separator: " && "), "sh"]
    }
}

/// A bus that programs can connect to.
protocol TestBus: AnyObject {
    func connect() throws -> DBusConnection
}

/// A program on the bus, which transfers secrets in a session without encryption.
final class SecretClient {
    enum Interface: String {
        case service = "org.freedesktop.Secret.Service"
        case collection = "org.freedesktop.Secret.Collection"
        case item = "org.freedesktop.Secret.Item"
        case session = "org.freedesktop.Secret.Session"
        case prompt = "org.freedesktop.Secret.Prompt"
        case properties = "org.freedesktop.DBus.Properties"
        case introspectable = "org.freedesktop.DBus.Introspectable"
        case peer = "org.freedesktop.DBus.Peer"
    }

    let connection: DBusConnection
    private(set) var session = ""
    /// The desktop lives at least as long as its programs.
    private let bus: any TestBus

    init(_ connection: DBusConnection, of bus: any TestBus) throws {
        self.connection = connection
        self.bus = bus
        session = try #require(try openSession("plain", .variant(signature: "s", .text(""))).last?.text)
    }

    /// Connects another program.
    func another() throws -> SecretClient { try SecretClient(try bus.connect(), of: bus) }

    // MARK: Calls

    func call(
        _ path: String, _ interface: Interface, _ member: String, _ arguments: [DBusValue] = [], _ signature: String = ""
    ) throws(DBusFailure) -> [DBusValue] {
        try connection.call(
            "org.freedesktop.secrets", path: path, interface: interface.rawValue, member, arguments, signature: signature)
    }

    /// The name of the error with which a call fails, without `org.freedesktop.`; nil if it succeeds.
    func error(
        _ path: String, _ interface: Interface, _ member: String, _ arguments: [DBusValue] = [], _ signature: String = ""
    ) throws -> String? {
        do {
            _ = try call(path, interface, member, arguments, signature)
            return nil
        } catch .error(let name) {
            return name.hasPrefix("org.freedesktop.") ? String(name.dropFirst("org.freedesktop.".count)) : name
        } catch {
            throw error
        }
    }

    func openSession(_ algorithm: String, _ input: DBusValue) throws -> [DBusValue] {
        try call(Desktop.root, .service, "OpenSession", [.text(algorithm), input], "sv")
    }

    func property(_ name: String, of path: String, _ interface: Interface) throws -> DBusValue {
        try #require(try call(path, .properties, "Get", [.text(interface.rawValue), .text(name)], "ss").first)
    }

    func setProperty(_ name: String, of path: String, _ interface: Interface, _ signature: String, _ value: DBusValue) throws -> String? {
        try error(
            path, .properties, "Set", [.text(interface.rawValue), .text(name), .variant(signature: signature, value)], "ssv")
    }

    // MARK: Items

    static func attributes(_ attributes: [String: String]) -> DBusValue {
        .list(attributes.sorted { $0.key < $1.key }.map { .list([.text($0.key), .text($0.value)]) })
    }

    func secret(_ bytes: [UInt8], _ contentType: String = "text/plain", session: String? = nil, parameters: [UInt8] = []) -> DBusValue {
        .list([.text(session ?? self.session), .bytes(parameters), .bytes(bytes), .text(contentType)])
    }

    func itemArguments(
        _ attributes: [String: String], _ secret: DBusValue, label: String = "", replaces: Bool = false, others: [DBusValue] = []
    ) -> [DBusValue] {
        [
            .list(
                [
                    .list([.text("org.freedesktop.Secret.Item.Label"), .variant(signature: "s", .text(label))]),
                    .list([
                        .text("org.freedesktop.Secret.Item.Attributes"), .variant(signature: "a{ss}", Self.attributes(attributes)),
                    ]),
                ] + others), secret, .number(replaces ? 1 : 0),
        ]
    }

    static let itemSignature = "a{sv}(oayays)b"

    func createItem(
        _ attributes: [String: String], _ value: String, label: String = "", contentType: String = "text/plain", replaces: Bool = false,
        in collection: String = Desktop.login, others: [DBusValue] = []
    ) throws -> String {
        let reply = try call(
            collection, .collection, "CreateItem",
            itemArguments(attributes, secret(Array(value.utf8), contentType), label: label, replaces: replaces, others: others),
            Self.itemSignature)
        try #require(reply.last?.text == "/")
        return try #require(reply.first?.text)
    }

    /// The secret of an item as text, and its content type.
    func secret(of item: String) throws -> (text: String, contentType: String) {
        let parts = try #require(try call(item, .item, "GetSecret", [.text(session)], "o").first?.list)
        return (String(decoding: try #require(parts[2].bytes), as: UTF8.self), try #require(parts[3].text))
    }

    func search(_ attributes: [String: String]) throws -> (unlocked: [String], locked: [String]) {
        let reply = try call(Desktop.root, .service, "SearchItems", [Self.attributes(attributes)], "a{ss}")
        return (try #require(reply.first?.texts), try #require(reply.last?.texts))
    }

    func search(_ attributes: [String: String], in collection: String) throws -> [String] {
        try #require(try call(collection, .collection, "SearchItems", [Self.attributes(attributes)], "a{ss}").first?.texts)
    }

    func itemAttributes(_ item: String) throws -> [String: String] {
        let list = try #require(try property("Attributes", of: item, .item).list)
        return Dictionary(uniqueKeysWithValues: list.compactMap { $0.texts }.map { ($0[0], $0[1]) })
    }

    // MARK: Locking

    /// The objects that are unlocked, and the prompt.
    func unlock(_ paths: [String]) throws -> (unlocked: [String], prompt: String) {
        let reply = try call(Desktop.root, .service, "Unlock", [.list(paths.map(DBusValue.text))], "ao")
        return (try #require(reply.first?.texts), try #require(reply.last?.text))
    }

    func lock(_ paths: [String]) throws -> [String] {
        try #require(try call(Desktop.root, .service, "Lock", [.list(paths.map(DBusValue.text))], "ao").first?.texts)
    }

    /// Shows a prompt and waits until it is completed: whether it was dismissed, and its result.
    func complete(_ prompt: String) throws -> (isDismissed: Bool, result: DBusValue) {
        try connection.subscribe(path: prompt, interface: Interface.prompt.rawValue, "Completed")
        _ = try call(prompt, .prompt, "Prompt", [.text("")], "s")
        return try completion()
    }

    /// Waits for the signal of `subscribe`.
    func completion() throws -> (isDismissed: Bool, result: DBusValue) {
        let values = try connection.signal(until: .after(seconds: 60))
        let isDismissed = try #require(values.first?.boolean as Bool?)
        return (isDismissed, try #require(values.last))
    }
}

/// A pinentry program that answers with each of these passcodes in turn.
func pinentry(_ passcodes: String...) throws -> ScriptedPinentryProgram {
    try ScriptedPinentryProgram(passcodes.flatMap { ["say OK", "until GETPIN", "say D \($0)", "say OK"] })
}
#endif
