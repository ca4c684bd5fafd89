// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("Installing the keyring, and making it the keyring under difficulties", .blocking, .requiresMessageBus)
struct SwitchFailureTests {
    @Test("The keyring is installed with the description of its portal, becomes the keyring of the session, and is uninstalled")
    func installation() throws {
        let bus = try ActivatingBus()
        let stage = bus.home + "/stage"
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Scripts/install-secret-service.sh").path
        let variables = [
            "DESTDIR": stage, "PREFIX": "/opt/valet", "PROGRAM": try BuiltProgram.path(of: "keychain-secret-service"),
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        ]
        let installed = try ChildProcess.run("bash", [script, "install"], environment: variables)
        try #require(installed.ending == .exited(0), "\(installed.output)")
        let portal = try String(contentsOfFile: stage + "/usr/share/xdg-desktop-portal/portals/keychain.portal", encoding: .utf8)
        let names = [PortalFrontEnd.backEnd, "org.freedesktop.impl.portal.Secret"]
        for (key, name) in zip(["DBusName", "Interfaces"], names) {
            #expect(SettingsFile(portal, group: "portal", key: key).value?.split(separator: ";").first.map(String.init) == name)
        }
        // xdg-desktop-portal 1.16 refuses a description without it.
        #expect(SettingsFile(portal, group: "portal", key: "UseIn").value != nil)
        let copied = try ChildProcess.run(
            "install", ["-D", try BuiltProgram.path(of: "valet"), stage + "/opt/valet/bin/valet"], environment: variables)
        try #require(copied.ending == .exited(0))
        let enabled = try bus.run(stage + "/opt/valet/bin/valet", ["secret-service", "enable"])
        #expect(enabled.ending == .exited(0) && enabled.output.contains("/opt/valet/libexec/keychain-secret-service"), "\(enabled.output)")
        _ = try bus.client()
        #expect(try bus.valet("disable").ending == .exited(0))
        let uninstalled = try ChildProcess.run("bash", [script, "uninstall"], environment: variables)
        #expect(uninstalled.ending == .exited(0), "\(uninstalled.output)")
        let remaining = FileManager.default.enumerator(atPath: stage)?.compactMap { $0 as? String } ?? []
        #expect(remaining.filter { ["keychain-secret-service", "keychain.portal"].contains(URL(filePath: $0).lastPathComponent) }.isEmpty)
    }

    @Test("A keyring that ends while its items are copied: nothing is switched", .requiresGNOMEKeyring)
    func endDuringImport() throws {
        let bus = try ActivatingBus()
        try bus.startGNOMEKeyring()
        let keyring = try #require(try bus.keyringProcess())
        let before = try bus.files()
        // The program fails as one does that loses the keyring. The bus does not start another one meanwhile.
        let program = bus.home + "/program"
        let text = "#!/bin/sh\n[ \"$1\" = --check ] || { kill \(keyring); echo lost; exit 1; }\n"
        let made = try ChildProcess.run(
            "/bin/sh", ["-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", text, program], environment: bus.environment)
        try #require(made.ending == .exited(0))
        let failed = try bus.run(
            try BuiltProgram.path(of: "valet"), ["secret-service", "enable", "--replace", "--program", program])
        #expect(failed.ending == .exited(3) && failed.output.contains("Nothing was switched"), "\(failed.output)")
        try bus.waitForEndOfGNOMEKeyring()
        #expect(try bus.files() == before)
        #expect(try bus.valet("disable").ending == .exited(1))
    }

    @Test(
        "A full disk leaves the session as it was", .requiresSetuidPrograms, arguments: [".config", ".local/state", ".local/share"])
    func fullDisk(_ directory: String) throws {
        let bus = try ActivatingBus()
        try bus.write("[Wallet]\nEnabled=true\n", to: ".config/kwalletrc")
        try bus.write("[Unit]\n", to: ".config/systemd/user/gnome-keyring-daemon.socket")
        let before = try bus.files()
        // Only the command has the small file system.
        let script = """
            mkdir -p "$1" && cp -a "$1" "$1.copy" && mount -t tmpfs -o mode=700,size=64k none "$1" && cp -a "$1.copy/." "$1" && rm -r "$1.copy"
            (cd "$1" && find . ! -type d | sort) > "$HOME/before"
            cat /dev/zero > "$1/filler" 2>/dev/null
            "$2" secret-service enable --program "$3"
            code=$?
            rm "$1/filler"
            (cd "$1" && find . ! -type d | sort) > "$HOME/after"
            exit $code
            """
        let failed = try bus.run(
            "unshare",
            [
                "-m", "sh", "-c", script, "sh", "\(bus.home)/\(directory)", try BuiltProgram.path(of: "valet"),
                try BuiltProgram.path(of: "keychain-secret-service"),
            ])
        #expect(failed.ending == .exited(3), "\(failed.output)")
        #expect(try bus.files() == before && bus.keyringProcess() == nil)
        let lists = try ["before", "after"].map { try String(contentsOfFile: "\(bus.home)/\($0)", encoding: .utf8) }
        #expect(lists[0] == lists[1])
        #expect(try bus.valet("disable").ending == .exited(1))
    }
}
#endif
