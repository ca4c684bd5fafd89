// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// Logs that others continue, and objects that only have the names of batches.
@Suite("Hostile logs")
struct HostileLogTests {
    /// The member's batch follows one of owner 0, or is a fork that begins with its first batch.
    @Test("What a member writes into another device's log takes no mark from it", arguments: [false, true])
    func foreignBatches(areForks: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange(areForks ? [0, 2] : [0, 1, 2])
        let mark = try #require(bench.marks(2).first { $0.device == bench.machines[0].id })
        let beginning = LogMark(
            log: mark.log, device: mark.device, number: 0, previous: .none, hash: .none, signature: mark.signature)
        for number in 0..<(areForks ? 20 : 1) {
            let id = SyncVersionID(Identifier128(high: 6, low: UInt64(number)))
            let content = SimulatedContent(name: 100 + number, accessibility: .afterFirstUnlock, date: 6, value: 6).content
            try bench.forgeBatch(of: 2, [VersionRecord(id: id, replaced: [], content: content)], after: areForks ? beginning : mark)
        }
        // Device 1 reads the forks first.
        if areForks { bench.hidden[1] = [ObjectName.batch(device: mark.device, origin: mark.origin).text] }
        try bench.run(1)
        bench.hidden[1] = []
        try bench.exchange([0, 1])
        #expect(bench.marks(1).contains { $0.origin == mark.origin })
        bench.put(0, 2, date: 7, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.marks(1).contains { $0.device == mark.device && $0.log == mark.log && $0.number == mark.number + 1 })
        #expect(bench.value(1, 2) == 2)
        #expect(bench.value(1, 100) == 6)
    }

