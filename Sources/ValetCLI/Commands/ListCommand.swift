// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Valet

struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the keys of a valet, never the secrets.",
        discussion: """
            A table on a terminal; one key on each line elsewhere. Keys may hold line breaks: scripts that must get every key right use --json, \
            which gives for each item its key, accessibility, dates of creation and modification, and size in bytes.

            Of a Secure Enclave valet, the keys too have to be released: they can be listed with --single-prompt only.
            """
    )

    @Flag(help: "An array of objects, on a terminal too.")
    var json = false

    @OptionGroup
    var reason: ReasonOption

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func run() throws {
        let selected = try selection.resolve()
        let valet = try selected.requireListable(reason: try reason.text(for: selected))
        let session = try CommandSession(selected.entitlements, passcode: passcode.read())
        guard json || StandardOutput.isTerminal else {
            let keys = try session.perform { try valet.allKeys() }
            return try StandardOutput.write(Data(ItemListing.lines(keys).utf8))
        }
        let items = try session.perform { try selected.items(of: valet) }
        if items.contains(where: { $0.byteCount == nil }) {
            WarningLog.add("a secret cannot be read; `valet verify` tells if it is damaged")
        }
        try StandardOutput.write(json ? ItemListing.json(items) : Data(ItemListing.table(items).utf8))
    }
}
