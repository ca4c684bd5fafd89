// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Sealing local writes and notes into batches.
extension EngineStep {
    /// Lets local writes be sealed once the statements that are in the storage now are read: one of them may remove a device.
    ///
    /// Of the batches, those that this device knows of are enough: it lists them when it starts. Listing them again would take time for each one.
    mutating func beginSealing() {
        effects.append(.list(.statements))
        engine.memory.listedFolders.remove(.statements)
        if engine.memory.listedFolders.contains(.batches) {
            engine.memory.maySeal = true
        } else {
            effects.append(.list(.batches))
        }
    }

    /// Seals the pending versions of each lane whose keys are available.
    ///
    /// Before, the device reads what it can see of its own logs: it may have been restored from a snapshot, or be a clone.
    mutating func sealPending() throws(KeychainFailure) {
        guard engine.sealsChanges, ownRole?.mayWrite == true, engine.memory.maySeal || isPlanted(.sealWithoutReadingOwnLog),
            !roster.heads.isEmpty,
            areStatementsRead
        else { return }
        var unreadable: [ListedBatch] = []
        if !isPlanted(.sealWithoutReadingOwnLog) {
            guard let batches = try unreadableOwnBatches() else { return }
            unreadable = batches
        }
        let hasWaited = try hasWaited(for: unreadable)
        var count = 0
        for lane in Lane.allCases where try items.isAvailable(lane) && (hasWaited || engine.memory.waits.overdueLanes.contains(lane)) {
            while try sealBatch(lane) {
                count += 1
                // Otherwise programs could not write before all are sealed. The rest may have been written after the statements were listed.
                if count == limits.batchesInStep { return beginSealing() }
            }
            engine.memory.waits.overdueLanes.remove(lane)
        }
        guard hasWaited else { return }
        while try mustReportMarks(), try sealBatch(.afterFirstUnlock, evenIfEmpty: true) { observe(.reportedMarks) }
        if try ledger.setting(.ownName) != ledger.setting(.toldName) { _ = try sealBatch(.afterFirstUnlock, evenIfEmpty: true) }
        engine.memory.maySeal = false
    }

    /// Returns the batches of this device's own logs that it cannot read: they, or their predecessors, may be on their way, or the
    /// statement with their key may be.
    ///
    /// Nil while it can read more of them.
    private func unreadableOwnBatches() throws(KeychainFailure) -> [ListedBatch]? {
        guard !engine.memory.unread.own.isEmpty else { return [] }
        guard engine.memory.reading.isEmpty else { return nil }
        var unreadable: [ListedBatch] = []
        for batch in engine.memory.unread.own {
            if engine.memory.unread.isReadable(batch.origin), !engine.memory.unread.isWaiting(batch) {
                guard try isWanted(batch) else { continue }
                guard isSetAside(batch.name) else { return nil }
            } else if engine.memory.absorption?.covers(batch.origin) == true {
                continue
            }
            unreadable.append(batch)
        }
        return unreadable.sorted()
    }

    private static var longestWaitSeconds: Double { 3_600 }

    /// Whether the statements that members name are there, or have been waited for.
    ///
    /// One of them may be a removal. But a statement can be lost together with the disks of those who had it.
    var hasWaitedForStatements: Bool { roster.missing.isSubset(of: engine.memory.waits.waitedFor) }

    /// Waits an hour for statements that members name, and for this device's own batches, then raises an alarm and goes on.
    ///
    /// What is missing afterwards is not waited for again. Something else is, for an hour of its own, but not before something was sealed: so members
    /// that name one after the other delay each change by an hour. A lane that is locked when a wait ends has waited too.
    private mutating func hasWaited(for batches: [ListedBatch]) throws(KeychainFailure) -> Bool {
        // It is in the future if the clock was set back.
        if let since = engine.memory.waits.sealingSince { engine.memory.waits.sealingSince = min(since, now) }
        if let since = engine.memory.waits.sealingSince, engine.memory.unreadableOwn == batches, isWaiting(since: since) { return false }
        engine.memory.unreadableOwn = nil
        let reasons = roster.missing.union(batches.map { cipher.hash(Array($0.name.utf8)) })
        engine.memory.waits.waitedFor.formIntersection(reasons)
        guard !reasons.isSubset(of: engine.memory.waits.waitedFor) else {
            engine.memory.waits.sealingSince = nil
            return true
        }
        let since = engine.memory.waits.sealingSince ?? now
        engine.memory.waits.sealingSince = since
        guard !isWaiting(since: since) else {
            engine.memory.unreadableOwn = batches
            return false
        }
        engine.memory.waits.sealingSince = nil
        engine.memory.waits.waitedFor = reasons
        if let missing = roster.missing.sorted().first { effects.append(.alarm(.missingStatement(missing))) }
        for lane in Lane.allCases where try !items.isAvailable(lane) {
            if try !candidates(lane, limit: 1).isEmpty { engine.memory.waits.overdueLanes.insert(lane) }
        }
        return true
    }

