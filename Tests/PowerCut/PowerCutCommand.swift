// SPDX-License-Identifier: Apache-2.0
import Foundation
import PowerCutSimulation

/// The simulation, run for run, at most as many at once as there are processors.
enum PowerCutCommand {
    /// Gives the number of losses, and of runs that could not be made.
    static func run(firstSeed: UInt64, imageCount: Int, runCount: UInt64) async -> Int {
        await withTaskGroup(of: Int.self) { group in
            var lossCount = 0
            for run in 0..<runCount {
                if run >= UInt64(ProcessInfo.processInfo.activeProcessorCount) { lossCount += await group.next() ?? 0 }
                group.addTask { examine(seed: firstSeed &+ run, imageCount: imageCount) }
            }
            for await count in group { lossCount += count }
            return lossCount
        }
    }

    private static func examine(seed: UInt64, imageCount: Int) -> Int {
        do {
            let clock = ContinuousClock()
            let start = clock.now
            let report = try PowerCutSimulation(seed: seed).run(arbitraryImageCount: imageCount)
            for loss in report.losses { print(loss) }
            let seconds = (clock.now - start).formatted(.units(allowed: [.seconds], fractionalPart: .show(length: 1)))
            print(
                """
                seed \(seed): \(report.eventCount) events, \(report.judgedCount) images judged, \(report.openedCount) different ones opened, \
                \(report.lossCount) losses, \(seconds)
                """)
            return report.lossCount
        } catch {
            print("seed \(seed): \(error)")
            return 1
        }
    }
}
