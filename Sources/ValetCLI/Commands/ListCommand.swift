// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Valet

struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the keys of a valet, never the secrets.",
        discussion: """
            Prints a table on a terminal and one key per line elsewhere. Keys may contain line breaks; scripts should use --json, which prints \
            the key, accessibility, creation and modification dates, and size in bytes of each item.

            Listing a Secure Enclave valet requires authentication, so only those with --single-prompt can be listed, which have items of their own.
            """
    )

    @Flag(help: "Print a JSON array, also on a terminal.")
    var json = false

    @OptionGroup
    var reason: ReasonOption

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func run() throws {
        let selected = try selection.resolve()
        let reason = try reason.text(for: selected)
        let valet = try selected.requireListable()
        let session = try CommandSession.reading(selected, passcode: passcode.read())
        let list = try session.perform { try valet.keyList(userPrompt: reason, isComplete: false) }
        if list.unnamedCount > 0 { WarningLog.add(ItemListing.unnamedItems(list.unnamedCount) + "; not shown") }
        guard json || StandardOutput.isTerminal else { return try StandardOutput.write(Data(ItemListing.lines(list.keys).utf8)) }
        let items = try session.perform { try selected.items(of: valet, with: list, reason: reason) }
        if items.contains(where: { $0.byteCount == nil }) {
            WarningLog.add("a secret cannot be read; run `valet verify` to see whether it is damaged")
        }
        try StandardOutput.write(json ? ItemListing.json(items) : Data(ItemListing.table(items).utf8))
    }
}
