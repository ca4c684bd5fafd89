// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A new key of gpg without a passphrase, in a folder of its own.
final class GnuPGKey {
    static let user = Peer.service
    let environment: [String: String]

    /// Creates `folder` and the key.
    init(folder: String, environment: [String: String]) throws {
        self.environment = environment.merging(["GNUPGHOME": folder]) { _, new in new }
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let noPassphrase = ["--pinentry-mode", "loopback", "--passphrase", ""]
        let arguments = ["--batch", "--quiet"] + noPassphrase + ["--quick-generate-key", Self.user, "default", "default", "never"]
        _ = try Command("gpg", arguments, environment: self.environment).output(timeoutSeconds: 120)
    }

    /// Encrypts all files of `folder` whose names are numbers below `count`, to files with the suffix `.gpg`.
    func encryptFiles(in folder: String, count: Int) throws {
        let script = """
            cd "$1" && seq 0 "$(($2 - 1))" |
                xargs -n 1000 gpg --batch --quiet --yes --trust-model always --recipient "$3" --encrypt-files
            """
        _ = try Command("sh", ["-c", script, "sh", folder, String(count), Self.user], environment: environment)
            .output(timeoutSeconds: 1_800)
    }

    /// Ends the agent that gpg has started, and removes its sockets outside the folder.
    func end() {
        try? Command("gpgconf", ["--kill", "all"], environment: environment).run()
        try? Command("gpgconf", ["--remove-socketdir"], environment: environment).run()
    }

    deinit { end() }
}
