// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

@Suite("The engine, by schedules written by hand")
struct EngineTests {
    @Test("A write that was recorded while its class was locked gets its date from the own log after a restore")
    func dateFromOwnLog() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        bench.lock(0, Set(Lane.allCases))
        try bench.step(0, .itemsChanged)
        let snapshot = bench.machines[0].ledger.state
        bench.lock(0, [])
        try bench.run(0)
        bench.machines[0].ledger.state = snapshot
        bench.lock(0, [])
        bench.start(0)
        // Concurrent and later, so visible.
        bench.put(1, 1, date: 9, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.value(0, 1) == 2)
        #expect(bench.value(1, 1) == 2)
        #expect(bench.copyCount(0) == 1)
    }

    @Test("A restored machine deletes once more what it finds in its own log, and the deletion is sent")
    func deletedTwice() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 1, date: 6, value: 2)
        let snapshot = bench.machines[0].ledger.state
        try bench.run(0)
        bench.put(0, 2, date: 6, value: 3)
        try bench.run(0)
        bench.machines[0].ledger.state = snapshot
        bench.start(0)
        try bench.step(0, .itemsChanged)
        bench.delete(0, 1)
        // The first of the two lost batches is read, and the second one not yet.
        var waiting = try bench.step(0, .wake)
        while !waiting.isEmpty {
            let effect = waiting.removeFirst()
            if case .read(let name, _) = effect, name.contains("/0000000000000003-") { continue }
            waiting += try bench.perform(effect, of: 0)
        }
        #expect(bench.value(0, 1) == 2)
        bench.delete(0, 1)
        try bench.exchange([0, 1])
        for device in 0...1 {
            #expect(bench.value(device, 1) == nil)
            #expect(bench.value(device, 2) == 3)
        }
    }

    /// The guard counts deletions, and one batch can have more of them than it permits.
    @Test("Many deletions wait for a person, and are applied once they are confirmed")
    func confirmedDeletions() throws {
        var limits = SyncLimits()
        limits.unconfirmedDeletions = 2
        var bench = try EngineBench(limits: limits)
        for name in 1...5 { bench.put(0, name, date: 5, value: UInt64(name)) }
        try bench.exchange([0, 1])
        for name in 1...5 { bench.delete(0, name) }
        try bench.run(0, .command(.acceptDeletions))
        try bench.exchange([0, 1])
        #expect(bench.machines[1].alarms.contains(.massDeletion(5)))
        #expect((1...5).allSatisfy { bench.value(1, $0) == UInt64($0) })
        try bench.run(1, .command(.acceptDeletions))
        try bench.exchange([1])
        #expect((1...5).allSatisfy { bench.value(1, $0) == nil })
    }

    /// The items are in the log of another lane.
    @Test("Many deletions wait for a person also if they arrive before what they delete")
    func deletionsBeforeItems() throws {
        var limits = SyncLimits()
        limits.unconfirmedDeletions = 2
        var bench = try EngineBench(limits: limits)
        for name in 1...5 { bench.put(0, name, date: 5, value: UInt64(name), .whenUnlocked) }
        try bench.exchange([0])
        let items = Set(bench.objects.keys.filter { $0.utf8.first == UInt8(ascii: "b") })
        for name in 1...5 { bench.delete(0, name) }
        try bench.run(0)
        bench.hidden[1] = items
        try bench.run(1)
        #expect(bench.machines[1].alarms.contains(.massDeletion(5)))
        bench.hidden[1] = []
        try bench.exchange([1])
        #expect((1...5).allSatisfy { bench.value(1, $0) == UInt64($0) })
        try bench.run(1, .command(.acceptDeletions))
        try bench.exchange([1])
        #expect((1...5).allSatisfy { bench.value(1, $0) == nil })
    }

    @Test(
        "A write that is never sent, of a reader or of a damaged row, does not keep a device from absorbing a checkpoint",
        arguments: [DeviceRole.owner, .reader])
    func unsendableWrite(role: DeviceRole) throws {
        var bench = try EngineBench([.owner, role])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(1, 1, date: 6, value: 2)
        if role == .owner { bench.damage(1, 1) }
        try bench.exchange([1, 0])
        bench.put(0, 3, date: 6, value: 3)
        try bench.run(0)
        try bench.replaceBatchesByCheckpoint(of: 0)
        try bench.exchange([1, 0])
        #expect(bench.value(1, 3) == 3)
        for device in 0...1 { #expect(bench.value(device, 1) == 1) }
        #expect(bench.copyCount(1) == (role == .owner ? 0 : 1), "a reader keeps its write")
    }

    /// Any number of machines may share the identity of a reader, and their number must not show in the storage.
    @Test("Machines that share the identity of a reader read everything, and write nothing, whatever the storage lacks")
    func sharedReader() throws {
        var bench = try EngineBench([.owner, .reader])
        let other = bench.addMachine(sharing: 1)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, other])
        bench.put(1, 2, date: 5, value: 2)
        let statements = bench.objects.filter { $0.key.hasPrefix("m/") }
        for name in statements.keys { bench.objects[name] = nil }
        let before = bench.objects
        for reader in [1, other] {
            try bench.run(reader, .itemsChanged)
            try bench.exchange([reader])
            #expect(bench.value(reader, 1) == 1)
        }
        #expect(bench.objects == before)
        try bench.exchange([0])
        #expect(statements.allSatisfy { bench.objects[$0.key] == $0.value }, "a writer restores them")
    }

    /// The storage answers in any order, and a device that was removed long ago may have written since.
    @Test("A device that was away reads the statements before a batch, whatever the storage answers first")
    func statementsBeforeBatches() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        // The removed device is not shown its removal.
        bench.hidden[0] = try bench.publish(1, .command(.remove(bench.machines[0].id)))
        bench.put(0, 1, date: 6, value: 2)
        try bench.run(0, .itemsChanged)
        #expect(bench.objects.keys.count { $0.hasPrefix("b/\(bench.machines[0].id.hexadecimal)") } == 2)
        var waiting = try bench.step(2, .wake)
        while let newest = waiting.popLast() { waiting += try bench.perform(newest, of: 2) }
        #expect(bench.machines[2].engine?.roster?.removed == [bench.machines[0].id])
        #expect(bench.value(2, 1) == 1)
    }

    @Test("A reader's own writes stay on its device, and the circle's version takes their place")
    func writesOfReader() throws {
        var bench = try EngineBench([.owner, .reader])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(1, 1, date: 9, value: 2)
        bench.put(1, 2, date: 9, value: 3)
        let before = bench.objects
        try bench.exchange([1])
        #expect(bench.objects == before)
        #expect(bench.value(1, 1) == 1)
        #expect(bench.value(1, 2) == 3, "the circle does not have this item")
        #expect(bench.copyCount(1) == 1)
        bench.delete(1, 1)
        try bench.exchange([1])
        #expect(bench.value(1, 1) == 1)
        // The circle's item takes the place of the reader's.
        bench.put(0, 2, date: 1, value: 4)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 2) == 4)
        #expect(bench.copyCount(1) == 2)
    }

    @Test("A change that is found while a round ends is sent by another round")
    func changeDuringRound() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.put(0, 1, date: 5, value: 1)
        var isRoundDue = true
        while isRoundDue {
            isRoundDue = false
            var waiting = try bench.step(0, .wake)
            while let effect = waiting.popLast() {
                // While the first change is being created, a program writes another one.
                if case .create(let name, _) = effect, name.hasPrefix("b/"), bench.value(0, 2) == nil { bench.put(0, 2, date: 5, value: 2) }
                if case .wake(let time) = effect, time <= bench.now { isRoundDue = true }
                waiting += try bench.perform(effect, of: 0)
            }
        }
        try bench.run(1)
        #expect(bench.value(1, 1) == 1)
        #expect(bench.value(1, 2) == 2)
    }

    @Test("An object that the storage cannot take is created again in the next round, and not before")
    func failedCreation() throws {
        var bench = try EngineBench()
        try bench.exchange([0, 1])
        bench.put(0, 1, date: 5, value: 1)
        var creations: [SyncEffect] = []
        var waiting = try bench.step(0, .wake)
        while let effect = waiting.popLast() {
            if case .create(let name, _) = effect {
                creations.append(effect)
                waiting += try bench.step(0, .failed(name))
            } else {
                waiting += try bench.perform(effect, of: 0)
            }
        }
        #expect(creations.count == 1)
        #expect(try bench.run(0).contains(creations[0]))
        try bench.run(1)
        #expect(bench.value(1, 1) == 1)
    }

    @Test("A row of a newer format is left alone, and the agent says so")
    func newerRow() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        let item = try #require(bench.machines[1].ledger.state.rows.keys.first)
        bench.machines[1].ledger.state.rows[item]?.isNewer = true
        let row = bench.machines[1].ledger.state.rows[item]
        bench.start(1)
        bench.put(0, 1, date: 6, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.machines[1].ledger.state.rows == [item: row])
        let name = SimulatedContent(name: 1, accessibility: .always, date: 0, value: 0).itemName
        #expect(bench.machines[1].alarms.contains(.itemLeftAlone(name)))
        #expect(bench.machines[0].alarms.isEmpty)
    }

    @Test("A write that was lost before it was sent ends with the next write of the item")
    func lostUnsentWrite() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.lock(0, [.whenUnlocked, .afterFirstUnlock])
        bench.put(0, 1, date: 6, value: 2)
        try bench.step(0, .itemsChanged)
        bench.machines[0].ledger.state.rows = [:]
        bench.lock(0, [])
        bench.now += 86_400
        try bench.exchange([0, 1])
        let name = SimulatedContent(name: 1, accessibility: .always, date: 0, value: 0).itemName
        #expect(bench.machines[0].alarms.contains(.unsentWriteLost(name)))
        #expect(bench.value(1, 1) == 1, "absence is no deletion")
        bench.put(0, 1, date: 7, value: 3)
        try bench.exchange([0, 1])
        for device in 0...1 {
            #expect(bench.value(device, 1) == 3)
            #expect(bench.copyCount(device) == 0)
        }
        #expect(bench.machines[0].ledger.state.pending.isEmpty)
    }

    @Test("A device's name reaches the others, and one that cannot be shown is left out")
    func names() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        try bench.exchange([0, 1, 2])
        func name(of device: Int) throws -> String? { try DeviceNotes(in: bench.machines[1].ledger)[bench.machines[device].id]?.name?.text }
        #expect(try name(of: 0) == nil)
        for text in ["spaceball-one", "eagle-5"] {
            try bench.run(0, .command(.rename(try #require(DeviceName(text)))))
            try bench.exchange([0, 1])
            #expect(try name(of: 0) == text)
        }
        // An agent that ends before it has sent a name tells it when it runs again, and no other batch.
        try bench.step(0, .command(.rename(try #require(DeviceName("winnebago")))))
        bench.start(0)
        try bench.exchange([0, 1])
        #expect(try name(of: 0) == "winnebago")
        let batches = bench.batches
        bench.start(0)
        try bench.exchange([0, 1])
        #expect(bench.batches == batches)
        bench.machines[2].ledger.set(.ownName, to: Array("lone\u{202E}starr".utf8))
        bench.put(2, 2, date: 5, value: 2)
        try bench.exchange([2, 1])
        #expect(bench.value(1, 2) == 2)
        #expect(try name(of: 2) == nil)
    }

    @Test("A name of a device has no characters that a terminal obeys", arguments: ["", " ", "a\n", "\u{1B}[2J", "a\u{200B}b", "\u{2028}"])
    func unusableNames(text: String) { #expect(DeviceName(text) == nil) }
}
