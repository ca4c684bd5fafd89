// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation

/// Steps of schedules: lost objects, restored machines, and altered programs.
extension EngineBench {
    /// Runs a device, and returns the names of the objects that it adds to the storage.
    mutating func publish(_ device: Int, _ event: SyncEvent = .wake) throws -> Set<String> {
        let before = Set(objects.keys)
        try run(device, event)
        return Set(objects.keys).subtracting(before)
    }

    var batches: [Origin] {
        objects.keys.sorted().compactMap { name in if case .batch(_, let origin) = ObjectName(name) { origin } else { nil } }
    }

    /// Restores the disk of a device from a snapshot, and starts its agent.
    mutating func restore(_ device: Int, to snapshot: MemoryLedger.State) {
        machines[device].ledger.state = snapshot
        start(device)
    }

    /// Loses all batches in the storage, for which a device makes up with a checkpoint.
    mutating func replaceBatchesByCheckpoint(of device: Int) throws {
        for name in objects.keys where name.hasPrefix("b/") { objects[name] = nil }
        try run(device)
        // Until then another device could be faster.
        now += 3_600
        try run(device)
    }

    /// Wakes a device that will absorb a checkpoint, and interrupts it after one piece with versions; returns the effects that are left.
    mutating func absorbFirstPiece(_ device: Int) throws -> [SyncEffect] {
        var waiting = try step(device, .wake)
        while !waiting.isEmpty {
            let effect = waiting.removeFirst()
            waiting += try perform(effect, of: device)
            if case .read(let name, _) = effect, let bytes = objects[name], (try? CheckpointPiece(bytes))?.kind == .versions { break }
        }
        return waiting
    }

    /// A batch of a device that never existed, for the coverage of a checkpoint.
    func madeUpBatch(of device: Int) -> PieceContent.CoveredBatch {
        .init(log: LogID(Identifier128(high: 666, low: 666)), device: machines[device].id, number: 1, hash: cipher.hash([6]))
    }

    // What a device has

    func live(_ device: Int) -> Set<VersionReference> { Set(machines[device].ledger.state.live.keys) }

    func marks(_ device: Int) -> [LogMark] { machines[device].ledger.state.marks.values.flatMap(\.self) }

    func members(_ device: Int) -> Set<Int> {
        let members = machines[device].engine?.roster?.members ?? [:]
        return Set(machines.indices.filter { members[machines[$0].id] != nil })
    }

    /// The names of the items in checkpoints that a device can open with the keys that it has now.
    mutating func readableItemsOfCheckpoints(by device: Int) throws -> Set<Int> {
        var names: Set<Int> = []
        for (name, bytes) in objects where name.hasPrefix("p/") {
            let piece = try CheckpointPiece(bytes)
            guard let key = key(piece.laneKey, of: device) else { continue }
            let plaintext = try cipher.open(piece.sealed, header: piece.header, under: key)
            guard case .versions(let versions) = try PieceContent(piece.kind, plaintext) else { continue }
            names.formUnion(versions.compactMap { SimulatedContent($0.content)?.name })
        }
        return names
    }

    /// Returns a lane key, if a device can open it now.
    mutating func key(_ id: LaneKeyID, of device: Int) -> SharedSecretBytes? {
        let ledger = machines[device].ledger
        return machines[device].engine?.openedKey(id, in: SyncTransaction(ledger: ledger, items: ledger))
    }

    mutating func newestKey(_ lane: Lane, of device: Int) throws -> (id: LaneKeyID, key: SharedSecretBytes) {
        guard let record = machines[device].engine?.roster?.laneKeys.last(where: { $0.lane == lane }),
            let key = key(record.key, of: device)
        else { throw KeychainFailure(.internal, "the device has no key") }
        return (record.key, key)
    }

    // What an altered program of a device writes, whatever its role

    /// Publishes a statement of a device.
    mutating func forgeStatement(of device: Int, _ body: Statement.Body, heads: [StatementHash]? = nil) throws {
        guard let engine = machines[device].engine else { return }
        let statement = try Statement(
            body, circle: engine.membership.circle, author: machines[device].id, heads: heads ?? engine.roster?.heads ?? [],
            keys: machines[device].keys, cipher: cipher)
        objects[ObjectName.statement(statement.hash).text] = statement.encoded
    }

    /// Publishes a statement of a machine that need not be one of the bench, and returns its hash.
    @discardableResult
    mutating func forgeStatement(by author: Machine, _ body: Statement.Body, heads: [StatementHash]) throws -> StatementHash {
        let circle = try circle
        let statement = try Statement(body, circle: circle, author: author.id, heads: heads.sorted(), keys: author.keys, cipher: cipher)
        objects[ObjectName.statement(statement.hash).text] = statement.encoded
        return statement.hash
    }

