// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainSync
import KeychainSystem

/// Entering and leaving a circle.
struct SyncStartCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Begin a circle in a folder or in etcd, with this device as its first owner.",
        discussion: """
            The recovery kit is written to standard output, once, and nothing else is. With it and the folder, a person can read everything, \
            also when all devices are lost.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The folder that another program moves between your devices, or etcd://HOST:PORT/PATH.", valueName: "folder"),
        completion: .directory)
    var folder: String

    @OptionGroup
    var deviceName: DeviceNameOption

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage(in: folder, isNew: true)
        let name = deviceName.value
        let start = try session.perform { () async throws(SyncFailure) in try await KeychainSync.start(on: storage, deviceName: name) }
        StandardError.write("A circle was made in \(SyncText.path(storage)), with this device, \(name).")
        StandardError.write("\(SyncText.items(start.sharedItemCount)) shared: those of iCloud valets. All others stay on this device.")
        if let unsent = start.unsent { StandardError.write("Not everything was sent yet: \(unsent.reason). \(SyncText.later)") }
        try SyncText.write(kit: start.recoveryKit, afterAction: "the circle was made")
        StandardError.write("Now run `valet sync run`, or `systemctl --user enable --now valet-sync`.")
    }
}

struct SyncInviteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite",
        abstract: "Invite another device to the circle.",
        discussion: """
            Shows a code for one device, which is valid for ten minutes and ends with this command. When the device asks to join, both show a \
            number. Admit it only if the numbers are the same.
            """
    )

    @Option(help: ArgumentHelp("What the device may do: owner, writer, or reader.", valueName: "role"))
    var role = RoleOption.owner

    @Flag(help: "Admit the first device that asks, without comparing numbers. Another person who has the code could be the first.")
    var acceptNumber = false

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        let role = role
        try Confirmation.requireTerminal(
            isGiven: acceptNumber, "number", flag: "--accept-number", otherwise: "no invitation was made")
        let interruption = SyncInterruption()
        try interruption.run { () throws(CommandFailure) in
            let invitation = try session.perform { () async throws(SyncFailure) in
                try await KeychainSync.invite(on: storage, as: role.role)
            }
            interruption.set("The invitation is over. A device that has asked to join, or uses the code, learns of it.") {
                await invitation.cancel()
            }
            do throws(CommandFailure) {
                try admit(invitation, session, interruption)
            } catch {
                // The other device would wait for an answer.
                _ = try session.perform { () async throws(SyncFailure) in await invitation.cancel() }
                throw error
            }
        }
    }

    private func admit(
        _ invitation: SyncInvitation, _ session: SyncSession, _ interruption: SyncInterruption
    ) throws(CommandFailure) {
        StandardError.write("On the other device: valet sync join FOLDER\nCode (one device, 10 minutes):")
        try StandardOutput.writeLine(invitation.code.text)
        let request = try session.perform { () async throws(SyncFailure) in try await invitation.request() }
        StandardError.write("\(ItemListing.escapingUnprintable(request.deviceName)) asks to join. Number: \(request.number)")
        try Confirmation.require(
            "The same number there?", isGiven: acceptNumber, "number", flag: "--accept-number", otherwise: "the device was refused",
            advice: "If the numbers differ, another person has the code. Run `valet sync invite` again for another one.")
        interruption.set("If `valet sync devices` lists the device, it was admitted, and `valet sync now` sends what it needs.") {
            await invitation.cancel()
        }
        try session.perform { () async throws(SyncFailure) in try await request.admit() }
        try StandardOutput.writeLine(
            "\(ItemListing.escapingUnprintable(request.deviceName)) was admitted as \(role == .owner ? "an" : "a") \(role.rawValue).")
    }
}

enum RoleOption: String, ExpressibleByArgument, CaseIterable {
    case owner, writer, reader

    var role: SyncRole {
        switch self {
        case .owner: .owner
        case .writer: .writer
        case .reader: .reader
        }
    }
}

struct SyncJoinCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Join the circle that another device has invited this one to, or that has made a credential.",
        discussion: """
            The code of an invitation is prompted for without echo, and is never an argument.

            With a credential of `valet sync credential create`, a machine joins as a reader without a person, and reads what the circle has. The \
            same command is for each later start: it reads what is new. With another credential of the circle, the machine goes on with what it has.
            """
    )

    @Argument(help: ArgumentHelp("The folder with the circle, or its etcd://HOST:PORT/PATH.", valueName: "folder"), completion: .directory)
    var folder: String

    @OptionGroup
    var deviceName: DeviceNameOption

    @Option(
        name: .customLong("code-fd"),
        help: ArgumentHelp("Read the code from the first line of this file descriptor.", valueName: "number"))
    var codeDescriptor: Int32?

    @Option(
        help: ArgumentHelp("Join with this credential, without a person.", valueName: "file"), completion: .file())
    var credential: String?

    @Option(
        name: .customLong("credential-fd"),
        help: ArgumentHelp("Join with the credential from this file descriptor; 0 is standard input.", valueName: "number"))
    var credentialDescriptor: Int32?

    @Flag(help: "Join without comparing numbers. Another person who has the code could have invited this device.")
    var acceptNumber = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup
    var secret: SecretArguments

    func validate() throws {
        guard credential != nil || credentialDescriptor != nil else { return }
        if credential != nil, credentialDescriptor != nil { throw ValidationError("Give --credential or --credential-fd.") }
        if deviceName.name != nil || codeDescriptor != nil || acceptNumber {
            throw ValidationError("A credential needs neither --name nor --code-fd nor --accept-number.")
        }
    }

    func run() throws {
        try secret.requireNone()
        if let credential = try CredentialInput(path: credential, descriptor: credentialDescriptor).read() {
            return try join(with: credential)
        }
        let given = try PasscodeInput.invitationCode.read(from: codeDescriptor)
        let session = try SyncSession(passcode)
        let storage = try session.storage(in: folder, isNew: false)
        let code = try SyncText.secret(try PasscodeInput.invitationCode.orPrompt(given), as: SyncSecret.code)
        let name = deviceName.value
        try Confirmation.requireTerminal(
            isGiven: acceptNumber, "number", flag: "--accept-number", otherwise: "the code can still be used")
        StandardError.write("Waiting for an answer of the other device through \(SyncText.path(storage)), for up to ten minutes.")
        let interruption = SyncInterruption()
        let joined = try interruption.run { () throws(CommandFailure) in
            let joining = try session.perform { () async throws(SyncFailure) in
                let request = Task { () async -> Result<SyncJoining, SyncFailure> in
                    do throws(SyncFailure) {
                        return .success(try await KeychainSync.join(on: storage, code: code, deviceName: name))
                    } catch {
                        return .failure(error)
                    }
                }
                interruption.set(Self.requestIsOver) {
                    request.cancel()
                    if case .success(let joining) = await request.value { await joining.refuse() }
                }
                return try await request.value.get()
            }
            interruption.set(Self.requestIsOver + " If it has admitted this one already, run `valet sync remove` there.") {
                await joining.refuse()
            }
            do throws(CommandFailure) {
                return try confirm(joining, session, interruption)
            } catch {
                _ = try session.perform { () async throws(SyncFailure) in await joining.refuse() }
                throw error
            }
        }
        try StandardOutput.writeLine("This device, \(name), belongs to the circle. \(SyncText.items(joined.sharedItemCount)) shared.")
        if joined.conflictCount > 0 {
            try StandardOutput.writeLine("\(joined.conflictCount) with another value on the other devices: `valet sync conflicts`.")
        }
        if let line = SyncText.unshared(joined.unsharedItemCount) { try StandardOutput.writeLine(line) }
        if let unread = joined.unread {
            let next = unread.code == .deletionsWait ? "`valet sync accept-deletions` confirms it." : SyncText.later
            StandardError.write("Not everything was read yet: \(unread.reason). \(next)")
        }
    }
}

extension SyncJoinCommand {
    private static let requestIsOver = "The request is over, and the other device learns of it."

    private func confirm(
        _ joining: SyncJoining, _ session: SyncSession, _ interruption: SyncInterruption
    ) throws(CommandFailure) -> SyncJoined {
        let number = try session.perform { () async throws(SyncFailure) in await joining.number }
        StandardError.write("Both devices must show \(number).")
        try Confirmation.require(
            "The same number there?", isGiven: acceptNumber, "number", flag: "--accept-number", otherwise: "this device has not joined",
            advice: """
                If the numbers differ, another person has the code: answer n on the other device too, or `valet sync remove` there what was \
                admitted. Run `valet sync invite` again for another code.
                """)
        interruption.set(
            """
            If `valet sync status` shows the circle, this device has joined, and `valet sync now` reads the rest. Otherwise the request is over, and the \
            other device learns of it; if it has admitted this one already, run `valet sync remove` there.
            """
        ) { await joining.refuse() }
        StandardError.write("Waiting until the other device admits this one.")
        return try session.performWithProgress { () async throws(SyncFailure) in try await joining.confirm() }
    }

    private func join(with credential: SyncCredential) throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage(in: folder, isNew: false)
        let joined = try session.performWithProgress { () async throws(SyncFailure) in
            try await KeychainSync.join(on: storage, credential: credential)
        }
        try StandardOutput.writeLine(
            "This machine is a reader of the circle, \(ItemListing.escapingUnprintable(credential.name)). "
                + "\(SyncText.items(joined.sharedItemCount)) shared.")
        if joined.conflictCount > 0 {
            try StandardOutput.writeLine("\(joined.conflictCount) with another value in the circle: `valet sync conflicts`.")
        }
        // So that a service manager tries again: another attempt only reads what is left.
        if let unread = joined.unread { throw CommandFailure(unread) }
    }
}

struct SyncRecoverCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recover",
        abstract: "Enter a circle with its recovery kit, when all of its devices are lost.",
        discussion: """
            All other devices are removed. The kit is prompted for without echo, and is never an argument. A new one is written to standard \
            output, once; the old one is of no use afterwards.
            """
    )

    @Argument(help: ArgumentHelp("The folder with the circle, or its etcd://HOST:PORT/PATH.", valueName: "folder"), completion: .directory)
    var folder: String

    @OptionGroup
    var deviceName: DeviceNameOption

    @Option(
        name: .customLong("kit-fd"),
        help: ArgumentHelp("Read the recovery kit from the first line of this file descriptor.", valueName: "number"))
    var kitDescriptor: Int32?

    @Flag(
        help: "Leave items deleted even if the former devices have deleted very many. Otherwise these are back: a thief may have done it.")
    var acceptDeletions = false

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup
    var secret: SecretArguments

    func run() throws {
        try secret.requireNone()
        let given = try PasscodeInput.recoveryKit.read(from: kitDescriptor)
        let session = try SyncSession(passcode)
        let storage = try session.storage(in: folder, isNew: false)
        let kit = try SyncText.secret(try PasscodeInput.recoveryKit.orPrompt(given), as: SyncSecret.recoveryKit)
        try Confirmation.require(
            "All other devices are removed from the circle. Continue?", isGiven: yes, "removal", otherwise: "nothing was changed")
        let name = deviceName.value
        let acceptsDeletions = acceptDeletions
        let recovery = try session.performWithProgress { () async throws(SyncFailure) in
            try await KeychainSync.recover(on: storage, recoveryKit: kit, deviceName: name, acceptsDeletions: acceptsDeletions)
        }
        StandardError.write("This device, \(name), belongs to the circle. \(SyncText.items(recovery.sharedItemCount)) shared.")
        if let line = SyncText.unshared(recovery.unsharedItemCount) { StandardError.write(line) }
        if recovery.areDeletionsUndone {
            StandardError.write(
                "The former devices had deleted very many items, which are back in case a thief did it. `valet remove` removes what is not wanted."
            )
        }
        if let newest = recovery.newestChange {
            StandardError.write("The newest change there was of \(SyncText.time(newest.sent)), from \(SyncText.name(newest.deviceName)).")
        }
        if let unsent = recovery.unsent { StandardError.write("Not everything was sent yet: \(unsent.reason). \(SyncText.later)") }
        try SyncText.write(kit: recovery.recoveryKit, afterAction: "the circle was recovered")
    }
}

struct SyncKitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kit",
        abstract: "Replace the recovery kit, and write the new one to standard output, once.",
        discussion: "Nothing else is written to standard output. The present kit is of no use afterwards."
    )

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        let kit = try session.perform { () async throws(SyncFailure) in try await KeychainSync.makeRecoveryKit(on: storage) }
        try SyncText.write(kit: kit, afterAction: "the recovery kit was replaced")
        StandardError.write("The kit from before is of no use any more.")
    }
}

struct SyncMoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Use the circle in another folder, for example after its folder was moved.",
        discussion: "Moves no files: the folder must have the files of the circle. The other devices keep their folders."
    )

    @Argument(help: ArgumentHelp("The folder, or etcd://HOST:PORT/PATH.", valueName: "folder"), completion: .directory)
    var folder: String

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage(in: folder, isNew: false)
        try session.perform { () async throws(SyncFailure) in try await KeychainSync.move(to: storage) }
        StandardError.write(
            "This device synchronizes through \(SyncText.path(storage)) from now on. Start `valet sync run` again if it ran.")
    }
}

struct SyncLeaveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Leave the circle. The items stay on this device, and the folder is not touched.",
        discussion: """
            Older programs can write to the keychain again. The other devices still list this one until one of them removes it. If it joins again, \
            items that were deleted meanwhile do not come back.
            """
    )

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let (status, count) = try session.perform { () async throws(SyncFailure) in (try KeychainSync.status(), try KeychainSync.leave()) }
        let (unsentCount, conflictCount) = (status.unsentCount, status.conflictCount)
        if conflictCount > 0 {
            StandardError.write(
                "\(conflictCount == 1 ? "1 conflict is" : "\(conflictCount) conflicts are") over: the value that was shown stays here.")
        }
        if unsentCount > 0 {
            StandardError.write("\(unsentCount == 1 ? "1 change was" : "\(unsentCount) changes were") not sent.")
        }
        try StandardOutput.writeLine("This device left the circle. Its \(count == 1 ? "item stays" : "\(count) items stay") here.")
    }
}

extension PasscodeInput {
    static let invitationCode = PasscodeInput(name: "code", option: "--code-fd", isNew: false)
    static let recoveryKit = PasscodeInput(name: "recovery kit", option: "--kit-fd", isNew: false)
}
