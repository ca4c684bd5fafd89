// SPDX-License-Identifier: Apache-2.0
import Keybag
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// What a device writes can be read, however much it has to say.
@Suite("The sizes of objects")
struct SizeTests {
    private func log(_ number: Int) -> LogID { LogID(Identifier128(high: 7, low: UInt64(number))) }

    private func hash(_ number: Int) -> ObjectHash {
        ObjectHash(prefix: Identifier128(high: 1, low: UInt64(number)), suffix: Identifier128(high: 2, low: UInt64(number)))
    }

    private func reference(_ number: Int) -> VersionReference {
        VersionReference(
            id: SyncVersionID(Identifier128(high: 3, low: UInt64(number))),
            origin: Origin(log: log(number), number: 1, hash: hash(number).prefix))
    }

    @Test("The largest batch can be read with the padding of the product")
    func largestBatch() throws {
        let cipher = CircleCryptography()
        let content = SyncContent(
            itemClass: .genericPassword, accessibility: .always, attributes: [UInt8](repeating: 1, count: 1_000),
            secret: [UInt8](repeating: 2, count: SyncContent.largestByteCount - 1_000))
        let version = VersionRecord(
            id: SyncVersionID(Identifier128(high: 0, low: 1)), replaced: (0..<VersionRecord.largestReplacedCount).map(reference),
            content: content)
        let marks = (0..<BatchNotes.largestMarkCount).map { number in
            LogMark(
                log: log(number), device: DeviceID(Identifier128(high: 0, low: 1)), number: 1, previous: .none, hash: hash(number),
                signature: [UInt8](repeating: 0, count: LogMark.signatureByteCount))
        }
        let notes = BatchNotes(
            seconds: 0, marks: marks, heads: (0..<BatchNotes.largestHeadCount).map(hash),
            deviceName: [UInt8](repeating: 65, count: BatchNotes.largestNameByteCount))
        let batch = BatchContent(notes: notes, versions: [version])
        #expect(batch.encoded.count <= BatchContent.largestByteCount)

        let circle = CircleID(Identifier128(high: 0, low: 1))
        let key = try cipher.makeLaneKey()
        let header = BatchFrame.Header(
            circle: circle, log: log(1), device: DeviceID(Identifier128(high: 0, low: 1)), lane: .afterFirstUnlock, number: 1,
            previous: .none, laneKey: try cipher.laneKeyID(of: key, circle: circle, lane: .afterFirstUnlock))
        for plaintext in [batch.encoded, [UInt8](repeating: 0, count: BatchContent.largestByteCount)] {
            let sealed = try cipher.seal(plaintext, header: header.encoded, under: key)
            let signature = [UInt8](repeating: 0, count: LogMark.signatureByteCount)
            let frame = try BatchFrame(BatchFrame(header: header, sealed: sealed, signature: signature).encoded)
            #expect(try cipher.open(frame.sealed, header: header.encoded, under: key) == plaintext)
        }
        #expect(try BatchContent(batch.encoded) == batch)
    }

