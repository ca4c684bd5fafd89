// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// Schedules that earlier designs did not survive, each with the number that the review of the design gave it.
///
/// `MergeTests` and `RosterTests` have C2, and C1, C4, and C5 without engines. `DamagedRecordTests` has M11.
@Suite("Schedules that broke earlier designs")
struct ReviewedScheduleTests {
    @Test("A change that a restored machine publishes a second time ends in one state, in whichever order devices read (C1)")
    func publishedTwice() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.step(0, .itemsChanged)
        let snapshot = bench.machines[0].ledger.state
        let first = try bench.publish(0)
        // The folder is restored with the machine.
        bench.hidden[0] = first
        bench.restore(0, to: snapshot)
        let second = try bench.publish(0)
        #expect(bench.batches.count == 2)
        // One device deletes what it read in the first batch. The other one reads the second batch, the deletion, and then the first batch.
        bench.hidden[1] = second
        try bench.run(1)
        bench.delete(1, 1)
        try bench.run(1)
        bench.hidden = [2: first]
        try bench.run(2)
        bench.hidden = [:]
        try bench.exchange([0, 1, 2])
        for device in 0..<3 {
            #expect(bench.value(device, 1) == 1, "the deletion concerns the first batch only")
            #expect(bench.live(device) == bench.live(0))
        }
    }

    @Test("A restored machine that finds its unsent change in the storage does not publish it again, so it stays deleted (C1)")
    func foundInOwnLog() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        let snapshot = bench.machines[0].ledger.state
        try bench.exchange([0, 1])
        bench.delete(1, 1)
        try bench.exchange([1])
        bench.restore(0, to: snapshot)
        let before = bench.batches
        try bench.exchange([0, 1])
        #expect(bench.batches == before)
        #expect(bench.value(0, 1) == nil)
        #expect(bench.value(1, 1) == nil)
    }

    @Test("Both branches of the log of a restored machine are read, and the machine begins a new log once it sees both (C1)")
    func fork() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        let snapshot = bench.machines[0].ledger.state
        bench.put(0, 2, date: 5, value: 2)
        let lost = try bench.publish(0)
        bench.hidden[0] = lost
        bench.restore(0, to: snapshot)
        bench.put(0, 3, date: 5, value: 3)
        try bench.run(0)
        let branches = bench.batches
        #expect(branches.count { $0.number == 2 } == 2)
        bench.hidden = [:]
        bench.put(0, 4, date: 5, value: 4)
        try bench.exchange([0, 1])
        let new = try #require(bench.batches.first { !branches.contains($0) })
        #expect(branches.allSatisfy { $0.log != new.log })
        #expect((1...4).allSatisfy { bench.value(1, $0) == UInt64($0) })
        #expect(bench.live(0) == bench.live(1))
    }

    @Test(
        "Batches that appear while a checkpoint is absorbed piece by piece neither lose an item nor bring one back (C3)",
        arguments: [false, true])
    func betweenPieces(restarts: Bool) throws {
        var limits = SyncLimits()
        limits.pieceByteCount = 1
        var bench = try EngineBench([.owner, .owner, .owner], limits: limits)
        // Every device knows 1, 3, and 5.
        for name in [1, 3, 5] { bench.put(0, name, date: 5, value: UInt64(name)) }
        try bench.exchange([0, 1, 2])
        // Devices 0 and 1 know that 2 was added, and that 5 was deleted.
        bench.put(0, 2, date: 5, value: 2)
        let addition = try bench.publish(0).filter { $0.hasPrefix("b/") }
        let bytes = addition.map { ($0, bench.objects[$0]) }
        try bench.run(1)
        bench.delete(1, 5)
        try bench.exchange([1, 0])
        try bench.replaceBatchesByCheckpoint(of: 1)
        // The third device absorbs the first piece. Then a lost batch that the checkpoint covers is there again, and a new one.
        var waiting = try bench.absorbFirstPiece(2)
        #expect(!waiting.isEmpty)
        for (name, content) in bytes { bench.objects[name] = content }
        bench.put(1, 4, date: 5, value: 4)
        try bench.run(1)
        if restarts {
            bench.start(2)
            waiting = [.list(.statements), .list(.checkpoints), .list(.pieces)]
        }
        let performed = try bench.perform(waiting + [.list(.batches)], of: 2)
        try bench.exchange([2])
        #expect((1...4).allSatisfy { bench.value(2, $0) == UInt64($0) })
        #expect(bench.value(2, 5) == nil)
        #expect(bench.live(2) == bench.live(1))
        if !restarts {
            #expect(!performed.contains { if case .read(let name, _) = $0 { addition.contains(name) } else { false } })
        }
    }

    /// The checkpoint's author was restored from a snapshot without the items, so no other device has them.
    @Test("What came from a checkpoint that is lost before its absorption ends does not stay on one device", arguments: [false, true])
    func lostCheckpoint(restarts: Bool) throws {
        var limits = SyncLimits()
        limits.pieceByteCount = 60
        var bench = try EngineBench([.owner, .owner, .owner], limits: limits)
        let snapshot = bench.machines[0].ledger.state
        for name in 1...2 { bench.put(0, name, date: 5, value: UInt64(name), .whenUnlocked) }
        try bench.exchange([0])
        try bench.replaceBatchesByCheckpoint(of: 0)
        _ = try bench.absorbFirstPiece(1)
        #expect(bench.live(1).count == 1)
        if restarts { bench.start(1) }
        for name in bench.objects.keys where !name.hasPrefix("m/") { bench.objects[name] = nil }
        bench.restore(0, to: snapshot)
        for _ in 0..<3 { try bench.exchange([1, 0, 2]) }
        for device in 0...2 { #expect(bench.live(device).isEmpty) }
    }

    /// Device 1 is restarted while it absorbs, and the storage then withholds the checkpoint.
    @Test("A checkpoint has no version of a batch that it does not cover, whose author may be removed")
    func uncoveredVersion() throws {
        var limits = SyncLimits()
        limits.pieceByteCount = 60
        limits.uncoveredBatches = 2
        var bench = try EngineBench([.owner, .owner, .owner], limits: limits)
        bench.put(2, 1, date: 5, value: 1, .whenUnlocked)
        bench.put(2, 2, date: 5, value: 2)
        try bench.run(2)
        try bench.replaceBatchesByCheckpoint(of: 2)
        _ = try bench.absorbFirstPiece(1)
        #expect(!bench.live(1).isEmpty)
        bench.start(1)
        let withheld = Set(bench.objects.keys.filter { $0.hasPrefix("c/") })
        for device in 0...1 { bench.hidden[device] = withheld }
        for round in 1...2 {
            bench.put(1, 3, date: Double(round), value: UInt64(round) + 10)
            try bench.run(1)
        }
        try bench.run(1)
        #expect(bench.objects.keys.contains { $0.hasPrefix("c/") && !withheld.contains($0) })
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        for name in bench.objects.keys where name.hasPrefix("b/") { bench.objects[name] = nil }
        try bench.exchange([0, 1])
        #expect(bench.value(0, 3) == 12)
        #expect(bench.live(0) == bench.live(1))
    }

    @Test("A stolen founder from which the storage hid its removal does not come back by removing its remover (C4)")
    func stolenFounder() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        try bench.exchange([0, 1, 2])
        let removal = try bench.publish(1, .command(.remove(bench.machines[0].id)))
        bench.hidden = [0: removal, 2: removal]
        try bench.run(0, .command(.remove(bench.machines[1].id)))
        bench.put(0, 1, date: 5, value: 1)
        // The third device learns of the founder's removal last. Otherwise it would testify for it.
        try bench.run(2)
        #expect(bench.members(2) == [0, 2])
        bench.hidden[2] = nil
        try bench.run(2)
        #expect(bench.members(2) == [2])
        try bench.run(0)
        bench.put(2, 2, date: 5, value: 2)
        try bench.exchange([1, 2])
        #expect(bench.members(2) == [2])
        #expect(bench.value(2, 1) == nil)
        #expect(bench.value(2, 2) == 2)
    }

    @Test("A removal stands although the storage hid the admission of its author from the owner who removed the author's sponsor (C5)")
    func hiddenAdmission() throws {
        var bench = try EngineBench([.owner, .owner, .owner, .owner])
        try bench.exchange([0, 1, 2, 3])
        let before = Set(bench.objects.keys)
        let joiner = try bench.admit(by: 0)
        try bench.run(joiner)
        try bench.run(joiner, .command(.remove(bench.machines[2].id)))
        bench.hidden[1] = Set(bench.objects.keys).subtracting(before)
        // One device learns of both before the founder is removed.
        try bench.run(3)
        #expect(bench.members(3) == [0, 1, 3, joiner])
        try bench.run(1, .command(.remove(bench.machines[0].id)))
        bench.hidden = [:]
        try bench.exchange([1, 3, joiner])
        for device in [1, 3, joiner] { #expect(bench.members(device) == [1, 3, joiner]) }
    }

    @Test("A key made after a removal is not wrapped under one whose holders may not know of that removal")
    func wrappedBeforeRemoval() throws {
        var bench = try EngineBench([.owner, .owner, .owner, .owner, .owner])
        try bench.exchange([0, 1, 2, 3, 4])
        // Owner 3 admits a device, which device 2 sees, and removes it, which device 4 sees.
        let first = Set(bench.objects.keys)
        let removed = try bench.admit(by: 3)
        try bench.exchange([3])
        let admission = Set(bench.objects.keys).subtracting(first)
        bench.hidden = [0: admission, 1: admission]
        try bench.exchange([2])
        try bench.run(3, .command(.remove(bench.machines[removed].id)))
        bench.put(3, 1, date: 5, value: 666)
        try bench.exchange([3])
        let key = try bench.newestKey(.afterFirstUnlock, of: 3).id
        try bench.run(4)
        let removal = Set(bench.objects.keys).subtracting(first).subtracting(admission)
        // Owner 0 knows of none of this and removes owner 3.
        bench.hidden = [0: admission.union(removal), 2: removal]
        try bench.run(0, .command(.remove(bench.machines[3].id)))
        // For device 1 neither statement of owner 3 counts. It makes the key readable for the members, while device 2 boxes theirs for another device.
        bench.hidden[1] = try bench.publish(2)
        try bench.run(1)
        // Device 4 testifies for both.
        bench.hidden = [:]
        try bench.exchange([4, removed, 0, 1, 2])
        for device in [0, 1, 2, 4] {
            #expect(bench.members(device) == [0, 1, 2, 4])
            #expect(bench.value(device, 1) == 666)
        }
        #expect(bench.key(key, of: 1) != nil)
        #expect(bench.key(key, of: removed) == nil)
    }

    @Test("A later batch of a log does not bring back what a device deleted that had read only the earlier one (H4)")
    func readSingly() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 5, value: 2)
        bench.hidden[1] = try bench.publish(0)
        bench.delete(1, 1)
        try bench.run(1)
        bench.hidden = [:]
        try bench.exchange([0, 1])
        for device in 0..<2 {
            #expect(bench.value(device, 1) == nil)
            #expect(bench.value(device, 2) == 2)
        }
    }

    @Test("The keys of a locked machine open no piece of a checkpoint with items for the time when it is unlocked (H8)")
    func piecesOfLanes() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        bench.put(0, 2, date: 5, value: 2, .afterFirstUnlock)
        try bench.exchange([0, 1])
        try bench.replaceBatchesByCheckpoint(of: 0)
        #expect(try bench.readableItemsOfCheckpoints(by: 1) == [1, 2])
        bench.lock(1, [.whenUnlocked])
        try bench.step(1, .itemsChanged)
        #expect(try bench.readableItemsOfCheckpoints(by: 1) == [2])
    }

    @Test("A batch of a reader, sealed and signed correctly, changes nothing (H10)")
    func batchOfReader() throws {
        var bench = try EngineBench([.owner, .owner, .reader])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1, 2])
        let addition = SimulatedContent(name: 2, accessibility: .afterFirstUnlock, date: 5, value: 2).content
        try bench.forgeBatch(
            of: 2,
            [
                VersionRecord(id: SyncVersionID(Identifier128(high: 6, low: 6)), replaced: bench.live(0).sorted(), content: nil),
                VersionRecord(id: SyncVersionID(Identifier128(high: 6, low: 7)), replaced: [], content: addition),
            ])
        try bench.exchange([0, 1, 2])
        for device in 0..<3 {
            #expect(bench.value(device, 1) == 1)
            #expect(bench.value(device, 2) == nil)
        }
    }

    @Test("A checkpoint of a reader deletes nothing (H10)")
    func checkpointOfReader() throws {
        var bench = try EngineBench([.owner, .owner, .reader])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        try bench.forgeEmptyCheckpoint(of: 2)
        try bench.exchange([0, 1, 2])
        for device in 0..<3 { #expect(bench.value(device, 1) == 1) }
    }

    @Test("A machine that starts with a reader's identity and an empty store loads the checkpoint, and writes nothing (H10)")
    func restartedReader() throws {
        var bench = try EngineBench([.owner, .reader])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        try bench.replaceBatchesByCheckpoint(of: 0)
        let before = bench.objects
        let machine = bench.addMachine(sharing: 1)
        try bench.exchange([machine])
        #expect(bench.value(machine, 1) == 1)
        #expect(bench.live(machine) == bench.live(0))
        #expect(bench.objects == before)
    }

    /// It would make the visible version depend on the order of arrival.
    @Test("A batch with a date that is not finite is invalid (M7)", arguments: [Double.nan, .infinity, -.infinity])
    func invalidDate(date: Double) throws {
        var bench = try EngineBench()
        bench.put(1, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 5, value: 2)
        bench.put(0, 3, date: date, value: 3)
        try bench.exchange([0, 1])
        #expect(bench.machines[1].alarms.contains(.invalidBatch(bench.machines[0].id)))
        #expect(bench.value(1, 1) == 1)
        // Nothing of the batch counts.
        #expect(bench.value(1, 2) == nil)
        #expect(bench.value(1, 3) == nil)
    }

    /// A step that may not have folded all records shows nothing yet.
    @Test("A row is lost, a program adds another under its name, and a person keeps that one before anything is shown")
    func lostRowAndAnother() throws {
        var limits = SyncLimits()
        limits.foldedRecords = 1
        var bench = try EngineBench(limits: limits)
        bench.put(0, 1, date: 5, value: 2)
        try bench.exchange([0, 1])
        bench.loseRow(0, 1)
        bench.put(0, 1, date: 6, value: 1)
        try bench.step(0, .itemsChanged)
        let live = bench.machines[0].ledger.state.live.values
        let kept = try #require(live.first { $0.date == 6 })
        #expect(live.count == 2)
        try bench.run(0, .command(.keep(kept.name, kept.reference)))
        for _ in 0..<2 { try bench.exchange([0, 1]) }
        for device in 0...1 {
            #expect(bench.value(device, 1) == 1)
            #expect(bench.live(device).count == 1)
            #expect(bench.copyCount(device) == 0)
        }
    }

    /// Owner 0 admits 2, which admits 3, while owner 1 removes 0 and admits 3 too.
    ///
    /// Device 3 removes 2, and seals a change under a key that it makes after that. Then the removal turns out to be void, and 2 to be no member.
    @Test("What a device has sealed before its first admission turned out to be void is read by a device that joined elsewhere")
    func keyOfVoidBranch() throws {
        var bench = try EngineBench([.owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        let atFirst = Set(bench.objects.keys)
        let two = try bench.admit(by: 0)
        try bench.run(two)
        let three = try bench.admit(by: two)
        try bench.run(three)
        try bench.run(three, .command(.remove(bench.machines[two].id)))
        bench.put(three, 2, date: 6, value: 2)
        try bench.run(three)
        let branch = Set(bench.objects.keys).subtracting(atFirst)
        bench.hidden[1] = branch
        try bench.run(1, .command(.remove(bench.machines[0].id)))
        try bench.run(1, .command(.admit(bench.machines[three].keys.publicKeys, .owner)))
        let four = try bench.admit(by: 1)
        bench.hidden[four] = branch
        try bench.exchange([1, four])

        bench.hidden = [:]
        for _ in 0..<3 { try bench.exchange([three, 1, four]) }
        for device in [1, three, four] {
            let members = bench.machines[device].engine?.roster?.members.keys.map(\.self) ?? []
            #expect(Set(members) == Set([1, three, four].map { bench.machines[$0].id }))
            #expect(bench.value(device, 1) == 1 && bench.value(device, 2) == 2)
        }
    }
}
