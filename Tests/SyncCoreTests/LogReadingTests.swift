// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// The batches of a log are requested before their predecessors have arrived, and applied in the order of the log.
@Suite struct LogReadingTests {
    @Test func `batches that arrive in the reverse order are each read once`() throws {
        var bench = try EngineBench()
        try bench.sendChanges(count: 40)
        let requested = try bench.receiveLastFirst(1)
        #expect(bench.value(1, 1) == 40)
        #expect(requested.count == 40 && Set(requested).count == 40)
    }

    @Test func `batches that are not held because they are too large together are read again`() throws {
        var limits = SyncLimits()
        limits.heldByteCount = 1_000
        var bench = try EngineBench(limits: limits)
        try bench.sendChanges(count: 40)
        let requested = try bench.receiveLastFirst(1)
        #expect(bench.value(1, 1) == 40)
        #expect(Set(requested).count == 40 && requested.count > 40)
    }

    @Test func `a long log is requested in parts, and a part that is lost ends it`() throws {
        var limits = SyncLimits()
        // No checkpoint makes up for it.
        limits.uncoveredVersions = 1_000
        var bench = try EngineBench(limits: limits)
        try bench.sendChanges(count: 100)
        let lost = try #require(bench.objects.keys.filter { $0.utf8.first == UInt8(ascii: "b") }.sorted().dropFirst(80).first)
        let bytes = bench.objects[lost]
        bench.objects[lost] = [1]
        _ = try bench.receiveLastFirst(1)
        #expect(bench.value(1, 1) == 80)

        bench.objects[lost] = bytes
        _ = try bench.receiveLastFirst(1)
        #expect(bench.value(1, 1) == 100)
    }

    @Test(arguments: [false, true]) func `many deletions wait for a person also in a batch that is held`(isReversed: Bool) throws {
        var limits = SyncLimits()
        limits.unconfirmedDeletions = 2
        var bench = try EngineBench(limits: limits)
        for name in 1...5 { bench.put(0, name, date: bench.now, value: UInt64(name)) }
        try bench.exchange([0, 1])
        for time in 1...2 {
            for name in 1...5 { bench.put(0, name, date: bench.now + Double(time), value: UInt64(name + 10 * time)) }
            try bench.run(0)
        }
        for name in 1...5 { bench.delete(0, name) }
        try bench.run(0)
        if isReversed { _ = try bench.receiveLastFirst(1) } else { try bench.run(1) }
        #expect(bench.machines[1].alarms.contains(.massDeletion(5)))
        #expect((1...5).allSatisfy { bench.value(1, $0) == UInt64($0 + 20) })
    }

    @Test func `a batch that is held while its author is removed is not applied`() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        try bench.exchange([0, 1, 2])
        try bench.sendChanges(count: 3, of: 2)
        var reads = try bench.perform(try #require(bench.begin(1).first), of: 1).filter(\.isReadOfBatch)
        #expect(reads.count == 2)
        _ = try bench.perform(reads.removeLast(), of: 1)
        try bench.run(1, .command(.remove(bench.machines[2].id)))
        _ = try bench.perform(reads, of: 1)
        #expect(bench.value(1, 1) == 1)
    }

    @Test func `batches that a hint names are read without a listing, and a hint that was lost begins a round`() throws {
        var bench = try EngineBench()
        // The statement with the key of the lane.
        try bench.sendChanges(count: 1)
        try bench.exchange([0, 1])
        var known = Set(bench.objects.keys)
        func isListing(_ effect: SyncEffect) -> Bool { if case .list = effect { true } else { false } }
        try bench.sendChanges(count: 2)
        let named = bench.objects.keys.filter { $0.hasPrefix("b/") && !known.contains($0) }
        #expect(try !bench.run(1, .appeared(named)).contains(where: isListing))
        #expect(bench.value(1, 1) == 2)

        known = Set(bench.objects.keys)
        try bench.sendChanges(count: 2)
        let last = try #require(bench.objects.keys.filter { $0.hasPrefix("b/") && !known.contains($0) }.max())
        #expect(try bench.step(1, .appeared([last])).contains(.wake(at: bench.now)))
    }

