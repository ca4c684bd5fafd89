// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainSync
import KeychainSystem

/// What this device had before it left the circle, and what the circle does not have now.
struct SyncUnsharedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unshared",
        abstract: "List the items that were probably deleted while this device was not in the circle, or decide about them.",
        discussion: """
            They stay on this device, and are not shared. --share shares them again, and --delete deletes them here. `valet set` on one of them \
            shares it, too.
            """
    )

    @Argument(help: ArgumentHelp("Only items with these keys.", valueName: "key"))
    var keys: [String] = []

    @Flag(help: "Share the items with all devices.")
    var share = false

    @Flag(help: "Delete the items on this device.")
    var delete = false

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var passcode: PasscodeOption

    func validate() throws {
        if share, delete { throw ValidationError("Give --share or --delete.") }
    }

    func run() throws {
        let session = try SyncSession(passcode)
        let items = try selected(session)
        let lines =
            SyncText.lines(items.compactMap(\.item)) + Array(repeating: "  locked or damaged", count: items.count { $0.item == nil })
        guard share || delete else {
            for line in lines { try StandardOutput.writeLine(line) }
            return
        }
        if delete {
            try Confirmation.require(
                "Delete on this device:\n\(lines.joined(separator: "\n"))\nContinue?", isGiven: yes, "deletion",
                otherwise: "nothing was deleted")
            try session.perform { () async throws(SyncFailure) in try await KeychainSync.delete(items) }
        } else {
            let storage = try session.storage()
            let unsent = try session.perform { () async throws(SyncFailure) in try await KeychainSync.share(items, on: storage) }
            if let unsent { StandardError.write("Not everything was sent yet: \(unsent.reason). \(SyncText.later)") }
        }
        try StandardOutput.writeLine("\(SyncText.items(items.count)) \(delete ? "deleted" : "shared").")
    }

    private func selected(_ session: SyncSession) throws(CommandFailure) -> [SyncUnsharedItem] {
        let items = try session.perform { () async throws(SyncFailure) in try KeychainSync.unsharedItems() }
        for key in keys where !items.contains(where: { $0.item?.account == key }) {
            throw CommandFailure(
                .notFound, "no such item has the key \(ItemListing.escapingUnprintable(key))", advice: "`valet sync unshared` lists them.")
        }
        return keys.isEmpty ? items : items.filter { item in keys.contains { item.item?.account == $0 } }
    }
}
