// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainSystem

/// What the circle has, and what a person decides about it.
struct SyncStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the circle, and what was not sent yet.", discussion: "Changes nothing.")

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let status = try session.perform { () async throws(SyncFailure) in try KeychainSync.status() }
        var lines = ["Circle \(status.circle) in \(ItemListing.escapingUnprintable(status.location)), \(devices(status.deviceCount))."]
        lines.append(
            status.isAgentRunning ? "Agent: running." : "Agent: none. `valet sync run` starts one, and `valet sync now` runs once.")
        lines.append(sent(status))
        if let received = status.lastReceived {
            lines.append("Received last: from \(SyncText.name(received.deviceName)), sent \(SyncText.time(received.sent)).")
        }
        if status.conflictCount > 0 { lines.append("Conflicts: \(status.conflictCount). `valet sync conflicts` lists them.") }
        for line in lines { try StandardOutput.writeLine(line) }
        if status.isRemoved {
            throw CommandFailure(SyncFailure(.removed, "this device was removed from its circle"))
        }
    }

    private func devices(_ count: Int) -> String { count == 1 ? "1 device" : "\(count) devices" }

    private func sent(_ status: SyncStatus) -> String {
        guard status.unsentCount > 0 else { return "Sent: all." }
        let changes = status.unsentCount == 1 ? "1 change waits" : "\(status.unsentCount) changes wait"
        return "Sent: all but \(changes)" + (status.isWaitingForUnlock ? ", for `valet unlock`." : ".")
    }
}

struct SyncDevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "devices", abstract: "List the devices of the circle.")

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let devices = try session.perform { () async throws(SyncFailure) in try KeychainSync.devices() }
        let names = devices.map { SyncText.name($0.name) }
        let width = names.map(\.count).max() ?? 0
        for (device, name) in zip(devices, names) {
            let seen =
                if device.isThisDevice { "this device" } else if device.role == .reader { "sends nothing" } else {
                    device.lastSent.map { "sent last \(SyncText.time($0))" } ?? "has sent nothing yet"
                }
            try StandardOutput.writeLine(
                name.padding(toLength: width, withPad: " ", startingAt: 0)
                    + "  \(device.role)".padding(toLength: 10, withPad: " ", startingAt: 0)
                    + seen)
        }
    }
}

struct SyncRenameCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename", abstract: "Give this device another name.")

    @Argument(help: ArgumentHelp("The new name.", valueName: "name"))
    var name: String

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        let name = name
        try session.perform { () async throws(SyncFailure) in try await KeychainSync.rename(to: name, on: storage) }
    }
}

struct SyncRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a device from the circle, and make new keys.",
        discussion: """
            The device can read nothing that is written from now on by a device that knows of the removal. It keeps what it has, so change the \
            secrets afterwards if it is in other hands.
            """
    )

    @Argument(help: ArgumentHelp("The name of the device, as `valet sync devices` lists it.", valueName: "device"))
    var device: String

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        let devices = try session.perform { () async throws(SyncFailure) in try KeychainSync.devices() }
        let matches = devices.filter { !$0.isThisDevice && ($0.name == device || $0.id == device) }
        guard let match = matches.first else {
            throw CommandFailure(
                .notFound, "the circle has no other device named \(ItemListing.escapingUnprintable(device))",
                advice: "`valet sync devices` lists them.")
        }
        guard matches.count == 1 else {
            throw CommandFailure(
                .usage, "\(matches.count) devices have this name",
                advice: "Give the identifier of one of them: \(matches.map(\.id).joined(separator: ", ")).")
        }
        try Confirmation.require(
            "\(SyncText.name(match.name)) can read the shared items. It will not read later changes, but keeps what it has. Remove it?",
            isGiven: yes, "removal", otherwise: "nothing was changed")
        let removal = try session.perform { () async throws(SyncFailure) in try await KeychainSync.remove(match.id, on: storage) }
        try StandardOutput.writeLine(
            "Removed. It could read \(removal.readableItemCount == 1 ? "1 item" : "\(removal.readableItemCount) items"); change these secrets."
        )
        if let unsent = removal.unsent { StandardError.write("The removal was not sent yet: \(unsent.reason).") }
    }
}

struct SyncConflictsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts",
        abstract: "List the items that devices have changed at the same time, or decide about one.",
        discussion: """
            Each has a number, and each of its values a letter; a is the one that programs see. --keep 1b makes the value b of the first item \
            the one that all devices have. --show 1b writes it to standard output.
            """
    )

    @Option(help: ArgumentHelp("Keep this value, and delete the others.", valueName: "value"))
    var keep: String?

    @Option(help: ArgumentHelp("Write this value to standard output.", valueName: "value"))
    var show: String?

    @OptionGroup
    var passcode: PasscodeOption

    func validate() throws {
        if keep != nil, show != nil { throw ValidationError("Give --keep or --show.") }
    }

    func run() throws {
        let session = try SyncSession(passcode)
        let conflicts = try session.perform { () async throws(SyncFailure) in try KeychainSync.conflicts() }
        if let keep {
            let (conflict, version) = try value(keep, of: conflicts)
            let storage = try session.storage()
            try session.perform { () async throws(SyncFailure) in try await KeychainSync.keep(version, of: conflict, on: storage) }
            return
        }
        if let show {
            guard let secret = try value(show, of: conflicts).version.content?.secret else {
                throw CommandFailure(.notFound, "the value cannot be read", advice: "Run `valet unlock` first if the keychain is locked.")
            }
            try StandardOutput.write(secret)
            return
        }
        for (number, conflict) in conflicts.enumerated() {
            try StandardOutput.writeLine("\(number + 1)  \(Self.item(conflict.versions.lazy.compactMap(\.content).first))")
            for (letter, version) in zip("abcdefghijklmnopqrstuvwxyz", conflict.versions) {
                let time = version.modified.map { ", \(SyncText.time($0))" } ?? ""
                let state = version.isVisible ? "  visible" : version.isNotShared ? "  not shared" : ""
                try StandardOutput.writeLine("   \(letter)  \(SyncText.name(version.deviceName))\(time)\(state)")
            }
        }
    }

    /// The key, and the options that select the item.
    private static func item(_ content: SyncConflict.Content?) -> String {
        guard let content else { return "locked or damaged" }
        let place = ItemPlace(
            accessGroup: content.accessGroup ?? "", service: content.service ?? "", accessibility: content.accessibility,
            isSynchronizable: true)
        let key = ItemListing.escapingUnprintable(content.account ?? content.label ?? "")
        return key + "  (" + (PlaceDescription(place).options ?? ItemListing.escapingUnprintable(place.service)) + ")"
    }

    private func value(
        _ text: String, of conflicts: [SyncConflict]
    ) throws(CommandFailure) -> (conflict: SyncConflict, version: SyncConflict.Version) {
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        guard let last = text.last, let letter = letters.firstIndex(of: last), let number = Int(text.dropLast()),
            conflicts.indices.contains(number - 1), conflicts[number - 1].versions.indices.contains(letter)
        else {
            throw CommandFailure(
                .notFound, "there is no value \(ItemListing.escapingUnprintable(text))",
                advice: "`valet sync conflicts` lists them, such as 1b.")
        }
        return (conflicts[number - 1], conflicts[number - 1].versions[letter])
    }
}
