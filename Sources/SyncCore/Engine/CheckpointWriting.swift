// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Writing a checkpoint: what this device knows at one moment.
///
/// A step decides that one is due. Its pieces are then sealed on a snapshot of the keychain, a few in each transaction, because those of a million
/// items take half a minute, and programs cannot write during a transaction. The manifest follows in another step. What is written of a checkpoint
/// without its manifest is removed by the next step.
extension EngineStep {
    /// Lets a checkpoint be written if the keychain is unlocked and nothing waits to be sealed.
    ///
    /// A checkpoint that omits a version acts as its deletion, so every live version has to be readable.
    mutating func beginCheckpoint() throws(KeychainFailure) {
        var keys: [Lane: CheckpointWriter.Key] = [:]
        for lane in Lane.allCases {
            if try !items.isAvailable(lane) { return }
            if try areChangesPending(lane), !isPlanted(.checkpointWithPendingChanges) { return observe(.delayedCheckpoint) }
        }
        guard try !isLastUnopenable() else { return }
        for lane in Lane.allCases { keys[lane] = try sealingKey(lane) }
        guard keys[.whenUnlocked] != nil else { return }
        engine.memory.checkpointWriter = CheckpointWriter(
            circle: circle, cipher: cipher, keys: keys, unsendable: engine.memory.unsendable, limits: limits, seconds: now)
        effects.append(.writeCheckpoint)
    }

    /// Returns whether the version that kept this device from writing a checkpoint still cannot be opened.
    ///
    /// It is looked at first, because a checkpoint of a million items is work for half a minute.
    private mutating func isLastUnopenable() throws(KeychainFailure) -> Bool {
        guard let reference = engine.memory.unopenable, let version = try ledger.liveVersion(reference),
            try items.content(of: version) == nil
        else {
            engine.memory.unopenable = nil
            return false
        }
        return true
    }

    /// Returns whether a change waits that a checkpoint would anticipate.
    ///
    /// A change that cannot be sent, and that replaces nothing, exists on this device alone and affects no other version.
    private mutating func areChangesPending(_ lane: Lane) throws(KeychainFailure) -> Bool {
        guard try areSendableVersionsSealed() else { return true }
        let pending = try ledger.pendingVersions(in: lane, limit: engine.memory.unsendable.count)
        return pending.contains { !$0.replaced.isEmpty }
    }

    /// Publishes the manifest of a checkpoint, unless this device has got other keys since its pieces were sealed: a removed device may have theirs.
    mutating func endCheckpoint(_ outcome: CheckpointOutcome) throws(KeychainFailure) {
        guard let writer = engine.memory.checkpointWriter.take() else { return }
        switch outcome {
        case .outdated: observe(.delayedCheckpoint)
        case .unopenable(let reference): engine.memory.unopenable = reference
        case .complete(let pieces):
            for (lane, key) in writer.keys where try sealingKey(lane)?.id != key.id { return observe(.delayedCheckpoint) }
            if let key = writer.keys[.whenUnlocked] { try publishManifest(CheckpointContent(seconds: writer.seconds, pieces: pieces), key) }
        }
    }

    private mutating func publishManifest(_ content: CheckpointContent, _ key: CheckpointWriter.Key) throws(KeychainFailure) {
        let header = CheckpointManifest.header(circle: circle, author: device, laneKey: key.id)
        let sealed = try cipher.seal(content.encoded, header: header, under: key.key)
        let unsigned = CheckpointManifest(circle: circle, author: device, laneKey: key.id, sealed: sealed, signature: [])
        let hash = cipher.hash(unsigned.unsignedBytes)
        let signature = try engine.keys.sign(CheckpointManifest.signedMessage(circle: circle, hash: hash))
        // After its pieces, so that it is complete once it is there.
        try ledger.insert(
            OutgoingObject(name: ObjectName.checkpoint(hash).text, bytes: unsigned.unsignedBytes + signature))
        observe(.wroteCheckpoint)
        var record: [UInt8] = [1]
        record.append(seconds: content.seconds)
        record.append(hash)
        try ledger.set(.ownCheckpoint, to: record)
    }

