// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// When a device writes a checkpoint.
@Suite struct CheckpointTests {
    @Test func `an agent that starts reads what the checkpoints cover before it decides to write one`() throws {
        var limits = SyncLimits()
        limits.uncoveredVersions = 8
        var bench = try EngineBench([.owner], limits: limits)
        for value in 0..<3 {
            bench.put(0, 1, date: bench.now, value: UInt64(value))
            try bench.run(0)
        }
        #expect(bench.checkpointCount == 1)

        for _ in 0..<5 {
            // Longer than a checkpoint may take until it is visible.
            bench.now += 7_200
            bench.start(0)
            try bench.run(0)
        }
        #expect(bench.checkpointCount == 1)
    }

    /// Each device changes so many items each day.
    @Test(arguments: [5, 100])
    func `the storage of two devices that change items every day for weeks stays small`(changeCount: Int) throws {
        var limits = SyncLimits()
        limits.uncoveredVersions = 64
        limits.versionsInBatch = 20
        var bench = try EngineBench([.owner, .owner], limits: limits)
        for name in 0..<200 { bench.put(0, name, date: bench.now, value: UInt64(name + 1)) }
        try bench.exchange([0, 1])

        var (largestCount, value): (Int, UInt64) = (0, 1_000)
        for _ in 0..<60 {
            for device in 0..<2 {
                for _ in 0..<changeCount {
                    value += 1
                    bench.put(device, Int(value) % 200, date: bench.now, value: value)
                }
                bench.start(device)
                try bench.run(device)
            }
            bench.now += 86_400
            largestCount = max(largestCount, bench.checkpointCount)
        }
        #expect(largestCount <= 5)
        // Those of two weeks.
        #expect(bench.objects.keys.count { $0.utf8.first == UInt8(ascii: "b") } < 16 * 2 * (1 + changeCount / 20))
    }
}

extension EngineBench {
    fileprivate var checkpointCount: Int { objects.keys.count { $0.utf8.first == UInt8(ascii: "c") } }
}
