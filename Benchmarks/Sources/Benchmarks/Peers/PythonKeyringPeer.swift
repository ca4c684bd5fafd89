// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// python-keyring with the same Secret Service.
struct PythonKeyringPeer {
    let python: String
    let environment: [String: String]

    init(session: SecretServiceSession) throws {
        environment = session.environment.merging(["PYTHON_KEYRING_BACKEND": "keyring.backends.SecretService.Keyring"]) { _, new in new }
        // The distribution's packages may be for another interpreter than the first in PATH.
        var found: String?
        for candidate in [Command.find("python3"), "/usr/bin/python3"].compactMap(\.self) where found == nil {
            let probe = Command(candidate, ["-c", "import keyring, secretstorage"], environment: environment)
            if (try? probe.run()) != nil { found = candidate }
        }
        guard let found else {
            throw Peer.Unavailable(reason: "not installed (Debian: python3-keyring python3-secretstorage; Scripts/install-peers.sh)")
        }
        python = found
    }

    func run(readCount: Int = 200, writeCount: Int = 20) throws -> PeerOutput {
        let command = Command(
            python, [Peer.source("keyring_peer.py"), String(readCount), String(writeCount)], environment: environment,
            input: FilledValet.value + "\n")
        let output = try Peer.attempt { try command.output(timeoutSeconds: 300) }
        guard let result = PeerOutput(String(decoding: output, as: UTF8.self)) else {
            throw Peer.Unavailable(reason: "its measuring program wrote something else than figures")
        }
        return result
    }
}
