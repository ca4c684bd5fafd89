// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// When a device waits before it seals a change or gives away a key, and when it does not wait again.
@Suite("Waits")
struct WaitTests {
    /// An object that has only the name of a batch of a device.
    private func junk(_ bench: EngineBench, of device: Int, _ number: Int = 0) -> String {
        let origin = Origin(log: LogID(Identifier128(high: 666, low: 1)), number: 1, hash: Identifier128(high: 6, low: UInt64(number)))
        return ObjectName.batch(device: bench.machines[device].id, origin: origin).text
    }

    @Test("A class that is unlocked for less than an hour at a time is sent although something else is missing each time")
    func shortUnlocks() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 6, value: 2, .whenUnlocked)
        bench.lock(0, [.whenUnlocked])
        try bench.run(0, .itemsChanged)
        for round in 1...3 {
            bench.objects[junk(bench, of: 0, round - 1)] = nil
            bench.objects[junk(bench, of: 0, round)] = [1]
            bench.lock(0, [])
            try bench.run(0, .itemsChanged)
            bench.now += 1_800
            try bench.run(0)
            bench.lock(0, [.whenUnlocked])
            bench.start(0)
            try bench.run(0, .itemsChanged)
            bench.now += 1_900
            try bench.run(0)
            bench.now += 1_800
        }
        try bench.run(1)
        #expect(bench.value(1, 2) == 2)
    }

    @Test("A class that was locked without changes when a wait ended waits again")
    func nothingWasOverdue() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.lock(0, [.whenUnlocked])
        bench.put(0, 1, date: 5, value: 1)
        bench.objects[junk(bench, of: 0)] = [1]
        try bench.run(0)
        bench.now += 3_600
        try bench.run(0)
        bench.lock(0, [])
        bench.objects[junk(bench, of: 0, 1)] = [1]
        bench.put(0, 2, date: 6, value: 2, .whenUnlocked)
        try bench.run(0)
        try bench.run(1)
        #expect(bench.value(1, 1) == 1)
        #expect(bench.value(1, 2) == nil)
        bench.now += 3_600
        try bench.exchange([0, 1])
        #expect(bench.value(1, 2) == 2)
    }

    /// What the machine waited for arrived after a minute.
    ///
    /// Hours later it is restored, and sees a part of its own batch.
    @Test("A wait that ended before its time does not shorten the next one")
    func nextWait() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.objects[junk(bench, of: 0)] = [1]
        bench.put(0, 1, date: 5, value: 1)
        try bench.run(0)
        #expect(bench.machines[0].ledger.state.pending.count == 1)
        bench.objects[junk(bench, of: 0)] = nil
        try bench.run(0)
        #expect(bench.machines[0].ledger.state.pending.isEmpty)
        bench.now += 7_200

        bench.put(0, 2, date: 6, value: 2)
        let snapshot = bench.machines[0].ledger.state
        let name = try #require(try bench.publish(0).first { $0.hasPrefix("b/") })
        try bench.run(1)
        bench.delete(1, 2)
        try bench.exchange([1])
        let bytes = bench.objects[name]
        bench.objects[name] = bytes?.dropLast()
        bench.restore(0, to: snapshot)
        try bench.run(0)
        bench.objects[name] = bytes
        for _ in 0..<2 { try bench.exchange([0, 1]) }
        #expect(bench.value(0, 2) == nil)
        #expect(bench.value(1, 2) == nil)
    }

    /// The wait for another reason is over.
    @Test("A key is given to no device whose removal may be on its way", arguments: [false, true])
    func keysBeforeRemoval(hasWaitedForSomethingElse: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        if hasWaitedForSomethingElse {
            bench.objects[junk(bench, of: 0)] = [1]
            bench.put(0, 1, date: 6, value: 2)
            try bench.run(0)
            bench.now += 3_600
            try bench.run(0)
        }
        let keys = FakeDeviceKeys(seed: [99])
        let newcomer = DeviceID(of: keys.publicKeys, role: .writer, cipher: bench.cipher)
        let admitted = Set(bench.objects.keys)
        try bench.forgeStatement(of: 1, .admit(.init(device: newcomer, keys: keys.publicKeys, role: .writer, circleCode: nil)))
        // The owner that has admitted it removes it, and only what rests on the removal has arrived.
        let before = Set(bench.objects.keys)
        let admission = try #require(before.subtracting(admitted).first.flatMap { bench.objects[$0] })
        let heads = [try Statement(admission, cipher: bench.cipher).hash]
        try bench.forgeStatement(of: 1, .remove(.init(device: newcomer, checkpoints: [])), heads: heads)
        let removal = try #require(Set(bench.objects.keys).subtracting(before).first)
        let bytes = try #require(bench.objects[removal])
        bench.objects[removal] = nil
        try bench.forgeStatement(of: 1, .witness, heads: [Statement(bytes, cipher: bench.cipher).hash])
        let known = Set(bench.machines[0].ledger.statements().map(\.hash))
        try bench.run(0)
        #expect(try boxes(of: bench, 0, for: newcomer, besides: known) == 0)
        bench.now += 3_600
        for _ in 0..<2 { try bench.run(0) }
        #expect(try boxes(of: bench, 0, for: newcomer, besides: known) > 0, "a statement that is lost does not cut a member off")
    }

    private func boxes(of bench: EngineBench, _ author: Int, for device: DeviceID, besides known: Set<StatementHash>) throws -> Int {
        var count = 0
        for entry in bench.machines[author].ledger.statements() where !known.contains(entry.hash) {
            let statement = try Statement(entry.bytes, cipher: bench.cipher)
            guard statement.author == bench.machines[author].id, case .rekey(let rekeying) = statement.body else { continue }
            count += rekeying.boxes.count { $0.device == device }
        }
        return count
    }

    @Test("A class that has waited once while it was locked waits again the next time")
    func overdueOnce() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        bench.lock(0, [.whenUnlocked])
        bench.objects[junk(bench, of: 0)] = [1]
        for _ in 0..<2 {
            try bench.run(0)
            bench.now += 3_600
        }
        bench.lock(0, [])
        bench.objects[junk(bench, of: 0)] = nil
        bench.objects[junk(bench, of: 0, 1)] = [1]
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
        bench.put(0, 1, date: 6, value: 2, .whenUnlocked)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
    }

    /// A write every 20 seconds, in a storage that answers 30 calls in that time.
    @Test(
        "Objects with the names of a device's batches, which are read again at each write, delay what it writes by an hour",
        arguments: [0, 25])
    func junkAndWrites(count: Int) throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        for number in 0..<count {
            let origin = Origin(
                log: LogID(Identifier128(high: 666, low: UInt64(number))), number: 1, hash: Identifier128(high: 6, low: UInt64(number)))
            bench.objects[ObjectName.batch(device: bench.machines[0].id, origin: origin).text] = [1]
        }
        var waiting: [SyncEffect] = []
        let begin = bench.now
        while bench.now < begin + 4_000 {
            bench.put(0, 2, date: bench.now, value: UInt64(bench.now))
            waiting += try bench.step(0, .itemsChanged)
            for _ in 0..<30 where !waiting.isEmpty { waiting += try bench.perform(waiting.removeFirst(), of: 0) }
            bench.now += 20
        }
        try bench.run(1)
        #expect(bench.value(1, 2) != nil)
    }

    /// A machine that is restored from a snapshot sees the last two batches of its own, but not the one before them.
    @Test("A device seals nothing again while a batch of its own is there whose predecessor is not", arguments: [false, true])
    func missingPredecessor(isLaterOneReceived: Bool) throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 6, value: 2)
        let snapshot = bench.machines[0].ledger.state
        let first = try bench.publish(0).filter { $0.hasPrefix("b/") }
        bench.put(0, 3, date: 7, value: 3)
        let second = try bench.publish(0).filter { $0.hasPrefix("b/") }
        #expect(first.count == 1 && second.count == 1)

        bench.restore(0, to: snapshot)
        if isLaterOneReceived {
            // Both are listed; then the storage gives the later one only.
            var waiting = try bench.step(0, .wake)
            while let index = waiting.firstIndex(where: { if case .read = $0 { false } else { true } }) {
                waiting += try bench.perform(waiting.remove(at: index), of: 0)
            }
            bench.hidden[0] = first
            _ = try bench.perform(waiting, of: 0)
        }
        bench.hidden[0] = first
        #expect(try bench.publish(0).isEmpty)
        bench.now += 3_000
        #expect(try bench.publish(0).isEmpty)
        bench.hidden = [:]
        #expect(try bench.publish(0).isEmpty)
        #expect(bench.machines[0].ledger.state.pending.isEmpty)
        #expect(bench.value(0, 3) == 3)
    }

    @Test("A predecessor that does not come keeps a device from sealing for an hour")
    func lostPredecessor() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 6, value: 2)
        let snapshot = bench.machines[0].ledger.state
        let first = try #require(try bench.publish(0).first { $0.hasPrefix("b/") })
        bench.put(0, 3, date: 7, value: 3)
        try bench.run(0)
        bench.objects[first] = nil
        bench.restore(0, to: snapshot)
        try bench.run(0)
        bench.now += 3_600
        try bench.exchange([0, 1])
        #expect(bench.value(1, 2) == 2)
    }

    /// The machine slept for two hours after it had listed the statements.
    @Test("A wait lasts an hour although the statements were listed long before it began")
    func oldListing() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.objects[junk(bench, of: 0)] = [1]
        bench.put(0, 1, date: 5, value: 1)
        var effects = try bench.step(0, .wake)
        effects = try bench.perform(effects.removeFirst(), of: 0) + effects
        bench.now += 7_200
        _ = try bench.perform(effects, of: 0)
        #expect(bench.machines[0].ledger.state.pending.count == 1)
        bench.now += 3_600
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
    }

    @Test("A clock that is set back lengthens a wait to an hour from then")
    func clockSetBack() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.objects[junk(bench, of: 0)] = [1]
        bench.put(0, 1, date: 5, value: 1)
        try bench.run(0)
        bench.now -= 100_000
        // Without a listing.
        try bench.step(0, .appeared([]))
        #expect(bench.machines[0].ledger.state.pending.count == 1)
        try bench.run(0)
        #expect(bench.machines[0].ledger.state.pending.count == 1)
        bench.now += 3_600
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
    }

    /// The machine is restored from a snapshot that is older than the checkpoint.
    ///
    /// What it would seal at once may be in the checkpoint, and others may have deleted it.
    @Test("A batch whose predecessor is in a checkpoint only keeps a device from sealing, and from absorbing the checkpoint, for an hour")
    func predecessorInCheckpoint() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        let snapshot = bench.machines[0].ledger.state
        bench.put(0, 2, date: 6, value: 2)
        try bench.exchange([0, 1])
        try bench.replaceBatchesByCheckpoint(of: 1)
        bench.put(0, 3, date: 7, value: 3)
        try bench.run(0)
        bench.restore(0, to: snapshot)
        bench.put(0, 4, date: 8, value: 4)
        #expect(try bench.publish(0).isEmpty)
        bench.now += 3_600
        for _ in 0..<2 { try bench.exchange([0, 1]) }
        for device in 0...1 {
            for name in 1...4 { #expect(bench.value(device, name) == UInt64(name), "\(device), \(name)") }
        }
    }

    @Test("A checkpoint that covers earlier batches of the log does not stand for a predecessor that is missing")
    func predecessorAfterCheckpoint() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        try bench.replaceBatchesByCheckpoint(of: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 6, value: 2)
        let snapshot = bench.machines[0].ledger.state
        let first = try bench.publish(0).filter { $0.hasPrefix("b/") }
        bench.put(0, 3, date: 7, value: 3)
        try bench.run(0)
        bench.restore(0, to: snapshot)
        bench.hidden[0] = first
        #expect(try bench.publish(0).isEmpty)
        bench.hidden = [:]
        #expect(try bench.publish(0).isEmpty)
        #expect(bench.value(0, 3) == 3)
    }
}
