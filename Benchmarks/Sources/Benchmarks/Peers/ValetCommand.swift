// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// The command `valet`, with the keychain from the measurement of Valet.
struct ValetCommand: CommandPeer {
    let contestant = Contestant.valetCommand
    let sampleCount = 50
    private let program: String
    private let environment: [String: String]

    init(keychainHome: String) throws {
        program = try Self.program()
        // The items belong to this program, which created them.
        environment = [
            "KEYCHAIN_HOME": keychainHome, "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
            "VALET_IDENTIFIER": FilledValet.identifier, "VALET_ACCESSIBILITY": "when-unlocked",
            "VALET_APP": URL(filePath: Program.path).lastPathComponent,
        ]
    }

    /// Returns the path of the release build.
    static func program() throws -> String {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/release/valet").path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Peer.Unavailable(reason: "\(path) is not there: run `make release`")
        }
        return path
    }

    func command(_ operation: KeychainOperation, _ index: Int) -> Command? {
        switch operation {
        case .get: make("get", FilledValet.key(index))
        case .setNew: make("set", "new-\(index)", input: FilledValet.value)
        case .overwrite: make("set", FilledValet.key(index), input: FilledValet.value)
        case .remove: make("remove", "new-\(index)")
        case .allKeys: make("list")
        case .contains: nil
        }
    }

    private func make(_ arguments: String..., input: String = "") -> Command {
        Command(program, arguments, environment: environment, input: input)
    }
}
