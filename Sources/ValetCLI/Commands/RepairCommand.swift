// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainEngine
import KeychainSystem

struct RepairCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair",
        abstract: "Make a keychain usable again that is refused as damaged, if that loses nothing unasked.",
        discussion: """
            Another program that opens the keychain's file with SQLite, or closes it last after a keychain program was killed, leaves pages \
            without the checksums that the keychain puts there, and the keychain refuses them. This makes a copy with right checksums and \
            takes it only if everything in it is as it was written: the keys, every item, every index. Otherwise nothing is changed: put \
            back a sound copy of the file, or begin anew with a backup.

            A disk that fails may also damage the file of the latest changes (-wal), and then those behind the damage cannot be reached: with \
            --without-unreachable the keychain goes on without them.

            Nobody else may have the keychain open. Tells what it found, and asks on the terminal; elsewhere nothing is changed without --yes. \
            The file as it was stays beside the new one.
            """
    )

    @Flag(help: "Do not ask.")
    var yes = false

    @Flag(help: "Go on without the latest changes, where damage has cut them off.")
    var withoutUnreachable = false

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        guard let found = try Self.report(session, applying: false) else {
            return try StandardOutput.writeLine("Nothing of the keychain's file is refused: there is nothing to repair.")
        }
        try Self.show(found)
        guard found.unreachableChangeCount == 0 || withoutUnreachable else {
            throw CommandFailure(
                .damaged, "the latest changes cannot be reached, and nothing was changed",
                advice: "Put back a sound copy of the files, or go on without these changes: add --without-unreachable.")
        }
        guard try isWanted() else {
            throw CommandFailure(.unavailable, "the keychain was not repaired", advice: "Answer y to repair it.")
        }
        let done = try Self.report(session, applying: true, discardingUnreachableChanges: withoutUnreachable)
        guard let path = done?.originalPath else {
            throw CommandFailure(
                .unavailable, "the keychain is not as it was a moment ago, and was not repaired", advice: "Run the command again.")
        }
        try StandardOutput.write(
            ["The keychain is repaired. Its file as it was: \(ItemListing.printable(path))"], afterAction: "the keychain is repaired")
    }

    private static func report(
        _ session: CommandSession, applying: Bool, discardingUnreachableChanges: Bool = false
    ) throws -> RepairReport? {
        do {
            return try session.perform {
                try session.keychain.repair(applying: applying, discardingUnreachableChanges: discardingUnreachableChanges)
            }
        } catch {
            guard error.status == .notFound else { throw error }
            throw CommandFailure(.notFound, "there is no keychain yet", advice: "The first secret that is stored makes it.")
        }
    }

    private static func show(_ report: RepairReport) throws(CommandFailure) {
        if report.refusedPageCount > 0 {
            try StandardOutput.writeLine(
                "\(report.refusedPageCount) of \(report.pageCount) pages of the keychain's file are refused because of their checksums.")
        }
        let unreachable = report.unreachableChangeCount
        if unreachable > 0 {
            try StandardOutput.writeLine(
                "The -wal file is damaged: \(unreachable == 1 ? "1 change" : "\(unreachable) changes") stored last cannot be reached.")
        }
        guard report.objections.isEmpty else {
            for objection in report.objections { try StandardOutput.writeLine("Not as it was written: \(objection)") }
            throw CommandFailure(
                .damaged, "the keychain is damaged in itself, and is left as it is",
                advice: VerifyCommand.recoveryAdvice)
        }
        let items = report.itemCount == 1 ? "The only item in it is" : "All \(report.itemCount) items in it are"
        try StandardOutput.writeLine("\(items) as written, and so are its keys and indexes.")
    }

    private func isWanted() throws(CommandFailure) -> Bool {
        if yes { return true }
        guard FileDescriptor.standardInput.isTerminal else {
            throw CommandFailure(
                .usage, "there is no terminal on standard input to ask on, and nothing was changed", advice: "Add --yes if you mean it.")
        }
        let change = withoutUnreachable ? "Go on without what cannot be reached" : "Give the pages new checksums"
        return try TerminalPrompt.confirm("\(change), and keep the file as it was beside it?")
    }
}
