// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("The command that makes the keychain the keyring", .blocking, .requiresMessageBus)
struct SwitchTests {
    private static let activation = ".local/share/dbus-1/services/org.freedesktop.secrets.service"
    private static let unit = ".config/systemd/user/keychain-secret-service.service"
    private static let masks = [
        ".config/systemd/user/gnome-keyring-daemon.service", ".config/systemd/user/gnome-keyring-daemon.socket",
    ]

    @Test("After enabling, the bus starts the keyring for the first program, with the keychain of the command")
    func activation() throws {
        let bus = try ActivatingBus()
        let enabled = try bus.valet("enable")
        #expect(enabled.ending == .exited(0), "\(enabled.output)")
        let files = try bus.files()
        #expect(files[Self.activation]?.contains("SystemdService=keychain-secret-service.service") == true)
        #expect(files[Self.unit]?.contains("BusName=org.freedesktop.secrets") == true)
        for mask in Self.masks { #expect(files[mask] == "link to /dev/null") }
        // Without the name of a desktop.
        #expect(files[".config/kwalletrc"] == nil && files[".config/xdg-desktop-portal"] == nil)
        let item = try bus.client().createItem(["a": "b"], "secret")
        let first = try #require(try bus.keyringProcess())
        kill(first, SIGKILL)
        // The call of the next program starts the keyring again.
        #expect(waitUntil { (try? bus.keyringProcess()) != first })
        let client = try bus.client()
        #expect(try bus.keyringProcess() != first)
        #expect(try client.search([:]).unlocked == [item] && client.secret(of: item).text == "secret")
    }

    @Test("All calls that wait while the keyring starts are answered by it")
    func queuedCalls() throws {
        let bus = try ActivatingBus()
        #expect(try bus.valet("enable").ending == .exited(0))
        let item = try bus.client().createItem(["a": "b"], "secret")
        let first = try #require(try bus.keyringProcess())
        kill(first, SIGKILL)
        #expect(waitUntil { (try? bus.keyringProcess()) != first })
        let (address, found) = (bus.address, Collected())
        DispatchQueue.concurrentPerform(iterations: 16) { _ in
            let reply = try? DBusConnection([address], timeoutMilliseconds: 60_000).call(
                ActivatingBus.name, path: Desktop.root, interface: "org.freedesktop.Secret.Service", "SearchItems",
                [SecretClient.attributes(["a": "b"])], signature: "a{ss}")
            found.append(reply?.first?.texts ?? [])
        }
        #expect(found.values == Array(repeating: [item], count: 16))
    }

    @Test("GNOME Keyring is replaced on demand only, its items are copied, and disabling lets it start again", .requiresGNOMEKeyring)
    func replacement() throws {
        let bus = try ActivatingBus()
        try bus.startGNOMEKeyring()
        _ = try bus.client().createItem(["a": "b"], "secret", label: "Mail")
        let before = try bus.files()
        let former = try bus.keyringProcess()
        let refused = try bus.valet("enable")
        #expect(refused.ending == .exited(3) && refused.output.contains("gnome-keyring-daemon") && refused.output.contains("--replace"))
        #expect(try bus.files() == before && bus.keyringProcess() == former)
        let enabled = try bus.valet("enable", "--replace")
        #expect(enabled.ending == .exited(0) && enabled.output.contains("copied: 1"), "\(enabled.output)")
        try bus.waitForEndOfGNOMEKeyring()
        let client = try bus.client()
        let item = try #require(try client.search(["a": "b"]).unlocked.first)
        #expect(try client.secret(of: item).text == "secret" && client.search([:]).unlocked == [item])
        #expect(try bus.valet("status").output.contains("keychain-secret-service (process \(try #require(try bus.keyringProcess())))"))
        let disabled = try bus.valet("disable")
        #expect(disabled.ending == .exited(0), "\(disabled.output)")
        #expect(try bus.files() == before && bus.keyringProcess() == nil)
        // GNOME Keyring has its item still, which is locked without a login.
        #expect(try bus.client().property("Label", of: Desktop.login, .collection).text != nil)
        let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(try #require(try bus.keyringProcess()))/exe")
        #expect(path.hasSuffix("/gnome-keyring-daemon"))
    }

    @Test("A keyring that does not run yet is started for the import, and ended", .requiresGNOMEKeyring)
    func idleKeyring() throws {
        let bus = try ActivatingBus()
        try bus.startGNOMEKeyring()
        kill(try #require(try bus.keyringProcess()), SIGTERM)
        #expect(waitUntil { (try? bus.keyringProcess()) == .some(nil) })
        let before = try bus.files()
        // Its collection is locked, and nothing can ask for its password here.
        let locked = try bus.valet("enable")
        #expect(locked.ending == .exited(3) && locked.output.contains("locked"), "\(locked.output)")
        #expect(try bus.files() == before)
        #expect(try bus.valet("enable", "--no-import", "--replace").ending == .exited(0))
    }

    @Test("A keyring that cannot be ended is named, keeps the name, and nothing is changed")
    func ownedByOther() throws {
        let bus = try ActivatingBus()
        let owner = try bus.connect()
        _ = try bus.busCall("RequestName", [.text(ActivatingBus.name), .number(0)], "su", owner)
        for option in ["--replace", "--no-import"] {
            let refused = try bus.valet("enable", option)
            #expect(refused.ending == .exited(3) && refused.output.contains("(process \(getpid()))"), "\(refused.output)")
            #expect(refused.output.contains("--import"))
        }
        #expect(try bus.files().isEmpty && bus.keyringProcess() == getpid())
        #expect(try bus.valet("status", "--json").output.contains("\"isKeychain\" : false"))
        withExtendedLifetime(owner) {}
    }

    @Test("The program of another installation is replaced without a question")
    func otherInstallation() throws {
        let bus = try ActivatingBus()
        let copy = bus.home + "/keychain-secret-service"
        // By another process: a child of this one that has the file open for writing would keep it from being executed.
        _ = try ChildProcess.run("cp", [try BuiltProgram.path(of: "keychain-secret-service"), copy])
        let other = try ChildProcess(copy, environment: bus.environment)
        try #require(waitUntil { (try? bus.keyringProcess()) == other.processID })
        let enabled = try bus.valet("enable")
        #expect(enabled.ending == .exited(0), "\(enabled.output)")
        _ = try other.waitUntilEnded()
        #expect(try bus.keyringProcess() != other.processID && bus.valet("status", "--json").output.contains("\"isKeychain\" : true"))
    }

    @Test("A locked keychain cannot become the keyring")
    func lockedKeychain() throws {
        let bus = try ActivatingBus()
        let keychain = try Desktop.keychain(home: bus.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        let refused = try bus.valet("enable")
        #expect(refused.ending == .exited(3) && refused.output.contains("valet unlock"), "\(refused.output)")
        #expect(try bus.files().isEmpty)
    }

    @Test("If the keyring cannot be started, every file is put back")
    func undoneOnFailure() throws {
        let bus = try ActivatingBus(searchesHome: false)
        try bus.write("[D-BUS Service]\nName=other\nExec=/bin/false\n", to: Self.activation)
        try bus.write("[Wallet]\nEnabled=true\n", to: ".config/kwalletrc")
        let before = try bus.files()
        let failed = try bus.valet("enable")
        #expect(failed.ending == .exited(3) && failed.output.contains("put back"), "\(failed.output)")
        #expect(try bus.files() == before)
        #expect(try bus.valet("disable").ending == .exited(1))
    }

    @Test("A running keyring is not ended if the bus does not look where the file is", .requiresGNOMEKeyring)
    func unsearchedDirectory() throws {
        let bus = try ActivatingBus(searchesHome: false)
        try bus.startGNOMEKeyring()
        let (former, before) = (try bus.keyringProcess(), try bus.files())
        let failed = try bus.valet("enable", "--replace")
        #expect(failed.ending == .exited(3) && failed.output.contains("does not look"), "\(failed.output)")
        #expect(try bus.keyringProcess() == former && bus.files() == before)
    }

    @Test("Disabling restores what was there, also after enabling twice, and leaves what was changed since")
    func disabling() throws {
        let bus = try ActivatingBus()
        // A mask and a file that the person has made, and Plasma's settings.
        try bus.write("", to: ".config/systemd/user/other.service")
        try FileManager.default.createSymbolicLink(atPath: "\(bus.home)/\(Self.masks[0])", withDestinationPath: "/dev/null")
        try bus.write("[Unit]\n", to: Self.masks[1])
        try bus.write("[Wallet]\nEnabled=true", to: ".config/kwalletrc")
        let before = try bus.files()
        #expect(try bus.valet("enable").ending == .exited(0))
        #expect(try bus.files()[".config/kwalletrc"]?.hasSuffix("[org.freedesktop.secrets]\napiEnabled=false\n") == true)
        #expect(try bus.valet("enable").ending == .exited(0))
        try bus.write("changed", to: Self.unit)
        let status = try bus.valet("status").output
        #expect(
            status.contains("\(Self.unit), changed since") && status.contains("\(Self.masks[0]), in place")
                && status.contains("kwalletrc, in place"))
        let disabled = try bus.valet("disable")
        #expect(disabled.ending == .exited(0) && disabled.output.contains("\(Self.unit) was changed since"), "\(disabled.output)")
        var after = try bus.files()
        #expect(after.removeValue(forKey: Self.unit) == "changed")
        #expect(try after == before && bus.keyringProcess() == nil)
        #expect(try bus.valet("disable").ending == .exited(1))
    }

    @Test("If another attempt fails, the setup before it stays, and can be undone")
    func failedRepetition() throws {
        let bus = try ActivatingBus()
        try bus.write("[Unit]\n", to: Self.masks[1])
        let before = try bus.files()
        #expect(try bus.valet("enable").ending == .exited(0))
        let enabled = try bus.files()
        let item = try bus.client().createItem(["a": "b"], "secret")
        let failed = try bus.enableBrokenInstallation()
        #expect(failed.ending == .exited(3) && failed.output.contains("before"), "\(failed.output)")
        #expect(try bus.files() == enabled)
        #expect(try bus.client().search([:]).unlocked == [item])
        #expect(try bus.valet("disable").ending == .exited(0))
        #expect(try bus.files() == before && bus.keyringProcess() == nil)
    }

    @Test("Without the record of an earlier setup, its files do not count as those of the person")
    func lostRecord() throws {
        let bus = try ActivatingBus()
        #expect(try bus.valet("enable").ending == .exited(0))
        try FileManager.default.removeItem(atPath: bus.home + "/.local/state/keychain/secret-service.json")
        #expect(try bus.valet("enable").ending == .exited(0))
        #expect(try bus.valet("disable").ending == .exited(0))
        let files = try bus.files()
        #expect(files[Self.activation] == nil && files[Self.unit] == nil)
    }

    @Test("What was in the place of a file that was changed since stays in a file, and nothing is set up any more")
    func keptContent() throws {
        let bus = try ActivatingBus()
        try bus.write("[Unit]\nDescription=mine\n", to: Self.masks[1])
        #expect(try bus.valet("enable").ending == .exited(0))
        try FileManager.default.removeItem(atPath: "\(bus.home)/\(Self.masks[1])")
        try bus.write("[Unit]\nDescription=newer\n", to: Self.masks[1])
        let disabled = try bus.valet("disable")
        let record = bus.home + "/.local/state/keychain/secret-service-kept-1.json"
        #expect(disabled.ending == .exited(0) && disabled.output.contains(record), "\(disabled.output)")
        #expect(try bus.files()[Self.masks[1]]?.contains("newer") == true && bus.files()[Self.activation] == nil)
        let kept = try String(contentsOfFile: record, encoding: .utf8)
        #expect(try bus.valet("disable").ending == .exited(1))
        #expect(kept.contains(Data("[Unit]\nDescription=mine\n".utf8).base64EncodedString()))
    }

    @Test(
        "One setting of KWallet is changed, and the other lines are kept",
        arguments: [
            ("", nil), ("[Wallet]\nEnabled=true\n", nil), ("[Wallet]\nEnabled=true", nil), ("[org.freedesktop.secrets]\nother=1\n", nil),
            ("a\n\n[org.freedesktop.secrets]\nother=1\napiEnabled = true\n[b]\n", " true"),
            ("[org.freedesktop.secrets]\n[b]\napiEnabled=true\n", nil),
        ])
    func walletSettings(_ text: String, _ former: String?) {
        let file = { SettingsFile($0, group: "org.freedesktop.secrets", key: "apiEnabled") }
        var settings = file(text)
        #expect(settings.value == former)
        settings.value = "false"
        #expect(file(settings.text).value == "false")
        settings.value = former
        #expect(file(settings.text).value == former)
        let lines = settings.text.split(separator: "\n")
        for line in text.split(separator: "\n") where !line.hasPrefix("apiEnabled =") { #expect(lines.contains(line)) }
    }

    @Test("If another program has changed the settings of KWallet since, only the one setting is put back")
    func changedWallet() throws {
        let bus = try ActivatingBus()
        try bus.write("[Wallet]\nEnabled=true\n", to: ".config/kwalletrc")
        #expect(try bus.valet("enable").ending == .exited(0))
        try bus.write("[Wallet]\nEnabled=false\n\n[org.freedesktop.secrets]\napiEnabled=false\n", to: ".config/kwalletrc")
        #expect(try bus.valet("disable").ending == .exited(0))
        #expect(try bus.files()[".config/kwalletrc"] == "[Wallet]\nEnabled=false\n\n[org.freedesktop.secrets]\n")
    }
}

/// Values that several threads append.
private final class Collected: @unchecked Sendable {
    private let lock = NSLock()
    private var collected: [[String]] = []

    func append(_ value: [String]) { lock.withLock { collected.append(value) } }
    var values: [[String]] { lock.withLock { collected } }
}
#endif
