// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Turns the records of local writes into pending versions.
extension Merge {
    /// Folds at most `limit` records, all deletions before any write; returns their number, and whether none is left.
    ///
    /// A program may have deleted an item and added it again, and the records have no order.
    mutating func foldLocalWrites(limit: Int) throws(KeychainFailure) -> (count: Int, isComplete: Bool) {
        let deletions = try ledger.recordedChanges(.deleted, limit: limit)
        let writes = try ledger.recordedChanges(.rewritten, limit: limit) + ledger.recordedChanges(.written, limit: limit)
        if isPlanted(.foldInAnyOrder) {
            for change in (deletions + writes).sorted(by: { $0.item.isOrdered(before: $1.item) }) { try fold(change) }
            return (deletions.count + writes.count, deletions.count < limit && writes.count < limit)
        }
        for change in deletions { try fold(change) }
        guard deletions.count < limit else { return (deletions.count, false) }
        for change in writes { try fold(change) }
        return (deletions.count + writes.count, writes.count < limit)
    }

    private mutating func fold(_ change: RecordedChange) throws(KeychainFailure) {
        if change.kind != .deleted, let local = try items.localItem(change.item), let lane = local.lane ?? plantedLane {
            let isAddedAgain = change.kind == .rewritten
            if sharesWrites, former[local.revision] == nil || isPlanted(.sharesFormerVersions) {
                try foldWrite(local, lane, isAddedAgain: isAddedAgain)
            } else {
                try keepWrite(local, lane)
            }
        } else if sharesWrites {
            try foldDeletion(of: change.item)
        } else {
            try undoDeletion(of: change.item)
        }
        try ledger.eraseRecordedChange(change.item)
    }

    private var plantedLane: Lane? { isPlanted(.sendsThisDeviceOnly) ? .afterFirstUnlock : nil }

    /// A deletion replaces every live version of the item, so that no conflict copy reappears.
    private mutating func foldDeletion(of item: ItemID) throws(KeychainFailure) {
        guard let shown = try ledger.liveVersion(shownBy: item) else { return }
        let live = try versions(leftBy: item, under: shown.name)
        var replaced = try replace(isPlanted(.deleteReplacesVisibleOnly) ? [shown] : live)
        // No other device knows a version that was never published.
        guard !replaced.isEmpty else { return }
        let id = deletionID(of: shown)
        // A restored machine may find in its own log what a program has just deleted, and the program deletes it once more.
        if let earlier = try ledger.pendingVersion(id) {
            replaced = Set(replaced + earlier.replaced).sorted()
            try ledger.removePending(id)
        }
        try ledger.insert(PendingVersion(id: id, name: shown.name, lane: .afterFirstUnlock, isDeletion: true, replaced: replaced))
        touch(shown.name)
    }

    /// The identifier of a deletion, which has no row and hence no revision: that of the version which was visible, with one bit changed.
    ///
    /// A snapshot that is restored before the deletion was sent publishes the same identifier again.
    private func deletionID(of shown: LiveVersion) -> SyncVersionID {
        SyncVersionID(Identifier128(high: shown.reference.id.value.high ^ 1 << 63, low: shown.reference.id.value.low))
    }

    /// Returns the live versions of a name that an item had, without that of another item that was added under the name since.
    ///
    /// Records have no order, so the other item may have been folded first.
    private func versions(leftBy item: ItemID, under name: ItemName) throws(KeychainFailure) -> [LiveVersion] {
        let live = try ledger.liveVersions(named: name)
        return isPlanted(.moveReplacesLaterItem) || isPlanted(.foldInAnyOrder) ? live : live.filter { $0.item == nil || $0.item == item }
    }

