// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// What a member's altered program can write that the production engine would not.
@Suite("Hostile members")
struct HostileMemberTests {
    @Test("A removal counts although a writer has published more statements than one statement can list")
    func manyHeads() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 1, value: 1)
        try bench.exchange([0, 1, 2])
        let writer = bench.machines[2]
        let roster = try #require(writer.engine?.roster)
        for number in 0..<300 {
            let key = LaneKeyID(Identifier128(high: 5, low: UInt64(number)))
            let statement = try Statement(
                .rekey(.init(lane: .whenUnlocked, generation: 1, key: key, boxes: [], olderKeys: [])), circle: try bench.circle,
                author: writer.id, heads: roster.heads, keys: writer.keys, cipher: bench.cipher)
            bench.objects[ObjectName.statement(statement.hash).text] = statement.encoded
        }
        try bench.exchange([0, 1])
        try bench.run(0, .command(.remove(writer.id)))
        bench.start(0)
        try bench.exchange([0, 1])
        for device in 0...1 { #expect(bench.machines[device].engine?.roster?.members[writer.id] == nil) }
    }

    /// Puts statements of an altered program into the storage, all with the heads that its author counts now.
    private func flood(_ bench: inout EngineBench, by author: EngineBench.Machine, _ bodies: [Statement.Body]) throws {
        let heads = try #require(author.engine?.roster).heads
        for body in bodies {
            let statement = try Statement(
                body, circle: try bench.circle, author: author.id, heads: heads, keys: author.keys, cipher: bench.cipher)
            bench.objects[ObjectName.statement(statement.hash).text] = statement.encoded
        }
    }

    private func rekeyings(_ count: Int) -> [Statement.Body] {
        (0..<count).map { number in
            let key = LaneKeyID(Identifier128(high: 5, low: UInt64(number)))
            return .rekey(.init(lane: .whenUnlocked, generation: 1, key: key, boxes: [], olderKeys: []))
        }
    }

    @Test("No device exhausts the share of another one: neither a writer, nor a reader, nor devices that a writer has admitted")
    func shares() throws {
        var limits = SyncLimits()
        limits.statementsOfDevice = 20
        var bench = try EngineBench([.owner, .owner, .writer, .reader], limits: limits)
        try bench.exchange([0, 1, 2, 3])
        let before = bench.machines[1].ledger.statements().count
        try flood(&bench, by: bench.machines[2], rekeyings(100))
        try flood(&bench, by: bench.machines[3], rekeyings(100))
        let strangers = (100..<110).map { EngineBench.Machine(keys: FakeDeviceKeys(seed: [$0]), role: .owner, cipher: bench.cipher) }
        try flood(
            &bench, by: bench.machines[2],
            strangers.map { .admit(.init(device: $0.id, keys: $0.keys.publicKeys, role: .owner, circleCode: nil)) })
        for var stranger in strangers {
            stranger.engine = bench.machines[2].engine
            try flood(&bench, by: stranger, rekeyings(20))
        }
        try bench.exchange([0, 1])
        // The owners have made lane keys too.
        #expect(bench.machines[1].ledger.statements().count <= before + 30)
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        try bench.exchange([1])
        #expect(bench.members(1) == [0, 1, 3])
    }

    @Test("Marks of batches that do not exist are stored once each, and none that a member reports of itself")
    func manyMarks() throws {
        var bench = try EngineBench([.owner, .owner, .writer, .writer])
        bench.put(0, 1, date: 1, value: 1)
        try bench.exchange([0, 1, 2, 3])
        let circle = try bench.circle
        func mark(_ number: Int, of author: EngineBench.Machine) throws -> LogMark {
            let log = LogID(Identifier128(high: 66, low: UInt64(number)))
            let hash = bench.cipher.hash(log.bytes)
            let message = BatchFrame.signedMessage(circle: circle, log: log, number: 1, previous: .none, hash: hash)
            return LogMark(log: log, device: author.id, number: 1, previous: .none, hash: hash, signature: try author.keys.sign(message))
        }
        let marks = try (0..<200).map { try mark($0, of: bench.machines[3]) } + (200..<400).map { try mark($0, of: bench.machines[2]) }
        try bench.forgeBatch(of: 2, [], marks: marks)
        try bench.run(1)
        let state = bench.machines[1].ledger.state
        #expect(state.permitted == Set(marks.prefix(200).map(\.origin)))
        #expect(marks.suffix(200).allSatisfy { state.marks[$0.log] == nil })
    }

    @Test("A thousand statements in the storage are evaluated a few times, not a thousand times")
    func evaluations() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        try bench.exchange([0, 1, 2])
        try flood(&bench, by: bench.machines[2], rekeyings(1_000))
        bench.start(1)
        try bench.run(1)
        #expect(bench.machines[1].ledger.statements().count > 1_000)
        let evaluations = try #require(bench.machines[1].engine?.takeObservations().count { $0 == .evaluatedStatements })
        #expect((1...8).contains(evaluations))
    }

    /// Each key wraps all older ones, so the ways from one key to another double with each removal.
    @Test("A new device without a box for any key tries each key once")
    func keysWithoutBoxes() throws {
        let count = 24
        var bench = try EngineBench(Array(repeating: .owner, count: count + 1))
        bench.put(0, 1, date: 1, value: 1)
        try bench.run(0)
        for device in 1...count {
            try bench.run(0, .command(.remove(bench.machines[device].id)))
            bench.put(0, 1, date: Double(device), value: UInt64(device) + 10)
            try bench.run(0)
        }
        bench.lock(0, Set(Lane.allCases))
        let new = try bench.admit(by: 0)
        try bench.run(new)
        #expect(bench.value(new, 1) == nil)
        bench.lock(0, [])
        try bench.exchange([0, new])
        #expect(bench.value(new, 1) == UInt64(count) + 10)
    }

    @Test("A batch with the largest number, and a piece that is listed twice, are of no effect")
    func impossibleCheckpoints() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        let log = LogID(Identifier128(high: 666, low: 666))
        let author = bench.machines[2].id
        let last = PieceContent.CoveredBatch(log: log, device: author, number: .max, hash: bench.cipher.hash([1]))
        try bench.forgeCheckpoint(of: 2, covering: [last])
        try bench.forgeCheckpoint(of: 2, covering: [last], repeatsPiece: true)
        let origin = Origin(log: log, number: 2, hash: Identifier128(high: 1, low: 1))
        bench.objects[ObjectName.batch(device: author, origin: origin).text] = [1, 2, 3]
        try bench.run(1)
        bench.put(0, 1, date: 6, value: 2, .whenUnlocked)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 2)
    }

    @Test("An object with the origin of a batch in its name does not hide the batch", arguments: [UInt64.max, 0])
    func falseName(device: UInt64) throws {
        var bench = try EngineBench([.owner, .owner])
        bench.put(0, 1, date: 5, value: 1)
        try bench.run(0)
        let origin = try #require(bench.batches.first)
        bench.objects[ObjectName.batch(device: DeviceID(Identifier128(high: device, low: device)), origin: origin).text] = [1]
        try bench.exchange([0, 1])
        bench.put(0, 2, date: 6, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
        #expect(bench.value(1, 2) == 2)
    }

    @Test("One version that replaces many items of other names waits for a person")
    func massReplacement() throws {
        var bench = try EngineBench([.owner, .owner, .writer])
        for name in 1...150 { bench.put(0, name, date: 1, value: UInt64(name)) }
        try bench.exchange([0, 1, 2])
        let content = SimulatedContent(name: 999, accessibility: .afterFirstUnlock, date: 6, value: 666).content
        let replaced = bench.live(0).sorted()
        try bench.forgeBatch(
            of: 2, [VersionRecord(id: SyncVersionID(Identifier128(high: 6, low: 6)), replaced: replaced, content: content)])
        try bench.run(1)
        #expect(bench.machines[1].alarms.contains { if case .massDeletion = $0 { true } else { false } })
        #expect((1...150).allSatisfy { bench.value(1, $0) != nil })
    }

    @Test(
        "A checkpoint with a piece that cannot be read does not keep a device from absorbing an older one", arguments: ForgedPiece.allCases)
    func brokenCheckpoint(piece: ForgedPiece) throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 2])
        try bench.replaceBatchesByCheckpoint(of: 0)
        bench.now += 60
        let unknown = bench.madeUpBatch(of: 2)
        try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]), forging: piece)
        for _ in 0..<3 { try bench.run(1) }
        #expect(bench.value(1, 1) == 1)
        #expect(bench.machines[1].alarms.contains(.newerFormat(nil)) == (piece == .newer))
    }

    /// The checkpoint covers everything and contains nothing.
    @Test("A checkpoint whose author is removed while it is being absorbed deletes nothing")
    func checkpointOfRemovedAuthor() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        for name in 1...3 { bench.put(0, name, date: 5, value: UInt64(name)) }
        bench.put(0, 4, date: 5, value: 4, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        let unknown = bench.madeUpBatch(of: 0)
        let withheld = try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]))
        let bytes = bench.objects[withheld]
        var waiting = try bench.step(1, .wake)
        while !waiting.isEmpty {
            let effect = waiting.removeFirst()
            if case .read(withheld, _) = effect { continue }
            waiting += try bench.perform(effect, of: 1)
        }
        try bench.run(0, .command(.remove(bench.machines[2].id)))
        bench.objects[withheld] = bytes
        for _ in 0..<2 {
            try bench.exchange([1, 0])
            bench.now += 90_000
        }
        for device in 0...1 { #expect((1...4).allSatisfy { bench.value(device, $0) == UInt64($0) }) }
    }
}

