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

    /// The checkpoint covers everything and contains nothing.
    @Test("A checkpoint whose author is removed while it is being absorbed deletes nothing")
    func checkpointOfRemovedAuthor() throws {
        var bench = try EngineBench([.owner, .owner, .owner])
        for name in 1...3 { bench.put(0, name, date: 5, value: UInt64(name)) }
        bench.put(0, 4, date: 5, value: 4, .whenUnlocked)
        try bench.exchange([0, 1, 2])
        let unknown = PieceContent.CoveredBatch(
            log: LogID(Identifier128(high: 666, low: 666)), device: bench.machines[0].id, number: 1, hash: bench.cipher.hash([6]))
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

extension EngineBench {
    var circle: CircleID { get throws { try #require(machines[0].engine).membership.circle } }

    /// Publishes a checkpoint that covers everything that its author has read and more; returns the name of its last piece.
    @discardableResult
    mutating func forgeCheckpoint(
        of device: Int, covering more: [PieceContent.CoveredBatch], adding extra: PieceContent? = nil, repeatsPiece: Bool = false
    ) throws -> String {
        let (id, key) = try newestKey(.whenUnlocked, of: device)
        let (circle, author) = (try circle, machines[device].id)
        let covered = machines[device].ledger.state.batches.values.flatMap { $0 }.map {
            PieceContent.CoveredBatch(log: $0.log, device: $0.device, number: $0.number, hash: $0.hash)
        }
        var pieces: [CheckpointContent.Piece] = []
        var name = ""
        for content in [PieceContent.coverage(covered + more, [])] + (extra.map { [$0] } ?? []) {
            let header = CheckpointPiece.header(circle: circle, lane: .whenUnlocked, kind: content.kind, laneKey: id)
            let sealed = try cipher.seal(content.encoded, header: header, under: key)
            let piece = CheckpointPiece(circle: circle, lane: .whenUnlocked, kind: content.kind, laneKey: id, sealed: sealed).encoded
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
}
