// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Finding contents that this device has lost, and restoring them from the storage.
///
/// A row may be damaged, or gone without a record, and a program of a reader may have overwritten it. None of that is a deletion: the version
/// stays live, and its content is read again, from its batch or from a checkpoint that covers the batch. Until then, this device publishes no
/// checkpoint, because one that omits a version acts as its deletion.
extension EngineStep {
    /// Records the rows that the ledger does not know: when a device enters a circle, before the contents of all versions are checked, and after
    /// records were lost to damage.
    mutating func compareRows() throws(KeychainFailure) {
        var check = try contentCheck()
        let lacksRecords = try ledger.mayLackRecords()
        guard lacksRecords || check.isToBegin(at: now) && !engine.memory.areRowsCompared, !isPlanted(.forgetsUnknownRows) else { return }
        engine.memory.areRowsCompared = true
        if try ledger.recordUnknownRows() > 0 { observe(.comparedRows) }
        // A new device need not check its items again: it opens its own ones when it folds them, and those of the circle when it applies them.
        if check.isNew { check.complete(at: now) }
        if lacksRecords { check = .begun }
        try note(check)
    }

    /// Checks the contents of some live versions, once a day of all of them.
    mutating func checkContents() throws(KeychainFailure) {
        var check = try contentCheck()
        guard check.isDue(at: now), engine.memory.lost.count < limits.checkedVersions, try areLanesAvailable() else { return }
        let page = try ledger.liveVersions(after: check.last, limit: limits.checkedVersions)
        for version in page { try checkContent(of: version) }
        if page.count == limits.checkedVersions, let last = page.last {
            check.last = last.reference
            effects.append(.wake(at: now))
        } else {
            check.complete(at: now)
            engine.memory.areRowsCompared = false
        }
        try note(check)
    }

    /// Checks the contents of all versions from the beginning.
    mutating func beginContentCheck() throws(KeychainFailure) {
        engine.memory.areRowsCompared = false
        try note(.begun)
    }

    private mutating func contentCheck() throws(KeychainFailure) -> ContentCheck {
        if let check = engine.memory.contentCheck { return check }
        var check = ContentCheck()
        if let bytes = try ledger.setting(.contentCheck) { check = try stored { () throws(FormatError) in try ContentCheck(bytes) } }
        engine.memory.contentCheck = check
        return check
    }

    private mutating func note(_ check: ContentCheck) throws(KeychainFailure) {
        engine.memory.contentCheck = check
        // What is lost is in memory only, so an engine after this one has to find it again.
        try ledger.set(.contentCheck, to: (engine.memory.lost.isEmpty ? check : .begun).encoded)
    }

    private mutating func checkContent(of version: LiveVersion) throws(KeychainFailure) {
        // `settle` looks for rows that are gone, and shows what it could not show before.
        merge.touch(version.name)
        if isPlanted(.takesAbsentRowsForDeleted), let item = version.item, try items.localItem(item) == nil {
            return try merge.remove(version)
        }
        guard try items.content(of: version) == nil else { return }
        if version.reference.origin != nil {
            merge.noteLoss(of: version.reference)
        } else if merge.sharesWrites {
            effects.append(.alarm(.unsentWriteLost(version.name)))
        }
    }

    /// Takes over what the merge has noticed.
    mutating func noteLosses() throws(KeychainFailure) {
        if !merge.lost.isEmpty, !isPlanted(.keepsLostContents) {
            engine.memory.lost.formUnion(merge.lost)
            try note(contentCheck())
        }
        for name in merge.leftAlone.sorted() { effects.append(.alarm(.itemLeftAlone(name))) }
    }

    /// Returns the objects from which lost contents can be restored: their batches, or the pieces of a checkpoint that covers them.
    mutating func neededContents() throws(KeychainFailure) -> [(String, Int)] {
        guard isFolded, !engine.memory.lost.isEmpty, try areLanesAvailable() else { return [] }
        var origins: Set<Origin> = []
        for reference in engine.memory.lost {
            guard let origin = reference.origin, try ledger.liveVersion(reference) != nil else {
                engine.memory.lost.remove(reference)
                continue
            }
            origins.insert(origin)
        }
        var names: [(String, Int)] = []
        var listed: Set<Origin> = []
        // Any program can create an object with the origin of a batch, below another device.
        for batch in engine.memory.listedBatches where origins.contains(batch.origin) && !isSetAside(batch.name) {
            names.append((batch.name, BatchFrame.largestByteCount))
            listed.insert(batch.origin)
        }
        origins.subtract(listed)
        guard !origins.isEmpty else { return names }
        for (_, checkpoint) in completeCheckpoints where !origins.isDisjoint(with: checkpoint.coverage) {
            origins.subtract(checkpoint.coverage)
            for piece in checkpoint.pieces where piece.kind == .versions {
                names.append((ObjectName.piece(piece.hash).text, CheckpointPiece.largestByteCount))
            }
        }
        return names
    }

