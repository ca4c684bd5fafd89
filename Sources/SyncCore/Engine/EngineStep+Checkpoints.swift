// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Deciding which checkpoints to write, to absorb, and to remove.
extension EngineStep {
    /// The objects of checkpoints that have to be read next.
    func neededCheckpointObjects() -> [(String, Int)] {
        var names: [(String, Int)] = []
        for hash in engine.memory.listedCheckpoints {
            guard let known = engine.memory.checkpoints[hash] else {
                names.append((ObjectName.checkpoint(hash).text, CheckpointManifest.largestByteCount))
                continue
            }
            guard isUsable(hash, known) else { continue }
            names += neededPieces(known.unreadCoverage)
        }
        return names + (engine.memory.absorption.map { neededPieces($0) } ?? [])
    }

    private func neededPieces(_ absorption: Absorption) -> [(String, Int)] { neededPieces(absorption.remaining) }

    private func neededPieces(_ pieces: Set<ObjectHash>) -> [(String, Int)] {
        pieces.sorted().map { (ObjectName.piece($0).text, CheckpointPiece.largestByteCount) }
    }

    /// Returns whether a checkpoint may be believed: of a writer, or of a removed device whose removal lists it.
    func isUsable(_ hash: CheckpointHash, _ checkpoint: KnownCheckpoint) -> Bool {
        if roster.listedCheckpoints.contains(hash) { return true }
        guard let member = roster.members[checkpoint.author] else { return false }
        return member.role.mayWrite || isPlanted(.readersMayWrite)
    }

    /// The usable checkpoints of which every object is in the storage, newest first.
    var completeCheckpoints: [(hash: CheckpointHash, checkpoint: KnownCheckpoint)] {
        engine.memory.listedCheckpoints.compactMap { hash in
            guard let known = engine.memory.checkpoints[hash], isUsable(hash, known), known.unreadCoverage.isEmpty,
                known.pieces.allSatisfy({ engine.memory.listedPieces.contains($0.hash) })
            else { return nil }
            return (hash, known)
        }.sorted { ($0.checkpoint.seconds, $0.hash) > ($1.checkpoint.seconds, $1.hash) }
    }

    /// Whether all is listed, and what can be read of it is read.
    private var mayMaintainCheckpoints: Bool {
        engine.memory.areCheckpointsDue && areStatementsRead && engine.memory.reading.isEmpty
            && engine.memory.listedFolders.isSuperset(of: [.batches, .checkpoints, .pieces])
    }

    /// Begins to absorb a checkpoint that is needed, and ends the absorption of one that is read.
    mutating func maintainAbsorption() throws(KeychainFailure) {
        guard mayMaintainCheckpoints else { return }
        if engine.memory.absorption == nil {
            try beginAbsorption()
        } else if engine.memory.absorption?.remaining.isEmpty == true {
            try finishAbsorption()
        }
        if isPlanted(.deletionFromAbsence) { try deleteAbsentVersions() }
    }

    /// Writes a checkpoint if one is due, and removes what others cover.
    ///
    /// Comes after the reads of this step are requested, and after what it has received is shown: an agent that has just started would otherwise
    /// decide before it knows what the checkpoints cover, and one that has just read a batch could not write its versions.
    mutating func maintainCheckpoints() throws(KeychainFailure) {
        guard mayMaintainCheckpoints else { return }
        engine.memory.areCheckpointsDue = false
        try writeCheckpointIfDue()
        try removeCoveredObjects()
    }

    /// A planted fault: takes a batch that is not in the storage for one whose versions were deleted.
    private mutating func deleteAbsentVersions() throws(KeychainFailure) {
        let listed = Set(engine.memory.listedBatches.map(\.origin))
        for version in try ledger.liveVersions(after: nil, limit: 1_000) {
            if let origin = version.reference.origin, !listed.contains(origin), engine.memory.listedCheckpoints.isEmpty {
                try merge.remove(version)
            }
        }
    }

    // Absorbing

    func areLanesAvailable() throws(KeychainFailure) -> Bool {
        for lane in Lane.allCases where try !items.isAvailable(lane) {
            return false
        }
        return true
    }