    /// What a listing costs grows with the storage.
    @Test func `a change lists no batches, and a round follows once their number has grown`() throws {
        var bench = try EngineBench()
        try bench.sendChanges(count: 1)
        var roundCount = 0
        for value in 2...200 {
            bench.put(0, 1, date: bench.now + Double(value), value: UInt64(value))
            let effects = try bench.run(0, .itemsChanged)
            #expect(effects.contains(.list(.statements)) && !effects.contains(.list(.batches)))
            #expect(effects.count { if case .create = $0 { true } else { false } } == 1)
            guard effects.contains(.wake(at: bench.now)) else { continue }
            roundCount += 1
            try bench.run(0)
        }
        #expect(roundCount == 3)
        try bench.run(1)
        #expect(bench.value(1, 1) == 200)
    }

    /// The agent begins a round, and reads what hints name, only once all calls have ended.
    @Test func `a program that writes whenever a batch is created does not keep calls going`() throws {
        var bench = try EngineBench()
        try bench.sendChanges(count: 1)
        bench.put(0, 1, date: bench.now + 2, value: 2)
        var effects = try bench.step(0, .itemsChanged)
        var count: UInt64 = 0
        while !effects.isEmpty, count < 100 {
            let effect = effects.removeFirst()
            count += 1
            if case .create = effect { bench.put(0, 1, date: bench.now + 2 + Double(count), value: 2 + count) }
            effects += try bench.perform(effect, of: 0)
        }
        #expect(count < 100)
    }

    @Test func `a program that writes while the batches are listed does not make them be listed again`() throws {
        var bench = try EngineBench()
        try bench.sendChanges(count: 1)
        var effects = try bench.step(0, .wake)
        var (listingCount, count): (Int, UInt64) = (0, 0)
        while !effects.isEmpty, count < 100 {
            let effect = effects.removeFirst()
            count += 1
            if effect == .list(.batches) {
                listingCount += 1
                continue
            }
            bench.put(0, 1, date: bench.now + 2 + Double(count), value: 2 + count)
            effects += try bench.perform(effect, of: 0)
        }
        #expect(listingCount == 1)
    }

    /// A batch that waits for its key, or a checkpoint that cannot be absorbed, is looked at in a round only.
    @Test func `an unlock begins a round`() throws {
        var bench = try EngineBench()
        try bench.sendChanges(count: 1)
        try bench.exchange([0, 1])
        bench.lock(1, [.whenUnlocked])
        #expect(try !bench.step(1, .itemsChanged).contains(.wake(at: bench.now)))
        bench.lock(1, [])
        #expect(try bench.step(1, .itemsChanged).contains(.wake(at: bench.now)))
        #expect(try !bench.step(1, .itemsChanged).contains(.wake(at: bench.now)))
    }

    @Test func `of a log that cannot be opened, one batch is read in each round`() throws {
        var bench = try EngineBench()
        for value in 1...10 {
            bench.put(0, 1, date: bench.now + Double(value), value: UInt64(value), .whenUnlocked)
            try bench.run(0)
        }
        bench.lock(1, [.whenUnlocked])
        #expect(try bench.run(1).count { $0.isReadOfBatch } == 1)
        bench.lock(1, [])
        try bench.run(1)
        #expect(bench.value(1, 1) == 10)
    }
}

extension EngineBench {
    /// Changes one item so often, each time in a batch of its own.
    fileprivate mutating func sendChanges(count: Int, of device: Int = 0) throws {
        for value in 1...count {
            put(device, 1, date: now + Double(value), value: UInt64(value))
            try run(device)
        }
    }

    /// Wakes a device, and performs all effects until only reads of batches are left; returns these.
    fileprivate mutating func begin(_ device: Int) throws -> [SyncEffect] {
        var waiting = try step(device, .wake)
        while let index = waiting.firstIndex(where: { !$0.isReadOfBatch }) {
            waiting += try perform(waiting.remove(at: index), of: device)
        }
        return waiting
    }

    /// Wakes a device, and lets what it reads arrive in the reverse order; returns the names of the batches that it has read.
    fileprivate mutating func receiveLastFirst(_ device: Int) throws -> [String] {
        var waiting = try begin(device)
        var names: [String] = []
        while let effect = waiting.popLast() {
            if case .read(let name, _) = effect, effect.isReadOfBatch { names.append(name) }
            waiting += try perform(effect, of: device)
        }
        return names
    }
}

extension SyncEffect {
    fileprivate var isReadOfBatch: Bool { if case .read(let name, _) = self { name.utf8.first == UInt8(ascii: "b") } else { false } }
}