    @Test("A version that replaces 40,000 others is sent in parts, and the log goes on")
    func manyReplacedVersions() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 1, value: 1)
        try bench.exchange([0, 1])
        let ledger = bench.machines[0].ledger
        let replaced = (0..<40_000).map(reference)
        try ledger.insert(
            PendingVersion(
                id: SyncVersionID(Identifier128(high: 9, low: 9)), name: SimulatedContent.itemName(of: 2), lane: .afterFirstUnlock,
                isDeletion: true, replaced: replaced))
        try bench.run(0)
        bench.put(0, 1, date: 2, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 2)
        // The set is too large to be printed.
        let isAllAwaited = bench.machines[1].ledger.state.awaited == Set(replaced)
        #expect(isAllAwaited)
        #expect(!bench.machines[1].alarms.contains(.invalidBatch(bench.machines[0].id)))
    }

    @Test("A version that replaces more than one version can is never read after those that replace the rest", arguments: [false, true])
    func partsOfAVersion(isDeletion: Bool) throws {
        var limits = SyncLimits()
        limits.replacedVersions = 2
        limits.versionsInBatch = 1
        var bench = try EngineBench(Array(repeating: .owner, count: 7), limits: limits)
        let all = Array(bench.machines.indices)
        for device in all { bench.put(device, 1, date: Double(10 + device), value: UInt64(device) + 1, .whenUnlocked) }
        try bench.exchange(all)
        #expect(bench.live(0).count == 7)
        if isDeletion {
            bench.delete(0, 1)
        } else {
            let kept = try #require(bench.live(0).min())
            try bench.run(0, .command(.keep(SimulatedContent.itemName(of: 1), kept)))
        }
        let published = try bench.publish(0).filter { $0.hasPrefix("b/") }.sorted()
        // One batch after the other arrives.
        bench.hidden[1] = Set(published)
        for name in published {
            bench.hidden[1]?.remove(name)
            try bench.run(1)
            if !isDeletion { #expect(bench.value(1, 1) != nil) }
        }
        try bench.exchange(all)
        for device in all {
            #expect(bench.live(device).count == (isDeletion ? 0 : 1))
            #expect(bench.copyCount(device) == 0)
        }
    }

    @Test("A checkpoint with 9,000 marks can be read")
    func manyMarks() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 1, value: 1)
        try bench.exchange([0, 1])
        let ledger = bench.machines[0].ledger
        for number in 0..<9_000 {
            let mark = LogMark(
                log: log(number), device: bench.machines[1].id, number: 1, previous: .none, hash: hash(number),
                signature: [UInt8](repeating: 0, count: LogMark.signatureByteCount))
            ledger.insert(mark, isToReport: true)
            ledger.insert(ReadBatch(log: mark.log, device: mark.device, number: 1, hash: mark.hash, versionCount: 0))
        }
        try bench.replaceBatchesByCheckpoint(of: 0)
        let pieces = bench.objects.filter { $0.key.hasPrefix("p/") }.values
        #expect(!pieces.isEmpty)
        for bytes in pieces { #expect(throws: Never.self) { try CheckpointPiece(bytes) } }
        let new = try bench.admit(by: 0)
        try bench.exchange([0, new])
        #expect(bench.value(new, 1) == 1)
    }

    @Test("A key is boxed for more devices, and wraps more keys, than one statement can have")
    func manyBoxes() throws {
        var limits = SyncLimits()
        limits.keysInStatement = 2
        var bench = try EngineBench(Array(repeating: .owner, count: 6), limits: limits)
        for device in [5, 4, 3] {
            bench.put(0, device, date: 1, value: UInt64(device))
            try bench.exchange([0, 1, 2])
            try bench.run(0, .command(.remove(bench.machines[device].id)))
        }
        bench.put(0, 1, date: 1, value: 1)
        try bench.exchange([0, 1, 2])
        for device in 1...2 { #expect(bench.value(device, 1) == 1) }
        for bytes in bench.objects.filter({ $0.key.hasPrefix("m/") }).values {
            guard case .rekey(let rekeying) = try Statement(bytes, cipher: bench.cipher).body else { continue }
            #expect(rekeying.boxes.count <= 2)
            #expect(rekeying.olderKeys.count <= 2)
        }
        let new = try bench.admit(by: 1)
        try bench.exchange([1, new])
        for name in [1, 3, 4, 5] { #expect(bench.value(new, name) == UInt64(name)) }
    }

    @Test("Marks that do not fit into one batch are reported in the next one")
    func manyMarksToReport() throws {
        var limits = SyncLimits()
        limits.marksInBatch = 2
        var bench = try EngineBench(Array(repeating: .owner, count: 7), limits: limits)
        for device in 1...5 {
            bench.put(device, device, date: 1, value: UInt64(device))
            try bench.run(device)
        }
        try bench.run(0)
        let read = bench.batches
        // Only device 0 has read what the devices have written that it removes now.
        bench.hidden[6] = Set(bench.objects.keys.filter { $0.hasPrefix("b/") })
        for device in 1...5 { try bench.run(0, .command(.remove(bench.machines[device].id))) }
        bench.hidden[6] = bench.hidden[6]?.filter { bench.objects[$0] == nil }
        try bench.exchange([0, 6])
        #expect(read.count >= 5)
        for device in 1...5 { #expect(bench.value(6, device) == UInt64(device)) }
    }

    @Test("Of very many changes, those that are sealed after a removal have a key that the removed device does not get")
    func removalWhileSealing() throws {
        var limits = SyncLimits()
        (limits.versionsInBatch, limits.batchesInStep) = (1, 1)
        var bench = try EngineBench([.owner, .owner, .reader], limits: limits)
        try bench.exchange([0, 1, 2])
        for name in 1...5 { bench.put(0, name, date: 1, value: UInt64(name)) }
        var waiting = try bench.step(0, .wake)
        var earlier: (key: LaneKeyID, sealed: Set<String>)?
        while !waiting.isEmpty {
            let effect = waiting.removeFirst()
            waiting += try bench.perform(effect, of: 0)
            if case .create(let name, let bytes) = effect, name.hasPrefix("b/"), earlier == nil {
                let sealed = bench.objects.keys + bench.machines[0].ledger.outgoingNames()
                earlier = (try BatchFrame(bytes).header.laneKey, Set(sealed))
                try bench.run(1, .command(.remove(bench.machines[2].id)))
                try bench.run(1)
            }
        }
        let (key, sealed) = try #require(earlier)
        let later = try bench.objects.filter { $0.key.hasPrefix("b/") && !sealed.contains($0.key) }.map { try BatchFrame($0.value).header }
            .filter { $0.device == bench.machines[0].id }
        #expect(later.count >= 2)
        #expect(later.allSatisfy { $0.laneKey != key })
    }

    @Test("Changes that cannot be sent do not hold up later ones, however many there are")
    func unsendableChanges() throws {
        var limits = SyncLimits()
        limits.versionsInBatch = 2
        var bench = try EngineBench(limits: limits)
        try bench.exchange([0, 1])
        for name in 1...5 { bench.put(0, name, date: 1, value: UInt64(name)) }
        try bench.step(0, .itemsChanged)
        for name in 1...5 { bench.damage(0, name) }
        for name in 6...10 { bench.put(0, name, date: 1, value: UInt64(name)) }
        try bench.exchange([0, 1])
        for name in 6...10 { #expect(bench.value(1, name) == UInt64(name)) }
    }

    @Test("A circle whose only writer has a change that cannot be sent writes checkpoints")
    func checkpointWithAnUnsendableChange() throws {
        var bench = try EngineBench([.owner, .reader])
        bench.put(0, 1, date: 1, value: 1)
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 1, value: 2)
        try bench.step(0, .itemsChanged)
        bench.damage(0, 2)
        try bench.replaceBatchesByCheckpoint(of: 0)
        #expect(bench.objects.keys.contains { $0.hasPrefix("c/") })
        let new = try bench.admit(by: 0)
        try bench.exchange([0, new])
        #expect(bench.value(new, 1) == 1)
        #expect(bench.value(new, 2) == nil)
    }
}
