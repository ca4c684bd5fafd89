// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Tell where the keychain is and what really protects it.",
        discussion: "Makes nothing and changes nothing, and works where nothing else does."
    )

    @Flag(help: "More about each.")
    var verbose = false

    func run() throws {}
}
