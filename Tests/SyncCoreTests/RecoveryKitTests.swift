// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// Recovery kits in the hands of their owner, and of devices that were removed.
@Suite("Recovery kits")
struct RecoveryKitTests {
    private func kit(_ bench: EngineBench, seed: UInt8 = 200) -> EngineBench.Machine {
        EngineBench.Machine(keys: FakeDeviceKeys(seed: [seed]), role: .recoveryKit, cipher: bench.cipher)
    }

    private func admission(
        of keys: FakeDeviceKeys, _ role: DeviceRole, _ bench: EngineBench
    ) -> Statement.Body {
        .admit(
            .init(
                device: DeviceID(of: keys.publicKeys, role: role, cipher: bench.cipher), keys: keys.publicKeys, role: role,
                circleCode: role == .recoveryKit ? [UInt8](repeating: 7, count: 32) : nil))
    }

    private func removal(of device: DeviceID) -> Statement.Body { .remove(.init(device: device, checkpoints: [])) }

    private func heads(_ bench: EngineBench, _ device: Int) throws -> [StatementHash] {
        try #require(bench.machines[device].engine?.roster?.heads)
    }

    /// Lets the devices exchange everything, on several days.
    private func settle(_ bench: inout EngineBench, _ devices: [Int]) throws {
        for _ in 0..<4 {
            try bench.exchange(devices)
            bench.now += 4_000
        }
    }

