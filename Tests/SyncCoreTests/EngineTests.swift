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
        #expect(bench.value(0, 1) == 1)
        // The write is still there.
        #expect(bench.value(1, 1) == 2)
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
        try bench.run(1, .command(.remove(bench.machines[0].id)))
        // The removed device is not shown its removal.
        bench.put(0, 1, date: 6, value: 2)
        var hidden = try bench.step(0, .itemsChanged)
        while let effect = hidden.popLast() {
            if case .read = effect { continue }
            hidden += try bench.perform(effect, of: 0)
        }
        #expect(bench.objects.keys.count { $0.hasPrefix("b/\(bench.machines[0].id.hexadecimal)") } == 2)
        bench.start(2)
        var waiting = try bench.step(2, .wake)
        while let newest = waiting.popLast() { waiting += try bench.perform(newest, of: 2) }
        #expect(bench.machines[2].engine?.roster?.removed == [bench.machines[0].id])
        #expect(bench.value(2, 1) == 1)
    }
}