    /// Removes the pieces of a checkpoint whose writing was interrupted, and returns the names of the other objects.
    ///
    /// A manifest follows its pieces, and leaves the ledger after they did.
    func removeUnfinishedCheckpoint(_ names: [String]) throws(KeychainFailure) -> [String] {
        let pieces = names.filter { $0.utf8.first == UInt8(ascii: "p") }
        guard !pieces.isEmpty, !names.contains(where: { $0.utf8.first == UInt8(ascii: "c") }), !isPlanted(.publishesUnfinishedCheckpoint)
        else { return names }
        for name in pieces { try ledger.removeOutgoing(name) }
        return names.filter { $0.utf8.first != UInt8(ascii: "p") }
    }
}

/// The result of sealing the pieces of a checkpoint.
package enum CheckpointOutcome: Sendable {
    /// All of them are in the ledger.
    case complete([CheckpointContent.Piece])
    /// A version cannot be opened.
    case unopenable(VersionReference)
    /// A program has written, the keychain was locked, or the checkpoint would be too large to be read.
    case outdated
}

/// Seals the pieces of a checkpoint.
package struct CheckpointWriter {
    typealias Key = (id: LaneKeyID, key: SharedSecretBytes)

    let circle: CircleID
    let cipher: any CircleCipher
    let keys: [Lane: Key]
    /// The changes that wait and cannot be sent.
    let unsendable: Set<SyncVersionID>
    let limits: SyncLimits
    let seconds: Double

    /// Seals the pieces of a checkpoint of what a snapshot has.
    ///
    /// `insert` inserts objects into the ledger, and returns false if another process has made a step of the engine since.
    package func write(
        _ ledger: any SyncReading, _ items: any SyncItemReading,
        insert: ([OutgoingObject]) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> CheckpointOutcome {
        guard try isEverythingSent(ledger) || isPlanted(.checkpointWithPendingChanges) else { return .outdated }
        var pieces: [CheckpointContent.Piece] = []
        var group: [OutgoingObject] = []
        var groupByteCount = 0
        func publish(_ content: PieceContent, _ lane: Lane) throws(KeychainFailure) -> Bool {
            // A larger checkpoint could not be read.
            guard let key = keys[lane], pieces.count < CheckpointContent.largestPieceCount else { return false }
            let (piece, object) = try sealed(content, lane, key)
            pieces.append(piece)
            group.append(object)
            groupByteCount += object.bytes.count
            guard groupByteCount >= limits.pieceGroupByteCount else { return true }
            defer { (group, groupByteCount) = ([], 0) }
            return try insert(group)
        }
        for content in try coveragePieces(ledger) + awaitedPieces(ledger) {
            guard try publish(content, .whenUnlocked) else { return .outdated }
        }
        for lane in Lane.allCases {
            if let failure = try writeVersions(lane, ledger, items, publish) { return failure }
        }
        if !group.isEmpty { guard try insert(group) else { return .outdated } }
        return .complete(pieces)
    }

    /// Whether the circle has, or will get, whatever programs have written.
    ///
    /// They may have written since the step that decided.
    private func isEverythingSent(_ ledger: any SyncReading) throws(KeychainFailure) -> Bool {
        guard try !ledger.hasRecordedChanges() else { return false }
        for lane in Lane.allCases {
            let pending = try ledger.pendingVersions(in: lane, limit: unsendable.count + 1)
            guard pending.allSatisfy({ unsendable.contains($0.id) && $0.replaced.isEmpty }) else { return false }
        }
        return true
    }

    /// Publishes the live versions of a lane, each piece as soon as it is full, so that they are not in memory together; returns why it cannot.
    ///
    /// A version of a batch that the checkpoint does not cover came from one that this device has not absorbed to its end, and is left out: a device
    /// that takes it over may never learn what replaces it, because a removal of the author makes that void.
    private func writeVersions(
        _ lane: Lane, _ ledger: any SyncReading, _ items: any SyncItemReading,
        _ publish: (PieceContent, Lane) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> CheckpointOutcome? {
        var open: [PieceContent.CheckpointVersion] = []
        var byteCount = 0
        var last: VersionReference?
        var isCovered: [Origin: Bool] = [:]
        while true {
            let page = try ledger.liveVersions(after: last, limit: 1_000)
            for version in page where version.lane == lane || isPlanted(.mixedLanePieces) {
                guard let origin = version.reference.origin else { continue }
                if isCovered[origin] == nil { isCovered[origin] = try ledger.isRead(origin) }
                guard isCovered[origin] == true else { continue }
                guard let content = try items.content(of: version) else { return .unopenable(version.reference) }
                let size = content.byteCount + 53
                if !open.isEmpty, byteCount + size > limits.pieceByteCount {
                    guard try publish(.versions(open), lane) else { return .outdated }
                    (open, byteCount) = ([], 0)
                }
                open.append(PieceContent.CheckpointVersion(reference: version.reference, content: content))
                byteCount += size
            }
            guard page.count == 1_000, let end = page.last else { break }
            last = end.reference
        }
        if !open.isEmpty { guard try publish(.versions(open), lane) else { return .outdated } }
        return nil
    }

    private func coveragePieces(_ ledger: any SyncReading) throws(KeychainFailure) -> [PieceContent] {
        var batches: [PieceContent.CoveredBatch] = []
        var marks: [LogMark] = []
        for log in try ledger.logs() {
            for batch in try ledger.readBatches(of: log) {
                batches.append(.init(log: batch.log, device: batch.device, number: batch.number, hash: batch.hash))
            }
            for mark in try ledger.marks(of: log) where try ledger.isRead(mark.origin) { marks.append(mark) }
        }
        let batchParts = batches.parts(ofCount: max(limits.pieceByteCount / PieceContent.CoveredBatch.largestByteCount, 1))
        let markParts = marks.parts(ofCount: max(limits.pieceByteCount / LogMark.byteCount, 1))
        return (0..<max(batchParts.count, markParts.count)).map { index in
            .coverage(
                index < batchParts.count ? Array(batchParts[index]) : [], index < markParts.count ? Array(markParts[index]) : [])
        }
    }

    private func awaitedPieces(_ ledger: any SyncReading) throws(KeychainFailure) -> [PieceContent] {
        if isPlanted(.checkpointWithoutAwaited) { return [] }
        let count = max(limits.pieceByteCount / VersionRecord.referenceByteCount, 1)
        var pieces: [PieceContent] = []
        var last: VersionReference?
        while true {
            let page = try ledger.awaitedVersions(after: last, limit: count)
            if !page.isEmpty { pieces.append(.awaited(page)) }
            guard page.count == count, let end = page.last else { return pieces }
            last = end
        }
    }

    private func sealed(
        _ content: PieceContent, _ lane: Lane, _ key: Key
    ) throws(KeychainFailure) -> (CheckpointContent.Piece, OutgoingObject) {
        let header = CheckpointPiece.header(circle: circle, lane: lane, kind: content.kind, laneKey: key.id)
        let sealed = try cipher.seal(content.encoded, header: header, under: key.key)
        let bytes = CheckpointPiece(circle: circle, lane: lane, kind: content.kind, laneKey: key.id, sealed: sealed).encoded
        let hash = cipher.hash(bytes)
        return (CheckpointContent.Piece(kind: content.kind, hash: hash), OutgoingObject(name: ObjectName.piece(hash).text, bytes: bytes))
    }
}

extension Array {
    /// Returns the elements in parts of `count`, of which the last may have fewer.
    func parts(ofCount count: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: self.count, by: count).map { self[$0..<Swift.min($0 + count, self.count)] }
    }
}
