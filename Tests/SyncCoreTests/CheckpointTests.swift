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

    @Test func `the storage of two devices that change a few items a day for four months stays small`() throws {
        var limits = SyncLimits()
        limits.uncoveredVersions = 64
        var bench = try EngineBench([.owner, .owner], limits: limits)
        for name in 0..<400 { bench.put(0, name, date: bench.now, value: UInt64(name + 1)) }
        try bench.exchange([0, 1])

        var largestCount = 0
        var value: UInt64 = 1_000
        for day in 0..<120 {
            for device in 0..<2 {
                for change in 0..<5 {
                    value += 1
                    bench.put(device, (day * 10 + device * 5 + change) % 400, date: bench.now, value: value)
                }
                bench.start(device)
                try bench.run(device)
            }
            bench.now += 86_400
            largestCount = max(largestCount, bench.checkpointCount)
        }
        #expect(largestCount <= 3)
        #expect(bench.objects.keys.count { $0.utf8.first == UInt8(ascii: "b") } < 40)
    }
}

extension EngineBench {
    fileprivate var checkpointCount: Int { objects.keys.count { $0.utf8.first == UInt8(ascii: "c") } }
}
