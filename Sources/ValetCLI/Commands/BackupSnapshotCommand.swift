// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

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
        let session = try CommandSession.ofCommandItself()
        try BackupFailure.translated(to: path) { () throws(KeychainFailure) in
            try session.keychain.snapshot(toPath: path, replacing: force)
        }
        try StandardOutput.write(
            ["The keychain is copied. The copy opens only with the protector that `valet status` names."],
            afterDone: "the keychain is copied")
    }
}
