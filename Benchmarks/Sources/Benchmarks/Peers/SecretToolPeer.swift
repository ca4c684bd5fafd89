// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// libsecret's command, with the items from the measurement of libsecret.
struct SecretToolPeer: CommandPeer {
    let contestant: Contestant
    let sampleCount = 50
    private let session: SecretServiceSession

    init(session: SecretServiceSession, _ contestant: Contestant = .secretTool) throws {
        self.contestant = contestant
        try Peer.require(["secret-tool"], packages: "libsecret-tools")
        self.session = session
    }

    func command(_ operation: KeychainOperation, _ index: Int) -> Command? {
        switch operation {
        case .get: make("lookup", FilledValet.key(index))
        case .setNew: make("store", "--label=benchmark", "new-\(index)", input: FilledValet.value)
        case .overwrite: make("store", "--label=benchmark", FilledValet.key(index), input: FilledValet.value)
        case .remove: make("clear", "new-\(index)")
        // Its search also prints every secret, so it is not comparable with listing.
        case .contains, .allKeys: nil
        }
    }

    private func make(_ words: String..., input: String = "") -> Command {
        let name = words.last ?? ""
        return Command(
            "secret-tool", words.dropLast() + ["service", Peer.service, "username", name], environment: session.environment, input: input)
    }
}
