// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Valet

struct ExistsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exists",
        abstract: "Exit with 0 if there is a secret under a key, with 1 if there is none.",
        discussion: "Nothing is printed. Any other exit code means that the keychain could not tell."
    )

    @Argument(help: "The key to look for.", completion: .keys)
    var key: String

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetSelection

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        let exists = try session.perform { try selected.valet.containsObject(forKey: key) }
        if !exists { throw ExitCode(ExitStatus.notFound.rawValue) }
    }
}