    /// Restores lost contents from a batch that was read before.
    mutating func restoreContents(of batch: ListedBatch, _ bytes: [UInt8]) throws(KeychainFailure) {
        guard engine.memory.lost.contains(where: { $0.origin == batch.origin }) else { return }
        // Until the next listing, reading it again is of no use.
        engine.memory.rejected.insert(batch.name)
        guard let frame = try? BatchFrame(bytes), authenticMark(frame, batch) != nil, let key = try laneKey(frame.header.laneKey),
            let content = try openContent(frame, key), let summaries = try summaries(content, frame.header.lane)
        else { return }
        for (version, summary) in zip(content.versions, summaries) {
            guard summary != nil, let received = version.content else { continue }
            if try restore(received, of: VersionReference(id: version.id, origin: batch.origin)) { observe(.restoredFromBatch) }
        }
    }

    /// Restores lost contents from a piece of a checkpoint, and returns whether there were any.
    mutating func restoreContents(
        in versions: [PieceContent.CheckpointVersion], of piece: ObjectHash
    ) throws(KeychainFailure) -> Bool {
        guard !engine.memory.lost.isEmpty,
            engine.memory.checkpoints.contains(where: { isUsable($0.key, $0.value) && $0.value.pieces.contains { $0.hash == piece } })
        else { return false }
        var isAnyRestored = false
        for version in versions {
            guard engine.memory.lost.contains(version.reference), let summary = try items.summary(of: version.content),
                summary.date.isFinite, try restore(version.content, of: version.reference)
            else { continue }
            observe(.restoredFromCheckpoint)
            isAnyRestored = true
        }
        return isAnyRestored
    }

    private mutating func restore(_ content: SyncContent, of reference: VersionReference) throws(KeychainFailure) -> Bool {
        guard engine.memory.lost.contains(reference), let version = try ledger.liveVersion(reference), try areLanesAvailable() else {
            return false
        }
        engine.memory.lost.remove(reference)
        if try merge.restore(content, of: version) { return true }
        effects.append(.alarm(.itemLeftAlone(version.name)))
        return false
    }
}

/// How far the contents of all live versions were checked.
///
/// In the ledger, because opening the contents of a million versions takes half a minute: an agent that runs for a moment at a time would do it
/// each time, or never come to their end.
struct ContentCheck {
    /// The last version of the pages checked so far; nil before the first one, and after the last one.
    var last: VersionReference?
    /// When the last check of all versions ended; nil if one has to begin whatever the time.
    private var completion: Double?
    /// Whether this device has entered the circle just now.
    private(set) var isNew = true

    private static let seconds: Double = 86_400

    /// The state of a device that enters a circle.
    init() {}

    /// The state before a check of all versions.
    static var begun: ContentCheck {
        var check = ContentCheck()
        check.isNew = false
        return check
    }

    func isDue(at now: Double) -> Bool { completion.map { abs(now - $0) >= Self.seconds } ?? true }

    func isToBegin(at now: Double) -> Bool { last == nil && isDue(at: now) }

    mutating func complete(at now: Double) {
        isNew = false
        last = nil
        completion = now
    }

    /// `version 1 (1) ‖ 0, or 1 and the time (8) ‖ nothing, or the last version: identifier (16) ‖ nothing, or log (16) ‖ number (8) ‖ hash (16)`.
    var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        bytes.append(optionalSeconds: completion)
        if let last { bytes.append(last.id) }
        if let origin = last?.origin { bytes.append(origin) }
        return bytes
    }

    init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        isNew = false
        completion = try reader.optionalSeconds()
        if reader.remaining > 0 {
            let id = SyncVersionID(try reader.identifier())
            last = VersionReference(id: id, origin: reader.remaining > 0 ? try reader.origin() : nil)
        }
        try reader.end()
    }
}
