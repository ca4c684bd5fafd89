// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// Measures the commands of all contestants as whole processes, in turns.
struct CommandRounds {
    let peers: [any CommandPeer]
    /// The temporary folder of the run.
    let directory: String

    struct Findings {
        var rows: [Row] = []
        var memory: [MemoryRow] = []
        var absences: [Comparison.Absence] = []
    }

    /// In an order in which each operation prepares the next: a new item is later removed.
    private static let operations = [KeychainOperation.setNew, .get, .overwrite, .remove, .allKeys]

    func run() throws -> Findings {
        var findings = Findings()
        var samples: [Contestant: [KeychainOperation: Samples]] = [:]
        var failed: Set<Contestant> = []
        // The first round only warms the caches and is not counted.
        for round in 0...(peers.map(\.sampleCount).max() ?? 0) {
            for operation in Self.operations {
                for peer in peers where round <= peer.sampleCount && !failed.contains(peer.contestant) {
                    guard let command = peer.command(operation, round) else { continue }
                    var sample = Samples()
                    do {
                        try sample.measure { try command.run() }
                    } catch let failure as Command.Failure {
                        failed.insert(peer.contestant)
                        let reason = "\(operation.title): \(failure.program): \(failure.reason)"
                        findings.absences.append(Comparison.Absence(peer.contestant, reason: reason))
                        continue
                    }
                    if round > 0 { samples[peer.contestant, default: [:]][operation, default: Samples()].append(sample) }
                }
            }
        }
        for peer in peers where !failed.contains(peer.contestant) {
            for operation in Self.operations {
                let found = samples[peer.contestant]?[operation] ?? Samples()
                guard let row = Row(peer.contestant, operation, .wholeProcess, itemCount: Peer.itemCount, found) else { continue }
                findings.rows.append(row)
                if let command = peer.command(operation, 0), let kibibytes = try peakKibibytes(command) {
                    findings.memory.append(MemoryRow(peer.contestant, operation, itemCount: Peer.itemCount, kibibytes: kibibytes))
                }
            }
        }
        return findings
    }

    private func peakKibibytes(_ command: Command) throws -> Int? {
        let launcher = URL(filePath: Program.path).deletingLastPathComponent().appending(path: "PeakMemory").path
        let file = directory + "/peak-memory"
        let launched = Command(
            launcher, [file, command.program] + command.arguments, environment: command.environment, input: command.input)
        do {
            try launched.run()
        } catch is Command.Failure {
            return nil
        }
        return Int(try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines))
    }
}
