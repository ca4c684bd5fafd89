// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Receiving batches.
extension EngineStep {
    /// Applies an unread batch that was read.
    ///
    /// If it stays unread and does not wait, it is of no use until something changes.
    mutating func receiveBatch(_ listed: ListedBatch, _ bytes: [UInt8]) throws(KeychainFailure) {
        if let frame = parsed(by: listed.device, { () throws(FormatError) in try BatchFrame(bytes) }),
            let mark = authenticMark(frame, listed)
        {
            try receive(AuthenticBatch(listed: listed, frame: frame, mark: mark))
        } else {
            engine.memory.rejected.insert(listed.name)
        }
    }

    /// Applies the batches that were received before a batch that has been read now.
    mutating func receiveReleased() throws(KeychainFailure) {
        while let batch = engine.memory.unread.takeReleased() {
            // A checkpoint that covers the predecessor may cover the batch too.
            if try ledger.isRead(batch.listed.origin), !isPlanted(.appliesCoveredBatch) { continue }
            observe(.releasedBatch)
            // The guard against many deletions counts the items that are shown.
            try settle()
            try receive(batch)
        }
    }

    private mutating func receive(_ batch: AuthenticBatch) throws(KeychainFailure) {
        try apply(batch)
        guard try !ledger.isRead(batch.listed.origin), !engine.memory.unread.isWaiting(batch.listed) else { return }
        engine.memory.rejected.insert(batch.listed.name)
    }

    private mutating func apply(_ batch: AuthenticBatch) throws(KeychainFailure) {
        let (author, frame, mark) = (batch.listed.device, batch.frame, batch.mark)
        guard try isWanted(batch.listed) else { return }
        if mark.number > 1, !isPlanted(.chainNotChecked) {
            let previous = Origin(log: mark.log, number: mark.number - 1, hash: mark.previous.prefix)
            guard try ledger.isRead(previous) else {
                // Of a former author, a batch that counts makes its predecessors count.
                if roster.formerAuthors.contains(author) { try permit(previous) }
                observe(.waitedForPredecessor)
                engine.memory.unread.wait(batch, for: previous, heldByteLimit: limits.heldByteCount)
                return
            }
        }
        guard let key = try laneKey(frame.header.laneKey) else {
            observe(.waitedForKey)
            engine.memory.withoutKey.insert(batch.listed.name)
            return
        }
        guard let content = try openContent(frame, key), let summaries = try summaries(content, frame.header.lane) else {
            effects.append(.alarm(.invalidBatch(author)))
            return
        }
        guard try mayDelete(content.versions, summaries) else { return }
        if roster.formerAuthors.contains(author) { observe(.readFormer) }
        if try ledger.isAnyRead(mark.number, of: mark.log) { observe(.readFork) }
        try apply(content, summaries, mark)
    }

    /// Returns the mark that a batch proves; nil if it is not authentic or has another name.
    func authenticMark(_ frame: BatchFrame, _ batch: ListedBatch) -> LogMark? {
        let hash = cipher.hash(BatchFrame.unsignedBytes(frame.header, frame.sealed))
        let mark = LogMark(
            log: frame.header.log, device: frame.header.device, number: frame.header.number, previous: frame.header.previous, hash: hash,
            signature: frame.signature)
        guard frame.header.circle == circle, mark.device == batch.device, mark.origin == batch.origin, isAuthentic(mark) else { return nil }
        return mark
    }

    func isAuthentic(_ mark: LogMark) -> Bool {
        guard let keys = roster.authors[mark.device] ?? roster.publicKeys[mark.device] else { return false }
        return cipher.isValid(mark.signature, of: mark.signedMessage(circle: circle), by: keys.signing)
    }

    mutating func openContent(_ frame: BatchFrame, _ key: SharedSecretBytes) throws(KeychainFailure) -> BatchContent? {
        let plaintext: [UInt8]
        do throws(KeychainFailure) {
            plaintext = try cipher.open(frame.sealed, header: frame.header.encoded, under: key)
        } catch {
            guard error.status == .decode else { throw error }
            return nil
        }
        return parsed(by: frame.header.device) { () throws(FormatError) in try BatchContent(plaintext) }
    }

    /// Describes all contents; nil if one of them is not an item of the lane.
    func summaries(_ content: BatchContent, _ lane: Lane) throws(KeychainFailure) -> [ContentSummary?]? {
        var summaries: [ContentSummary?] = []
        for version in content.versions {
            guard let received = version.content else {
                summaries.append(nil)
                continue
            }
            guard let summary = try items.summary(of: received), summary.lane == lane,
                summary.date.isFinite || isPlanted(.notFiniteDates)
            else { return nil }
            summaries.append(summary)
        }
        return summaries
    }

