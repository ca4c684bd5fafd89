// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainSync

struct SyncRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a device from the circle, and make new keys.",
        discussion: """
            The device can read nothing that is written from now on by a device that knows of the removal. It keeps what it has, so change the \
            secrets afterwards if it is in other hands. --report lists those that are left to change, at any time.
            """
    )

    @Argument(help: ArgumentHelp("The name of the device, as `valet sync devices` lists it.", valueName: "device"))
    var device: String?

    @Flag(help: "Remove nothing: list the items that a device could read when this one removed it, and that were not changed since.")
    var report = false

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var passcode: PasscodeOption

    func validate() throws {
        if device == nil, !report { throw ValidationError("Give the name of a device, or --report.") }
    }

    func run() throws {
        let session = try SyncSession(passcode)
        if report {
            try writeReport(session)
        } else {
            let storage = try session.storage()
            // Before the question: what the device has sent is not read after its removal.
            let unread = try session.performWithProgress { () async throws(SyncFailure) in try await KeychainSync.readChanges(on: storage) }
            try remove(try match(device ?? "", session), session, storage, unread)
        }
    }

    // MARK: The removal

    /// The device with a name or an identifier.
    private func match(_ name: String, _ session: SyncSession) throws(CommandFailure) -> SyncDevice {
        let devices = try session.perform { () async throws(SyncFailure) in try KeychainSync.devices() }
        let matches = devices.filter { !$0.isThisDevice && Self.isMeant($0.name, $0.id, by: name) }
        guard let match = matches.first else {
            if devices.contains(where: { $0.isThisDevice && Self.isMeant($0.name, $0.id, by: name) }) {
                throw CommandFailure(
                    .usage, "\(ItemListing.escapingUnprintable(name)) is this device",
                    advice: "`valet sync leave` takes it out of the circle. An owner can then remove it from the list of devices.")
            }
            throw CommandFailure(
                .notFound, "the circle has no other device named \(ItemListing.escapingUnprintable(name))",
                advice: "`valet sync devices` lists them.")
        }
        guard matches.count == 1 else {
            throw CommandFailure(
                .usage, "\(matches.count) devices have this name",
                advice: "Give the identifier of one of them in place of the name; `valet sync devices` shows which is which.")
        }
        return match
    }

    /// Returns whether a person means a device by its name, or by the beginning of its identifier that `valet sync devices` shows.
    private static func isMeant(_ name: String?, _ id: SyncDevice.ID, by text: String) -> Bool {
        name == text || (text.count >= SyncText.shortIdentifierLength && id.hasPrefix(text.lowercased()))
    }

    private func remove(
        _ device: SyncDevice, _ session: SyncSession, _ storage: any SyncStorage, _ unread: SyncFailure?
    ) throws(CommandFailure) {
        let (status, devices) = try session.perform { () async throws(SyncFailure) in
            (try KeychainSync.status(), try KeychainSync.devices())
        }
        if let unread {
            StandardError.write(
                "What \(SyncText.name(device.name)) has sent may not all have been read (\(unread.reason)), and is not read after the removal."
            )
        }
        try Confirmation.require(
            question(device, status, devices), isGiven: yes, "removal", otherwise: "nothing was changed")
        let removal = try session.perform { () async throws(SyncFailure) in try await KeychainSync.remove(device.id, on: storage) }
        try StandardOutput.write(
            ["Removed, and new keys were made."] + consequences(of: removal, devices), afterAction: "the device was removed")
        if let unsent = removal.unsent { StandardError.write("The removal was not sent yet: \(unsent.reason). \(SyncText.later)") }
        let removed = try session.perform { () async throws(SyncFailure) in try KeychainSync.removedDevices().first { $0.id == device.id } }
        guard let removed else { return }
        let lines = Self.lines(of: removed, limit: 10)
        try StandardOutput.write(
            lines.isEmpty ? [] : ["Change these secrets if it is in other hands:"] + lines, afterAction: "the device was removed")
        if !lines.isEmpty {
            StandardError.write("`valet sync remove --report` shows at any time which are left.")
        }
    }

    private func question(_ device: SyncDevice, _ status: SyncStatus, _ devices: [SyncDevice]) -> String {
        let name = SyncText.name(device.name)
        let count = status.sharedItemCount
        var text = "\(name) can read \(count == 1 ? "1 item" : "\(count) items"). It will not read later changes, but keeps what it has."
        let twins = devices.filter { device.twins.contains($0.id) }
        if !twins.isEmpty {
            let names = SyncText.list(twins.map { "\(SyncText.name($0.name)) (\($0.role))" })
            text += " \(names) \(twins.count == 1 ? "has" : "have") the same keys, and \(twins.count == 1 ? "is" : "are") removed with it."
        }
        return text + " Remove it?"
    }

    private func consequences(of removal: SyncRemoval, _ devices: [SyncDevice]) -> [String] {
        let gone = removal.device.twins.union([removal.device.id])
        let others = devices.filter { !$0.isThisDevice && $0.role != .reader && !gone.contains($0.id) }.map { SyncText.name($0.name) }
        guard !others.isEmpty else { return [] }
        return ["\(SyncText.list(others)) \(others.count == 1 ? "uses" : "use") the old keys until the removal has arrived there."]
    }

    // MARK: The report

    private func writeReport(_ session: SyncSession) throws(CommandFailure) {
        let all = try session.perform { () async throws(SyncFailure) in try KeychainSync.removedDevices() }
        let removed = all.filter { removed in device.map { Self.isMeant(removed.name, removed.id, by: $0) } ?? true }
        guard !removed.isEmpty else {
            throw CommandFailure(
                .notFound,
                device.map { "this device has removed no device named \(ItemListing.escapingUnprintable($0))" }
                    ?? "this device has removed no device",
                advice: "The report is on the device that has removed the other one. `valet sync remove --report` lists all of them there.")
        }
        for device in removed {
            let lines = Self.lines(of: device)
            try StandardOutput.writeLine(
                "\(SyncText.name(device.name)), removed \(SyncText.time(device.removed)): "
                    + (lines.isEmpty ? "all that it could read was changed or removed." : "these items have the value that it could read."))
            for line in lines { try StandardOutput.writeLine(line) }
        }
    }

    /// A line for each item, but at most `limit` if there are more.
    private static func lines(of device: SyncRemovedDevice, limit: Int = .max) -> [String] {
        let items = device.exposedItems
        var lines = SyncText.lines(items.prefix(limit))
        if items.count > limit { lines.append("  and \(items.count - limit) more") }
        if device.lockedItemCount > 0 {
            lines.append(
                "  and \(device.lockedItemCount) that \(device.lockedItemCount == 1 ? "is" : "are") locked: run `valet unlock` first")
        }
        return lines
    }
}
