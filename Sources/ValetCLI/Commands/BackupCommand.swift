// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

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
