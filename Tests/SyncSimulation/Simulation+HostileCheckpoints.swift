// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Checkpoints of readers, of removed devices, and of members whose programs are altered.
extension Simulation {
    /// What is wrong with a member's checkpoint.
    private enum Flaw: CaseIterable {
        case sealedUnderUnknownKey, otherKind, missingPiece, alteredPiece, madeUpBatch
    }

    /// A member's program writes a checkpoint of which a piece cannot be used, or that covers a batch which never existed.
    ///
    /// The batch is one that no device has read, so that every device begins to absorb the checkpoint. The members are trusted with what a
    /// checkpoint omits, which acts as a deletion, so it omits nothing.
    mutating func writeFlawedCheckpoint(_ circle: CircleID) throws {
        guard let author = random.element(of: remaining.filter { devices[$0].role.mayWrite && !devices[$0].mayBeVoid }),
            let flaw = random.element(of: Flaw.allCases), let (id, key) = try knownLaneKey(.whenUnlocked)
        else { return }
        let log = LogID(Identifier128(high: random.next(), low: random.next()))
        let hash = ObjectHash(
            prefix: Identifier128(high: random.next(), low: random.next()), suffix: Identifier128(high: random.next(), low: 0))
        let batch = PieceContent.CoveredBatch(log: log, device: devices[author].id, number: 1 + random.next() % 3, hash: hash)
        var pieces: [CheckpointContent.Piece] = []
        if flaw == .madeUpBatch {
            guard let earlier = try piecesOfOwnCheckpoint(author) else { return }
            pieces = earlier
        }
        pieces.append(try placePiece(.coverage([batch], []), circle, id, key))
        switch flaw {
        case .sealedUnderUnknownKey: pieces.append(try placePiece(.versions([]), circle, id, try cipher.makeLaneKey()))
        case .otherKind:
            let isCoverage = random.chance(0.5)
            let piece = try placePiece(isCoverage ? .coverage([], []) : .awaited([]), circle, id, key)
            pieces.append(.init(kind: .versions, hash: piece.hash))
        case .missingPiece: pieces.append(.init(kind: .versions, hash: hash))
        case .alteredPiece:
            let piece = try placePiece(.versions([]), circle, id, key)
            pieces.append(.init(kind: .versions, hash: hash))
            place(ObjectName.piece(hash).text, storage.objects[ObjectName.piece(piece.hash).text] ?? [])
        case .madeUpBatch: break
        }
        try placeManifest(pieces, of: devices[author].keys, devices[author].id, circle, id, key)
        counters.count(flaw == .madeUpBatch ? .checkpointOfMadeUpBatch : .checkpointWithUselessPiece)
        if options.isTraced { note("device \(author) writes a checkpoint: \(flaw)") }
    }

    /// A reader, or a removed device of whose removal all others know, writes a checkpoint that covers everything and contains nothing.
    mutating func forgeCheckpoint(_ circle: CircleID) throws {
        guard let forger = devices.first(where: { $0.role == .reader && !$0.isRemoved }) ?? removedDeviceKnownToAll,
            let (id, key) = try knownLaneKey(.whenUnlocked)
        else { return }
        var batches: [PieceContent.CoveredBatch] = []
        for name in storage.names {
            guard case .batch(let device, let origin) = ObjectName(name) else { continue }
            let hash = ObjectHash(prefix: origin.hash, suffix: origin.hash)
            batches.append(.init(log: origin.log, device: device, number: origin.number, hash: hash))
        }
        let unknown = ObjectHash(
            prefix: Identifier128(high: random.next(), low: random.next()), suffix: Identifier128(high: 0, low: 0))
        batches.append(.init(log: LogID(unknown.prefix), device: forger.id, number: 1, hash: unknown))
        let piece = try placePiece(.coverage(batches, []), circle, id, key)
        try placeManifest([piece], of: forger.keys, forger.id, circle, id, key)
        counters.count(.forgedCheckpoint)
    }

    /// A removed device of whose removal all remaining ones know.
    var removedDeviceKnownToAll: SimulatedDevice? {
        // The holder of a kit knows only what the storage shows, which may have lost the removal.
        guard !faults.restores, !faults.clones, recoveryKit == nil, let thief = devices.first(where: { $0.isRemoved }) else { return nil }
        // A device whose removal is void remains too.
        let others = devices.filter { other in
            other.id != thief.id && !other.isGone && other.membership != nil
                && (!other.isRemoved || other.remover.map { devices[$0].isRemoved } == true)
        }
        let isKnown = others.allSatisfy { $0.engine?.roster?.removed.contains(thief.id) == true }
        return isKnown ? thief : nil
    }

    /// Returns the pieces of a checkpoint of this device that are all in the storage.
    private func piecesOfOwnCheckpoint(_ author: Int) throws -> [CheckpointContent.Piece]? {
        for name in storage.names.reversed() {
            guard case .checkpoint = ObjectName(name), !hostileNames.contains(name), let bytes = storage.objects[name] else { continue }
            let manifest = try CheckpointManifest(bytes)
            guard manifest.author == devices[author].id, var engine = devices[author].engine else { continue }
            var key: SharedSecretBytes?
            try devices[author].disk.transaction(rollsBack: true) { key = engine.openedKey(manifest.laneKey, in: $0) }
            guard let key else { continue }
            let content = try CheckpointContent(cipher.open(manifest.sealed, header: manifest.header, under: key))
            if content.pieces.allSatisfy({ storage.objects[ObjectName.piece($0.hash).text] != nil }) { return content.pieces }
        }
        return nil
    }

    private mutating func placePiece(
        _ content: PieceContent, _ circle: CircleID, _ id: LaneKeyID, _ key: SharedSecretBytes
    ) throws -> CheckpointContent.Piece {
        let header = CheckpointPiece.header(circle: circle, lane: .whenUnlocked, kind: content.kind, laneKey: id)
        let sealed = try cipher.seal(content.encoded, header: header, under: key)
        let bytes = CheckpointPiece(circle: circle, lane: .whenUnlocked, kind: content.kind, laneKey: id, sealed: sealed).encoded
        place(ObjectName.piece(cipher.hash(bytes)).text, bytes)
        return .init(kind: content.kind, hash: cipher.hash(bytes))
    }

    private mutating func placeManifest(
        _ pieces: [CheckpointContent.Piece], of keys: any CircleDeviceKeys, _ author: DeviceID, _ circle: CircleID, _ id: LaneKeyID,
        _ key: SharedSecretBytes
    ) throws {
        let sealed = try cipher.seal(
            CheckpointContent(seconds: now, pieces: pieces).encoded,
            header: CheckpointManifest.header(circle: circle, author: author, laneKey: id), under: key)
        let unsigned = CheckpointManifest(circle: circle, author: author, laneKey: id, sealed: sealed, signature: []).unsignedBytes
        let hash = cipher.hash(unsigned)
        let signature = try keys.sign(CheckpointManifest.signedMessage(circle: circle, hash: hash))
        place(ObjectName.checkpoint(hash).text, unsigned + signature)
    }
}
