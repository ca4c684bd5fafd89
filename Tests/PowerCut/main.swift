// SPDX-License-Identifier: Apache-2.0
import Foundation
import PowerCutSimulation

/// `swift run PowerCut`: power cuts at every moment of recorded runs of the workload.
struct PowerCutCommand {
    /// The seed of the first run; the next runs have the following numbers.
    private var seed = UInt64.random(in: 0..<1_000_000_000)
    /// The number of images for each run with a random part of the unflushed changes, in addition to two for every moment.
    private var imageCount = 10_000
    private var runCount: UInt64 = 2
    private var size = WorkloadPlan.Size.large
    /// Whether the store is synchronized, so that its records of changes are examined too.
    private var synchronizes = false
    /// The log of an earlier run.
    private var logPath: String?

    /// Returns nil if the arguments are invalid.
    init?(_ words: ArraySlice<String>) {
        var words = words
        while let name = words.popFirst() {
            guard let value = words.popFirst() else { return nil }
            switch (name, UInt64(value)) {
            case ("--seed", .some(let number)): seed = number
            case ("--images", .some(let number)): imageCount = Int(clamping: number)
            case ("--runs", .some(let number)): runCount = number
            case ("--synchronized", _):
                guard value == "yes" || value == "no" else { return nil }
                synchronizes = value == "yes"
            case ("--size", _):
                guard let known = WorkloadPlan.Size(rawValue: value) else { return nil }
                size = known
            case ("--log", _): (logPath, runCount) = (value, 1)
            default: return nil
            }
        }
    }

    /// Runs as many simulations at once as there are processors, and returns the number of losses and failed runs.
    func run() async -> Int {
        await withTaskGroup(of: Int.self) { group in
            var lossCount = 0
            for run in 0..<runCount {
                if run >= UInt64(ProcessInfo.processInfo.activeProcessorCount) { lossCount += await group.next() ?? 0 }
                group.addTask { examine(seed: seed &+ run) }
            }
            for await count in group { lossCount += count }
            return lossCount
        }
    }

    private func examine(seed: UInt64) -> Int {
        do {
            let clock = ContinuousClock()
            let start = clock.now
            let simulation = PowerCutSimulation(seed: seed, size: size, synchronizes: synchronizes)
            let report =
                if let logPath {
                    try simulation.run(logPath: logPath, arbitraryImageCount: imageCount)
                } else {
                    try simulation.run(arbitraryImageCount: imageCount)
                }
            for loss in report.losses { print(loss) }
            if let log = report.keptLog {
                print(
                    "again: swift run PowerCut --seed \(seed) --size \(size.rawValue) --synchronized \(synchronizes ? "yes" : "no") "
                        + "--images \(imageCount) --log \(log)")
            }
            let seconds = (clock.now - start).formatted(.units(allowed: [.seconds], fractionalPart: .show(length: 1)))
            print(
                """
                seed \(seed): \(report.eventCount) changes, \(report.judgedCount) images judged, \(report.openedCount) different ones opened, \
                \(report.lossCount) losses, \(seconds)
                """)
            return report.lossCount
        } catch {
            print("seed \(seed): \(error)")
            return 1
        }
    }
}

guard let command = PowerCutCommand(CommandLine.arguments.dropFirst()) else {
    print("usage: PowerCut [--seed N] [--images M] [--runs R] [--size small|medium|large] [--synchronized yes|no] [--log FILE]")
    exit(64)
}
exit(await command.run() == 0 ? 0 : 1)
