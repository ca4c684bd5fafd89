// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import KeychainEngine

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Tell where the keychain is and what really protects it.",
        discussion: "Looks only: makes nothing and changes nothing."
    )

    @Flag(help: "Tell also what helps to find a fault: identifiers, generations, access groups.")
    var verbose = false

    func run() throws {
        let session = try CommandSession.ofCommandItself()
        do {
            let report = try session.perform { try session.keychain.report(asksChip: verbose) }
            try show(KeychainDescription(report).lines(verbose: verbose))
        } catch {
            // Where it should be is what somebody needs to know first when it cannot be used.
            try show([("Keychain", session.keychain.configuration.storePath)])
            throw CommandFailure(error.status, error.problem, advice: "Nothing was changed. Put that right, then try again.")
        }
    }

    private func show(_ lines: [(title: String, text: String)]) throws(CommandFailure) {
        for (title, text) in lines {
            try StandardOutput.writeLine((title + ":").padding(toLength: 14, withPad: " ", startingAt: 0) + ItemListing.printable(text))
        }
    }
}
