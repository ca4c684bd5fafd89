// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainTestSupport
import Testing

@testable import SecretService
@testable import ValetCLI

@Suite("Replacing KWallet and KeePassXC as the keyring", .blocking, .requiresMessageBus)
struct OtherOwnerTests {
    private static let password = "swordfish"

    private func makeBus() throws -> ActivatingBus {
        let bus = try ActivatingBus()
        // Without a display.
        bus.variables = ["QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8"]
        return bus
    }

    private func collection(_ name: String) -> String { "\(Desktop.root)/collection/\(name)" }

    // MARK: KWallet

    /// Starts KWallet, and opens wallets as its module for the login does, which also makes them.
    private func startWallets(_ names: [String], on bus: ActivatingBus) throws -> ChildProcess {
        let wallet = try bus.startKeyring("/usr/bin/kwalletd5")
        let key = DBusValue.bytes((1...56).map { UInt8($0) })
        for name in names {
            _ = try bus.connect().call(
                "org.kde.kwalletd5", path: "/modules/kwalletd5", interface: "org.kde.KWallet", "pamOpen",
                [.text(name), key, .number(0)], signature: "sayi")
        }
        return wallet
    }

    private func quit(_ wallet: ChildProcess, of bus: ActivatingBus) throws {
        _ = try bus.connect().call(
            "org.kde.kwalletd5", path: "/MainApplication", interface: "org.qtproject.Qt.QCoreApplication", "quit", [], signature: "")
        _ = try wallet.waitUntilEnded()
    }

