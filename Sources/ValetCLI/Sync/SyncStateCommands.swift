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
        commandName: "status", abstract: "Show the circle, and what was not sent yet.",
        discussion: "Changes nothing. Exits with 3 if something waits for a person: many deletions, or an update of this program.")

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let status = try session.perform { () async throws(SyncFailure) in try KeychainSync.status() }
        var lines = ["Circle \(status.circle) in \(ItemListing.escapingUnprintable(status.location)), \(devices(status.deviceCount))."]
        lines.append(
            status.isAgentRunning ? "Agent: running." : "Agent: none. `valet sync run` starts one, and `valet sync now` runs once.")
        lines.append(SyncText.sent(status))
        if let received = status.lastReceived {
            lines.append("Received last: from \(SyncText.name(received.deviceName)), sent \(SyncText.time(received.sent)).")
        }
        if !status.unreadDevices.isEmpty {
            let names = SyncText.list(status.unreadDevices.map(SyncText.name))
            lines.append("Not read yet: changes of \(names). If `valet sync now` gives no reason, they have not arrived in the folder.")
        }
        if let line = SyncText.wait(status) { lines.append(line) }
        let unconfirmed = try session.perform { () async throws(SyncFailure) in try KeychainSync.unconfirmedDevices() }
        if !unconfirmed.isEmpty { lines.append("Not confirmed: \(devices(unconfirmed.count)). `valet sync devices` says what to do.") }
        if let line = SyncText.unshared(status.unsharedItemCount) { lines.append(line) }
        if status.conflictCount > 0 { lines.append("Conflicts: \(status.conflictCount). `valet sync conflicts` lists them.") }
        let failure =
            status.isRemoved
            ? SyncFailure(.removed, "this device was removed from its circle") : status.warnings.lazy.compactMap(\.failure).first
        for warning in status.warnings where failure == nil || warning.failure != failure {
            lines.append(SyncText.sentence("Warning: \(warning.text)" + (warning.item.map { ": " + SyncText.item($0) } ?? "")))
        }
        for line in lines { try StandardOutput.writeLine(line) }
        if let failure { throw CommandFailure(failure) }
    }

    private func devices(_ count: Int) -> String { count == 1 ? "1 device" : "\(count) devices" }
}

struct SyncDevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "List the devices of the circle.",
        discussion: "Where several have one name, the beginning of their identifiers is shown, which `valet sync remove` accepts.")

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let devices = try session.perform { () async throws(SyncFailure) in try KeychainSync.devices() }
        let names = devices.map { SyncText.name($0.name) }
        let width = names.map(\.count).max() ?? 0
        for (device, name) in zip(devices, names) {
            let seen =
                if device.isThisDevice { "this device" } else if device.expires != nil { "credential" } else if device.role == .reader {
                    "sends nothing"
                } else {
                    device.lastSent.map { "sent last \(SyncText.time($0))" } ?? "has sent nothing yet"
                }
            try StandardOutput.writeLine(
                name.padding(toLength: width, withPad: " ", startingAt: 0)
                    + "  \(device.role)".padding(toLength: 10, withPad: " ", startingAt: 0)
                    + seen + Self.expiry(device)
                    + (names.count { $0 == name } > 1 ? "  " + device.id.prefix(SyncText.shortIdentifierLength) : ""))
        }
        let unconfirmed = try session.perform { () async throws(SyncFailure) in try KeychainSync.unconfirmedDevices() }
        for device in unconfirmed {
            let id = device.id.prefix(SyncText.shortIdentifierLength)
            try StandardOutput.writeLine("Not confirmed: \(SyncText.name(device.name)) (\(device.role), \(id)).")
        }
        if !unconfirmed.isEmpty {
            StandardError.write(
                """
                An owner that was removed has admitted what is not confirmed, and what it sends is not read. Another device that knows it confirms it when it \
                synchronizes. Otherwise, if it is yours, run `valet sync leave` there, and invite it again; the former device stays in this list.
                """)
        }
    }
}

extension SyncDevicesCommand {
    /// When the credential of a device expires.
    private static func expiry(_ device: SyncDevice) -> String {
        guard let date = device.expires else { return "" }
        let isExpired = date.timeIntervalSinceReferenceDate <= SystemWallClock().now()
        return (isExpired ? ", expired " : ", expires ") + SyncText.time(date)
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
            try StandardOutput.writeLine("\(number + 1)  \(SyncText.item(conflict.versions.lazy.compactMap(\.content).first?.item))")
            for (letter, version) in zip("abcdefghijklmnopqrstuvwxyz", conflict.versions) {
                let time = version.modified.map { ", \(SyncText.time($0))" } ?? ""
                let state = version.isVisible ? "  visible" : version.isNotShared ? "  not shared" : ""
                try StandardOutput.writeLine("   \(letter)  \(SyncText.name(version.deviceName))\(time)\(state)")
            }
        }
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
