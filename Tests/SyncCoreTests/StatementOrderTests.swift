// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// Statements are read before anything that they decide, and a change of role decides the same for all devices.
@Suite("Statements before what they decide")
struct StatementOrderTests {
    @Test("A device seals nothing for a device whose removal the storage shows")
    func sealing() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        bench.put(1, 2, date: 6, value: 2)
        try bench.run(1)
        try bench.run(2)
        #expect(bench.value(2, 2) == nil)
    }

    @Test("A device boxes no key for a device whose removal the storage shows")
    func boxing() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let keys = FakeDeviceKeys(seed: [77]).publicKeys
        let subject = DeviceID(of: keys, role: .writer, cipher: bench.cipher)
        try bench.forgeStatement(of: 2, .admit(.init(device: subject, keys: keys, role: .writer, circleCode: nil)))
        try bench.run(1)
        try bench.run(0)
        try bench.run(0, .command(.remove(subject)))
        let before = Set(bench.objects.keys)
        try bench.run(1)
        for name in Set(bench.objects.keys).subtracting(before) where name.hasPrefix("m/") {
            let statement = try Statement(try #require(bench.objects[name]), cipher: bench.cipher)
            guard case .rekey(let rekeying) = statement.body else { continue }
            #expect(!rekeying.boxes.contains { $0.device == subject })
        }
    }

    @Test("After a program's change too, no batch is read of a device whose removal the storage shows", arguments: [false, true])
    func reading(isWake: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        let content = SimulatedContent(name: 9, accessibility: .afterFirstUnlock, date: 6, value: 9).content
        try bench.forgeBatch(of: 2, [VersionRecord(id: SyncVersionID(Identifier128(high: 7, low: 7)), replaced: [], content: content)])
        bench.put(1, 3, date: 6, value: 3)
        try bench.run(1, isWake ? .wake : .itemsChanged)
        #expect(bench.value(1, 9) == nil)
    }

    @Test("A device that two owners admit in different roles at the same time has one of them")
    func rolesAtTheSameTime() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        try bench.exchange([0, 1, 2])
        let new = try bench.admit(by: 0)
        let keys = bench.machines[new].keys.publicKeys
        try bench.step(1, .command(.admit(keys, .reader)))
        bench.put(new, 9, date: 7, value: 9)
        try bench.exchange([new, 2, 1, 0])
        for device in 0...2 { #expect(bench.value(device, 9) == 9) }
        #expect(throws: KeychainFailure.self) { try bench.run(2, .command(.admit(keys, .writer))) }
    }
}
