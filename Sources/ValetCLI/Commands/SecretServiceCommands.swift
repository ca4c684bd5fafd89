// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainSystem

struct SecretServiceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secret-service",
        abstract: "Use the keychain as the keyring of the desktop, in place of GNOME Keyring, KWallet, or KeePassXC.",
        discussion: """
            Desktop programs store secrets through the Secret Service of their session. The program keychain-secret-service provides it from the \
            keychain; `make install-secret-service` installs it.
            """,
        subcommands: [
            SecretServiceStatusCommand.self, SecretServiceEnableCommand.self, SecretServiceDisableCommand.self,
            SecretServiceAccessCommand.self, SecretServiceRevokeCommand.self,
        ]
    )
}

struct SecretServiceStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show which program is the keyring of this session, and what `enable` has set up.")

    @Flag(help: "Print a JSON object.")
    var json = false

    private struct Status: Encodable {
        struct Keyring: Encodable {
            let program: String
            let process: Int32
            let isKeychain: Bool
        }

        struct Change: Encodable {
            let path: String
            let state: KeyringSetup.ChangeState
        }

        let keyring: Keyring?
        let isEnabled: Bool
        let changes: [Change]
    }

    func run() throws {
        let setup = try KeyringSetup.load(try KeyringPlaces(ProcessEnvironment.variables))
        let bus = try KeyringBus()
        let owner = try bus.owner()
        let changes = (setup?.allChanges ?? []).map { Status.Change(path: $0.path, state: setup?.state(of: $0) ?? .undone) }
        if json {
            let keyring = owner.map { Status.Keyring(program: $0.program, process: $0.process, isKeychain: $0.isKeychain) }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
            let status = Status(keyring: keyring, isEnabled: setup != nil, changes: changes)
            try StandardOutput.write(try encoder.encode(status) + Data("\n".utf8))
            return
        }
        let idle = try bus.canStartKeyring() ? "none yet; the bus starts one with the next program that needs it" : "none"
        try StandardOutput.writeLine("Keyring:      \(owner?.text ?? idle)")
        try StandardOutput.writeLine("Set up:       \(setup.map { "for \(ItemListing.escapingUnprintable($0.program))" } ?? "no")")
        for change in changes {
            try StandardOutput.writeLine("              \(ItemListing.escapingUnprintable(change.path)), \(change.state.rawValue)")
        }
    }
}

struct SecretServiceEnableCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enable",
        abstract: "Copy the items of the present keyring, and make the keychain the keyring of this session and the next ones.",
        discussion: """
            Writes the files by which the bus of the session starts keychain-secret-service, masks the units of GNOME Keyring, turns the Secret \
            Service of KWallet off, and chooses the keychain for the secrets of sandboxed applications, all in the home directory of the user. Nothing is removed from the present keyring. Ends with a look at the \
            new one, and puts every file back if that fails.
            """)

    @Flag(help: "End GNOME Keyring or KWallet, if it is the keyring now, after its items were copied.")
    var replace = false

    @Flag(help: "Leave the items of the present keyring where they are.")
    var noImport = false

    @Option(
        help: ArgumentHelp("Use this program instead of the installed keychain-secret-service.", valueName: "path"),
        completion: .file())
    var program: String?

    func run() throws {
        let program = try program.map { path in try KeyringProgram(at: path) } ?? KeyringProgram.find()
        try program.check()
        let keyring = KeyringSwitch(bus: try KeyringBus(), places: try KeyringPlaces(ProcessEnvironment.variables))
        let lines = try keyring.enable(program, replaces: replace, imports: !noImport)
        try StandardOutput.write(lines, afterAction: "the keychain is the keyring now")
    }
}

struct SecretServiceDisableCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disable", abstract: "Undo `enable`, and let the former keyring start again.",
        discussion: """
            Puts back what was in the place of each file, and leaves files that were changed since as they are. The former keyring has its items, \
            without those that were stored meanwhile.
            """)

    func run() throws {
        // Without a bus, for example over SSH, the files are put back nevertheless.
        let lines = try KeyringSwitch.disable(try KeyringPlaces(ProcessEnvironment.variables), bus: try? KeyringBus())
        try StandardOutput.write(lines, afterAction: "the keychain is not the keyring any more")
    }
}
