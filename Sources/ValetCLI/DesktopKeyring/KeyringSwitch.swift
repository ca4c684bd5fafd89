// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// Makes the keychain the keyring of the session, or the former keyring again.
struct KeyringSwitch {
    private static let walletNames = ["org.kde.kwalletd6", "org.kde.kwalletd5"]

    let bus: KeyringBus
    let places: KeyringPlaces

    // MARK: Enabling

    /// Switches to the program, and returns what was done.
    ///
    /// With `replaces`, GNOME Keyring or KWallet is ended. Nothing is changed if a program is the keyring that cannot be ended, and everything is
    /// put back if the program does not become the keyring.
    func enable(_ program: KeyringProgram, replaces: Bool, imports: Bool) throws(CommandFailure) -> [String] {
        let setup = try KeyringSetup.load(places)
        var lines: [String] = []
        var former = try formerKeyring(program, setup, imports: imports)
        if let present = former.owner {
            do throws(CommandFailure) {
                let mayBeEnded = present.canBeEnded && (former.isStartedHere || replaces)
                // KeePassXC is left to the person, who turns its service off afterwards.
                guard mayBeEnded || imports && present.isKeePassXC else { throw Self.refusal(present) }
                var outcome: String?
                if imports { outcome = try program.importItems() }
                guard mayBeEnded else { throw Self.refusal(present, imported: outcome) }
                if let outcome { lines.append("Items of \(present.name): \(outcome). All were compared.") }
                // The import may have taken a while.
                former.owner = try bus.owner()
                if let other = former.owner, other != present { throw Self.refusal(other, imported: outcome) }
                try change(setup, ending: former.owner, program)
            } catch {
                // It was not running before.
                if former.isStartedHere, present.canBeEnded { try? bus.end(present) }
                throw error
            }
        } else {
            try change(setup, ending: nil, program)
        }
        return lines + ["\(program.path) is the keyring of this session now, and of the next ones."]
    }

    /// The keyring that is to be replaced.
    private struct FormerKeyring {
        var owner: KeyringBus.Owner?
        /// Whether the bus has started it for this command.
        var isStartedHere = false
    }

    private func formerKeyring(
        _ program: KeyringProgram, _ setup: KeyringSetup?, imports: Bool
    ) throws(CommandFailure) -> FormerKeyring {
        if let owner = try bus.owner() { return FormerKeyring(owner: owner.isKeychain ? nil : owner) }
        // Its items are imported from it while it runs. After an earlier setup the bus would start this keyring.
        guard imports, setup == nil, try bus.canStartKeyring() else { return FormerKeyring() }
        let isStartedHere: Bool
        do throws(CommandFailure) {
            isStartedHere = try bus.startKeyring()
        } catch {
            throw CommandFailure(
                error.status, "the present keyring cannot be started, so that its items could be imported: \(error.problem)",
                advice: "Nothing was changed. Start it, or add --no-import to leave its items where they are.")
        }
        let owner = try bus.owner()
        return FormerKeyring(owner: owner?.isKeychain == true ? nil : owner, isStartedHere: isStartedHere)
    }

    /// The failure for a program that keeps the name; `imported` is what was copied from it before.
    private static func refusal(_ owner: KeyringBus.Owner, imported: String? = nil) -> CommandFailure {
        let state = imported.map { "Its items are in the keychain now (\($0)); nothing else was changed." } ?? "Nothing was changed."
        let copying = imported == nil ? "Copy its items with `\(KeyringProgram.name) --import`. Then at once" : "At once"
        let advice =
            if owner.canBeEnded {
                "\(state) `valet secret-service enable --replace` copies its items, and ends it."
            } else if owner.isKeePassXC {
                """
                \(state) \(copying), turn its "Secret Service Integration" off (Tools > Settings), and run `valet secret-service enable --no-import`: what \
                programs store there in between is not copied.
                """
            } else {
                "\(state) \(copying), quit it, and run the command again with --no-import."
            }
        return CommandFailure(
            .unavailable, "\(owner.text) is the keyring of this session, and keeps the name while it runs", advice: advice)
    }

    /// Writes the files and takes the name; puts everything back on failure, also an earlier setup.
    private func change(_ earlier: KeyringSetup?, ending owner: KeyringBus.Owner?, _ program: KeyringProgram) throws(CommandFailure) {
        var setup = earlier?.with(program: program.path) ?? KeyringSetup(program: program.path)
        let snapshot = try earlier?.snapshot(places, for: program)
        var hasEndedOther = false
        var walletIsThere = FileSystem.exists(places.wallet)
        for name in Self.walletNames where !walletIsThere { walletIsThere = try bus.canStart(name) }
        do throws(CommandFailure) {
            let isChanged = try setup.apply(places, places.settings(disablesWallet: walletIsThere))
            try requireSearch(of: FileSystem.parent(of: places.activation))
            try bus.reload()
            // The program of another installation has the same items, and one that runs already may have been started for another keychain.
            if let present = try bus.owner(), present == owner || present.isKeychain && (isChanged || !present.isProgram(program.path)) {
                try bus.end(present)
                hasEndedOther = !present.isKeychain
            }
            try bus.startKeyring()
            guard let present = try bus.owner(), present.isProgram(program.path) else {
                let name = try bus.owner()?.text ?? "no program"
                throw CommandFailure(.unavailable, "\(name) has become the keyring instead", advice: "")
            }
            try KeyringProbe(bus.otherClient()).run()
        } catch {
            let isPutBack = putBack(setup, snapshot)
            try? bus.reload()
            if snapshot == nil, let present = try? bus.owner(), present.isProgram(program.path) { try? bus.end(present) }
            let advice =
                if !isPutBack {
                    "Not all files could be put back: run `valet secret-service disable`."
                } else if snapshot != nil {
                    "The setup is the one that was there before."
                } else {
                    "All files were put back. \(Self.nextKeyring(bus))\(hasEndedOther ? " It asks for its password." : "")"
                }
            throw CommandFailure(error.status, "the keychain did not become the keyring: \(error.problem)", advice: advice)
        }
    }

