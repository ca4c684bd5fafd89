// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Valet

struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the keys of a valet, never the secrets.",
        discussion: """
            A table on a terminal; one key on each line elsewhere. Keys may hold line breaks: scripts that must get every key right use --json,
            which gives for each item its key, accessibility, dates of creation and modification, and size in bytes.
            """
    )

    @Flag(help: "An array of objects, on a terminal too.")
    var json = false

    @OptionGroup(title: "Which valet")
    var selection: ValetSelection

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession(selected.entitlements)
        if json {
            try StandardOutput.write(ItemListing.json(try session.perform { try selected.items() }))
        } else if StandardOutput.isTerminal {
            try StandardOutput.write(Data(ItemListing.table(try session.perform { try selected.items() }).utf8))
        } else {
            let keys = try session.perform { try selected.valet.allKeys() }
            try StandardOutput.write(Data(ItemListing.lines(keys).utf8))
        }
    }
}