/// What is wrong with the last piece of a forged checkpoint.
enum ForgedPiece: CaseIterable {
    case underUnknownKey, withoutContent, newer
}

extension EngineBench {
    var circle: CircleID { get throws { try #require(machines[0].engine).membership.circle } }

    /// Publishes a checkpoint that covers everything that its author has read, if that is wanted, and more; returns the name of its last piece.
    @discardableResult
    mutating func forgeCheckpoint(
        of device: Int, covering more: [PieceContent.CoveredBatch], adding extra: PieceContent? = nil, forging forged: ForgedPiece? = nil,
        repeatsPiece: Bool = false, coversRead: Bool = true, marks: [LogMark] = []
    ) throws -> String {
        let (id, key) = try newestKey(.whenUnlocked, of: device)
        let (circle, author) = (try circle, machines[device].id)
        let read = coversRead ? machines[device].ledger.state.batches.values.flatMap { $0 } : []
        let covered = read.map { PieceContent.CoveredBatch(log: $0.log, device: $0.device, number: $0.number, hash: $0.hash) }
        var pieces: [CheckpointContent.Piece] = []
        var name = ""
        for content in [PieceContent.coverage(covered + more, marks)] + (extra.map { [$0] } ?? []) {
            let isForged = content.kind != .coverage
            let pieceKey = isForged && forged == .underUnknownKey ? LaneKeyID(Identifier128(high: 6, low: 6)) : id
            let header = CheckpointPiece.header(circle: circle, lane: .whenUnlocked, kind: content.kind, laneKey: pieceKey)
            let plaintext = isForged && forged == .withoutContent ? [] : isForged && forged == .newer ? [2] : content.encoded
            let sealed = try cipher.seal(plaintext, header: header, under: key)
            let piece = CheckpointPiece(
                circle: circle, lane: .whenUnlocked, kind: content.kind, laneKey: pieceKey, sealed: sealed
            ).encoded
            name = ObjectName.piece(cipher.hash(piece)).text
            objects[name] = piece
            pieces.append(.init(kind: content.kind, hash: cipher.hash(piece)))
            if repeatsPiece { pieces.append(.init(kind: .versions, hash: cipher.hash(piece))) }
        }
        let sealed = try cipher.seal(
            CheckpointContent(seconds: now, pieces: pieces).encoded,
            header: CheckpointManifest.header(circle: circle, author: author, laneKey: id), under: key)
        let unsigned = CheckpointManifest(circle: circle, author: author, laneKey: id, sealed: sealed, signature: []).unsignedBytes
        let hash = cipher.hash(unsigned)
        objects[ObjectName.checkpoint(hash).text] =
            unsigned + (try machines[device].keys.sign(CheckpointManifest.signedMessage(circle: circle, hash: hash)))
        return name
    }

    /// The agent is started by a timer each time, and the writer replaces its checkpoint in between.
    @Test("A writer that offers another useless checkpoint each time does not keep an agent from absorbing an honest one")
    func replacedCheckpoints() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        bench.put(0, 1, date: 5, value: 1, .whenUnlocked)
        try bench.exchange([0, 2])
        try bench.replaceBatchesByCheckpoint(of: 0)
        bench.now += 60
        let honest = Set(bench.objects.keys)
        for round in 0..<8 {
            for name in bench.objects.keys where !honest.contains(name) { bench.objects[name] = nil }
            let unknown = PieceContent.CoveredBatch(
                log: LogID(Identifier128(high: 666, low: UInt64(round))), device: bench.machines[2].id, number: 1,
                hash: bench.cipher.hash([UInt8(round)]))
            _ = try bench.forgeCheckpoint(of: 2, covering: [unknown], adding: .versions([]), forging: .withoutContent)
            bench.start(1)
            try bench.run(1)
            bench.now += 1_800
        }
        #expect(bench.value(1, 1) == 1)
    }
}