    @Test("KWallet is replaced on demand only, its wallets are copied, and it has them after disabling", .requiresKWallet)
    func wallet() throws {
        let bus = try makeBus()
        let settings = "[Wallet]\nEnabled=true\nFirst Use=false\nDefault Wallet=kdewallet\n"
        try bus.write(settings, to: ".config/kwalletrc")
        // A new wallet becomes a collection with the next start.
        try quit(try startWallets(["kdewallet", "work"], on: bus), of: bus)
        let wallet = try startWallets(["kdewallet", "work"], on: bus)
        let former = try bus.client()
        let (main, work) = (collection("kdewallet"), collection("work"))
        let prompt = try former.unlock([main, work]).prompt
        if prompt != "/" { #expect(try !former.complete(prompt).isDismissed) }
        #expect(waitUntil { (try? former.property("Locked", of: work, .collection).boolean) == false })
        _ = try former.createItem(["a": "1"], "one", label: "One", in: main)
        _ = try former.createItem(["a": "1"], "", label: "Empty", in: main)
        _ = try former.createItem(["b": "2"], "two", label: "Two", contentType: "application/octet-stream", in: work)
        let refused = try bus.valet("enable")
        #expect(refused.ending == .exited(3) && refused.output.contains("--replace"), "\(refused.output)")
        #expect(try bus.keyringProcess() == wallet.processID)
        let enabled = try bus.valet("enable", "--replace")
        #expect(enabled.ending == .exited(0) && enabled.output.contains("copied: 3"), "\(enabled.output)")
        _ = try wallet.waitUntilEnded()
        let client = try bus.client()
        #expect(try client.search(["a": "1"], in: Desktop.login).count == 2)
        let item = try #require(try client.search(["b": "2"]).unlocked.first)
        let secret = try client.secret(of: item)
        #expect(secret.text == "two" && secret.contentType == "application/octet-stream")
        #expect(try client.property("Label", of: item, .item).text == "Two" && client.itemAttributes(item) == ["b": "2"])
        let disabled = try bus.valet("disable")
        #expect(disabled.ending == .exited(0) && disabled.output.contains("log out and in"), "\(disabled.output)")
        #expect(try bus.files()[".config/kwalletrc"]?.contains("apiEnabled") == false)
        let again = try startWallets(["kdewallet", "work"], on: bus)
        let reader = try bus.client()
        let secondPrompt = try reader.unlock([main, work]).prompt
        if secondPrompt != "/" { #expect(try !reader.complete(secondPrompt).isDismissed) }
        #expect(
            waitUntil { (try? reader.search(["b": "2"], in: work).count) == 1 && (try? reader.search(["a": "1"], in: main).count) == 2 })
        try quit(again, of: bus)
    }

    @Test("A wallet that the bus has started for the import ends again if the import fails", .requiresKWallet)
    func activatedWallet() throws {
        let bus = try makeBus()
        try bus.write("[Wallet]\nEnabled=true\nFirst Use=false\nDefault Wallet=kdewallet\n", to: ".config/kwalletrc")
        try quit(try startWallets(["kdewallet"], on: bus), of: bus)
        let file = "[D-BUS Service]\nName=\(ActivatingBus.name)\nExec=/usr/bin/env QT_QPA_PLATFORM=offscreen /usr/bin/kwalletd5\n"
        try file.write(toFile: "\(bus.systemServices)/\(ActivatingBus.name).service", atomically: true, encoding: .utf8)
        _ = try bus.busCall("ReloadConfig", [], "")
        let program = bus.home + "/program"
        let text = "#!/bin/sh\n[ \"$1\" = --check ] || { echo failed; exit 1; }\n"
        let made = try ChildProcess.run(
            "/bin/sh", ["-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", text, program], environment: bus.environment)
        try #require(made.ending == .exited(0))
        let failed = try bus.run(try BuiltProgram.path(of: "valet"), ["secret-service", "enable", "--program", program])
        #expect(failed.ending == .exited(3) && failed.output.contains("--no-import"), "\(failed.output)")
        #expect(try bus.keyringProcess() == nil)
    }

    // MARK: KeePassXC

    @Test("The items of KeePassXC are copied without the attributes of its entries, and it is left to the person", .requiresKeePassXC)
    func keePassXC() throws {
        let bus = try makeBus()
        let settings = """
            [General]
            ConfigVersion=2
            SingleInstance=false
            UpdateCheckMessageShown=true
            [FdoSecrets]
            Enabled=true
            ConfirmAccessItem=false

            """
        try bus.write(settings, to: ".config/keepassxc/keepassxc.ini")
        let group = "00112233-4455-6677-8899-aabbccddeeff"
        let identifier = "ABEiM0RVZneImaq7zN3u/w=="
        let database = """
            <?xml version="1.0" encoding="UTF-8"?><KeePassFile><Meta><CustomData><Item><Key>FDO_SECRETS_EXPOSED_GROUP</Key>
            <Value>{\(group)}</Value></Item></CustomData></Meta>
            <Root><Group><UUID>\(identifier)</UUID><Name>Desk</Name></Group></Root></KeePassFile>
            """
        try bus.write(database, to: "desk.xml")
        let importer = try ChildProcess(
            "keepassxc-cli", ["import", "-p", "-q", bus.home + "/desk.xml", bus.home + "/desk.kdbx"], environment: bus.environment)
        for _ in 0..<2 { importer.send(Self.password) }
        importer.closeInput()
        try #require(try importer.waitUntilEnded() == .exited(0))
        let keePass = try bus.startKeyring("keepassxc", ["--pw-stdin", bus.home + "/desk.kdbx"], input: [Self.password])
        // It ends at once only without a question about unsaved changes.
        defer { keePass.send(signal: SIGKILL) }
        let former = try bus.client()
        let desk = collection("desk")
        try #require(waitUntil { (try? former.property("Locked", of: desk, .collection).boolean) == false })
        for (name, value, label, type) in [("a", "one", "One", "text/plain"), ("b", "two", "Two", "application/octet-stream")] {
            let secret = former.secret(Array(value.utf8), type)
            let reply = try former.call(
                desk, .collection, "CreateItem", former.itemArguments([name: name == "a" ? "1" : "2"], secret, label: label),
                SecretClient.itemSignature)
            // It stores an item in a prompt that it does not show.
            #expect(try !former.complete(try #require(reply.last?.text)).isDismissed)
        }
        let refused = try bus.valet("enable", "--replace")
        #expect(refused.ending == .exited(3) && refused.output.contains("copied: 2"), "\(refused.output)")
        #expect(refused.output.contains("Secret Service Integration") && refused.output.contains("--no-import"))
        #expect(try bus.keyringProcess() == keePass.processID && bus.files()[".local/share/dbus-1/services"] == nil)
        keePass.send(signal: SIGKILL)
        _ = try keePass.waitUntilEnded()
        let enabled = try bus.valet("enable", "--no-import")
        #expect(enabled.ending == .exited(0), "\(enabled.output)")
        let client = try bus.client()
        let item = try #require(try client.search(["b": "2"]).unlocked.first)
        let secret = try client.secret(of: item)
        #expect(secret.text == "two" && secret.contentType == "application/octet-stream")
        #expect(try client.itemAttributes(item) == ["b": "2"])
        // The program replaces its item, and has one still.
        _ = try client.createItem(["a": "1"], "newer", label: "One", replaces: true)
        #expect(try client.search(["a": "1"]).unlocked.map { try client.secret(of: $0).text } == ["newer"])
    }

    @Test("Only attributes that KeePassXC derives from its entry are left out, and all stay that have no others beside them")
    func entryAttributes() {
        let path = "\(Desktop.root)/collection/desk/0123"
        let entry = [("Uuid", "0123"), ("Path", "/Mail"), ("Title", "Mail"), ("UserName", ""), ("URL", "https://h"), ("Notes", "")]
        func names(_ pairs: [(String, String)]) -> [String] {
            ItemLookup(pairs).withoutEntryAttributes(path: path, label: "Mail").attributes.map(\.name)
        }
        #expect(names(entry + [("a", "1"), ("FDO_SECRETS_CONTENT_TYPE", "x")]) == ["URL", "a"])
        #expect(names(entry) == ["Notes", "Path", "Title", "URL", "UserName", "Uuid"])
        #expect(names([("Uuid", "other"), ("Path", "/Mail"), ("Title", "Mail"), ("a", "1")]) == ["Path", "Title", "Uuid", "a"])
    }
}
#endif