    /// Device 1 dates the admission of a kit back, and the kit removes the owner that has removed device 1.
    @Test("A removed owner cannot come back with a made-up recovery kit", arguments: [false, true], [false, true])
    func madeUpKit(isRemovalKnown: Bool, hasOtherOwner: Bool) throws {
        var bench = try EngineBench(hasOtherOwner ? [.owner, .owner, .writer, .owner] : [.owner, .owner, .writer])
        let others = bench.machines.indices.filter { $0 != 1 }
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange(Array(bench.machines.indices))
        let heads = try #require(bench.machines[1].engine?.roster?.heads)
        try bench.run(0, .command(.remove(bench.machines[1].id)))
        try bench.exchange(isRemovalKnown ? others : [0])
        let kit = EngineBench.Machine(keys: FakeDeviceKeys(seed: [200]), role: .recoveryKit, cipher: bench.cipher)
        let code = [UInt8](repeating: 7, count: 32)
        let admission = try bench.forgeStatement(
            by: bench.machines[1], .admit(.init(device: kit.id, keys: kit.keys.publicKeys, role: .recoveryKit, circleCode: code)),
            heads: heads)
        try bench.forgeStatement(by: kit, .remove(.init(device: bench.machines[0].id, checkpoints: [])), heads: [admission])
        for _ in 0..<4 {
            try bench.exchange(others)
            bench.now += 4_000
        }
        bench.put(2, 6, date: 9, value: 666)
        try bench.exchange(others)
        for device in others { #expect(bench.members(device) == Set(others)) }
        let thief = bench.add(kit, knowingStatementsOf: 2)
        try bench.exchange([2, thief])
        #expect(bench.value(thief, 6) == nil)
        #expect(bench.value(0, 6) == 666)
    }

    @Test(
        "A removed owner cannot come back as a recovery kit, neither by its own admission nor by that of another removed owner",
        arguments: [false, true], [false, true])
    func ownKeysAsKit(isRemovalKnown: Bool, byAccomplice: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .owner, .writer])
        try bench.exchange([0, 1, 2, 3])
        let old = try heads(bench, 1)
        for thief in [1, 2] { try bench.run(0, .command(.remove(bench.machines[thief].id))) }
        if isRemovalKnown { try bench.exchange([0, 3]) }
        let (one, other) = (bench.machines[1], bench.machines[2])
        let keys = byAccomplice ? other.keys : one.keys
        let admission = try bench.forgeStatement(by: one, admission(of: keys, .recoveryKit, bench), heads: old)
        let asKit = EngineBench.Machine(keys: keys, role: .recoveryKit, cipher: bench.cipher)
        try bench.forgeStatement(by: asKit, removal(of: bench.machines[0].id), heads: [admission])
        try settle(&bench, [0, 3])
        #expect(bench.members(3).isDisjoint(with: [1, 2]))
        #expect(bench.machines[3].engine?.roster?.members[asKit.id] == nil)
        bench.put(3, 6, date: 9, value: 666)
        try bench.exchange([3])
        for machine in [one, other, asKit] {
            let thief = bench.add(machine, knowingStatementsOf: 3)
            try bench.exchange([thief])
            #expect(bench.value(thief, 6) == nil)
        }
    }

    /// The storage shows the kit's removals only after the thief's accomplice is known, and the kit's keys in another role.
    @Test("What a kit removes cannot remove the kit, also not under the kit's keys in another role", arguments: [false, true])
    func keysInOtherRole(isInOtherRole: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .writer, .writer])
        let kit = kit(bench)
        try bench.exchange([0, 1, 2, 3])
        try bench.forgeStatement(of: 0, admission(of: kit.keys, .recoveryKit, bench))
        try bench.exchange([0, 1, 2, 3])
        let old = try heads(bench, 1)
        let holder = bench.add(kit, knowingStatementsOf: 0)
        try bench.exchange([holder])
        var removals: Set<String> = []
        for device in 1...2 { removals.formUnion(try bench.publish(holder, .command(.remove(bench.machines[device].id)))) }
        bench.hidden = [0: removals, 3: removals]
        let accomplice = EngineBench.Machine(keys: FakeDeviceKeys(seed: [210]), role: .owner, cipher: bench.cipher)
        var head = try bench.forgeStatement(by: bench.machines[1], admission(of: accomplice.keys, .owner, bench), heads: old)
        if isInOtherRole {
            head = try bench.forgeStatement(by: bench.machines[1], admission(of: kit.keys, .reader, bench), heads: [head])
        }
        for device in [0, 3] { try bench.run(device) }
        let named = isInOtherRole ? DeviceID(of: kit.keys.publicKeys, role: .reader, cipher: bench.cipher) : kit.id
        try bench.forgeStatement(by: accomplice, removal(of: named), heads: [head])
        bench.hidden = [:]
        try settle(&bench, [3, 0, holder])
        bench.put(3, 6, date: 9, value: 666)
        try bench.exchange([3, 0, holder, 2, 1])
        #expect(bench.members(3).isDisjoint(with: [1, 2]))
        for device in 1...2 { #expect(bench.value(device, 6) == nil) }
    }

    @Test("A recovery kit works although a stolen owner dates a removal of the founder back", arguments: [0, 1, 2])
    func stolenOwner(others: Int) throws {
        var bench = try EngineBench([[.owner, .owner], [.owner, .owner, .reader], [.owner, .owner, .writer]][others])
        let all = Array(bench.machines.indices)
        try bench.exchange(all)
        let old = try heads(bench, 1)
        let kit = kit(bench)
        try bench.forgeStatement(of: 0, admission(of: kit.keys, .recoveryKit, bench))
        try bench.exchange(all)
        try bench.forgeStatement(of: 1, removal(of: bench.machines[0].id), heads: old)
        let rest = all.filter { $0 != 1 }
        try bench.exchange(rest)
        let holder = bench.add(kit, knowingStatementsOf: 0)
        try bench.exchange([holder] + rest)
        #expect(bench.members(holder).contains(holder))
        try bench.run(holder, .command(.remove(bench.machines[1].id)))
        let next = try bench.admit(by: holder)
        try bench.exchange([holder, next])
        #expect(bench.members(next).isSuperset(of: [holder, next]) && !bench.members(next).contains(1))
    }

    /// The person has lost the paper, and has made another kit.
    @Test("A kit that was replaced removes nothing, and reads nothing that is written afterwards", arguments: [false, true])
    func replacedKit(removesAll: Bool) throws {
        var bench = try EngineBench([.owner, .writer, .writer])
        let kit = kit(bench)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        try bench.forgeStatement(of: 0, admission(of: kit.keys, .recoveryKit, bench))
        try bench.exchange([0, 1, 2])
        let old = try heads(bench, 0)
        try bench.run(0, .command(.remove(kit.id)))
        // Each device has seen that, and has stated something since.
        for device in [1, 2] {
            try bench.run(device)
            try bench.forgeStatement(of: device, .witness)
        }
        try settle(&bench, [0, 1, 2])
        let thief = bench.add(kit, knowingStatementsOf: 0)
        for device in removesAll ? [0, 1, 2] : [0, 1] {
            try bench.forgeStatement(by: kit, removal(of: bench.machines[device].id), heads: old)
        }
        try settle(&bench, [0, 1, 2])
        if !removesAll {
            for device in 0...2 { #expect(bench.members(device) == [0, 1, 2]) }
        }
        for device in 0...2 where bench.members(device).contains(device) {
            bench.put(device, 6 + device, date: 9, value: 666)
        }
        try settle(&bench, [0, 1, 2])
        try bench.exchange([thief])
        for device in 0...2 { #expect(bench.value(thief, 6 + device) == nil) }
    }
}
