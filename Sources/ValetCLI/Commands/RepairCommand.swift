// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem

struct RepairCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair",
        abstract: "Repair a keychain whose page checksums are wrong, if its contents are intact.",
        discussion: """
            A program that writes the keychain file with plain SQLite leaves pages without valid checksums, and the keychain refuses them. This \
            command makes a copy with correct checksums and uses it only if the keys, every item, and every index are unchanged. Otherwise \
            nothing is changed: restore a copy of the file, or start over from a backup.

            A failing disk can also damage the write-ahead log (-wal). Changes after the damage cannot be read; --without-unreachable repairs \
            the keychain without them.

            A keychain is refused as well if its content is not what it wrote last: an older copy of the file was put back, its -wal file was \
            removed, or another program removed or added items. Put the newest copy back if there is one. --accept-content shows what the \
            file contains and accepts it; what is missing stays missing. If the keys in the file are older than the last change of the passcode, \
            --accept-keybag is required as well.

            No other program may have the keychain open. Shows what it found and asks for confirmation; without a terminal, --yes is required. \
            The original file is kept beside the new one.
            """
    )

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @Flag(help: "Discard the latest changes if damage makes them unreadable.")
    var withoutUnreachable = false

    @Flag(help: "Accept the content of an older or altered file.")
    var acceptContent = false

    @Flag(help: "With another of these options: also accept older keys, with the passcode of that time.")
    var acceptKeybag = false

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        guard !acceptContent || withoutUnreachable else { return try accept(session) }
        guard let found = try Self.report(session, applying: false) else {
            try Self.requireContentAsLeft(session)
            return try StandardOutput.writeLine("The keychain file has no damaged pages; there is nothing to repair.")
        }
        try Self.show(found)
        guard found.unreachableChangeCount == 0 || withoutUnreachable else {
            throw CommandFailure(
                .damaged, "the latest changes cannot be read; nothing was changed",
                advice: "Restore an intact copy of the files, or add --without-unreachable to discard these changes.")
        }
        if found.isOlder {
            try StandardOutput.writeLine("More changes are missing: damage has hidden them, or an older copy of the files was put back.")
            guard acceptContent else {
                throw CommandFailure(
                    .damaged, "more changes are missing than those that cannot be read; nothing was changed",
                    advice: "Put the newest copy of the files back. If there is none, add --accept-content to go on without these changes.")
            }
        }
        if found.isKeybagReplaced { try requireKeybagAccepted() }
        let change = withoutUnreachable ? "Discard the unreadable changes" : "Write new checksums for the pages"
        try Confirmation.require(
            "\(change), and keep the original file?", isGiven: yes, "repair", otherwise: "the keychain was not repaired")
        let done = try Self.report(
            session, applying: true, discardingUnreachableChanges: withoutUnreachable, acceptingOlder: acceptContent,
            acceptingKeybag: acceptKeybag)
        guard let path = done?.originalPath else {
            throw CommandFailure(
                .unavailable, "the keychain changed during the repair and was not repaired", advice: "Run the command again.")
        }
        try StandardOutput.write(
            ["Repaired the keychain. The original file is \(ItemListing.escapingUnprintable(path))"],
            afterAction: "the keychain was repaired")
    }

    private func accept(_ session: CommandSession) throws {
        guard let report = try Self.content(session, applying: false) else {
            return try StandardOutput.writeLine("The keychain is as it was left; there is nothing to accept.")
        }
        try StandardOutput.writeLine("The keychain is not as it was left: \(report.problem).")
        let items = report.itemCount == 1 ? "1 item" : "\(report.itemCount) items"
        let changes = report.changeCount.map { "; \($0) changes were made to it" } ?? ""
        try StandardOutput.writeLine("The file contains \(items)\(changes).")
        if let date = report.latestModificationDate {
            let text = ItemListing.localTime(Date(timeIntervalSinceReferenceDate: date))
            try StandardOutput.writeLine("The newest item that can be read is from \(text).")
        }
        if report.damagedItemCount > 0 {
            try StandardOutput.writeLine("\(report.damagedItemCount) of them cannot be read.")
        }
        try StandardOutput.writeLine(report.isPasscodeSet ? "The file has a passcode." : "The file has no passcode.")
        if report.isKeybagReplaced {
            try requireKeybagAccepted()
        }
        try Confirmation.require(
            "Accept this content? What is missing stays missing.", isGiven: yes, "acceptance", otherwise: "the content was not accepted")
        _ = try Self.content(session, applying: true, acceptingKeybag: acceptKeybag)
        try StandardOutput.write(
            ["Accepted the content. Check it with `valet verify`."], afterAction: "the content was accepted")
    }

    /// Throws if the content of a file without damaged pages is not what the keychain wrote last.
    private static func requireContentAsLeft(_ session: CommandSession) throws {
        guard let problem = try content(session, applying: false)?.problem else { return }
        let failure = KeychainFailure(
            .notAvailable, "the keychain file has no damaged pages, but it is not as it was left: \(problem)", isDamage: true)
        throw CommandFailure(failure, remedy: .acceptContent)
    }

    private func requireKeybagAccepted() throws {
        try StandardOutput.writeLine("The keys in the file, and its passcode, are from before the last change, or its record is gone.")
        guard acceptKeybag else {
            throw CommandFailure(
                .damaged, "the keys in the file are not the latest ones; nothing was changed",
                advice: "Put the newest copy of the file back. If there is none and you trust this one, add --accept-keybag; "
                    + "then set a new passcode.")
        }
    }

    private static func content(
        _ session: CommandSession, applying: Bool, acceptingKeybag: Bool = false
    ) throws -> ContentReport? {
        do {
            return try session.perform {
                try session.keychain.acceptContent(applying: applying, acceptingKeybag: acceptingKeybag)
            }
        } catch {
            guard error.status == .notFound else { throw error }
            throw CommandFailure.noKeychain
        }
    }

    private static func report(
        _ session: CommandSession, applying: Bool, discardingUnreachableChanges: Bool = false, acceptingOlder: Bool = false,
        acceptingKeybag: Bool = false
    ) throws -> RepairReport? {
        do {
            return try session.perform {
                try session.keychain.repair(
                    applying: applying, discardingUnreachableChanges: discardingUnreachableChanges, acceptingOlder: acceptingOlder,
                    acceptingKeybag: acceptingKeybag)
            }
        } catch {
            guard error.status == .notFound else { throw error }
            throw CommandFailure.noKeychain
        }
    }

    private static func show(_ report: RepairReport) throws(CommandFailure) {
        if report.refusedPageCount > 0 {
            try StandardOutput.writeLine(
                "\(report.refusedPageCount) of \(report.pageCount) pages of the keychain file have wrong checksums.")
        }
        let unreachable = report.unreachableChangeCount
        if unreachable > 0 {
            try StandardOutput.writeLine(
                "The write-ahead log is damaged: the last \(unreachable == 1 ? "change" : "\(unreachable) changes") cannot be read.")
        }
        guard report.objections.isEmpty else {
            for objection in report.objections { try StandardOutput.writeLine("Not intact: \(objection)") }
            throw CommandFailure(
                .damaged, "the keychain's contents are damaged; nothing was changed",
                advice: VerifyCommand.recoveryAdvice)
        }
        let items = report.itemCount == 1 ? "The only item is" : "All \(report.itemCount) items are"
        try StandardOutput.writeLine("\(items) intact, and so are the keys and indexes.")
    }
}