    /// Returns whether everything was put back: what an earlier setup has written, or what was there before the first one.
    private func putBack(_ setup: KeyringSetup, _ snapshot: KeyringSetup.Snapshot?) -> Bool {
        do throws(CommandFailure) {
            if let snapshot {
                try KeyringSetup.restore(snapshot, places)
                return true
            }
            // With the record, `disable` can put back the others.
            guard try setup.undo().isEmpty else { return false }
            _ = try setup.forget(places, keeping: [])
            return true
        } catch {
            return false
        }
    }

    /// Throws unless the bus finds a service in the directory.
    ///
    /// If it looks elsewhere, the former keyring would be ended in vain, and start again locked.
    private func requireSearch(of directory: String) throws(CommandFailure) {
        let name = "org.freedesktop.secrets.probe_\(Identifier128.random().hexadecimal)"
        let path = "\(directory)/\(name).service"
        try FileContent.file(Data("[D-BUS Service]\nName=\(name)\nExec=/bin/false\n".utf8)).write(to: path)
        defer { FileSystem.tryUnlink(path) }
        try bus.reload()
        guard try bus.canStart(name) else {
            throw CommandFailure(.unavailable, "the bus of this session does not look for services in \(directory)", advice: "")
        }
    }

    // MARK: Disabling

    /// Says how the former keyring starts again.
    private static func nextKeyring(_ bus: KeyringBus?) -> String {
        guard let bus else { return "No bus of a session can be reached. If a session runs, its keyring stays until the session ends." }
        // KWallet and KeePassXC are usually not started by the bus under this name.
        return (try? bus.canStartKeyring()) == false
            ? "The bus cannot start the former keyring: start it, or log out and in."
            : "The former keyring starts with the next program that needs it."
    }

    /// Undoes `enable`, and returns what was done; the bus is nil if it cannot be reached.
    ///
    /// The record goes last, so that the command can be repeated after a failure.
    static func disable(_ places: KeyringPlaces, bus: KeyringBus?) throws(CommandFailure) -> [String] {
        guard let setup = try KeyringSetup.load(places) else {
            throw CommandFailure(
                .notFound, "`valet secret-service enable` has not set anything up",
                advice: "`valet secret-service status` shows the keyring.")
        }
        let leftAlone = try setup.undo()
        // Before the program ends: the bus would start it again.
        try bus?.reload()
        if let bus, let owner = try bus.owner(), owner.isProgram(setup.program) || owner.isKeychain { try bus.end(owner) }
        let kept = try setup.forget(places, keeping: leftAlone)
        let next = nextKeyring(bus)
        return leftAlone.map { "\($0.path) was changed since, and stays as it is." }
            + (kept.map { ["What was there before is kept in \($0)."] } ?? []) + [
                "\(next) What was stored meanwhile stays in the keychain."
            ]
    }
}

extension KeyringBus.Owner {
    /// Whether it is the program with this path, which has no symbolic links.
    func isProgram(_ path: String) -> Bool { (try? FileSystem.resolve(program)) ?? program == path }
}

/// A look at the keyring as another program has it: stores an item, finds it, reads it, and deletes it.
struct KeyringProbe {
    private static let service = "/org/freedesktop/secrets"
    private static let interface = "org.freedesktop.Secret."

    private let connection: DBusConnection

    init(_ connection: DBusConnection) { self.connection = connection }

    func run() throws(CommandFailure) {
        let isSame = try KeyringBus.explaining { () throws(DBusFailure) in try readsBack() }
        guard isSame else {
            throw CommandFailure(.damaged, "an item that was stored through the bus came back with another secret", advice: "")
        }
    }

    private func readsBack() throws(DBusFailure) -> Bool {
        let reply = try call(Self.service, "Service", "OpenSession", [.text("plain"), .variant(signature: "s", .text(""))], "sv")
        guard let session = reply.last else { throw .malformed }
        let value = Identifier128.random().hexadecimal
        let attributes = DBusValue.list([.list([.text("valet-secret-service-probe"), .text(value)])])
        let properties = DBusValue.list([
            .list([.text(Self.interface + "Item.Label"), .variant(signature: "s", .text("Probe of valet"))]),
            .list([.text(Self.interface + "Item.Attributes"), .variant(signature: "a{ss}", attributes)]),
        ])
        let secret = DBusValue.list([session, .bytes([]), .bytes(Array(value.utf8)), .text("text/plain")])
        let item = try call(
            "\(Self.service)/aliases/default", "Collection", "CreateItem", [properties, secret, .number(0)], "a{sv}(oayays)b"
        ).first?.text
        guard let item, item != "/" else { throw .malformed }
        let isSame = Result { () throws(DBusFailure) in
            let found = try call(Self.service, "Service", "SearchItems", [attributes], "a{ss}").first?.texts
            let read = try call(item, "Item", "GetSecret", [session], "o").first?.list?.dropFirst(2).first?.bytes
            return found == [item] && read == Array(value.utf8)
        }
        // Also if it was not found, or could not be read.
        _ = try call(item, "Item", "Delete", [], "")
        return try isSame.get()
    }

    private func call(
        _ path: String, _ interface: String, _ member: String, _ arguments: [DBusValue], _ signature: String
    ) throws(DBusFailure) -> [DBusValue] {
        try connection.call(
            KeyringBus.serviceName, path: path, interface: Self.interface + interface, member, arguments, signature: signature)
    }
}
