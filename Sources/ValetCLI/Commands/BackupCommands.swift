// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

struct BackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Save the secrets of all programs in a file, and put them back.",
        discussion: """
            `create` and `restore` carry secrets to another device, under a password of their own. `snapshot` copies the keychain as it is, for this \
            device alone.
            """,
        subcommands: [BackupCreateCommand.self, BackupRestoreCommand.self, BackupSnapshotCommand.self]
    )
}

struct BackupCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Save secrets in a file that opens on any device with its password.",
        discussion: """
            The password is asked for twice, without echo. Whoever has the file can try passwords as long as they like, and a forgotten one cannot be \
            brought back: choose a long one. Secrets whose accessibility ends in this-device-only stay behind.
            """
    )

    @Argument(help: "The file to write. It is there whole or not at all.", completion: .file())
    var file: String

    @Flag(help: "Replace a file of that name.")
    var force = false

    @OptionGroup
    var password: BackupPasswordOption

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let unlocking = try passcode.read()
        let given = try password.read(.newPassword, after: passcode)
        let path = try BackupPath.absolute(file)
        try BackupPath.requireWritable(path, replacing: force)
        let session = try CommandSession.forWholeKeychain(passcode: unlocking)
        // Before anybody is asked for a password.
        try session.requireUnlocked()
        let password = try PasscodeInput.newPassword.given(given)
        let summary = try BackupFailure.translated(to: path) { () throws(KeychainFailure) in
            try session.keychain.createBackup(atPath: path, password: password, replacing: force)
        }
        try StandardOutput.write(Self.lines(summary), afterAction: "the backup is written")
    }

    static func lines(_ summary: BackupSummary) -> [String] {
        func line(_ count: Int, _ one: String, _ several: String) -> String? {
            count == 0 ? nil : count == 1 ? "1 stays behind: \(one)." : "\(count) stay behind: \(several)."
        }
        return [
            summary.savedCount == 1 ? "1 item saved." : "\(summary.savedCount) items saved.",
            line(summary.thisDeviceOnlyCount, "it is for this device only", "they are for this device only"),
            line(summary.constrainedCount, "its access control is of this device", "their access control is of this device"),
            line(summary.unreadableCount, "it cannot be read, see `valet verify`", "they cannot be read, see `valet verify`"),
        ].compactMap(\.self)
    }
}

struct BackupRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put back what `valet backup create` has saved.",
        discussion: """
            All of it is put back, or nothing if the file is damaged. What the keychain has stays, unless the backup has a newer one; what stays is \
            listed. The backup is read more than once, so it must be a regular file and no pipe.
            """
    )

    @Argument(help: "The file to read.", completion: .file())
    var file: String

    @Flag(help: "Only tell what would be done.")
    var dryRun = false

    @OptionGroup
    var password: BackupPasswordOption

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let unlocking = try passcode.read()
        let given = try password.read(.password, after: passcode)
        let path = try BackupPath.absolute(file)
        try BackupPath.requireReadable(path)
        let session = try CommandSession.forWholeKeychain(passcode: unlocking)
        // Before anybody is asked for a password.
        try BackupFailure.translated(from: path) { () throws(KeychainFailure) in try session.keychain.checkBackup(atPath: path) }
        try session.requireUnlocked()
        let password = try PasscodeInput.password.given(given)
        let summary = try BackupFailure.translated(from: path) { () throws(KeychainFailure) in
            try session.keychain.restoreBackup(atPath: path, password: password, dryRun: dryRun)
        }
        try StandardOutput.write(
            Self.lines(summary, dryRun: dryRun), afterAction: dryRun ? "nothing was changed" : "the backup is restored")
    }

    static func lines(_ summary: RestoreSummary, dryRun: Bool) -> [String] {
        var counts = "\(summary.addedCount) added, \(summary.replacedCount) replaced, \(summary.unchangedCount) unchanged"
        if !summary.conflicts.isEmpty { counts += ", \(summary.conflicts.count) kept" }
        return summary.conflicts.map(line) + [dryRun ? "Nothing was changed. It would be: \(counts)." : "\(counts)."]
    }

    private static func line(_ conflict: RestoreSummary.Conflict) -> String {
        let reason =
            switch conflict.reason {
            case .newerInKeychain: "the keychain has a newer one"
            case .differentOfSameDate: "the keychain has another one of the same date"
            case .protectedInKeychain: "the keychain has one with access control"
            }
        return "key \(ItemListing.printable(conflict.account)) of \(ItemListing.printable(conflict.service)): kept, \(reason)"
    }
}

struct BackupSnapshotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot",
        abstract: "Copy the whole keychain as it is, for this device only.",
        discussion: """
            The copy is as locked as the keychain is, and opens only with the same key file or credential, which is not in it.

            To put it back, end every program that uses the keychain, and then, with KEYCHAIN the path that `valet status` shows:

              rm -f KEYCHAIN-wal KEYCHAIN-shm
              cp COPY KEYCHAIN
              chmod 600 KEYCHAIN
            """
    )

    @Argument(help: "The file to write. It is there whole or not at all.", completion: .file())
    var file: String

    @Flag(help: "Replace a file of that name.")
    var force = false

    func run() throws {
        let path = try BackupPath.absolute(file)
        try BackupPath.requireWritable(path, replacing: force)
        let session = try CommandSession.forWholeKeychain()
        try BackupFailure.translated(to: path) { () throws(KeychainFailure) in
            try session.keychain.snapshot(toPath: path, replacing: force)
        }
        try StandardOutput.write(
            ["The keychain is copied. The copy opens only with the protector that `valet status` names."],
            afterAction: "the keychain is copied")
    }
}
