// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// `pass`, with a new key without a passphrase.
final class PassPeer: CommandPeer {
    let contestant = Contestant.pass
    let sampleCount = 15
    private let environment: [String: String]
    private let key: GnuPGKey

    /// `home` is an empty folder.
    init(home: String) throws {
        try Peer.require(["pass", "gpg"], packages: "pass gnupg")
        let store = home + "/store"
        key = try Peer.attempt {
            try GnuPGKey(folder: home + "/gpg", environment: Peer.environment(home: home, ["PASSWORD_STORE_DIR": store]))
        }
        environment = key.environment
        try Peer.attempt {
            try run("pass", ["init", GnuPGKey.user])
            try run("pass", ["insert", "-m", "-f", FilledValet.key(0)], input: FilledValet.value + "\n")
        }
        // Each entry is a file. A thousand commands that each encrypt one would take minutes.
        for index in 1..<Peer.itemCount {
            try FileManager.default.copyItem(
                atPath: "\(store)/\(FilledValet.key(0)).gpg", toPath: "\(store)/\(FilledValet.key(index)).gpg")
        }
    }

    func end() { key.end() }

    func command(_ operation: KeychainOperation, _ index: Int) -> Command? {
        switch operation {
        case .get: make(["show", FilledValet.key(index)])
        case .setNew: make(["insert", "-m", "new-\(index)"], input: FilledValet.value + "\n")
        case .overwrite: make(["insert", "-m", "-f", FilledValet.key(index)], input: FilledValet.value + "\n")
        case .remove: make(["rm", "-f", "new-\(index)"])
        // Its list requires the program `tree`.
        case .allKeys: Command.find("tree") == nil ? nil : make(["ls"])
        case .contains: nil
        }
    }

    private func make(_ arguments: [String], input: String = "") -> Command {
        Command("pass", arguments, environment: environment, input: input)
    }

    private func run(_ program: String, _ arguments: [String], input: String = "") throws {
        _ = try Command(program, arguments, environment: environment, input: input).output(timeoutSeconds: 120)
    }
}
