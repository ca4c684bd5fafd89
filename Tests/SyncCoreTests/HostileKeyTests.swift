// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// Lane keys, checkpoints, and statements that keep others from what they may read.
@Suite("Hostile keys and checkpoints")
struct HostileKeyTests {
    @Test("The removal of a reader does not make its checkpoints usable")
    func checkpointOfReader() throws {
        var bench = try EngineBench([.owner, .owner, .reader])
        for name in 1...3 { bench.put(0, name, date: 5, value: UInt64(name), .whenUnlocked) }
        try bench.exchange([0, 1, 2])
        try bench.forgeEmptyCheckpoint(of: 2)
        try bench.exchange([0, 1])
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        try bench.exchange([0, 1])
        for device in 0...1 { #expect((1...3).allSatisfy { bench.value(device, $0) == UInt64($0) }) }
    }

    /// The statements list none with the true key, so some of them come before it.
    @Test("A statement that gives a key's identifier to the other lane does not hide the key")
    func identifierInOtherLane() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        try bench.run(2)
        let heads = try #require(bench.machines[2].engine?.roster?.heads)
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 1])
        let key = try bench.newestKey(.whenUnlocked, of: 0).id
        for number in 0..<16 {
            let older = LaneKeyID(Identifier128(high: 7, low: UInt64(number)))
            let rekeying = Statement.Rekeying(
                lane: .afterFirstUnlock, generation: 1, key: key, boxes: [],
                olderKeys: [.init(key: older, bytes: [UInt8](repeating: 0, count: 40))])
            try bench.forgeStatement(of: 2, .rekey(rekeying), heads: heads)
        }
        try bench.exchange([0, 1])
        for device in 0...1 { bench.start(device) }
        let new = try bench.admit(by: 0)
        try bench.exchange([0, 1, new])
        #expect(bench.value(new, 1) == 1)
    }

    /// The key is newer than the true one, or as if two devices had made one at the same time.
    ///
    /// Then a device that has both may take either for the newest.
    @Test("A member for which something else than the key is boxed gets the key from another one", arguments: [0, 1], 0..<6)
    func falseBox(generationsLater: UInt64, otherKeys: Int) throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        for _ in 0..<otherKeys { _ = try bench.cipher.makeLaneKey() }
        let generation = try #require(bench.machines[2].engine?.roster?.laneKeys.last { $0.lane == .afterFirstUnlock }).generation
        let earlier = Set(bench.objects.keys)
        let new = try bench.admit(by: 0)
        let made = bench.objects.filter { !earlier.contains($0.key) }
        let admission = try #require(made.values.lazy.compactMap { try? Statement($0, cipher: bench.cipher) }.first { $0.isAdmission })
        try bench.run(2)
        try bench.forgeKey(
            of: 2, generation: generation + generationsLater, for: [0, 1, 2, new], withFalseBoxesFor: [1], heads: [admission.hash])
        // Device 1 gives the true key to the new device, after it has seen the false one.
        bench.hidden[1] = Set(made.keys).subtracting([ObjectName.statement(admission.hash).text])
        bench.put(1, 2, date: 5, value: 7)
        try bench.run(1)
        bench.hidden[1] = []
        bench.put(0, 1, date: 6, value: 2)
        try bench.run(0)
        for _ in 0..<3 { try bench.exchange([1, 0]) }
        #expect(bench.value(1, 1) == 2)
    }

    /// Owner 0 answers each key: it gives the key to a member, or shows that it lacks it.
    @Test("A writer that makes keys one by one does not use up the share of the owner that removes it", arguments: [false, true])
    func shareOfOwner(hasFalseBoxes: Bool) throws {
        var limits = SyncLimits()
        limits.statementsOfDevice = 40
        var bench = try EngineBench([.owner, .owner, .writer], limits: limits)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let heads = try #require(bench.machines[2].engine?.roster?.heads)
        for _ in 0..<36 {
            try bench.forgeKey(of: 2, for: hasFalseBoxes ? [0, 1, 2] : [0, 2], withFalseBoxesFor: hasFalseBoxes ? [0] : [], heads: heads)
            try bench.run(0)
        }
        try expectRemoval(of: 2, in: &bench)
    }

    /// Each key becomes one that a device outside of the circle has, so that owner 0 makes another.
    @Test("A writer that gives every key away does not use up the share of the owner that removes it")
    func keysGivenAway() throws {
        var limits = SyncLimits()
        limits.statementsOfDevice = 64
        var bench = try EngineBench([.owner, .owner, .writer], limits: limits)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let stranger = DeviceID(Identifier128(high: 6, low: 6))
        for round in 0..<60 {
            let key = try #require(bench.machines[2].engine?.roster?.laneKeys.last { $0.lane == .afterFirstUnlock })
            let box = Statement.Rekeying.Box(device: stranger, bytes: [UInt8](repeating: 0, count: LaneKeyBox.byteCount))
            try bench.forgeStatement(
                of: 2,
                .rekey(.init(lane: .afterFirstUnlock, generation: key.generation, key: key.key, boxes: [box], olderKeys: [])))
            try bench.run(0)
            bench.put(0, 1, date: 6 + Double(round), value: 2 + UInt64(round))
            try bench.exchange([0, 1, 2])
        }
        try expectRemoval(of: 2, in: &bench)
    }

    /// An earlier, unrelated removal makes every key one that an author has stated without knowing of it.
    @Test("A writer that dates statements about keys back does not use up the share of the owner that removes it")
    func keysDatedBack() throws {
        var limits = SyncLimits()
        limits.statementsOfDevice = 64
        var bench = try EngineBench([.owner, .owner, .writer, .reader], limits: limits)
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2, 3])
        let heads = try #require(bench.machines[2].engine?.roster?.heads)
        try bench.run(0, .command(.remove(bench.machines[3].id)))
        try bench.exchange([0, 1, 2])
        for round in 0..<60 {
            let key = try bench.newestKey(.afterFirstUnlock, of: 2).id
            try bench.forgeStatement(
                of: 2, .rekey(.init(lane: .afterFirstUnlock, generation: 1, key: key, boxes: [], olderKeys: [])), heads: heads)
            bench.put(0, 1, date: 6 + Double(round), value: 2 + UInt64(round))
            for device in [0, 0, 1, 2] { try bench.run(device) }
        }
        try expectRemoval(of: 2, in: &bench)
        bench.put(1, 3, date: 2_000, value: 444)
        try bench.exchange([1, 2])
        #expect(bench.value(2, 3) == nil)
    }

    /// Lets owner 0 remove a device, and checks that owner 1 learns of it and of what is written afterwards.
    private func expectRemoval(of device: Int, in bench: inout EngineBench) throws {
        try bench.run(0, .command(.remove(bench.machines[device].id)))
        bench.put(0, 2, date: 1_000, value: 777)
        for _ in 0..<3 {
            try bench.exchange([0, 1])
            bench.now += 5_000
        }
        #expect(bench.members(1) == [0, 1])
        #expect(bench.value(1, 2) == 777)
    }

    /// The owner that admits it cannot use the lane of the key at that time.
    @Test("A device with a key to which nothing can be sealed is not admitted, and stops no other", arguments: [false, true])
    func unusablePublicKey(isForged: Bool) throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        try bench.exchange([0, 1, 2])
        let keys = FakeDeviceKeys(seed: [77]).publicKeys
        let unusable = try #require(
            DevicePublicKeys(
                signing: keys.signing, whenUnlockedBox: [UInt8](repeating: 0, count: 32),
                afterFirstUnlockBox: keys.box(for: .afterFirstUnlock)))
        if isForged {
            let device = DeviceID(of: unusable, role: .reader, cipher: bench.cipher)
            try bench.forgeStatement(of: 2, .admit(.init(device: device, keys: unusable, role: .reader, circleCode: nil)))
        } else {
            bench.lock(2, [.whenUnlocked])
            #expect(throws: KeychainFailure.self) { try bench.run(2, .command(.admit(unusable, .reader))) }
        }
        bench.put(0, 1, date: 6, value: 2, .whenUnlocked)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 2)
        #expect(bench.members(1) == [0, 1, 2])
    }

    /// It sees the identifier of the key in the storage, and dates its statement back to the time before its removal.
    @Test("A removed device cannot make members give up a key that it does not have")
    func statementOfRemovedDevice() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let heads = try #require(bench.machines[2].engine?.roster?.heads)
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        try bench.exchange([0, 1])
        let key = try bench.newestKey(.afterFirstUnlock, of: 0).id
        let box = Statement.Rekeying.Box(device: bench.machines[2].id, bytes: [UInt8](repeating: 0, count: 80))
        let rekeying = Statement.Rekeying(lane: .afterFirstUnlock, generation: 1, key: key, boxes: [box], olderKeys: [])
        try bench.forgeStatement(of: 2, .rekey(rekeying), heads: heads)
        bench.put(0, 1, date: 6, value: 2)
        try bench.exchange([0, 1])
        for device in 0...1 {
            #expect(try bench.newestKey(.afterFirstUnlock, of: device).id == key)
            #expect(bench.value(device, 1) == 2)
        }
    }

    /// A search that calls itself for each key would overflow the stack.
    @Test("A long chain of keys, each wrapped under the next, is searched once")
    func longChain() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let heads = try #require(bench.machines[2].engine?.roster?.heads)
        for number in 1...3_000 {
            let older = Statement.Rekeying.WrappedKey(
                key: LaneKeyID(Identifier128(high: 7, low: UInt64(number - 1))), bytes: [UInt8](repeating: 0, count: 40))
            let key = LaneKeyID(Identifier128(high: 7, low: UInt64(number)))
            try bench.forgeStatement(
                of: 2, .rekey(.init(lane: .afterFirstUnlock, generation: 1, key: key, boxes: [], olderKeys: [older])), heads: heads)
        }
        try bench.run(1)
        bench.put(0, 1, date: 6, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 2)
    }

    @Test("A statement that only a reader names is not waited for")
    func missingStatementOfReader() throws {
        var bench = try EngineBench([.owner, .owner, .reader])
        try bench.exchange([0, 1, 2])
        try bench.forgeStatement(of: 2, .witness, heads: [bench.cipher.hash([9])])
        try bench.exchange([0, 1])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
    }

    /// A reader has the lane key.
    ///
    /// No device asks for the piece, but one that is handed over anyway is refused.
    @Test("A lost content is not restored from a checkpoint of a reader")
    func restoringFromReader() throws {
        var bench = try EngineBench([.owner, .owner, .reader])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        let reference = try #require(bench.live(1).first)
        for name in bench.objects.keys where name.hasPrefix("b/") { bench.objects[name] = nil }
        let forged = SimulatedContent(name: 1, accessibility: .whenUnlocked, date: 5, value: 666).content
        let piece = try bench.forgeCheckpoint(of: 2, covering: [], adding: .versions([.init(reference: reference, content: forged)]))
        bench.loseRow(1, 1)
        bench.now += 86_400
        for _ in 0..<2 { try bench.run(1) }
        #expect(bench.machines[1].engine?.lostContents == [reference])
        try bench.step(1, .read(piece, bench.objects[piece]))
        #expect(bench.value(1, 1) == nil)
    }

    @Test("A mark in a checkpoint that its device has not signed is left out")
    func markInCheckpoint() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        let hash = bench.cipher.hash([6])
        let log = LogID(Identifier128(high: 666, low: 666))
        let mark = LogMark(
            log: log, device: bench.machines[0].id, number: 1, previous: .none, hash: hash,
            signature: [UInt8](repeating: 1, count: LogMark.signatureByteCount))
        let covered = PieceContent.CoveredBatch(log: log, device: bench.machines[0].id, number: 1, hash: hash)
        try bench.forgeCheckpoint(
            of: 2, covering: [covered], adding: .versions([]), coversRead: false, marks: [mark])
        for _ in 0..<2 { try bench.run(1) }
        #expect(bench.machines[1].ledger.isRead(mark.origin))
        #expect(!bench.marks(1).contains { $0.origin == mark.origin })
    }

    /// A reader has the lane key, so it can seal another content for the name of the batch, but it cannot sign it.
    @Test("A lost content is restored only from a batch that its author signed")
    func restoringUnsignedContent() throws {
        var bench = try EngineBench([.owner, .owner, .reader])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let name = try #require(bench.objects.keys.first { $0.hasPrefix("b/") })
        let frame = try BatchFrame(try #require(bench.objects[name]))
        let (_, key) = try bench.newestKey(.afterFirstUnlock, of: 2)
        var content = try BatchContent(bench.cipher.open(frame.sealed, header: frame.header.encoded, under: key))
        let forged = SimulatedContent(name: 1, accessibility: .afterFirstUnlock, date: 5, value: 666)
        content.versions = content.versions.map { VersionRecord(id: $0.id, replaced: $0.replaced, content: forged.content) }
        let sealed = try bench.cipher.seal(content.encoded, header: frame.header.encoded, under: key)
        let original = bench.objects[name]
        bench.objects[name] = BatchFrame(header: frame.header, sealed: sealed, signature: frame.signature).encoded
        bench.damage(1, 1)
        bench.now += 86_400
        for _ in 0..<2 { try bench.run(1) }
        #expect(bench.value(1, 1) != 666)
        bench.objects[name] = original
        for _ in 0..<2 { try bench.run(1) }
        #expect(bench.machines[1].ledger.state.rows.values.contains { $0.content.value == 1 && !$0.isDamaged })
    }

    @Test("A batch with an item of the other lane is left out")
    func itemOfOtherLane() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let content = SimulatedContent(name: 2, accessibility: .whenUnlocked, date: 6, value: 666).content
        try bench.forgeBatch(of: 2, [VersionRecord(id: SyncVersionID(Identifier128(high: 6, low: 6)), replaced: [], content: content)])
        try bench.exchange([0, 1])
        for device in 0...1 {
            #expect(bench.value(device, 2) == nil)
            #expect(bench.machines[device].alarms.contains(.invalidBatch(bench.machines[2].id)))
        }
    }

    @Test("A device that does not see its checkpoint yet writes no second one")
    func invisibleCheckpoint() throws {
        var limits = SyncLimits()
        limits.uncoveredBatches = 2
        var bench = try EngineBench([.owner, .owner], limits: limits)
        for round in 1...6 {
            bench.put(0, 1, date: Double(round), value: UInt64(round))
            try bench.run(0)
            bench.hidden[0] = Set(bench.objects.keys.filter { $0.hasPrefix("c/") })
        }
        #expect(bench.objects.keys.count { $0.hasPrefix("c/") } == 1)
    }
}

extension Statement {
    fileprivate var isAdmission: Bool { if case .admit = body { true } else { false } }
}
