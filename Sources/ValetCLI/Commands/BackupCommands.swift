// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

struct BackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Back up the secrets of all programs to a file, and restore them.",
        discussion: """
            `create` and `restore` use a portable file encrypted with its own password. `snapshot` copies the keychain file, for this device \
            only, and `restore-snapshot` puts the copy back.
            """,
        subcommands: [
            BackupCreateCommand.self, BackupRestoreCommand.self, BackupSnapshotCommand.self, BackupRestoreSnapshotCommand.self,
        ]
    )
}

struct BackupCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Write a portable backup, encrypted with a password.",
        discussion: """
            The password is prompted for twice, without echo. Anyone who has the file can try passwords without limit, and a forgotten password \
            cannot be recovered: choose a long one. Items whose accessibility ends in this-device-only are not included.

            If items cannot be read, the others are saved, and the exit code is 4. Such a backup never replaces an existing file, also with --force.

            --accept-content saves what can be read of a keychain that is refused because another program has changed its file, and changes nothing \
            in it. The backup then has the content of the file, which may be old. If a passcode is set, it is prompted for.
            """
    )

    @Argument(help: "The file to write, atomically.", completion: .file())
    var file: String

    @Flag(help: "Replace an existing file, unless items cannot be read.")
    var force = false

    @Flag(help: "Save what can be read of a keychain whose content is refused.")
    var acceptContent = false

    @OptionGroup
    var password: BackupPasswordOption

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let unlocking = try passcode.read()
        let given = try password.read(.newPassword, after: passcode)
        let path = try BackupPath.absolute(file)
        try BackupPath.requireWritable(path, replacing: force)
        if acceptContent { return try saveRefusedContent(path, unlocking, given) }
        let session = try CommandSession.forWholeKeychain(passcode: unlocking)
        // Checked before the password is prompted for.
        try session.requireUnlocked()
        let password = try PasscodeInput.newPassword.orPrompt(given)
        let summary = try BackupFailure.translatingWriteFailures(path) { () throws(KeychainFailure) in
            try session.keychain.createBackup(atPath: path, password: password, replacing: force)
        }
        try Self.report(summary)
    }

    /// The keychain cannot be unlocked, so the passcode is used for this backup alone.
    private func saveRefusedContent(_ path: String, _ givenPasscode: consuming Passcode?, _ givenPassword: consuming Passcode?) throws {
        let session = try CommandSession.forWholeKeychain()
        let needsPasscode = try BackupFailure.translatingSaveFailures(path) { () throws(KeychainFailure) in
            try session.keychain.backupOfRefusedContentNeedsPasscode()
        }
        let passcode: Passcode? = needsPasscode ? try PasscodeInput.passcode.orPrompt(givenPasscode) : nil
        let password = try PasscodeInput.newPassword.orPrompt(givenPassword)
        let summary = try BackupFailure.translatingSaveFailures(path) { () throws(KeychainFailure) in
            try session.keychain.createBackupOfRefusedContent(atPath: path, password: password, replacing: force, passcode: passcode)
        }
        try Self.report(summary)
    }

    /// An incomplete backup has the exit code of damage, so that a script keeps the backups before it.
    private static func report(_ summary: BackupSummary) throws {
        try StandardOutput.write(lines(summary), afterAction: "the backup was written")
        guard !summary.isComplete else { return }
        let staysBehind = summary.thisDeviceOnlyCount + summary.constrainedCount > 0
        throw CommandFailure(
            .damaged,
            summary.unreadableCount > 0
                ? "the backup was written, but it lacks items that cannot be read"
                : "the backup was written, but it may lack changes",
            advice: "Run `valet verify` to see what is damaged, and keep earlier backups."
                + (staysBehind
                    ? " Before you move the keychain's files away, save the items for this device only that `valet get` can still read."
                    : ""))
    }

    static func lines(_ summary: BackupSummary) -> [String] {
        func line(_ count: Int, _ one: String, _ several: String) -> String? {
            count == 0 ? nil : count == 1 ? "1 item not included: \(one)." : "\(count) items not included: \(several)."
        }
        var names = summary.thisDeviceOnlyNames.map {
            "  \(ItemListing.escapingUnprintable($0.account)) of \(ItemListing.escapingUnprintable($0.service))"
        }
        let unnamedCount = summary.thisDeviceOnlyCount - names.count
        if !names.isEmpty, unnamedCount > 0 { names.append("  and \(unnamedCount) more") }
        let thisDeviceOnly = line(summary.thisDeviceOnlyCount, "it is for this device only", "they are for this device only")
        let saved = summary.savedCount == 1 ? "1 item saved." : "\(summary.savedCount) items saved."
        let others = [
            line(
                summary.constrainedCount, "its access control applies to this device only",
                "their access control applies to this device only"),
            line(summary.unreadableCount, "it cannot be read", "they cannot be read"),
            summary.isOfLastChange ? nil : "These are not exactly the items of the last change: some may be missing or old.",
        ]
        return [saved, thisDeviceOnly].compactMap(\.self) + names + others.compactMap(\.self)
    }
}