    /// A machine that was asleep has to look again: a wait ends only with statements that were listed after it was over.
    private mutating func isWaiting(since: Double) -> Bool {
        let lastLook = min(engine.memory.statementsListedAt ?? now, now)
        guard lastLook - since < Self.longestWaitSeconds else { return false }
        effects.append(.wake(at: since + Self.longestWaitSeconds))
        return true
    }

    /// Returns at most `limit` pending versions of a lane, oldest first, without those that were found not to be sendable.
    private func candidates(_ lane: Lane, limit: Int) throws(KeychainFailure) -> [PendingVersion] {
        let unsendable = engine.memory.unsendable
        // If all were among the first ones, as many as asked for would be left.
        let pending = try ledger.pendingVersions(in: lane, limit: limit + unsendable.count)
        return Array(pending.lazy.filter { !unsendable.contains($0.id) }.prefix(limit))
    }

    /// Returns whether every pending version is sealed that can be.
    ///
    /// A version that is never sent must not keep this device from what others have sent.
    mutating func areSendableVersionsSealed() throws(KeychainFailure) -> Bool {
        guard ownRole?.mayWrite == true else { return true }
        for lane in Lane.allCases {
            while let version = try candidates(lane, limit: 1).first {
                guard try record(version) == nil else { return false }
                engine.memory.unsendable.insert(version.id)
            }
        }
        return true
    }

    /// Seals a batch; returns whether there may be more.
    private mutating func sealBatch(_ lane: Lane, evenIfEmpty: Bool = false) throws(KeychainFailure) -> Bool {
        let pending = try candidates(lane, limit: limits.versionsInBatch)
        guard !pending.isEmpty || evenIfEmpty, let key = try sealingKey(lane) else { return false }
        var records: [VersionRecord] = []
        var sealed: [(pending: PendingVersion, live: LiveVersion?)] = []
        var byteCount = 0
        for version in pending {
            let (part, rest) = split(version)
            guard let (record, live) = try record(part) else {
                engine.memory.unsendable.insert(version.id)
                continue
            }
            // A reference may need an entry in the table of logs.
            let size = (record.content?.byteCount ?? 0) + 64 + record.replaced.count * (VersionRecord.referenceByteCount + 16)
            if !records.isEmpty, byteCount + size > limits.batchByteCount { break }
            byteCount += size
            records.append(record)
            sealed.append((version, live))
            if let rest { try ledger.insert(rest) }
        }
        guard !records.isEmpty || evenIfEmpty else { return true }
        if isPlanted(.rangedBatches) { records += try publishedRecords(lane) }
        let mark = try publishBatch(records, lane, key)
        for (pending, live) in sealed {
            try ledger.removePending(pending.id)
            guard var live else { continue }
            let unpublished = live.reference
            live.reference = VersionReference(id: pending.id, origin: mark.origin)
            try ledger.replace(unpublished, with: live)
            if live.item == nil { try items.renameCopy(unpublished, to: live.reference) }
        }
        return true
    }

    /// Splits a version that replaces more versions than one can into one that is sent now, and a deletion of the rest that is sent after it.
    ///
    /// The deletion is in the lane of the version, so that no device reads it first. A machine that is restored from a snapshot makes the same.
    private func split(_ version: PendingVersion) -> (PendingVersion, rest: PendingVersion?) {
        guard version.replaced.count > limits.replacedVersions else { return (version, nil) }
        var first = version
        first.replaced = Array(version.replaced.prefix(limits.replacedVersions))
        let replaced = Array(version.replaced.dropFirst(limits.replacedVersions))
        let id = SyncVersionID(cipher.hash(version.id.bytes + StoredList.encoded(replaced.prefix(1).compactMap(\.origin))).prefix)
        return (first, PendingVersion(id: id, name: version.name, lane: version.lane, isDeletion: true, replaced: replaced))
    }

    /// A planted fault: lets a batch stand for earlier batches of its log too.
    private func publishedRecords(_ lane: Lane) throws(KeychainFailure) -> [VersionRecord] {
        var records: [VersionRecord] = []
        for live in try ledger.liveVersions(after: nil, limit: 1_000) where live.lane == lane {
            guard let log = try ownLogs()[lane]?.log, live.reference.origin?.log == log, let content = try items.content(of: live)
            else { continue }
            records.append(VersionRecord(id: live.reference.id, replaced: [], content: content))
        }
        return records
    }

