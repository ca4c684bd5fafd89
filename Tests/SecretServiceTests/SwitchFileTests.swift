// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("The files of the command that makes the keychain the keyring", .blocking, .requiresMessageBus)
struct SwitchFileTests {
    private static let portals = ".config/xdg-desktop-portal/"

    @Test("The bus starts the keyring for the first application in a sandbox too, which waits for a prompt (KWallet 211ac63a, oo7 b4f5397)")
    func portalActivation() throws {
        let bus = try ActivatingBus()
        #expect(try bus.valet("enable").ending == .exited(0))
        let frontEnd = try PortalFrontEnd(bus.environment)
        let secret = try frontEnd.secret(of: "org.example.Mail")
        // At a login: the front end is there before the keyring has its key, and the keyring ends and starts again.
        let keychain = try Desktop.keychain(home: bus.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        let first = try #require(try bus.keyringProcess())
        kill(first, SIGKILL)
        #expect(waitUntil { (try? bus.keyringProcess()) != first })
        #expect(try frontEnd.answer(for: "org.example.Mail") == .response(1))
        #expect(try bus.keyringProcess() != nil)
        try keychain.unlock(with: Desktop.passcode)
        #expect(try frontEnd.secret(of: "org.example.Mail") == secret)
    }

    @Test(
        "What the desktop has chosen for other portals stays, and disabling puts the file back",
        arguments: ["own", "common", "system", "none"])
    func portalPreference(_ place: String) throws {
        let bus = try ActivatingBus()
        bus.variables = ["XDG_CURRENT_DESKTOP": "Test:GNOME", "XDG_DATA_DIRS": bus.home + "/share"]
        let chosen = "[preferred]\ndefault=gnome;gtk;\norg.freedesktop.impl.portal.Secret=gnome-keyring;\n"
        let path: String
        switch place {
        case "own": path = Self.portals + "gnome-portals.conf"
        case "common": path = Self.portals + "portals.conf"
        default: path = Self.portals + "test-portals.conf"
        }
        switch place {
        case "system": try bus.write(chosen, to: "share/xdg-desktop-portal/gnome-portals.conf")
        case "none": break
        default: try bus.write(chosen, to: path)
        }
        let before = try bus.files()
        #expect(try bus.valet("enable").ending == .exited(0))
        let text = try #require(try bus.files()[path])
        let setting = "org.freedesktop.impl.portal.Secret=keychain;"
        if place == "none" {
            #expect(text.hasSuffix("[preferred]\n\(setting)\n"))
        } else {
            #expect(text.hasSuffix("[preferred]\ndefault=gnome;gtk;\n\(setting)gnome-keyring;\n"))
        }
        #expect(try bus.valet("enable").ending == .exited(0))
        #expect(try bus.files()[path] == text)
        if place != "own", place != "common" {
            // Without the record, the file is still not one of the person.
            try FileManager.default.removeItem(atPath: bus.home + "/.local/state/keychain/secret-service.json")
            #expect(try bus.valet("enable").ending == .exited(0))
            #expect(try bus.files()[path] == text)
        }
        #expect(try bus.valet("status").output.contains("\(path), in place"))
        #expect(try bus.valet("disable").ending == .exited(0))
        let after = try bus.files()
        // The links of the setup whose record was lost cannot be told from those of the person.
        if place == "own" || place == "common" { #expect(after == before) } else { #expect(after[path] == nil) }
    }

    @Test("A person who wants no portal for secrets keeps that")
    func noPortal() throws {
        let bus = try ActivatingBus()
        bus.variables = ["XDG_CURRENT_DESKTOP": "GNOME"]
        let path = Self.portals + "gnome-portals.conf"
        let text = "[preferred]\norg.freedesktop.impl.portal.Secret=none\n"
        try bus.write(text, to: path)
        #expect(try bus.valet("enable").ending == .exited(0))
        #expect(try bus.files()[path] == text)
    }

    @Test("Files keep their permissions, also those that were replaced by links and put back")
    func permissions() throws {
        let bus = try ActivatingBus()
        let modes: [String: Int] = [
            ".config/kwalletrc": 0o600, ".config/systemd/user/gnome-keyring-daemon.socket": 0o640,
            ".local/share/dbus-1/services/org.freedesktop.secrets.service": 0o644,
        ]
        for (path, mode) in modes {
            try bus.write("[Group]\n", to: path)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: "\(bus.home)/\(path)")
        }
        func permissions(of path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: "\(bus.home)/\(path)")[.posixPermissions] as? Int
        }
        #expect(try bus.valet("enable").ending == .exited(0))
        #expect(try permissions(of: ".config/kwalletrc") == 0o600)
        #expect(try bus.valet("disable").ending == .exited(0))
        for (path, mode) in modes { #expect(try permissions(of: path) == mode, "\(path)") }
    }

    @Test("The program of a build directory is not set up unless it is named")
    func buildDirectory() throws {
        let bus = try ActivatingBus()
        let valet = try BuiltProgram.path(of: "valet")
        let refused = try bus.run(valet, ["secret-service", "enable"])
        #expect(refused.ending == .exited(2) && refused.output.contains("make install-secret-service"), "\(refused.output)")
        #expect(try bus.run(valet, ["secret-service", "enable", "--program", "/nowhere"]).ending == .exited(2))
        #expect(try bus.files().isEmpty && bus.keyringProcess() == nil)
    }
}
#endif