struct BackupRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a backup written by `valet backup create`.",
        discussion: """
            Restores everything, or nothing if the file is damaged. An existing item is replaced only by a newer one; items that are kept are \
            listed. The backup must be a regular file, not a pipe, because it is read more than once.

            Checking the password takes the memory that the file names. If that is more than the usual 64 MiB, or than the memory in the passcode \
            policy of this machine, the command says how much and requires --accept-cost.
            """
    )

    @Argument(help: "The file to read.", completion: .file())
    var file: String

    @Flag(help: "Show what would be restored, without changing anything.")
    var dryRun = false

    @Flag(help: "Accept that checking the password takes more memory than usual, up to 1 GiB.")
    var acceptCost = false

    @OptionGroup
    var password: BackupPasswordOption

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let unlocking = try passcode.read()
        let given = try password.read(.password, after: passcode)
        let path = try BackupPath.absolute(file)
        try BackupPath.requireReadable(path)
        try BackupFailure.requireUsableKeychain()
        let session = try CommandSession.forWholeKeychain(passcode: unlocking)
        // Checked before the password is prompted for.
        try BackupFailure.translatingReadFailures(path, into: session.keychain) { () throws(KeychainFailure) in
            try session.keychain.checkBackup(atPath: path, acceptingCost: acceptCost)
        }
        try session.requireUnlocked()
        if !dryRun { try BackupFailure.requireSoundFile(session.keychain) }
        let password = try PasscodeInput.password.orPrompt(given)
        let summary = try BackupFailure.translatingReadFailures(path, into: session.keychain) { () throws(KeychainFailure) in
            try session.keychain.restoreBackup(atPath: path, password: password, dryRun: dryRun, acceptingCost: acceptCost)
        }
        // A keychain in which nothing was before is usually a new one, in place of one that may have had a passcode.
        let isNew = summary.replacedCount == 0 && summary.unchangedCount == 0 && summary.conflicts.isEmpty
        if isNew, !dryRun, try !session.status().isPasscodeSet {
            WarningLog.add("this keychain has no passcode, and a backup does not contain one; `valet passcode set` sets one")
        }
        try StandardOutput.write(
            Self.lines(summary, dryRun: dryRun), afterAction: dryRun ? "nothing was changed" : "the backup was restored")
    }

    static func lines(_ summary: RestoreSummary, dryRun: Bool) -> [String] {
        var counts = "\(summary.addedCount) added, \(summary.replacedCount) replaced, \(summary.unchangedCount) unchanged"
        if !summary.conflicts.isEmpty { counts += ", \(summary.conflicts.count) kept" }
        return summary.conflicts.map(line) + [dryRun ? "Dry run, nothing was changed: \(counts)." : "\(counts)."]
    }

    private static func line(_ conflict: RestoreSummary.Conflict) -> String {
        let reason =
            switch conflict.reason {
            case .newerInKeychain: "the keychain has a newer item"
            case .differentOfSameDate: "the keychain has a different item with the same date"
            case .protectedInKeychain: "the keychain has an item with access control"
            case .unsupportedInKeychain: "the keychain has an item under keys that it does not have, see `valet verify`"
            }
        let key = ItemListing.escapingUnprintable(conflict.account)
        return "key \(key) of \(ItemListing.escapingUnprintable(conflict.service)): kept, \(reason)"
    }
}