    /// Begins to absorb a checkpoint if it covers batches that this device cannot read, because the storage does not have them any more.
    private mutating func beginAbsorption() throws(KeychainFailure) {
        let interrupted = try ledger.setting(.absorption)
        guard interrupted != nil || !engine.memory.listedCheckpoints.isEmpty, try areLanesAvailable(), try areSendableVersionsSealed(),
            try nextReadableBatch() == nil
        else { return }
        // What is listed, and was read by the listing or since, needs no search of the ledger.
        let read = Set(engine.memory.listedBatches.map(\.origin).filter { !engine.memory.unread.contains($0) })
        // The authors take turns: a checkpoint may be of no use, and its author may offer another one each time. Of one author, those that were begun
        // more often come later.
        var seen = try seenCheckpoints()
        let ranked = completeCheckpoints.enumerated().map { (rank: $0.offset, entry: $0.element) }.sorted {
            let (left, right) = ($0.entry.checkpoint, $1.entry.checkpoint)
            let (leftCount, rightCount) = (seen[$0.entry.hash]?.absorptionCount ?? 0, seen[$1.entry.hash]?.absorptionCount ?? 0)
            return (seen.lastTurn(of: left.author), leftCount, $0.rank) < (seen.lastTurn(of: right.author), rightCount, $1.rank)
        }
        for (hash, checkpoint) in ranked.map(\.entry) where try coversUnread(checkpoint, besides: read) {
            // In the ledger, because an agent that runs for a moment at a time begins again each time.
            seen.noteBeginning(of: hash, by: checkpoint.author, at: now)
            try ledger.set(.seenCheckpoints, to: seen.encoded)
            let absorption = Absorption(hash, checkpoint, hasOlderVersions: try ledger.liveVersionCount() > 0)
            engine.memory.absorption = absorption
            engine.memory.neededObjects += neededPieces(absorption)
            if interrupted.map({ $0 != hash.bytes }) ?? false { try dropUncoveredVersions() }
            try ledger.set(.absorption, to: hash.bytes)
            if engine.memory.absorption?.remaining.isEmpty == true { try finishAbsorption() }
            return
        }
        guard interrupted != nil else { return }
        // The agent was restarted, and the checkpoint is gone.
        try dropUncoveredVersions()
        try ledger.set(.absorption, to: nil)
    }

    /// Gives up the checkpoint that is being absorbed if no part of it could be read since the last listing, so that another one is absorbed.
    ///
    /// Its author removes it once a newer one covers it, for example while this machine sleeps. And a member's program may publish what no device
    /// can open.
    mutating func abandonStalledAbsorption() throws(KeychainFailure) {
        // One without remaining parts waits for a person to confirm deletions.
        guard let absorption = engine.memory.absorption, !absorption.remaining.isEmpty else { return }
        let isOpenable = try areLanesAvailable() && !isPlanted(.keepsStalledAbsorption)
        guard isOpenable, absorption.remaining.count == absorption.remainingAtLastListing else {
            engine.memory.absorption?.remainingAtLastListing = isOpenable ? absorption.remaining.count : nil
            return
        }
        observe(.abandonedAbsorption)
        engine.memory.checkpoints[absorption.hash]?.isSetAside = true
        try endAbsorption()
        try dropUncoveredVersions()
    }

    /// Removes what came from a checkpoint that is not absorbed to its end, and may never be.
    ///
    /// A version that no read batch and no absorbed checkpoint contains would otherwise stay on this device alone.
    mutating func dropUncoveredVersions() throws(KeychainFailure) {
        if let hash = engine.memory.absorption?.hash, engine.memory.checkpoints[hash].map({ !isUsable(hash, $0) }) ?? true {
            observe(.abandonedAbsorption)
            try endAbsorption()
        }
        guard isFolded else {
            // Their rows cannot be removed yet: a program may have written to them. It is done before the next absorption, as after a restart.
            if engine.memory.absorption == nil { try ledger.set(.absorption, to: []) }
            return
        }
        let absorption = engine.memory.absorption
        let uncovered = try publishedVersions { origin, _ throws(KeychainFailure) in
            if absorption?.covers(origin) == true { return false }
            return try !ledger.isRead(origin)
        }
        for version in uncovered { try merge.remove(version) }
    }