    /// Makes a lane key, and publishes a statement of a device that boxes it for devices, and another key for some of them.
    mutating func forgeKey(
        of device: Int, generation: UInt64 = 1, for devices: [Int], withFalseBoxesFor betrayed: Set<Int> = [],
        heads: [StatementHash]? = nil
    ) throws {
        guard let circle = machines[device].engine?.membership.circle else { return }
        let lane = Lane.afterFirstUnlock
        let key = try cipher.makeLaneKey()
        let id = try cipher.laneKeyID(of: key, circle: circle, lane: lane)
        let boxes = try devices.map { recipient in
            let machine = machines[recipient]
            let binding = LaneKeyBox.Binding(circle: circle, lane: lane, key: id, device: machine.id)
            let boxed = betrayed.contains(recipient) ? try cipher.makeLaneKey() : key
            return Statement.Rekeying.Box(
                device: machine.id, bytes: try cipher.sealBox(boxed, binding: binding, to: machine.keys.publicKeys.box(for: lane)))
        }
        try forgeStatement(
            of: device, .rekey(.init(lane: lane, generation: generation, key: id, boxes: boxes, olderKeys: [])), heads: heads)
    }

    /// Publishes a batch of a device in a log that may be another device's; returns its mark.
    @discardableResult
    mutating func forgeBatch(
        of device: Int, _ versions: [VersionRecord], marks: [LogMark] = [], after previous: LogMark? = nil
    ) throws -> LogMark {
        let circle = try circle
        let (id, key) = try newestKey(.afterFirstUnlock, of: device)
        let log = previous?.log ?? LogID(Identifier128(high: 666, low: 666))
        let number = 1 + (previous?.number ?? 0)
        let header = BatchFrame.Header(
            circle: circle, log: log, device: machines[device].id, lane: .afterFirstUnlock, number: number,
            previous: previous?.hash ?? .none, laneKey: id)
        let content = BatchContent(notes: BatchNotes(seconds: now, marks: marks), versions: versions)
        let sealed = try cipher.seal(content.encoded, header: header.encoded, under: key)
        let hash = cipher.hash(BatchFrame.unsignedBytes(header, sealed))
        let signature = try machines[device].keys.sign(
            BatchFrame.signedMessage(circle: circle, log: log, number: number, previous: header.previous, hash: hash))
        let mark = LogMark(
            log: log, device: machines[device].id, number: number, previous: header.previous, hash: hash, signature: signature)
        objects[ObjectName.batch(device: machines[device].id, origin: mark.origin).text] =
            BatchFrame(header: header, sealed: sealed, signature: signature).encoded
        return mark
    }

    /// Publishes a checkpoint that covers everything, and a batch that does not exist, and contains no item.
    mutating func forgeEmptyCheckpoint(of device: Int) throws {
        guard let circle = machines[device].engine?.membership.circle else { return }
        let (id, key) = try newestKey(.whenUnlocked, of: device)
        let author = machines[device].id
        var covered = machines[device].ledger.state.batches.values.flatMap { $0 }.map {
            PieceContent.CoveredBatch(log: $0.log, device: $0.device, number: $0.number, hash: $0.hash)
        }
        let hash = cipher.hash([6, 6, 6])
        covered.append(.init(log: LogID(Identifier128(high: 666, low: 666)), device: author, number: 1, hash: hash))
        let header = CheckpointPiece.header(circle: circle, lane: .whenUnlocked, kind: .coverage, laneKey: id)
        let coverage = try cipher.seal(PieceContent.coverage(covered, []).encoded, header: header, under: key)
        let piece = CheckpointPiece(circle: circle, lane: .whenUnlocked, kind: .coverage, laneKey: id, sealed: coverage).encoded
        objects[ObjectName.piece(cipher.hash(piece)).text] = piece
        let content = CheckpointContent(seconds: now, pieces: [.init(kind: .coverage, hash: cipher.hash(piece))])
        let sealed = try cipher.seal(
            content.encoded, header: CheckpointManifest.header(circle: circle, author: author, laneKey: id), under: key)
        let unsigned = CheckpointManifest(circle: circle, author: author, laneKey: id, sealed: sealed, signature: []).unsignedBytes
        let signature = try machines[device].keys.sign(
            CheckpointManifest.signedMessage(circle: circle, hash: cipher.hash(unsigned)))
        objects[ObjectName.checkpoint(cipher.hash(unsigned)).text] = unsigned + signature
    }
}