struct BackupSnapshotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot",
        abstract: "Copy the keychain file, for this device only.",
        discussion: """
            The copy needs the same passcode and the same key file, credential, or TPM, which it does not contain, or the recovery key. \
            `valet backup restore-snapshot` puts it back.
            """
    )

    @Argument(help: "The file to write, atomically.", completion: .file())
    var file: String

    @Flag(help: "Replace an existing file.")
    var force = false

    func run() throws {
        let path = try BackupPath.absolute(file)
        try BackupPath.requireWritable(path, replacing: force)
        let session = try CommandSession.forWholeKeychain()
        try BackupFailure.translatingWriteFailures(path) { () throws(KeychainFailure) in
            try session.keychain.snapshot(toPath: path, replacing: force)
        }
        try StandardOutput.write(
            ["Copied the keychain. The copy opens only with the protector shown by `valet status`, or with the recovery key."],
            afterAction: "the keychain was copied")
    }
}

struct BackupRestoreSnapshotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore-snapshot",
        abstract: "Replace the keychain with a snapshot written by `valet backup snapshot`.",
        discussion: """
            Replaces the whole keychain, or nothing if the snapshot is damaged or belongs to another keychain. Everything stored since the \
            snapshot was made is no longer in the keychain, but stays in its previous file, which is kept beside the new one. Items of other \
            programs are replaced too.

            The passcode and the recovery key become those of the time of the snapshot. If the passcode has changed since, --accept-keybag is \
            required.

            Programs that use the keychain may continue to run. Asks for confirmation; without a terminal, --yes is required.
            """
    )

    @Argument(help: "The snapshot.", completion: .file())
    var file: String

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @Flag(help: "Accept the passcode of the snapshot, or that it has none.")
    var acceptKeybag = false

    func run() throws {
        let path = try BackupPath.absolute(file)
        try BackupPath.requireReadable(path)
        let session = try CommandSession.forWholeKeychain()
        let found = try restore(session, path, applying: false)
        let items = found.itemCount == 1 ? "1 item" : "\(found.itemCount) items"
        let damaged = found.damagedItemCount == 0 ? "none damaged" : "\(found.damagedItemCount) damaged"
        try StandardOutput.writeLine("The snapshot has \(items), \(damaged).")
        try requireKeybagAccepted(found)
        try Confirmation.require(
            "Replace the whole keychain with it, and keep the previous file?", isGiven: yes, "replacement",
            otherwise: "the keychain was not changed")
        let done = try restore(session, path, applying: true)
        let kept = done.originalPath.map { " The previous file is \(ItemListing.escapingUnprintable($0))" } ?? ""
        try StandardOutput.write(["Restored the snapshot." + kept], afterAction: "the snapshot was restored")
    }

    private func requireKeybagAccepted(_ found: SnapshotReport) throws(CommandFailure) {
        if found.lacksRecoveryKey {
            try StandardOutput.writeLine("The recovery key of the keychain does not open it: create another one afterwards.")
        }
        guard found.hasOtherPasscode else { return }
        try StandardOutput.writeLine(
            "The keys of the keychain were changed after it was made. "
                + (found.isPasscodeSet ? "Its passcode is the one of that time." : "It has no passcode."))
        guard acceptKeybag else {
            throw CommandFailure(
                .usage, "the passcode of the snapshot is not the present one; the keychain was not changed",
                advice: found.isPasscodeSet
                    ? "If you know the passcode of that time, add --accept-keybag."
                    : "Add --accept-keybag; then set a passcode with `valet passcode set`.")
        }
    }

    private func restore(_ session: CommandSession, _ path: String, applying: Bool) throws(CommandFailure) -> SnapshotReport {
        try BackupFailure.translatingSnapshotFailures(path, into: session.keychain) { () throws(KeychainFailure) in
            try session.keychain.restoreSnapshot(fromPath: path, applying: applying, acceptingKeybag: acceptKeybag)
        }
    }
}
