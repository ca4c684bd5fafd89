// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import Valet

struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove the secret of a key, or all of them.",
        discussion: "A removed secret cannot be recovered."
    )

    @Argument(help: "The key of the secret.", completion: .keys)
    var key: String?

    @Flag(help: "Remove every secret of the valet. Asks for confirmation on a terminal; otherwise requires --yes.")
    var all = false

    @Flag(help: "With --all: do not ask for confirmation.")
    var yes = false

    @Flag(help: "Succeed if the secret does not exist.")
    var force = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func validate() throws {
        if all == (key != nil) { throw ValidationError("Give a key, or --all to remove everything.") }
        if yes, !all { throw ValidationError("--yes requires --all.") }
    }

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        if let key {
            try remove(key, selected, session)
        } else {
            try Confirmation.require(
                try session.perform { "Remove \(Self.secrets(of: selected))?" }, isGiven: yes, "removal", otherwise: "nothing was removed")
            try session.perform { try selected.valet.removeAllObjects() }
        }
    }

    /// Describes all secrets of a valet, with their number if it can be found out without authentication.
    private static func secrets(of selected: SelectedValet) -> String {
        var number = "every secret"
        if !selected.requiresAuthentication, let valet = selected.valet as? any ListableValet,
            let list = try? valet.keyList(userPrompt: "", isComplete: true)
        {
            let count = list.keys.count + list.unnamedCount
            number = count == 1 ? "1 secret" : "\(count) secrets"
        }
        return "\(number) with \(PlaceDescription(selected.place).shownOptions)"
    }

    private func remove(_ key: String, _ selected: SelectedValet, _ session: CommandSession) throws {
        do throws(CommandFailure) {
            try session.perform {
                try selected.valet.removeObject(forKey: key)
                // A valet ignores that the item does not exist. Keychain Services reported it.
                if !force, let failure = session.lastFailure, failure.status == .itemNotFound { throw failure }
            }
        } catch {
            throw session.addingOtherPlaces(of: key, than: selected, to: error)
        }
    }
}
