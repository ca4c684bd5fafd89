// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

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
        let session = try CommandSession.ofCommandItself(passcode: unlocking)
        // Before anybody is asked for a password.
        try BackupFailure.translated(from: path) { () throws(KeychainFailure) in try session.keychain.checkBackup(atPath: path) }
        try session.requireUnlocked()
        let password = try PasscodeInput.password.given(given)
        let summary = try BackupFailure.translated(from: path) { () throws(KeychainFailure) in
            try session.keychain.restoreBackup(atPath: path, password: password, dryRun: dryRun)
        }
        try StandardOutput.write(
            Self.lines(summary, dryRun: dryRun), afterDone: dryRun ? "nothing was changed" : "the backup is restored")
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
