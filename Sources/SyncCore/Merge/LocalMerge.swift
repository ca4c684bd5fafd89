// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The merge without formats, devices, and keys, for tests and for the exhaustive search.
package struct LocalMerge {
    private var merge: Merge

    /// `former`: as in `FormerVersions`.
    package init(_ transaction: SyncTransaction, former: [SyncVersionID: Origin] = [:]) {
        merge = Merge(transaction)
        merge.former = former
    }

    /// Folds all local writes.
    package mutating func fold() throws(KeychainFailure) {
        while try !merge.foldLocalWrites(limit: 512).isComplete {}
        _ = try merge.settle()
    }

    /// Gives all pending versions an origin, and returns them as a batch contains them.
    package mutating func publish(at origin: Origin) throws(KeychainFailure) -> [VersionRecord] {
        var records: [VersionRecord] = []
        for lane in Lane.allCases {
            for pending in try merge.ledger.pendingVersions(in: lane, limit: .max) {
                records.append(try merge.publish(pending, at: origin))
            }
        }
        try note(origin, records.count)
        return records
    }

    /// Applies a batch.
    package mutating func read(_ records: [VersionRecord], at origin: Origin) throws(KeychainFailure) {
        for record in records {
            let summary = try record.content.flatMapSummary(merge.items)
            try merge.apply(record, at: origin, summary)
        }
        try note(origin, records.count)
        _ = try merge.settle()
    }

    private func note(_ origin: Origin, _ versionCount: Int) throws(KeychainFailure) {
        let device = DeviceID(Identifier128(high: 0, low: 0))
        try merge.ledger.insert(
            ReadBatch(
                log: origin.log, device: device, number: origin.number, hash: BatchHash(prefix: origin.hash, suffix: origin.hash),
                versionCount: versionCount))
        try merge.ledger.removeAwaited(origin)
    }
}

extension SyncContent? {
    fileprivate func flatMapSummary(_ items: any SyncItemWriting) throws(KeychainFailure) -> ContentSummary? {
        guard let content = self else { return nil }
        return try items.summary(of: content)
    }
}

extension Merge {
    /// Gives a pending version an origin, and returns it as a batch contains it.
    func publish(_ pending: PendingVersion, at origin: Origin) throws(KeychainFailure) -> VersionRecord {
        let unpublished = VersionReference(id: pending.id, origin: nil)
        try ledger.removePending(pending.id)
        guard !pending.isDeletion, var live = try ledger.liveVersion(unpublished) else {
            return VersionRecord(id: pending.id, replaced: pending.replaced, content: nil)
        }
        let content = try items.content(of: live)
        live.reference = VersionReference(id: pending.id, origin: origin)
        try ledger.replace(unpublished, with: live)
        if live.item == nil { try items.renameCopy(unpublished, to: live.reference) }
        return VersionRecord(id: pending.id, replaced: pending.replaced, content: content)
    }
}
