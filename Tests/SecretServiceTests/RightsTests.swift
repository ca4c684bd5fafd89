// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import Glibc
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import SecretService
@testable import ValetCLI

/// A desktop whose keyring tells programs apart: keychaind keeps the keychain, keychain-peer identifies programs, and root has registered the keyring.
private final class SeparatedDesktop {
    /// Programs that are all secret-tool, and that keychaind knows by different names, or not at all.
    enum Program {
        case system, other
        /// Its user could change the file.
        case unverified
    }

    /// What the person answers to each question.
    enum Answer: String {
        case allow = "OK"
        case refuse = "ERR 83886194 Not confirmed"
        case none = "ERR 83886165 No pinentry"
    }

    static let systemName = "program:/usr/bin/secret-tool"
    static let otherName = "program:/mnt/reader"

    let desktop: Desktop
    private let directory: TemporaryDirectory
    private let processes: [ChildProcess]
    private let programs: Mount
    private let mounts: [Mount]

    init(_ answer: Answer = .allow, mode: AccessMode? = nil, isRegistered: Bool = true) throws {
        directory = try TemporaryDirectory()
        let path = directory.path
        // A pinentry program whose requests are all kept.
        let pinentry = """
            #!/bin/sh
            echo OK
            while read -r line; do
                printf '%s\\n' "$line" >> \(path)/questions
                case $line in CONFIRM*) echo \(answer.rawValue) ;; *) echo OK ;; esac
            done
            """
        let setUp = """
            set -e
            install -d -m 755 "$1/programs" "$1/peer" "$1/entitlements" "$1/system"
            install -m 755 "$2" "$1/programs/keychain-secret-service"
            install -m 755 /usr/bin/secret-tool "$1/programs/reader"
            install -m 755 "$4" "$1/programs/valet"
            install -m 777 /usr/bin/secret-tool "$1/secret-tool"
            printf '%s\\n' "$3" > "$1/pinentry"
            chmod 755 "$1/pinentry"
            cp -a /etc/. "$1/system"
            rm -rf "$1/system/keychain"
            install -d -m 755 "$1/system/keychain"
            """
        try #require(
            try ChildProcess.run(
                "/bin/sh",
                ["-c", setUp, "sh", path, BuiltProgram.path(of: "keychain-secret-service"), pinentry, BuiltProgram.path(of: "valet")]
            ).ending
                == .exited(0))
        func write(_ text: String, to file: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }
        if isRegistered {
            try write(
                """
                <plist><dict>
                <key>keychain-programs</key><array><string>/mnt/keychain-secret-service</string></array>
                <key>application-identifier</key><string>keychain-secret-service</string>
                <key>keychain-access-groups</key><array><string>group:secret-service</string></array>
                </dict></plist>
                """, to: path + "/entitlements/secret-service.entitlements")
        }
        if let mode { try write(mode.rawValue + "\n", to: path + "/system/keychain/secret-service-access") }
        programs = Mount(source: path + "/programs", target: "/mnt")
        mounts = [programs, Mount(source: path + "/system", target: "/etc")]
        let peer = try ChildProcess(
            "/usr/bin/unshare",
            Mount.namespace([programs]) + [BuiltProgram.path(of: "keychain-peer"), "--socket", path + "/peer/socket"])
        try #require(waitUntil { FileManager.default.fileExists(atPath: path + "/peer/socket") })
        let daemon = try ChildProcess(
            try BuiltProgram.path(of: "keychaind"),
            [
                "--socket", path + "/socket", "--directory", path + "/keychains", "--entitlements", path + "/entitlements",
                "--peer-socket", path + "/peer/socket",
            ])
        try #require(waitUntil { (try? DaemonClient.connector(toSocketAt: path + "/socket")(.after(seconds: 5))) != nil })
        processes = [peer, daemon]
        desktop = try Desktop(
            pinentry: path + "/pinentry", keychaindSocket: path + "/socket", mounts: mounts, bridgePath: "/mnt/keychain-secret-service",
            variables: ["DISPLAY": ":0"])
    }

    /// What the dialogs have shown.
    var questions: [String] {
        let requests = (try? String(contentsOfFile: directory.path + "/questions", encoding: .utf8)) ?? ""
        return requests.split(separator: "\n").filter { $0.hasPrefix("SETDESC ") }.map(String.init)
    }

    /// Runs secret-tool as a program; returns what it prints, nil if it fails.
    func run(_ program: Program, _ arguments: [String], input: String? = nil) throws -> String? {
        let result =
            switch program {
            case .system: try desktop.run("/usr/bin/secret-tool", arguments, input: input)
            case .other:
                try desktop.run("/usr/bin/unshare", Mount.namespace([programs]) + ["/mnt/reader"] + arguments, input: input)
            case .unverified: try desktop.run(directory.path + "/secret-tool", arguments, input: input)
            }
        return result.ending == .exited(0) ? result.output : nil
    }

    func store(_ program: Program, _ value: String, _ attributes: [String]) throws {
        try #require(try run(program, ["store", "--label=Mail"] + attributes, input: value) != nil)
    }

    func lookup(_ program: Program, _ attributes: [String]) throws -> String? {
        try run(program, ["lookup"] + attributes)?.trimmingCharacters(in: .newlines)
    }

    /// Runs the bridge's program with arguments, as root has installed it.
    func runKeyring(_ arguments: [String]) throws -> (ending: ChildProcess.Ending, output: String) {
        try run(["/mnt/keychain-secret-service"] + arguments)
    }

    func runValet(_ arguments: String...) throws -> (ending: ChildProcess.Ending, output: String) {
        try run(["/mnt/valet", "secret-service"] + arguments)
    }

    private func run(_ command: [String]) throws -> (ending: ChildProcess.Ending, output: String) {
        let script = "mount -t tmpfs tmpfs /run && mkdir /run/keychain && ln -s \"$1\" /run/keychain/keychaind.sock && shift && exec \"$@\""
        let variables = desktop.environment.merging(["KEYCHAIN_HOME": desktop.home]) { $1 }
        let child = try ChildProcess(
            "unshare",
            Mount.namespace(mounts) + ["sh", "-c", script, "sh", directory.path + "/socket"] + command, environment: variables)
        let output = try child.readToEnd()
        return (try child.waitUntilEnded(), output)
    }
}

