// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// What remains of absorbing a checkpoint, or of giving it up.
@Suite("Absorbing checkpoints")
struct AbsorptionTests {
    @Test("What a checkpoint that was given up covers is neither removed from the storage nor taken for safe")
    func checkpointGivenUp() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        let unknown = bench.madeUpBatch(of: 2)
        _ = try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]), forging: .withoutContent)
        let batches = bench.batches
        for _ in 0..<6 { try bench.run(0) }
        bench.now += 10 * 86_400
        for _ in 0..<6 { try bench.run(0) }
        #expect(bench.batches == batches)
        for name in bench.objects.keys where name.hasPrefix("b/") { bench.objects[name] = nil }
        let checkpoints = bench.objects.keys.count { $0.hasPrefix("c/") }
        for _ in 0..<6 {
            try bench.run(0)
            bench.now += 3_600
        }
        #expect(bench.objects.keys.count { $0.hasPrefix("c/") } == checkpoints + 1)
    }

    /// A program of a member's may be altered for a while, so an author of useless checkpoints may write a good one later.
    @Test("However many checkpoints of an author were of no use, a good one of it is absorbed at its next turn")
    func goodAfterUseless() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        func forge(by author: Int, _ bench: inout EngineBench) throws {
            _ = try bench.forgeCheckpoint(
                of: author, covering: [bench.madeUpBatch(of: author)], adding: .versions([]), forging: .withoutContent)
        }
        bench.put(0, 2, date: 5, value: 2, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        try forge(by: 0, &bench)
        for _ in 0..<20 { try bench.exchange([0, 1]) }
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0])
        try bench.replaceBatchesByCheckpoint(of: 0)
        try forge(by: 2, &bench)
        // A useless checkpoint is given up after two rounds.
        for _ in 0..<5 { try bench.run(1) }
        #expect(bench.value(1, 1) == 1)
    }

    @Test("A checkpoint that cannot be absorbed yet, because a change waits, is absorbed after the removal of its author")
    func removedAuthor() throws {
        var bench = try EngineBench([.owner, .owner])
        try bench.exchange([0, 1])
        bench.put(1, 1, date: 5, value: 1)
        bench.put(1, 2, date: 5, value: 2, .whenUnlocked)
        try bench.exchange([1])
        try bench.replaceBatchesByCheckpoint(of: 1)
        bench.put(0, 3, date: 5, value: 3)
        // What waits is not sealed before the removal, which another engine makes than the one that has read.
        bench.machines[0].engine?.sealsChanges = false
        for _ in 0..<3 { try bench.run(0) }
        #expect(bench.value(0, 1) == nil)
        bench.start(0)
        try bench.run(0, .command(.remove(bench.machines[1].id)))
        for _ in 0..<3 { try bench.run(0) }
        #expect(bench.value(0, 1) == 1 && bench.value(0, 2) == 2)
        let sealed = try bench.objects.filter { $0.key.hasPrefix("b/") }.map { try BatchFrame($0.value).header.laneKey }
        #expect(!sealed.isEmpty)
        for key in sealed {
            let opened = bench.key(key, of: 1)
            #expect(opened == nil)
        }
    }

    @Test("A checkpoint of no use delays a good one by one turn only, also for an agent that runs for moments")
    func oneTurn() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        for round in 1...4 {
            bench.put(0, round, date: 5, value: UInt64(round), .whenUnlocked)
            try bench.exchange([0])
            try bench.replaceBatchesByCheckpoint(of: 0)
            for _ in 0..<2 { try bench.run(1) }
            #expect(bench.value(1, round) == UInt64(round))
            bench.now += 2 * 86_400
        }
        bench.put(0, 9, date: 6, value: 9)
        try bench.exchange([0])
        try bench.replaceBatchesByCheckpoint(of: 0)
        try bench.run(2)
        bench.now += 60
        let unknown = bench.madeUpBatch(of: 2)
        _ = try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]), forging: .withoutContent)
        for _ in 0..<3 {
            bench.start(1)
            try bench.run(1)
        }
        #expect(bench.value(1, 9) == 9)
    }

    /// Their rows can be removed only once all local writes are known.
    @Test("What a checkpoint that was given up has shown is gone, although programs write meanwhile, and the next one shows it again")
    func givenUpBesideWrites() throws {
        var shownCount = 0
        for index in 0..<8 {
            var limits = SyncLimits()
            limits.foldedRecords = 1
            var bench = try EngineBench(limits: limits)
            bench.put(0, 1, date: 5, value: 1)
            bench.put(0, 2, date: 5, value: 2, .whenUnlocked)
            for _ in 0..<4 { try bench.run(0) }
            try bench.replaceBatchesByCheckpoint(of: 0)
            let pieces = bench.objects.keys.filter { $0.hasPrefix("p/") }.sorted()
            guard index < pieces.count else { break }
            bench.objects[pieces[index]] = [1]
            for _ in 0..<3 { try bench.run(1) }
            guard bench.value(1, 1) == 1, bench.value(1, 2) == nil else { continue }
            shownCount += 1
            for number in 10..<30 { bench.put(1, number, date: 6, value: UInt64(number)) }
            for _ in 0..<3 { try bench.run(1) }
            for _ in 0..<10 { try bench.run(1) }

            bench.put(0, 3, date: 7, value: 3)
            bench.now += 2 * 86_400
            for _ in 0..<4 { try bench.run(0) }
            try bench.replaceBatchesByCheckpoint(of: 0)
            for _ in 0..<6 { try bench.run(1) }
            #expect((1...3).allSatisfy { bench.value(1, $0) == UInt64($0) })
        }
        #expect(shownCount > 0)
    }

    /// Its own disk is lost afterwards, so no other device can say what it had read.
    @Test("What one device knows of a removed device's log by a checkpoint only is read by all")
    func marksOfCheckpoint() throws {
        var bench = try EngineBench([.owner, .owner, .writer, .writer])
        try bench.exchange([0, 1, 2, 3])
        bench.put(2, 1, date: 5, value: 1)
        let batch = try bench.publish(2).filter { $0.hasPrefix("b/") }
        let bytes = batch.map { ($0, bench.objects[$0]) }
        try bench.run(3)
        try bench.replaceBatchesByCheckpoint(of: 3)
        for _ in 0..<2 { try bench.run(0) }
        #expect(bench.value(0, 1) == 1)
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        try bench.run(0)
        // The batch is there again, and the checkpoint and what its author has sent are gone.
        for name in bench.objects.keys where name.hasPrefix("c/") || name.hasPrefix("p/") { bench.objects[name] = nil }
        for (name, content) in bytes { bench.objects[name] = content }
        for _ in 0..<2 { try bench.exchange([1, 0]) }
        #expect(bench.value(1, 1) == 1)
        #expect(bench.live(1) == bench.live(0))
    }
}
