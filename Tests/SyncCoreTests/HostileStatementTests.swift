// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// Admissions, removals, and floods of statements by members and by devices that were removed.
@Suite("Hostile statements")
struct HostileStatementTests {
    @Test("A statement that does not count is put back into the storage if one that counts lists it")
    func restoredForAnother() throws {
        var bench = try EngineBench([.owner, .owner, .writer, .writer])
        try bench.exchange([0, 1, 2, 3])
        let heads = bench.machines[0].engine?.roster?.heads ?? []
        try bench.run(1, .command(.remove(bench.machines[0].id)))
        let own = try bench.forgeStatement(by: bench.machines[0], .witness, heads: heads)
        try bench.forgeStatement(by: bench.machines[0], .remove(.init(device: bench.machines[1].id, checkpoints: [])), heads: [own])
        try bench.exchange([2])
        #expect(bench.members(2) == [2, 3])
        let name = ObjectName.statement(own).text
        bench.objects[name] = nil
        try bench.exchange([2])
        #expect(bench.objects[name] != nil)
        try bench.exchange([3])
        #expect(bench.members(3) == [2, 3])
    }

    @Test("A removal is put back into the storage by a device whose admission it makes void")
    func restoredByVoidDevice() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        try bench.exchange([0, 1, 2])
        let heads = bench.machines[0].engine?.roster?.heads ?? []
        let admitted = try bench.admit(by: 1)
        try bench.run(1, .command(.remove(bench.machines[0].id)))
        try bench.exchange([2, admitted])
        #expect(bench.members(2) == [1, 2, admitted])
        // Only the new device reads it before it is lost.
        let removal = ObjectName.statement(
            try bench.forgeStatement(by: bench.machines[0], .remove(.init(device: bench.machines[1].id, checkpoints: [])), heads: heads)
        ).text
        bench.hidden[2] = [removal]
        try bench.exchange([2, admitted])
        #expect(bench.machines[admitted].alarms == [.admissionVoid])
        bench.objects[removal] = nil
        bench.hidden = [:]
        try bench.exchange([2, admitted])
        #expect(bench.members(2) == [2, admitted])
        #expect(bench.members(admitted) == [2, admitted])
    }

    @Test(
        "A device that learns of the removal of its owner together with its own admission warns, until another device confirms the admission"
    )
    func voidFromTheBeginning() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        try bench.exchange([0, 1, 2])
        let admitted = try bench.admit(by: 1)
        try bench.exchange([2])
        try bench.run(0, .command(.remove(bench.machines[1].id)))
        // The answer to its request contains only these two statements.
        let ids = [bench.machines[admitted].id]
        let cipher = bench.cipher
        for stored in bench.machines[admitted].ledger.statements() {
            switch try Statement(stored.bytes, cipher: cipher).body {
            case .found: continue
            case .admit(let admission) where ids.contains(admission.device): continue
            default: bench.machines[admitted].ledger.state.statements[stored.hash] = nil
            }
        }
        bench.start(admitted)
        try bench.exchange([admitted])
        #expect(bench.machines[admitted].alarms == [.admissionVoid])
        try bench.exchange([2, admitted])
        bench.machines[admitted].alarms = []
        try bench.exchange([admitted])
        #expect(bench.machines[admitted].alarms.isEmpty)
        #expect(bench.members(admitted) == [0, 2, admitted])
    }

    @Test("A removed device is not admitted in another role under its old keys")
    func otherRole() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        try bench.exchange([0, 1])
        let keys = bench.machines[2].keys
        #expect(throws: KeychainFailure.self) { try bench.run(1, .command(.admit(keys.publicKeys, .reader))) }
        // An altered program of an owner admits it nevertheless.
        let id = DeviceID(of: keys.publicKeys, role: .reader, cipher: bench.cipher)
        try bench.forgeStatement(of: 1, .admit(.init(device: id, keys: keys.publicKeys, role: .reader, circleCode: nil)))
        try bench.exchange([0, 1])
        bench.put(0, 5, date: 9, value: 555)
        try bench.exchange([0, 1])
        let again = bench.add(.init(keys: keys, role: .reader, cipher: bench.cipher), knowingStatementsOf: 2)
        try bench.exchange([again])
        #expect(bench.value(again, 5) == nil)
        for device in 0...1 { #expect(bench.machines[device].engine?.roster?.members[id] == nil) }
    }

    @Test("The removal of a device that two owners have admitted in different roles removes both", arguments: [false, true])
    func twoRoles(isSecondAdmissionWithheld: Bool) throws {
        var bench = try EngineBench([.owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        let keys = FakeDeviceKeys(seed: [99])
        bench.hidden[1] = try bench.publish(0, .command(.admit(keys.publicKeys, .writer)))
        let second = try bench.publish(1, .command(.admit(keys.publicKeys, .reader)))
        bench.hidden = isSecondAdmissionWithheld ? [0: second] : [:]
        let writer = bench.add(.init(keys: keys, role: .writer, cipher: bench.cipher), knowingStatementsOf: 0)
        try bench.exchange(isSecondAdmissionWithheld ? [0, writer] : [0, 1, writer])
        try bench.run(0, .command(.remove(bench.machines[writer].id)))
        bench.hidden = [:]
        try bench.exchange([0, 1])
        bench.put(0, 5, date: 9, value: 555)
        try bench.exchange([0, 1])
        let reader = bench.add(.init(keys: keys, role: .reader, cipher: bench.cipher), knowingStatementsOf: 0)
        try bench.exchange([reader])
        #expect(bench.value(reader, 5) == nil)
        #expect(bench.value(1, 5) == 555)
    }

    /// They know only the admission of the writer, which is earlier, so none of them can be the reason why device 2 is a member.
    @Test("However many concurrent statements a writer makes, a device can state something", arguments: [0, 300])
    func concurrentStatements(count: Int) throws {
        var bench = try EngineBench([.owner, .writer, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        try bench.flood(by: 1, count: count, after: [bench.admission(of: 1)]) { $0.bytes[0] < 8 }
        for _ in 0..<2 {
            try bench.run(2)
            bench.now += 4_000
        }
        try bench.run(2, .command(.remove(bench.machines[1].id)))
        bench.put(2, 2, date: 9, value: 22)
        try bench.exchange([2, 0])
        #expect(bench.value(0, 2) == 22)
        for device in [0, 2] { #expect(bench.members(device) == [0, 2]) }
    }

    /// Device 3 knows the admission by device 2, which device 0 then removes.
    ///
    /// The statements come before all others in the order of hashes, or after.
    @Test("However many concurrent statements a writer makes, a device testifies for what it had", arguments: [false, true])
    func testimony(isFlooded: Bool) throws {
        var bench = try EngineBench([.owner, .writer, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2, 3])
        let before = Set(bench.objects.keys)
        let new = try bench.admit(by: 2)
        bench.put(new, 9, date: 9, value: 99)
        try bench.run(new)
        bench.hidden[0] = Set(bench.objects.keys).subtracting(before)
        try bench.flood(by: 1, count: isFlooded ? 300 : 0, after: [bench.admission(of: 1)]) { $0.bytes[0] >= 248 }
        for _ in 0..<2 { try bench.run(3) }
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        bench.hidden = [:]
        for _ in 0..<3 {
            try bench.exchange([3, 0])
            bench.now += 90_000
        }
        for device in [0, 3] {
            #expect(bench.members(device).contains(new))
            #expect(bench.value(device, 9) == 99)
        }
    }

    /// Device 0 reads the first ones, and device 1 the others, which come before them in the order of hashes.
    @Test("A writer that shows two halves of its statements to two devices does not part them", arguments: [false, true])
    func twoHalves(isAttacked: Bool) throws {
        var limits = SyncLimits()
        limits.statementsOfDevice = 64
        var bench = try EngineBench([.owner, .owner, .writer], limits: limits)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let heads = try #require(bench.machines[2].engine?.roster?.heads)
        if isAttacked {
            try bench.flood(by: 2, count: 64, after: heads, isChain: true) { $0.bytes[0] >= 128 }
            for _ in 0..<2 { try bench.run(0) }
            try bench.flood(by: 2, count: 64, after: heads, isChain: true) { $0.bytes[0] < 128 }
        }
        for _ in 0..<4 {
            try bench.exchange([1, 0])
            bench.now += 4_000
        }
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        bench.put(0, 2, date: 1_000, value: 777)
        for _ in 0..<4 {
            try bench.exchange([0, 1])
            bench.now += 4_000
        }
        bench.put(1, 4, date: 2_000, value: 444)
        try bench.exchange([1, 0, 2])
        #expect(bench.members(1) == [0, 1])
        #expect(bench.value(1, 2) == 777)
        #expect(bench.value(0, 4) == 444)
        #expect(bench.value(2, 4) == nil)
    }

    /// It dates back the admissions of writers, and their statements.
    @Test("A removed owner does not use up the room for the statements of members")
    func room() throws {
        var limits = SyncLimits()
        limits.statementsOfDevice = 32
        limits.statementsOfCircle = 256
        var bench = try EngineBench([.owner, .owner, .writer, .owner], limits: limits)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2, 3])
        let heads = try #require(bench.machines[1].engine?.roster?.heads)
        try bench.run(0, .command(.remove(bench.machines[1].id)))
        try bench.exchange([0, 2, 3])
        for number in 0..<9 as Range<UInt8> {
            let writer = EngineBench.Machine(keys: FakeDeviceKeys(seed: [100 + number]), role: .writer, cipher: bench.cipher)
            let admission = Statement.Admission(device: writer.id, keys: writer.keys.publicKeys, role: .writer, circleCode: nil)
            var last = try bench.forgeStatement(by: bench.machines[1], .admit(admission), heads: heads)
            for _ in 0..<31 { last = try bench.forgeStatement(by: writer, .witness, heads: [last]) }
        }
        for _ in 0..<3 { try bench.run(3) }
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        bench.put(0, 2, date: 9, value: 777)
        for _ in 0..<3 {
            try bench.exchange([0, 3])
            bench.now += 4_000
        }
        #expect(bench.members(3) == [0, 3])
        #expect(bench.value(3, 2) == 777)
    }
}

extension EngineBench {
    /// Returns the statement that makes a device a member.
    fileprivate func admission(of device: Int) throws -> StatementHash {
        let cipher = cipher
        let admission = try machines[0].ledger.statements().first { entry in
            guard case .admit(let admission) = try Statement(entry.bytes, cipher: cipher).body else { return false }
            return admission.device == machines[device].id
        }
        return try #require(admission).hash
    }

    /// Publishes statements of a member about made-up keys whose hashes fulfil a condition.
    ///
    /// Each of them lists `heads` or, in a chain, the one before.
    fileprivate mutating func flood(
        by device: Int, count: Int, after heads: [StatementHash], isChain: Bool = false, where isWanted: (StatementHash) -> Bool
    ) throws {
        let circle = try #require(machines[0].engine?.membership.circle)
        var heads = heads
        var published = 0
        var number: UInt64 = 0
        while published < count {
            number += 1
            let rekeying = Statement.Rekeying(
                lane: .afterFirstUnlock, generation: 1, key: LaneKeyID(Identifier128(high: 5, low: number)), boxes: [], olderKeys: [])
            let statement = try Statement(
                .rekey(rekeying), circle: circle, author: machines[device].id, heads: heads, keys: machines[device].keys, cipher: cipher)
            guard isWanted(statement.hash) else { continue }
            objects[ObjectName.statement(statement.hash).text] = statement.encoded
            published += 1
            if isChain { heads = [statement.hash] }
        }
    }
}
