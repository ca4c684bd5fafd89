// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

struct BackupSnapshotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot",
        abstract: "Copy the whole keychain as it is, for this device only.",
        discussion: """
            The copy can be put in the place of the keychain while no program uses it. It is as locked as the keychain is, and opens only with the same
            key file or credential, which is not in it.
            """
    )

    @Argument(help: "The file to write. It is there whole or not at all.", completion: .file())
    var file: String

    @Flag(help: "Replace a file of that name.")
    var force = false

    func run() throws {
        let path = try BackupPath.absolute(file)
        let session = try CommandSession.ofCommandItself()
        try BackupFailure.translated(to: path) { () throws(KeychainFailure) in
            try session.keychain.snapshot(toPath: path, replacing: force)
        }
        try StandardOutput.writeLine("The keychain is copied. The copy opens only with the protector that `valet status` names.")
    }
}