    /// Returns the live versions of batches that fulfil a condition.
    private func publishedVersions(
        where isIncluded: (Origin, VersionReference) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> [LiveVersion] {
        var versions: [LiveVersion] = []
        var last: VersionReference?
        while true {
            let page = try ledger.liveVersions(after: last, limit: 1_000)
            for version in page {
                if let origin = version.reference.origin, try isIncluded(origin, version.reference) { versions.append(version) }
            }
            guard page.count == 1_000, let end = page.last else { return versions }
            last = end.reference
        }
    }

    /// Lets the batches be read that the checkpoint covers and this device has not taken over.
    private mutating func endAbsorption() throws(KeychainFailure) {
        engine.memory.absorption = nil
        try ledger.set(.absorption, to: nil)
        engine.memory.areReadsQueued = false
    }

    private func coversUnread(_ checkpoint: KnownCheckpoint, besides read: Set<Origin>) throws(KeychainFailure) -> Bool {
        for origin in checkpoint.coverage where !read.contains(origin) {
            if try !ledger.isRead(origin) { return true }
        }
        return false
    }

    func seenCheckpoints() throws(KeychainFailure) -> SeenCheckpoints {
        guard let bytes = try ledger.setting(.seenCheckpoints) else { return SeenCheckpoints() }
        return try stored { () throws(FormatError) in try SeenCheckpoints(bytes) }
    }

    mutating func receiveCheckpoint(_ hash: CheckpointHash, _ bytes: [UInt8], name: String) throws(KeychainFailure) {
        guard engine.memory.checkpoints[hash] == nil else { return }
        guard let manifest = parsed(by: nil, { () throws(FormatError) in try CheckpointManifest(bytes) }), manifest.circle == circle,
            cipher.hash(manifest.unsignedBytes) == hash, let keys = roster.publicKeys[manifest.author],
            cipher.isValid(
                manifest.signature, of: CheckpointManifest.signedMessage(circle: circle, hash: hash), by: keys.signing),
            let key = try laneKey(manifest.laneKey), let plaintext = try opened(manifest.sealed, manifest.header, key),
            let content = parsed(by: manifest.author, { () throws(FormatError) in try CheckpointContent(plaintext) })
        else {
            engine.memory.rejected.insert(name)
            return
        }
        let checkpoint = KnownCheckpoint(author: manifest.author, content)
        engine.memory.checkpoints[hash] = checkpoint
        if isUsable(hash, checkpoint) { engine.memory.neededObjects += neededPieces(checkpoint.unreadCoverage) }
    }

    func opened(_ sealed: SealedContent, _ header: [UInt8], _ key: SharedSecretBytes) throws(KeychainFailure) -> [UInt8]? {
        do throws(KeychainFailure) {
            return try cipher.open(sealed, header: header, under: key)
        } catch {
            guard error.status == .decode else { throw error }
            return nil
        }
    }

    /// Returns whether the piece was of use.
    mutating func receivePiece(_ hash: ObjectHash, _ bytes: [UInt8]) throws(KeychainFailure) -> Bool {
        guard cipher.hash(bytes) == hash, let content = try pieceContent(bytes) else { return false }
        if case .coverage(let batches, let marks) = content {
            for checkpoint in engine.memory.checkpoints.keys.sorted() {
                engine.memory.checkpoints[checkpoint]?.note(batches, marks, of: hash)
            }
            // A member's program may list it as a piece with versions.
            return engine.memory.absorption?.remaining.contains(hash) != true
        }
        var isUsed = false
        if case .versions(let versions) = content { isUsed = try restoreContents(in: versions, of: hash) }
        guard engine.memory.absorption?.remaining.remove(hash) != nil else { return isUsed }
        switch content {
        case .coverage: break
        case .awaited(let references): engine.memory.absorption?.awaited += references
        case .versions(let versions): try absorb(versions)
        }
        if isPlanted(.removalPassPerPiece) { try removeUncontained() }
        if engine.memory.absorption?.remaining.isEmpty == true { try finishAbsorption() }
        return true
    }

    /// Opens a piece; nil if it cannot be opened.
    private mutating func pieceContent(_ bytes: [UInt8]) throws(KeychainFailure) -> PieceContent? {
        guard let piece = parsed(by: nil, { () throws(FormatError) in try CheckpointPiece(bytes) }), piece.circle == circle,
            let key = try laneKey(piece.laneKey), let plaintext = try opened(piece.sealed, piece.header, key)
        else { return nil }
        return parsed(by: nil) { () throws(FormatError) in try PieceContent(piece.kind, plaintext) }
    }

    private mutating func absorb(_ versions: [PieceContent.CheckpointVersion]) throws(KeychainFailure) {
        let cipher = cipher
        for version in versions {
            guard let origin = version.reference.origin, let summary = try items.summary(of: version.content), summary.date.isFinite
            else { continue }
            engine.memory.absorption?.insert(version.reference, cipher)
            if try !merge.isCovered(origin) {
                observe(.absorbedVersion)
                try merge.addUnlessReplaced(version.reference, version.content, summary)
            }
        }
    }

    /// Removes what the checkpoint covers and does not contain, and takes over its coverage.
    private mutating func finishAbsorption() throws(KeychainFailure) {
        guard let absorption = engine.memory.absorption, let checkpoint = engine.memory.checkpoints[absorption.hash] else { return }
        guard try removeUncontained() else { return }
        for reference in absorption.awaited {
            try merge.remember(reference)
            observe(.absorbedAwaited)
        }
        var marks: [LogMark] = []
        for mark in checkpoint.marks where isAuthentic(mark) {
            if try !ledger.isRead(mark.origin) { marks.append(mark) }
        }
        for batch in checkpoint.batches where try !ledger.isRead(batch.origin) {
            try noteRead(ReadBatch(log: batch.log, device: batch.device, number: batch.number, hash: batch.hash, versionCount: 0))
        }
        let newest = Set(checkpoint.marks.map(\.origin))
        for log in Set(checkpoint.batches.map(\.log)).sorted() {
            for mark in try ledger.marks(of: log) where absorption.covers(mark.origin) && !newest.contains(mark.origin) {
                try ledger.removeMark(mark.origin)
            }
        }
        for mark in marks { try ledger.insert(mark, isToReport: mark.device != device) }
        try merge.touchFormer()
        try endAbsorption()
        engine.memory.areCheckpointsDue = true
        observe(.finishedAbsorption)
    }

    /// Removes the live versions that the checkpoint covers and does not contain, and those that it knows to be replaced.
    ///
    /// Returns false if a person has to confirm so many deletions.
    @discardableResult
    private mutating func removeUncontained() throws(KeychainFailure) -> Bool {
        engine.memory.absorption?.sortContained()
        guard let absorption = engine.memory.absorption else { return true }
        var removed: [LiveVersion] = []
        if absorption.hasOlderVersions {
            removed = try publishedVersions { origin, reference in
                absorption.covers(origin) && !absorption.contains(reference, cipher)
            }
        }
        let uncontained = Set(removed.map(\.reference))
        for reference in Set(absorption.awaited).subtracting(uncontained).sorted() {
            removed += try merge.versions(replacedBy: reference)
        }
        guard try mayDelete(UInt64(removed.lazy.filter { $0.item != nil }.count)) else { return false }
        for version in removed {
            if uncontained.contains(version.reference) { observe(.removedUncontained) }
            try merge.remove(version)
        }
        return true
    }

    // Writing

    private static var longestHealingDelaySeconds: Double { 3_600 }

    private mutating func writeCheckpointIfDue() throws(KeychainFailure) {
        // What is absorbed so far is of no matter: a checkpoint has only what is covered here.
        let isAbsorbing = engine.memory.absorption.map { engine.memory.checkpoints[$0.hash]?.isSetAside != true } ?? false
        guard ownRole?.mayWrite == true, !isAbsorbing, try !isLastCheckpointOnItsWay() else { return }
        let complete = completeCheckpoints.filter { !$0.checkpoint.isSetAside }
        let covered = complete.reduce(into: Set<Origin>()) { $0.formUnion($1.checkpoint.coverage) }
        let uncovered = engine.memory.listedBatches.count { !covered.contains($0.origin) && !engine.memory.unread.contains($0.origin) }
        let (batchCount, versionCount, isBatchLost) = try readBatches(besides: covered)
        let ownCount = complete.isEmpty ? nil : max(complete.count { $0.checkpoint.author == device }, 1)
        let largestCount = try largestUncoveredVersionCount(ownCount: ownCount, coveredCount: covered.count + batchCount)
        if uncovered >= limits.uncoveredBatches || versionCount >= largestCount {
            try beginCheckpoint()
            return
        }
        guard isBatchLost, !isPlanted(.noHealingCheckpoint) else {
            engine.memory.waits.healingTime = nil
            return
        }
        guard let time = engine.memory.waits.healingTime else {
            // Another device may heal the storage first.
            let time = now + 60 + Double(randomWord() % UInt64(Self.longestHealingDelaySeconds - 60))
            engine.memory.waits.healingTime = time
            effects.append(.wake(at: time))
            return
        }
        // A time further ahead was chosen before the clock was set back.
        let isOutdated = time - now > Self.longestHealingDelaySeconds && !isPlanted(.waitsForEarlierClock)
        guard now >= time || isOutdated else { return }
        if let last = try ownCheckpoint()?.seconds, abs(now - last) < 86_400 {
            effects.append(.wake(at: last + 86_400))
            return
        }
        try beginCheckpoint()
        observe(.healed)
        engine.memory.waits.healingTime = nil
    }

    /// Returns how many versions may be uncovered before a checkpoint is due, if it has to cover so many batches.
    ///
    /// Half of what the checkpoint has, and as much again for each further one of this device, because they stay for a day or longer, however often
    /// items change. `ownCount` is nil if there is none of any device. The writers have different limits, so that they do not all write one at the same
    /// moment.
    private func largestUncoveredVersionCount(ownCount: Int?, coveredCount: Int) throws(KeychainFailure) -> Int {
        // The hash of a batch takes a sixth of the room of a small version.
        let size = try ledger.liveVersionCount() + coveredCount / 6
        let count = ownCount.map { max(limits.uncoveredVersions, size / 2) * $0 } ?? max(limits.uncoveredVersions, size * 3 / 2)
        let rank = roster.members.count { $0.value.role.mayWrite && $0.key < device }
        return count + count / 4 * min(rank, 4)
    }

    /// Returns what this device has read that no checkpoint in the storage covers: the number of batches, that of versions, by the room that they take,
    /// and whether a batch is lost, which is not in the storage either.
    private func readBatches(
        besides covered: Set<Origin>
    ) throws(KeychainFailure) -> (count: Int, versionCount: Int, isBatchLost: Bool) {
        // The room of a batch besides its versions.
        let batchOverhead = 2
        var (count, versionCount, isBatchLost) = (0, 0, false)
        let listed = Set(engine.memory.listedBatches)
        let onTheWay = Set(try ledger.outgoingNames())
        for log in try ledger.logs() {
            for batch in try ledger.readBatches(of: log) where !covered.contains(batch.origin) {
                count += 1
                versionCount += batch.versionCount + batchOverhead
                let object = ListedBatch(device: batch.device, origin: batch.origin)
                if !isBatchLost, !listed.contains(object), !onTheWay.contains(object.name) { isBatchLost = true }
            }
        }
        return (count, versionCount, isBatchLost)
    }

    private func ownCheckpoint() throws(KeychainFailure) -> (seconds: Double, hash: CheckpointHash)? {
        guard let bytes = try ledger.setting(.ownCheckpoint) else { return nil }
        return try stored { () throws(FormatError) in
            var reader = FieldReader(bytes)
            try reader.version(1)
            return (try reader.seconds(), try reader.hash())
        }
    }

    /// Returns whether this device's last checkpoint is not in the storage yet, or its creation is not visible.
    private func isLastCheckpointOnItsWay() throws(KeychainFailure) -> Bool {
        guard let (seconds, hash) = try ownCheckpoint(), !engine.memory.listedCheckpoints.contains(hash) else { return false }
        let name = ObjectName.checkpoint(hash).text
        return abs(now - seconds) < 3_600 ? true : try ledger.outgoingBytes(name) != nil
    }

    // Removing

    /// Removes this device's batches that a checkpoint has covered for a week, and its checkpoints of which a newer one has covered all for a day.
    ///
    /// Its oldest checkpoint that is younger than a week stays: if each one was replaced within a week, no batch would ever be removed.
    private mutating func removeCoveredObjects() throws(KeychainFailure) {
        var seen = try seenCheckpoints()
        let before = seen
        let complete = completeCheckpoints
        seen.keepOnly(engine.memory.listedCheckpoints)
        // A time in the future was noted before the clock was set back.
        for (hash, checkpoint) in complete where seen[hash].map({ $0.seconds > now }) ?? true {
            seen.note(hash, by: checkpoint.author, at: now)
        }
        if seen != before { try ledger.set(.seenCheckpoints, to: seen.encoded) }

        let ages = complete.map { now - (seen[$0.hash]?.seconds ?? now) }
        let usable = complete.indices.filter { !complete[$0].checkpoint.isSetAside }
        let covered = usable.filter { ages[$0] >= limits.secondsBeforePurge }
            .reduce(into: Set<Origin>()) { $0.formUnion(complete[$1].checkpoint.coverage) }
        for batch in engine.memory.listedBatches where batch.device == device && !engine.memory.unread.contains(batch.origin) {
            if covered.contains(batch.origin) || isPlanted(.purgeBeforeCheckpoint) { effects.append(.remove(batch.name)) }
        }
        let own = complete.indices.filter { complete[$0].checkpoint.author == device }
        let maturing = own.last { ages[$0] < limits.secondsBeforePurge }
        for index in own where index != maturing {
            let entry = complete[index]
            let newer = usable.prefix { $0 < index }.filter { ages[$0] >= limits.secondsBeforeReplacement }
            guard newer.contains(where: { complete[$0].checkpoint.coverage.isSuperset(of: entry.checkpoint.coverage) }) else { continue }
            effects.append(.remove(ObjectName.checkpoint(entry.hash).text))
            let kept = Set(complete.filter { $0.hash != entry.hash }.flatMap { $0.checkpoint.pieces.map(\.hash) })
            for piece in entry.checkpoint.pieces where !kept.contains(piece.hash) {
                effects.append(.remove(ObjectName.piece(piece.hash).text))
            }
        }
    }
}