    private mutating func apply(_ content: BatchContent, _ summaries: [ContentSummary?], _ mark: LogMark) throws(KeychainFailure) {
        for (version, summary) in zip(content.versions, summaries) {
            if mark.device == device { try dropPending(version, mark.origin, summary) }
            try merge.apply(version, at: mark.origin, summary)
        }
        try noteRead(mark, versionCount: content.versions.count)
        if mark.device != device { try note(content.notes, of: mark.device) }
        for other in content.notes.marks { try learn(other, from: mark.device) }
    }

    /// Handles a version of this device that it does not know it has published: it was restored from a snapshot, or it is a clone.
    private mutating func dropPending(
        _ version: VersionRecord, _ origin: Origin, _ summary: ContentSummary?
    ) throws(KeychainFailure) {
        guard !isPlanted(.sealWithoutReadingOwnLog), let pending = try ledger.pendingVersion(version.id) else { return }
        let published = VersionReference(id: version.id, origin: origin)
        try ledger.removePending(pending.id)
        if Set(version.replaced).isSuperset(of: pending.replaced) || isPlanted(.dropsLongerList) {
            observe(.droppedPending)
            guard var live = try ledger.liveVersion(VersionReference(id: version.id, origin: nil)) else { return }
            // The row shows what the batch contains, so the version only gets its origin.
            let unpublished = live.reference
            live.reference = published
            if live.date == nil, let summary {
                // It was folded while its class was locked, and taken for the newest.
                live.date = summary.date
                live.contentDigest = summary.contentDigest
                merge.touch(live.name)
            }
            if try ledger.isAwaited(published) {
                live.reference = unpublished
                try merge.remove(live)
            } else {
                try ledger.replace(unpublished, with: live)
                if live.item == nil { try items.renameCopy(unpublished, to: published) }
            }
        } else {
            observe(.republishedPending)
            // This time it replaces more, so it is published once more, in place of the first.
            var again = pending
            again.replaced = Set(pending.replaced + version.replaced + [published]).sorted()
            try ledger.insert(again)
            try merge.remember(published)
        }
    }

    /// Remembers a batch as read and moves the mark of its log.
    mutating func noteRead(_ mark: LogMark, versionCount: Int) throws(KeychainFailure) {
        try noteRead(ReadBatch(log: mark.log, device: mark.device, number: mark.number, hash: mark.hash, versionCount: versionCount))
        if mark.number > 1 {
            let previous = Origin(log: mark.log, number: mark.number - 1, hash: mark.previous.prefix)
            // Another member can write batches that follow those of this one.
            if try ledger.mark(previous)?.device == mark.device { try ledger.removeMark(previous) }
        }
        try ledger.insert(mark, isToReport: mark.device != device)
    }

    /// Learns how far another device has read a log, by the signed bytes on which its mark rests.
    mutating func learn(_ mark: LogMark, from reporter: DeviceID) throws(KeychainFailure) {
        // What a device reports of itself, its batches prove, and it could report any number of batches that do not exist.
        guard mark.device != reporter, isPlanted(.unsignedMarks) || isAuthentic(mark), try !ledger.isRead(mark.origin) else { return }
        // Also of a device that is still a member: that it is none any more may be learned before this batch is read.
        if roster.members[reporter]?.role.mayWrite == true { try permit(mark.origin) }
        if try ledger.mark(mark.origin) == nil { try ledger.insert(mark, isToReport: false) }
    }

    /// Returns whether deletions may be applied without asking a person.
    ///
    /// A version with a content also deletes if it replaces an item of another name, as a rename does.
    private mutating func mayDelete(_ versions: [VersionRecord], _ summaries: [ContentSummary?]) throws(KeychainFailure) -> Bool {
        var deleted: UInt64 = 0
        for (version, summary) in zip(versions, summaries) {
            var isOfUnseenItem = false
            for reference in version.replaced {
                // A deletion may arrive before the item, whose batch is in another log.
                if version.content == nil, let origin = reference.origin, try !merge.isCovered(origin) { isOfUnseenItem = true }
                let isDeleted = try merge.versions(replacedBy: reference).contains { $0.item != nil && $0.name != summary?.name }
                deleted += isDeleted ? 1 : 0
            }
            deleted += isOfUnseenItem ? 1 : 0
        }
        return try mayDelete(deleted)
    }

    mutating func mayDelete(_ deleted: UInt64) throws(KeychainFailure) -> Bool {
        guard deleted > 0 else { return true }
        var count = DeletionCount()
        if let bytes = try ledger.setting(.deletionGuard) { count = try stored { () throws(FormatError) in try DeletionCount(bytes) } }
        if abs(now - count.start) > DeletionCount.day {
            count = DeletionCount()
            count.start = now
        }
        let total = count.count + deleted
        let itemCount = UInt64(try ledger.liveVersionCount())
        guard total <= max(limits.unconfirmedDeletions, (itemCount + total) / 10, count.confirmed) else {
            effects.append(.alarm(.massDeletion(Int(clamping: total))))
            count.asked = total
            try ledger.set(.deletionGuard, to: count.encoded)
            return false
        }
        count.count = total
        try ledger.set(.deletionGuard, to: count.encoded)
        return true
    }
}