    /// Reading each of them must not take time for all others.
    @Test("Tens of thousands of objects that only have the names of batches and checkpoints hold up nothing")
    func junk() throws {
        var bench = try EngineBench([.owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.run(0)
        for number in 0..<20_000 {
            let log = LogID(Identifier128(high: UInt64(number), low: 1))
            let origin = Origin(log: log, number: 1, hash: Identifier128(high: 1, low: 1))
            let device = number % 2 == 0 ? bench.machines[0].id : DeviceID(log.value)
            bench.objects[ObjectName.batch(device: device, origin: origin).text] = [1]
            bench.objects[ObjectName.checkpoint(bench.cipher.hash(Array("\(number)".utf8))).text] = [1]
        }
        try bench.run(1)
        #expect(bench.value(1, 1) == 1)
    }

    /// Each run of an agent that is started once every half hour ends before an hour has passed.
    @Test("An agent that runs for a moment at a time waits for an unreadable batch of its own once, not again in each run")
    func unreadableOwnBatch() throws {
        var bench = try EngineBench([.owner, .owner])
        try bench.exchange([0, 1])
        let origin = Origin(log: LogID(Identifier128(high: 1, low: 1)), number: 1, hash: Identifier128(high: 1, low: 1))
        bench.objects[ObjectName.batch(device: bench.machines[0].id, origin: origin).text] = [1]
        bench.put(0, 1, date: 5, value: 1)
        try bench.run(0)
        #expect(bench.batches.allSatisfy { $0 == origin })
        for _ in 0..<3 {
            bench.now += 1_800
            bench.start(0)
            try bench.run(0)
        }
        try bench.run(1)
        #expect(bench.value(1, 1) == 1)
    }

    @Test("An agent that runs for a moment at a time makes up for lost batches")
    func lostBatches() throws {
        var bench = try EngineBench([.owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        for name in bench.objects.keys where name.hasPrefix("b/") { bench.objects[name] = nil }
        for _ in 0..<4 {
            bench.start(0)
            try bench.run(0)
            bench.now += 1_800
        }
        #expect(bench.objects.keys.contains { $0.hasPrefix("c/") })
    }

    @Test("What a checkpoint knows to be replaced counts as deleted for the guard against mass deletion")
    func awaitedVersions() throws {
        var limits = SyncLimits()
        limits.unconfirmedDeletions = 2
        var bench = try EngineBench([.owner, .owner, .owner], limits: limits)
        for name in 1...5 { bench.put(0, name, date: 5, value: UInt64(name), .whenUnlocked) }
        try bench.exchange([0, 1, 2])
        let unknown = bench.madeUpBatch(of: 2)
        try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .awaited(bench.live(1).sorted()), coversRead: false)
        for _ in 0..<3 { try bench.run(1) }
        #expect((1...5).allSatisfy { bench.value(1, $0) == UInt64($0) })
        #expect(bench.machines[1].alarms.contains { if case .massDeletion = $0 { true } else { false } })
    }

    @Test("A checkpoint that was given up is tried again although a useless one is newer")
    func uselessCheckpoint() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        for name in 1...3 { bench.put(0, name, date: 5, value: UInt64(name), .whenUnlocked) }
        try bench.exchange([0])
        for name in bench.objects.keys where name.hasPrefix("b/") { bench.objects[name] = nil }
        bench.now += 4_000
        for _ in 0..<2 {
            try bench.run(0)
            bench.now += 4_000
        }
        let pieces = bench.objects.filter { $0.key.hasPrefix("p/") && (try? CheckpointPiece($0.value))?.kind == .versions }
        try bench.run(2)
        let unknown = bench.madeUpBatch(of: 2)
        try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]), forging: .withoutContent)
        // They are listed, but their bytes have not arrived.
        for (name, bytes) in pieces { bench.objects[name] = Array(bytes.dropLast()) }
        for _ in 0..<8 { try bench.run(1) }
        for (name, bytes) in pieces { bench.objects[name] = bytes }
        for _ in 0..<12 { try bench.run(1) }
        #expect((1...3).allSatisfy { bench.value(1, $0) == UInt64($0) })
    }

    @Test(
        "An object with the origin of a batch, below another device, does not keep a lost content from being restored",
        arguments: [0, UInt64.max])
    func objectBesideBatch(device: UInt64) throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        let origin = try #require(bench.batches.first)
        bench.objects[ObjectName.batch(device: DeviceID(Identifier128(high: device, low: device)), origin: origin).text] = [1]
        bench.loseRow(1, 1)
        bench.now += 86_400
        for _ in 0..<2 { try bench.run(1) }
        #expect(bench.value(1, 1) == 1)
    }

    @Test("An object with the origin of a batch that is gone does not keep the checkpoint from being absorbed", arguments: [false, true])
    func objectInPlaceOfBatch(isOfAuthor: Bool) throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0])
        let origin = try #require(bench.batches.first)
        try bench.replaceBatchesByCheckpoint(of: 0)
        let device = isOfAuthor ? bench.machines[0].id : DeviceID(Identifier128(high: 7, low: 7))
        bench.objects[ObjectName.batch(device: device, origin: origin).text] = [1]
        for _ in 0..<2 { try bench.run(1) }
        #expect(bench.value(1, 1) == 1)
    }

    @Test("An agent that runs for a moment at a time tries another checkpoint than the newest")
    func momentaryAbsorption() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 2])
        try bench.replaceBatchesByCheckpoint(of: 0)
        bench.now += 60
        let unknown = bench.madeUpBatch(of: 2)
        try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]), forging: .withoutContent)
        for _ in 0..<4 {
            bench.start(1)
            try bench.run(1)
        }
        #expect(bench.value(1, 1) == 1)
    }

    @Test("An object with the origin of a lost batch, below another device, does not keep others from making up for the batch")
    func objectInPlaceOfLostBatch() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0])
        let origin = try #require(bench.batches.first)
        bench.objects[ObjectName.batch(device: bench.machines[0].id, origin: origin).text] = nil
        bench.objects[ObjectName.batch(device: DeviceID(Identifier128(high: 7, low: 7)), origin: origin).text] = [1]
        for _ in 0..<4 {
            try bench.exchange([0, 1])
            bench.now += 3_600
        }
        #expect(bench.value(1, 1) == 1)
    }

    /// The statement was lost together with the disks of those who had it, or never existed.
    @Test("A statement that stays missing does not end the wait for a torn batch of a device's own log", arguments: [false, true])
    func wornWait(isMissing: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 2, date: 4, value: 2)
        try bench.exchange([0, 1, 2])
        if isMissing {
            try bench.forgeStatement(of: 2, .witness, heads: [bench.cipher.hash([9])])
            for _ in 0..<5 {
                try bench.exchange([0, 1])
                bench.now += 3_600
            }
        }
        bench.put(0, 1, date: 5, value: 1)
        let snapshot = bench.machines[0].ledger.state
        let name = try #require(try bench.publish(0).first { $0.hasPrefix("b/") })
        try bench.run(1)
        bench.delete(1, 1)
        try bench.exchange([1])
        // The restored machine sees a part of its own batch for a minute.
        let bytes = bench.objects[name]
        bench.objects[name] = bytes?.dropLast()
        bench.restore(0, to: snapshot)
        for _ in 0..<2 {
            try bench.run(0)
            bench.now += 60
        }
        bench.objects[name] = bytes
        for _ in 0..<3 {
            try bench.exchange([0, 1])
            bench.now += 3_600
        }
        #expect(bench.value(1, 1) == nil)
        // A change is sent although the statement is still missing.
        bench.put(0, 3, date: 6, value: 3)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 3) == 3)
    }

    @Test("What one device has read of a removed device's log is read by all, however often the log is forked")
    func forks() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        for number in 0..<20 {
            let content = SimulatedContent(name: 100 + number, accessibility: .afterFirstUnlock, date: 6, value: 9).content
            let id = SyncVersionID(Identifier128(high: 7, low: UInt64(number)))
            try bench.forgeBatch(of: 2, [VersionRecord(id: id, replaced: [], content: content)])
        }
        try bench.run(1)
        try bench.run(1, .command(.remove(bench.machines[2].id)))
        try bench.exchange([1, 0])
        #expect(bench.live(0).count == 21)
        #expect(bench.live(0) == bench.live(1))
    }

    /// The object is there in the minutes 0 to 55 of each 100, and the statement is missing in the minutes 50 to 105.
    @Test("Two reasons to wait, in turns, keep a device from sealing for an hour only")
    func waitsInTurns() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let origin = Origin(log: LogID(Identifier128(high: 1, low: 1)), number: 1, hash: Identifier128(high: 1, low: 1))
        let object = ObjectName.batch(device: bench.machines[0].id, origin: origin).text
        var withheld: (name: String, bytes: [UInt8])?
        for minute in stride(from: 0, through: 200, by: 5) {
            switch minute % 100 {
            case 0: bench.objects[object] = [1]
            case 50:
                let earlier = Set(bench.objects.keys)
                try bench.forgeStatement(of: 2, .witness)
                let name = try #require(Set(bench.objects.keys).subtracting(earlier).first)
                let bytes = try #require(bench.objects[name])
                bench.objects[name] = nil
                try bench.forgeStatement(of: 2, .witness, heads: [Statement(bytes, cipher: bench.cipher).hash])
                withheld = (name, bytes)
            case 55: bench.objects[object] = nil
            case 5:
                if let (name, bytes) = withheld { bench.objects[name] = bytes }
                try bench.run(2)
            default: break
            }
            if minute == 5 { bench.put(0, 2, date: 6, value: 2) }
            try bench.run(0)
            bench.now += 300
        }
        #expect(bench.machines[0].ledger.state.pending.isEmpty)
    }
}
