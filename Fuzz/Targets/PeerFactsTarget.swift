// SPDX-License-Identifier: Apache-2.0
internal import KeychainPeers

/// What keychain-peer tells keychaind, and what it reads about sandboxes.
final class PeerFactsTarget: FuzzTarget {
    static let name = "peer-facts"

    private static let information = 1 as UInt8
    private static let controlGroups = 2 as UInt8

    static func seeds() -> [[UInt8]] {
        var facts = ProgramFacts()
        facts.executedFile = ProgramFacts.File(device: 1, inode: 2)
        facts.path = "/usr/bin/deploy"
        facts.isTraced = false
        var sandboxed = facts
        sandboxed.sandbox = Sandbox(flatpakInformation: Array("[Application]\nname=org.example.App\n".utf8))
        return [
            [0] + facts.encoded, [0] + sandboxed.encoded, [information] + Array("[Application]\nname=org.example.App\n".utf8),
            [controlGroups] + Array("0::/user.slice/snap.example.app-1.scope\n".utf8),
        ]
    }

    init() {}

    func run(_ input: [UInt8]) {
        guard let kind = input.first else { return }
        let bytes = Array(input.dropFirst())
        switch kind {
        case Self.information: check(Sandbox(flatpakInformation: bytes))
        case Self.controlGroups: check(Sandbox(controlGroups: bytes))
        default:
            guard let facts = ProgramFacts(decoding: bytes) else { return }
            expect(facts.encoded == bytes, "facts are accepted in a form that is never written")
        }
    }

    /// The facts with a sandbox arrive as they were sent.
    private func check(_ sandbox: Sandbox?) {
        var facts = ProgramFacts()
        facts.sandbox = sandbox
        expect(ProgramFacts(decoding: facts.encoded) == facts, "a sandbox is not decoded as it was encoded")
    }
}