@Suite("Rights between the programs on the bus", .blocking, .requiresMessageBus, .requiresSetuidPrograms)
struct RightsTests {
    private let attributes = ["service", "mail"]

    @Test("A program uses its own items, and those of programs that cannot be told apart, without a question")
    func ownItems() throws {
        let desktop = try SeparatedDesktop(.refuse)
        try desktop.store(.system, "hers", attributes)
        try desktop.store(.unverified, "shared", ["service", "script"])
        #expect(try desktop.lookup(.system, attributes) == "hers")
        #expect(try desktop.lookup(.system, ["service", "script"]) == "shared")
        #expect(try desktop.lookup(.unverified, ["service", "script"]) == "shared")
        #expect(desktop.questions.count == 0)
    }

    @Test("The call of another program waits for the person; after an answer no further question is asked, also after a restart")
    func allowed() throws {
        let desktop = try SeparatedDesktop(.allow)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.other, attributes) == "hers")
        #expect(desktop.questions.count == 1)
        let question = try #require(desktop.questions.first)
        #expect(question.contains("/mnt/reader (process ") && question.contains("/usr/bin/secret-tool") && question.contains("Mail"))
        try desktop.store(.system, "second", ["service", "chat"])
        #expect(try desktop.lookup(.other, ["service", "chat"]) == "second")
        try desktop.desktop.restartBridge()
        #expect(try desktop.lookup(.other, attributes) == "hers")
        #expect(desktop.questions.count == 1)
    }

    @Test("A program that a person has refused gets no secret, deletes nothing, and asks no more")
    func refused() throws {
        let desktop = try SeparatedDesktop(.refuse)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.other, attributes) == nil)
        #expect(try desktop.lookup(.other, attributes) == nil)
        _ = try desktop.run(.other, ["clear"] + attributes)
        #expect(desktop.questions.count == 1)
        #expect(try desktop.lookup(.system, attributes) == "hers")
    }

    @Test("Without an answer a program gets no secret, and asks again")
    func unanswered() throws {
        let desktop = try SeparatedDesktop(.none)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.other, attributes) == nil)
        #expect(try desktop.lookup(.other, attributes) == nil)
        #expect(desktop.questions.count == 2)
    }

    @Test("What is allowed to a program that cannot be told from others ends with its connection")
    func unverified() throws {
        let desktop = try SeparatedDesktop(.allow)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.unverified, attributes) == "hers")
        #expect(try desktop.lookup(.unverified, attributes) == "hers")
        #expect(desktop.questions.count == 2)
        #expect(desktop.questions.allSatisfy { $0.contains("An unverified program") })
        #expect(try desktop.runKeyring(["--access"]).output == "mode\task\n")
    }

    @Test("An item replaces no item of another program with the same attributes, and a program finds its own first")
    func replacement() throws {
        let desktop = try SeparatedDesktop(.refuse)
        try desktop.store(.system, "hers", attributes)
        try desktop.store(.other, "his", attributes)
        #expect(try desktop.lookup(.system, attributes) == "hers")
        #expect(try desktop.lookup(.other, attributes) == "his")
        try desktop.store(.other, "later", attributes)
        #expect(try desktop.lookup(.other, attributes) == "later")
        #expect(desktop.questions.count == 0)
    }

    @Test("What a person has allowed a program does not put the items of another one in the place of its own")
    func replacementAfterConsent() throws {
        let desktop = try SeparatedDesktop(.allow)
        try desktop.store(.system, "hers", attributes)
        try desktop.store(.other, "his", attributes)
        #expect(try desktop.run(.other, ["search", "--all"] + attributes)?.contains("hers") == true)
        #expect(desktop.questions.count == 1)
        #expect(try desktop.lookup(.other, attributes) == "his")
        try desktop.store(.other, "later", attributes)
        #expect(try desktop.lookup(.other, attributes) == "later" && desktop.lookup(.system, attributes) == "hers")
    }

    @Test("A program owns the item of every program that it replaces: no other program reads the new secret")
    func plantedItem() throws {
        let desktop = try SeparatedDesktop(.refuse)
        try desktop.store(.unverified, "planted", attributes)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.system, attributes) == "hers")
        #expect(try desktop.lookup(.unverified, attributes) == nil)
        #expect(desktop.questions.count == 1)
    }

    @Test("A program that knows the path of an item learns nothing from signals and properties before a search has shown it")
    func foreignPath() throws {
        let desktop = try SeparatedDesktop(.refuse)
        let client = try desktop.desktop.client()
        func listen(_ interface: String, _ member: String) throws -> DBusConnection {
            let listener = try desktop.desktop.connect()
            try listener.subscribe(path: Desktop.login, interface: interface, member)
            return listener
        }
        let created = try listen("org.freedesktop.Secret.Collection", "ItemCreated")
        let (changed, ownChanges) = (client.connection, try desktop.desktop.client())
        for connection in [changed, ownChanges.connection] {
            try connection.subscribe(path: Desktop.login, interface: "org.freedesktop.DBus.Properties", "PropertiesChanged")
        }
        // So that the keyring knows them.
        for client in [client, ownChanges] { #expect(try client.property("Items", of: Desktop.login, .collection).texts == []) }
        try desktop.store(.system, "hers", attributes)
        let item = try #require(try created.signal(until: .after(seconds: 60)).first?.text)
        for connection in [changed, ownChanges.connection] {
            let change = try connection.signal(until: .after(seconds: 60))
            #expect(change.count == 3 && change[0].text == "org.freedesktop.Secret.Collection")
            #expect(change[1].list?.first?.list?.last?.texts == [])
        }
        #expect(try client.property("Items", of: Desktop.login, .collection).texts == [])
        let unknown = "DBus.Error.UnknownMethod"
        #expect(try client.error(item, .properties, "GetAll", [.text("org.freedesktop.Secret.Item")], "s") == unknown)
        #expect(try client.setProperty("Label", of: item, .item, "s", .text("his")) == unknown)
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == unknown)
        #expect(try client.error(item, .item, "Delete") == unknown)
        let own = try client.createItem(["a": "b"], "mine", in: "\(Desktop.root)/collection/session")
        let secrets = try client.call(
            Desktop.root, .service, "GetSecrets", [.list([.text(item), .text(own)]), .text(client.session)], "aoo")
        #expect(secrets.first?.list?.count == 1 && secrets.first?.list?.first?.list?.first?.text == own)
        #expect(desktop.questions.isEmpty)
        #expect(try client.search(["service": "mail"]).unlocked == [item])
        #expect(try client.itemAttributes(item)["service"] == "mail")
        #expect(try client.setProperty("Label", of: item, .item, "s", .text("his")) == "Secret.Error.IsLocked")
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == "Secret.Error.IsLocked")
        #expect(try client.error(Desktop.login, .collection, "Delete") == "Secret.Error.IsLocked")
        #expect(try desktop.lookup(.system, attributes) == "hers")
    }

    @Test("Only a search for an attribute of its own shows an item of another program")
    func searches() throws {
        let desktop = try SeparatedDesktop(.allow)
        try desktop.store(.system, "hers", attributes + ["xdg:schema", "com.example"])
        #expect(try desktop.run(.other, ["search", "--all", "xdg:schema", "com.example"])?.contains("hers") != true)
        #expect(desktop.questions.count == 0)
        #expect(try desktop.run(.other, ["search", "--all"] + attributes)?.contains("hers") == true)
    }

    @Test(
        "In the mode open every program uses every item, and in the mode closed it sees its own ones",
        arguments: [AccessMode.open, .closed])
    func modes(_ mode: AccessMode) throws {
        let desktop = try SeparatedDesktop(.allow, mode: mode)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.other, attributes) == (mode == .open ? "hers" : nil))
        #expect(desktop.questions.count == 0)
        #expect(try desktop.runKeyring(["--access"]).output == "mode\t\(mode.rawValue)\n")
    }

    @Test("A keyring that root has not registered promises nothing: other programs can read its items without the bus")
    func unregistered() throws {
        let desktop = try SeparatedDesktop(.refuse, isRegistered: false)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.other, attributes) == "hers")
        #expect(try desktop.runKeyring(["--access"]).output == "mode\topen\n")
    }

    @Test("What a person has allowed is listed, and taken back from a program while the keyring runs")
    func revocation() throws {
        let desktop = try SeparatedDesktop(.allow)
        try desktop.store(.system, "hers", attributes)
        #expect(try desktop.lookup(.other, attributes) == "hers")
        let grant = "grant\t\(SeparatedDesktop.otherName)\t\(SeparatedDesktop.systemName)\n"
        #expect(try desktop.runKeyring(["--access"]).output == "mode\task\n" + grant)
        #expect(
            try desktop.runValet("access").output == """
                Mode:  ask, a person is asked before a program uses the items of another one
                       \(SeparatedDesktop.otherName) may use the items of \(SeparatedDesktop.systemName)

                """)
        #expect(try desktop.runValet("revoke", "/mnt/reader").ending == .exited(0))
        #expect(try desktop.runValet("revoke", SeparatedDesktop.otherName).ending == .exited(1))
        #expect(try desktop.runKeyring(["--revoke", SeparatedDesktop.otherName]).ending == .exited(1))
        #expect(try desktop.runKeyring(["--access"]).output == "mode\task\n")
        // The running keyring learns of it with the change of the keychain.
        #expect(try waitUntil { try desktop.lookup(.other, attributes) == "hers" && desktop.questions.count > 1 })
    }
}
#endif
