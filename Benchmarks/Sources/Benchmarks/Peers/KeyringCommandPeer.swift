// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// python-keyring's command.
struct KeyringCommandPeer: CommandPeer {
    let contestant = Contestant.keyringCommand
    let sampleCount = 15
    let peer: PythonKeyringPeer

    func command(_ operation: KeychainOperation, _ index: Int) -> Command? {
        switch operation {
        case .get: make("get", FilledValet.key(index))
        case .setNew: make("set", "command-\(index)", input: FilledValet.value + "\n")
        case .remove: make("del", "command-\(index)")
        // It overwrites only its own items, and cannot list keys.
        case .contains, .overwrite, .allKeys: nil
        }
    }

    private func make(_ verb: String, _ name: String, input: String = "") -> Command {
        Command(peer.python, ["-m", "keyring", verb, Peer.service, name], environment: peer.environment, input: input)
    }
}