    /// Returns the record of a pending version; nil if its content cannot be sent, because it is damaged or too large.
    mutating func record(_ version: PendingVersion) throws(KeychainFailure) -> (VersionRecord, LiveVersion?)? {
        if version.isDeletion { return (VersionRecord(id: version.id, replaced: version.replaced, content: nil), nil) }
        guard var live = try ledger.liveVersion(VersionReference(id: version.id, origin: nil)),
            let content = try items.content(of: live), let summary = try items.summary(of: content),
            summary.lane == version.lane || isPlanted(.sendsThisDeviceOnly)
        else { return nil }
        guard content.byteCount <= SyncContent.largestByteCount else {
            effects.append(.alarm(.itemTooLarge(live.name)))
            return nil
        }
        if live.date == nil {
            live.date = summary.date
            live.contentDigest = summary.contentDigest
            try ledger.replace(live.reference, with: live)
            // Until now it was taken for the newest.
            merge.touch(live.name)
        }
        return (VersionRecord(id: version.id, replaced: version.replaced, content: content), live)
    }

    /// Seals and signs a batch, and stores its bytes with its number: after a crash the same bytes go out again.
    private mutating func publishBatch(
        _ records: [VersionRecord], _ lane: Lane, _ key: (id: LaneKeyID, key: SharedSecretBytes)
    ) throws(KeychainFailure) -> LogMark {
        var logs = try ownLogs()
        var log = logs[lane] ?? newLog()
        if try isContinuedElsewhere(log) {
            observe(.startedNewLog)
            log = newLog()
        }
        let header = BatchFrame.Header(
            circle: circle, log: log.log, device: device, lane: lane, number: log.number + 1, previous: log.hash, laneKey: key.id)
        let marks = try marksToReport(limit: limits.marksInBatch)
        let ownName = try ledger.setting(.ownName)
        let notes = BatchNotes(
            seconds: now, marks: marks, heads: Array(roster.heads.prefix(BatchNotes.largestHeadCount)), deviceName: ownName ?? [])
        let sealed = try cipher.seal(
            BatchContent(notes: notes, versions: records).encoded, header: header.encoded, under: key.key)
        let hash = cipher.hash(BatchFrame.unsignedBytes(header, sealed))
        let signature = try engine.keys.sign(
            BatchFrame.signedMessage(
                circle: circle, log: log.log, number: header.number, previous: header.previous, hash: hash))
        let mark = LogMark(
            log: log.log, device: device, number: header.number, previous: header.previous, hash: hash, signature: signature)
        try ledger.insert(
            OutgoingObject(
                name: ObjectName.batch(device: device, origin: mark.origin).text,
                bytes: BatchFrame(header: header, sealed: sealed, signature: signature).encoded))
        log.number = header.number
        log.hash = hash
        logs[lane] = log
        try ledger.set(.ownLogs, to: logs.encoded)
        try ledger.set(.toldName, to: ownName)
        try noteRead(mark, versionCount: records.count)
        for mark in marks { try ledger.noteReported(mark.origin) }
        return mark
    }

    func ownLogs() throws(KeychainFailure) -> OwnLogs {
        guard let bytes = try ledger.setting(.ownLogs) else { return OwnLogs() }
        return try stored { () throws(FormatError) in try OwnLogs(bytes) }
    }

    private mutating func newLog() -> OwnLogs.OwnLog {
        OwnLogs.OwnLog(log: LogID(Identifier128(high: randomWord(), low: randomWord())), number: 0, hash: .none)
    }

    /// Returns whether a batch of the log is known that this device does not know it has written.
    private func isContinuedElsewhere(_ log: OwnLogs.OwnLog) throws(KeychainFailure) -> Bool {
        guard log.number > 0, !isPlanted(.sameLogAfterFork) else { return false }
        let own = Origin(log: log.log, number: log.number, hash: log.hash.prefix)
        return try ledger.marks(of: log.log).contains { $0.device == device && $0.origin != own }
            || engine.memory.unread.own.contains { $0.origin.log == log.log }
    }

    // Notes

    /// The marks of batches that this device has read and not reported, those of former authors first: others depend on them.
    private func marksToReport(limit: Int) throws(KeychainFailure) -> [LogMark] {
        var marks: [LogMark] = []
        for device in roster.formerAuthors.sorted() + roster.members.keys.sorted() where marks.count < limit {
            marks += try ledger.marksToReport(of: device, limit: limit - marks.count)
        }
        return marks
    }

    /// Returns whether others depend on what this device has read: the log of a former author ends where the last one stopped.
    private func mustReportMarks() throws(KeychainFailure) -> Bool {
        for device in roster.formerAuthors where try !ledger.marksToReport(of: device, limit: 1).isEmpty {
            return true
        }
        return false
    }
}
