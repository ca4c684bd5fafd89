// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation

struct SecretServiceAccessCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "access", abstract: "Show which programs of the desktop may use the items of others in the keyring.",
        discussion: """
            Programs are kept apart where keychaind keeps the keychain, and root has installed keychain-secret-service. A person is asked before a \
            program uses the items of another one, and is asked once. `valet secret-service revoke` takes the answer back.
            """)

    @Flag(help: "Print a JSON object.")
    var json = false

    func run() throws {
        let access = try KeyringProgram.find().access()
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
            return try StandardOutput.write(try encoder.encode(access) + Data("\n".utf8))
        }
        let meaning =
            switch access.mode {
            case .open: "every program may use every item"
            case .ask: "a person is asked before a program uses the items of another one"
            case .closed: "a program uses its own items only"
            }
        try StandardOutput.writeLine("Mode:  \(access.mode.rawValue), \(meaning)")
        for grant in access.grants {
            try StandardOutput.writeLine(
                "       \(ItemListing.escapingUnprintable(grant.program)) may use the items of \(ItemListing.escapingUnprintable(grant.owner))"
            )
        }
    }
}

struct SecretServiceRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Let a program of the desktop use the items of others no more, until a person agrees again.",
        discussion: "For example, `valet secret-service revoke /usr/bin/evolution`.")

    @Argument(help: "The path of the program, or its name as `valet secret-service access` shows it.")
    var program: String

    func run() throws {
        let keyring = try KeyringProgram.find()
        let program = program.hasPrefix("/") ? "program:\(program)" : program
        guard try keyring.access().grants.contains(where: { $0.program == program }) else {
            throw CommandFailure(
                .notFound, "\(ItemListing.escapingUnprintable(program)) may use no items of other programs",
                advice: "Compare the name with `valet secret-service access`.")
        }
        try keyring.revokeAccess(of: program)
    }
}

/// How the programs of a desktop share their items, as keychain-secret-service prints it.
struct KeyringAccess: Encodable, Equatable {
    enum Mode: String, Encodable {
        case open, ask, closed
    }

    struct Grant: Encodable, Equatable {
        let program: String
        let owner: String
    }

    let mode: Mode
    let grants: [Grant]

    /// Nil for a text that the program does not print.
    init?(_ text: String) {
        var lines = text.split(separator: "\n").map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
        guard let first = lines.first, first.count == 2, first[0] == "mode", let mode = Mode(rawValue: String(first[1])) else { return nil }
        lines.removeFirst()
        guard lines.allSatisfy({ $0.count == 3 && $0[0] == "grant" }) else { return nil }
        self.mode = mode
        grants = lines.map { Grant(program: String($0[1]), owner: String($0[2])) }
    }
}
