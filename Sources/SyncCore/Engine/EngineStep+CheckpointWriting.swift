// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Writing a checkpoint: what this device knows, in one transaction.
extension EngineStep {
    /// Writes a checkpoint if the keychain is unlocked and nothing waits to be sealed.
    ///
    /// A checkpoint that omits a version acts as its deletion, so every live version has to be readable.
    mutating func writeCheckpoint() throws(KeychainFailure) {
        for lane in Lane.allCases {
            if try !items.isAvailable(lane) { return }
            if try areChangesPending(lane), !isPlanted(.checkpointWithPendingChanges) { return observe(.delayedCheckpoint) }
        }
        guard try !isLastUnopenable(), let manifestKey = try sealingKey(.whenUnlocked) else { return }
        var pieces: [CheckpointContent.Piece] = []
        for content in try coveragePieces() + awaitedPieces() { pieces.append(try publishPiece(content, .whenUnlocked, manifestKey)) }
        var isComplete = true
        for lane in Lane.allCases where isComplete { isComplete = try publishVersions(lane, &pieces) }
        // A larger checkpoint could not be read.
        guard isComplete, pieces.count <= CheckpointContent.largestPieceCount else {
            for piece in pieces { try ledger.removeOutgoing(ObjectName.piece(piece.hash).text) }
            return
        }
        try publishManifest(CheckpointContent(seconds: now, pieces: pieces), manifestKey)
    }

    /// Returns whether the version that kept this device from writing a checkpoint still cannot be opened.
    ///
    /// It is looked at first, because a checkpoint of a million items is work for a minute.
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

    /// Publishes the live versions of a lane, each piece as soon as it is full, so that they are not in memory together.
    ///
    /// Returns false if one of them cannot be opened. A version of a batch that the checkpoint does not cover came from one that this device has not
    /// absorbed to its end, and is left out: a device that takes it over may never learn what replaces it, because a removal of the author makes that
    /// void.
    private mutating func publishVersions(_ lane: Lane, _ pieces: inout [CheckpointContent.Piece]) throws(KeychainFailure) -> Bool {
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
                guard let content = try items.content(of: version) else {
                    engine.memory.unopenable = version.reference
                    return false
                }
                let size = content.byteCount + 53
                if !open.isEmpty, byteCount + size > limits.pieceByteCount {
                    guard try publishVersions(open, lane, &pieces) else { return false }
                    (open, byteCount) = ([], 0)
                }
                open.append(PieceContent.CheckpointVersion(reference: version.reference, content: content))
                byteCount += size
            }
            guard page.count == 1_000, let end = page.last else { break }
            last = end.reference
        }
        return open.isEmpty ? true : try publishVersions(open, lane, &pieces)
    }

    /// Publishes a piece; returns false if the lane has no key.
    private mutating func publishVersions(
        _ versions: [PieceContent.CheckpointVersion], _ lane: Lane, _ pieces: inout [CheckpointContent.Piece]
    ) throws(KeychainFailure) -> Bool {
        guard let key = try sealingKey(lane) else { return false }
        pieces.append(try publishPiece(.versions(versions), lane, key))
        return true
    }

    private func coveragePieces() throws(KeychainFailure) -> [PieceContent] {
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

    private func awaitedPieces() throws(KeychainFailure) -> [PieceContent] {
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

    private mutating func publishPiece(
        _ content: PieceContent, _ lane: Lane, _ key: (id: LaneKeyID, key: SharedSecretBytes)
    ) throws(KeychainFailure) -> CheckpointContent.Piece {
        let header = CheckpointPiece.header(circle: circle, lane: lane, kind: content.kind, laneKey: key.id)
        let sealed = try cipher.seal(content.encoded, header: header, under: key.key)
        let piece = CheckpointPiece(circle: circle, lane: lane, kind: content.kind, laneKey: key.id, sealed: sealed)
        let bytes = piece.encoded
        let hash = cipher.hash(bytes)
        try ledger.insert(OutgoingObject(name: ObjectName.piece(hash).text, bytes: bytes))
        return CheckpointContent.Piece(kind: content.kind, hash: hash)
    }

    private mutating func publishManifest(
        _ content: CheckpointContent, _ key: (id: LaneKeyID, key: SharedSecretBytes)
    ) throws(KeychainFailure) {
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
        record.append(seconds: now)
        record.append(hash)
        try ledger.set(.ownCheckpoint, to: record)
    }
}

extension Array {
    /// Returns the elements in parts of `count`, of which the last may have fewer.
    func parts(ofCount count: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: self.count, by: count).map { self[$0..<Swift.min($0 + count, self.count)] }
    }
}
