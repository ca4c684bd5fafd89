// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// When a device writes a checkpoint.
@Suite struct CheckpointTests {
    /// Three changes are enough for a checkpoint.
    private var smallLimits: SyncLimits {
        var limits = SyncLimits()
        limits.uncoveredVersions = 8
        return limits
    }

    @Test func `an agent that starts reads what the checkpoints cover before it decides to write one`() throws {
        var bench = try EngineBench([.owner], limits: smallLimits)
        try bench.changeThreeTimes()
        #expect(bench.checkpointCount == 1)

        for _ in 0..<5 {
            // Longer than a checkpoint may take until it is visible.
            bench.now += 7_200
            bench.start(0)
            try bench.run(0)
        }
        #expect(bench.checkpointCount == 1)
    }

    @Test func `an agent that goes on after a sleep removes nothing because of a checkpoint that the storage has lost meanwhile`() throws {
        var bench = try EngineBench([.owner], limits: smallLimits)
        try bench.changeThreeTimes()
        try bench.run(0)
        #expect(bench.checkpointCount == 1)
        bench.now += 6 * 86_400
        try bench.run(0)

        bench.objects = bench.objects.filter { !"cp".contains($0.key.prefix(1)) }
        bench.now += 2 * 86_400
        let removed = try bench.run(0).filter { if case .remove = $0 { true } else { false } }
        #expect(removed.isEmpty)
    }

    @Test func `small checkpoints of one writer keep no other one from writing its own`() throws {
        var bench = try EngineBench([.owner, .writer], limits: smallLimits)
        bench.put(1, 9, date: bench.now, value: 9, .whenUnlocked)
        try bench.exchange([0, 1])
        for _ in 0..<20 {
            bench.now += 1
            try bench.publishEmptyCheckpoint(of: 1)
        }
        try bench.changeThreeTimes()
        try bench.run(0)
        #expect(bench.checkpointCount == 21)
    }

    @Test func `an agent that ends while it writes a checkpoint sends nothing of it, and writes another one later`() throws {
        var limits = smallLimits
        (limits.pieceByteCount, limits.pieceGroupByteCount) = (60, 0)
        var bench = try EngineBench([.owner], limits: limits)
        bench.pieceGroupLimit = 2
        #expect(throws: EngineBench.AgentEnded.self) { try bench.changeThreeTimes() }
        #expect(bench.machines[0].ledger.outgoingNames().count { $0.hasPrefix("p/") } == 2)

        bench.pieceGroupLimit = nil
        bench.start(0)
        try bench.step(0, .wake)
        #expect(bench.machines[0].ledger.outgoingNames().allSatisfy { !$0.hasPrefix("p/") })
        #expect(bench.objects.keys.allSatisfy { !$0.hasPrefix("p/") })
        bench.now += 7_200
        try bench.run(0)
        #expect(bench.checkpointCount == 1)
    }

    @Test func `a checkpoint is not written on what a program has changed since it was due`() throws {
        var bench = try EngineBench([.owner], limits: smallLimits)
        bench.beforeCheckpoint = { $0.put(0, 1, date: $0.now, value: 99) }
        try bench.changeThreeTimes()
        #expect(bench.checkpointCount == 0)
        bench.beforeCheckpoint = nil
        for _ in 0..<2 { try bench.run(0) }
        #expect(bench.checkpointCount == 1)
        let new = try bench.admit(by: 0)
        try bench.exchange([0, new])
        #expect(bench.value(new, 1) == 99)
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

    /// Sends three changes of one item of the first device.
    fileprivate mutating func changeThreeTimes() throws {
        for value: UInt64 in 0..<3 {
            put(0, 1, date: now, value: value)
            try run(0)
        }
    }

    /// Publishes a checkpoint without a piece.
    fileprivate mutating func publishEmptyCheckpoint(of device: Int) throws {
        guard let circle = machines[device].engine?.membership.circle else { return }
        let (author, keys) = (machines[device].id, machines[device].keys)
        let (id, key) = try newestKey(.whenUnlocked, of: device)
        let header = CheckpointManifest.header(circle: circle, author: author, laneKey: id)
        let sealed = try cipher.seal(CheckpointContent(seconds: now, pieces: []).encoded, header: header, under: key)
        let unsigned = CheckpointManifest(circle: circle, author: author, laneKey: id, sealed: sealed, signature: []).unsignedBytes
        let hash = cipher.hash(unsigned)
        objects[ObjectName.checkpoint(hash).text] = unsigned + (try keys.sign(CheckpointManifest.signedMessage(circle: circle, hash: hash)))
    }
}