    /// Folds a write, which replaces what its program saw: the shown version, and those of equal content.
    ///
    /// It also replaces older copies that would hide it, because a restored backup has an old
    /// date. A version that waits for an unlock was not seen, and stays.
    ///
    /// An item that was deleted and added again replaces everything that its deletion replaces.
    private mutating func foldWrite(_ local: LocalItem, _ lane: Lane, isAddedAgain: Bool) throws(KeychainFailure) {
        let shown = try ledger.liveVersion(shownBy: local.item)
        if let shown, shown.reference.id == local.revision, shown.name == local.name { return }
        let summary = try items.isAvailable(lane) ? items.summary(of: local.item) : nil
        if summary == nil, try items.isAvailable(lane), !isPlanted(.sendsThisDeviceOnly) {
            // The row was damaged after the write. What the circle has takes its place.
            if let shown { noteLoss(of: shown.reference) }
            return
        }
        var version = LiveVersion(
            reference: VersionReference(id: local.revision, origin: nil), name: local.name, lane: lane, date: summary?.date,
            contentDigest: summary?.contentDigest, item: local.item)

        var replaced: [LiveVersion] = []
        let isMoved = shown.map { $0.name != local.name } ?? false
        if let shown, isMoved || isAddedAgain {
            // Otherwise a conflict copy would appear under the old name.
            replaced += try versions(leftBy: local.item, under: shown.name)
            touch(shown.name)
            observe(isMoved ? .movedItem : .addedAgain)
        }
        if summary == nil { observe(.unknownDate) }
        let seen = isMoved || isAddedAgain ? nil : shown
        if let seen {
            replaced += try ledger.liveVersions(named: local.name).filter { other in
                if other.reference == seen.reference { return true }
                let isEqual = other.contentDigest != nil && other.contentDigest == seen.contentDigest
                let isHiding = summary != nil && Self.isOrdered(version, before: other) && Self.isOrdered(other, before: seen)
                return isEqual || isHiding
            }
            if replaced.count > 1 { observe(.keptEqual) }
        }
        let live = try ledger.liveVersions(named: local.name)
        for other in live where other.reference.origin == nil && !replaced.contains(other) {
            if other.reference != version.reference, try isLostForever(other) { replaced.append(other) }
        }
        let references = try replace(replaced)
        if try ledger.liveVersion(version.reference) != nil {
            // The revision is known under another name. A revision belongs to one write, so the row was moved by hand.
            version.item = local.item
            return try ledger.replace(version.reference, with: version)
        }
        try ledger.insert(version)
        try ledger.insert(PendingVersion(id: local.revision, name: local.name, lane: lane, isDeletion: false, replaced: references))
        // The row shows the only version. A keychain that begins to synchronize may have a million such items.
        if !live.isEmpty { touch(local.name) }
    }

    /// Returns whether the row of an unsent version is gone, and no copy has its content.
    ///
    /// Without a write that takes its place, it would wait to be sent forever.
    private func isLostForever(_ version: LiveVersion) throws(KeychainFailure) -> Bool {
        if let item = version.item, try items.localItem(item) != nil { return false }
        guard try items.isAvailable(version.lane) else { return false }
        return try items.content(of: version) == nil
    }

    // Writes that are not sent

    /// Keeps the write of a reader, or a former version, in a version that is not sent, and lets the circle's version take its place.
    ///
    /// The call of the program has overwritten the content of the circle's version.
    private mutating func keepWrite(_ local: LocalItem, _ lane: Lane) throws(KeychainFailure) {
        let shown = try ledger.liveVersion(shownBy: local.item)
        if let shown, shown.reference.id == local.revision, shown.name == local.name { return }
        try undoDeletion(of: local.item)
        let summary = try items.isAvailable(lane) ? items.summary(of: local.item) : nil
        let version = LiveVersion(
            reference: VersionReference(id: local.revision, origin: nil), name: local.name, lane: lane, date: summary?.date,
            contentDigest: summary?.contentDigest, item: local.item)
        if try ledger.liveVersion(version.reference) == nil { try ledger.insert(version) }
        observe(.keptUnshared)
        touch(local.name)
    }

    /// Removes the copies of equal content that are not shared: a program that writes the same again and again makes one copy.
    mutating func removeUnsharedCopies(equalTo version: LiveVersion) throws(KeychainFailure) {
        guard version.reference.origin == nil, let digest = version.contentDigest else { return }
        for other in try ledger.liveVersions(named: version.name) where other.reference.origin == nil && other.contentDigest == digest {
            if other.reference != version.reference { try remove(other) }
        }
    }

    /// Takes the version that an item showed for one whose content is lost, because a program of a reader has overwritten or deleted it.
    private mutating func undoDeletion(of item: ItemID) throws(KeychainFailure) {
        guard var shown = try ledger.liveVersion(shownBy: item) else { return }
        touch(shown.name)
        guard shown.reference.origin != nil else { return try ledger.remove(shown.reference) }
        shown.item = nil
        try ledger.replace(shown.reference, with: shown)
        noteLoss(of: shown.reference)
    }

    /// Removes versions that a local write replaces, and returns the published ones that it replaces, directly or through an unpublished one.
    private mutating func replace(_ versions: [LiveVersion]) throws(KeychainFailure) -> [VersionReference] {
        var references: Set<VersionReference> = []
        for version in versions {
            if version.reference.origin == nil {
                observe(.coalesced)
                if let pending = try ledger.pendingVersion(version.reference.id), !isPlanted(.coalescingDropsList) {
                    references.formUnion(pending.replaced)
                }
                try ledger.removePending(version.reference.id)
                // It was published before this device left the circle, and its batch may be read later.
                if let origin = former[version.reference.id] {
                    let published = VersionReference(id: version.reference.id, origin: origin)
                    references.insert(published)
                    try remember(published)
                }
            } else {
                references.insert(version.reference)
                try remember(version.reference)
            }
            // The program has written or removed the row itself.
            try ledger.remove(version.reference)
            if version.item == nil { try items.removeCopy(of: version.reference) }
        }
        return references.sorted()
    }
}
