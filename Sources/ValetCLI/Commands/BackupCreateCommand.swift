// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

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
        let session = try CommandSession.ofCommandItself(passcode: unlocking)
        // Before anybody is asked for a password.
        try session.requireUnlocked()
        let password = try PasscodeInput.newPassword.given(given)
        let summary = try BackupFailure.translated(to: path) { () throws(KeychainFailure) in
            try session.keychain.createBackup(atPath: path, password: password, replacing: force)
        }
        try StandardOutput.write(Self.lines(summary), afterDone: "the backup is written")
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
