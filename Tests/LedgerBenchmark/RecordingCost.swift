// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Valet

/// The time of overwriting and reading a value, in a store that records changes and in one that does not, alternately in one run.
struct RecordingCost {
    let directory: String
    let count: Int

    private static let itemCount = 1_000

    private struct Contestant {
        let keychain: LocalKeychain
        let valet: Valet
    }

    private struct NoValet: Error {}

    func run() throws {
        let plain = try contestant("plain")
        let recording = try contestant("recording")
        try CurrentKeychain.with(recording.keychain) {
            try RecordAudit.with(recording.keychain) { audit throws(KeychainFailure) in try audit.start() }
        }
        // Each change of an item is the first one after a round of synchronization.
        let first = try compare(plain, recording) { number in
            guard number % Self.itemCount == 0 else { return }
            try RecordAudit.with(recording.keychain) { audit throws(KeychainFailure) in try audit.synchronize() }
        }
        let later = try compare(plain, recording) { _ in }
        print("overwriting, first change of an item after a round: \(first)")
        print("overwriting, later changes of an item: \(later)")
        print("reading: \(try compare(plain, recording, reads: true) { _ in })")
    }

    private func contestant(_ name: String) throws -> Contestant {
        guard let identifier = Identifier(nonEmpty: name) else { throw NoValet() }
        let home = directory + "/" + name
        try FileManager.default.createDirectory(
            atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let keychain = LocalKeychain(home: home)
        return try CurrentKeychain.with(keychain) {
            let valet = Valet.iCloudValet(with: identifier, accessibility: .whenUnlocked)
            for number in 0..<Self.itemCount { try valet.setString("value \(number)", forKey: "key \(number)") }
            return Contestant(keychain: keychain, valet: valet)
        }
    }

    /// Returns a description of both medians and their ratio.
    private func compare(
        _ plain: Contestant, _ recording: Contestant, reads: Bool = false, before: (_ number: Int) throws -> Void
    ) throws -> String {
        var durations: [[Duration]] = [[], []]
        let clock = ContinuousClock()
        for number in 0..<count {
            try before(number)
            // The order alternates, so that neither always writes after the other.
            for index in number.isMultiple(of: 2) ? [0, 1] : [1, 0] {
                let contestant = index == 0 ? plain : recording
                try CurrentKeychain.with(contestant.keychain) {
                    let start = clock.now
                    if reads {
                        _ = try contestant.valet.string(forKey: "key \(number % Self.itemCount)")
                    } else {
                        try contestant.valet.setString("other value \(number)", forKey: "key \(number % Self.itemCount)")
                    }
                    durations[index].append(clock.now - start)
                }
            }
        }
        let medians = durations.map { $0.sorted()[count / 2] }
        return "off \(medians[0]), on \(medians[1]), ratio \((medians[1] / medians[0]).formatted(.number.precision(.fractionLength(3))))"
    }
}
