// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import SyncCore

/// A batch as a device sealed it.
struct SealedBatch {
    let header: BatchFrame.Header
    let origin: Origin
    let versions: [VersionRecord]
    /// The devices of whose removal its author knew.
    let knownRemoved: Set<DeviceID>
    /// Whether all remaining devices had learned that the author was removed.
    let isLate: Bool
}

/// What the simulation knows independently of the engine: every write with what its program saw, and every published version.
package struct Oracle {
    /// A write that a program was told is durable.
    package struct Write {
        fileprivate(set) var device: Int
        let name: Int
        let revision: SyncVersionID
        let isDeletion: Bool
        /// What the device knew of the item when the program wrote, and hence what the write may replace.
        var permitted: Set<VersionReference>
        /// The published versions that it must replace.
        var seen: Set<VersionReference>
        /// The revision that the program overwrote.
        let overwritten: SyncVersionID?
        let content: SimulatedContent?
        var mayBeLost = false
    }

    package struct Published {
        let author: DeviceID
        let content: SimulatedContent?
        let replaced: [VersionReference]
        /// Whether all remaining devices had learned that the author was removed.
        let isLate: Bool
    }

    package private(set) var writes: [Write] = []
    private var writeIndex: [SyncVersionID: Int] = [:]
    /// What the deletions of each device may replace, by the name of the item.
    ///
    /// Their versions have no revision.
    private var deletions: [Int: [Int: Set<VersionReference>]] = [:]
    package private(set) var published: [VersionReference: Published] = [:]
    package private(set) var batches: [Origin: (author: DeviceID, laneKey: LaneKeyID, knownRemoved: Set<DeviceID>)] = [:]
    package private(set) var failures: [String] = []
    /// Whether versions replace so few others that deletions replace the rest.
    var splitsVersions = false
    /// The publications of each version.
    private var publications: [SyncVersionID: [VersionReference]] = [:]
    /// The versions of each batch.
    private var versions: [Origin: [VersionReference]] = [:]

    mutating func fail(_ text: String) { failures.append(text) }

    var writeCount: Int { writes.count }

    mutating func note(_ write: Write) {
        var write = write
        // What an unpublished write was permitted to replace passes on to the write that replaces it.
        let unpublished = write.permitted.filter { $0.origin == nil }.map(\.id) + (write.overwritten.map { [$0] } ?? [])
        for id in unpublished {
            if let index = writeIndex[id] {
                write.permitted.formUnion(writes[index].permitted)
            }
        }
        if write.isDeletion {
            deletions[write.device, default: [:]][write.name, default: []].formUnion(write.permitted)
        } else {
            // An item that is deleted and added again has one version for both.
            if write.overwritten == nil { write.permitted.formUnion(deletions[write.device]?[write.name] ?? []) }
            writeIndex[write.revision] = writes.count
        }
        writes.append(write)
    }

    /// An item has its earlier name again, so the writes since the shown version need not replace the copies of that name.
    mutating func noteReturn(to shown: VersionReference, before revision: SyncVersionID) {
        var id: SyncVersionID? = revision
        while let current = id, current != shown.id, let index = writeIndex[current] {
            writes[index].seen.formIntersection([shown])
            id = writes[index].overwritten
        }
    }

    /// Writes of a disk that was rolled back may be lost, unless they were published.
    mutating func noteRollback(of device: Int, to writeCount: Int) {
        for index in writeCount..<writes.count where writes[index].device == device { writes[index].mayBeLost = true }
    }

    /// A deletion is undone if its record was lost to damage: a row that is absent is restored, as the ledger knows it.
    mutating func noteLostRecord(of device: Int, deletionOf shown: VersionReference) {
        for index in writes.indices where writes[index].device == device && writes[index].isDeletion && writes[index].seen.contains(shown) {
            writes[index].mayBeLost = true
            // What the program wrote before, and deleted, is forgotten too.
            for revision in overwritten(by: writes[index]) where revision != shown.id {
                if let earlier = writeIndex[revision], writes[earlier].seen.contains(shown) { writes[earlier].mayBeLost = true }
            }
        }
    }

    /// A clone may publish what its original had not published.
    mutating func noteClone(of device: Int, as clone: Int) {
        deletions[clone] = deletions[device]
    }

    /// A device leaves the circle with these rows, and enters it again as another one.
    ///
    /// What it had not sent then is a write of its new identity, whose ledger does not know what it replaces. Its deletions are lost, and so is what it had
    /// not sent and did not show.
    mutating func noteExit(of device: Int, as other: Int, with rows: Set<SyncVersionID>) {
        for index in writes.indices where writes[index].device == device && publications[writes[index].revision] == nil {
            writes[index].seen = []
            if rows.contains(writes[index].revision) { writes[index].device = other } else { writes[index].mayBeLost = true }
        }
    }

    /// Notes a batch when it appears in the storage.
    mutating func notePublished(_ batch: SealedBatch, by devices: [Int], as parts: any SimulatedParts) {
        let header = batch.header
        let origin = batch.origin
        guard batches[origin] == nil else { return }
        batches[origin] = (header.device, header.laneKey, batch.knownRemoved)
        for version in batch.versions {
            let reference = VersionReference(id: version.id, origin: origin)
            let content = version.content.flatMap { parts.decoded($0) }
            check(version, content, by: devices)
            versions[origin, default: []].append(reference)
            publications[version.id, default: []].append(reference)
            published[reference] = Published(
                author: header.device, content: content, replaced: version.replaced, isLate: batch.isLate)
        }
    }

    /// Checks that a device which has read, or could read, a publication of its own version replaces it by another one.
    ///
    /// Otherwise what another device has replaced meanwhile comes back.
    mutating func checkRepetitions(
        _ batch: SealedBatch, isKnown: (Origin, LaneKeyID) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) {
        // The rest of a split version replaces the first publication in a batch of its own.
        guard !splitsVersions else { return }
        // A deletion has the identifier of what it deletes.
        for version in batch.versions where version.content != nil {
            for earlier in publications[version.id] ?? [] where !version.replaced.contains(earlier) {
                guard let origin = earlier.origin, origin != batch.origin, let key = batches[origin]?.laneKey, try isKnown(origin, key)
                else { continue }
                fail("a device publishes a version again although it knows the first publication")
            }
        }
    }

    /// Whether a program has written over a revision, or deleted it, or has done so with its item while the device had it as a conflict copy.
    func isOverwritten(_ revision: SyncVersionID, on device: Int) -> Bool {
        let unshared = VersionReference(id: revision, origin: nil)
        return writes.contains { $0.overwritten == revision || $0.device == device && $0.permitted.contains(unshared) }
    }

    /// Whether a version is in a batch that counts.
    func isKnown(_ id: SyncVersionID, _ counts: (Origin, DeviceID) -> Bool) -> Bool {
        publications[id]?.contains { reference in
            guard let origin = reference.origin, let version = published[reference] else { return false }
            return counts(origin, version.author)
        } ?? false
    }

    /// Whether a batch has ever been in the storage.
    func isPublished(_ origin: Origin) -> Bool { batches[origin] != nil }

    /// The revisions that a program and earlier ones overwrote, one after the other.
    private func overwritten(by write: Write) -> Set<SyncVersionID> {
        var revisions: Set<SyncVersionID> = []
        var next = write.overwritten
        while let revision = next, revisions.insert(revision).inserted { next = writeIndex[revision].flatMap { writes[$0].overwritten } }
        return revisions
    }

    /// Checks that a version replaces only what its program saw.
    private mutating func check(_ version: VersionRecord, _ content: SimulatedContent?, by devices: [Int]) {
        var permitted: Set<VersionReference> = []
        // What a program overwrote before it was published, as far as the device knew, which was restored from a snapshot.
        var overwritten: Set<SyncVersionID> = []
        if version.content != nil {
            guard let index = writeIndex[version.id] else { return fail("a version that no program wrote was published") }
            let write = writes[index]
            permitted = write.permitted
            overwritten = self.overwritten(by: write)
            // What was not published, as far as the restored device knew.
            for reference in permitted where reference.origin == nil { overwritten.insert(reference.id) }
            if content != write.content { fail("a version has another content than the write") }
            if write.content?.accessibility.isThisDeviceOnly == true { fail("an item that must not leave the device was published") }
        } else {
            for device in devices { for references in deletions[device, default: [:]].values { permitted.formUnion(references) } }
            if splitsVersions {
                // It may be the rest of a version, which also replaces earlier publications of itself.
                for write in writes where devices.contains(write.device) {
                    permitted.formUnion(write.permitted)
                    permitted.formUnion(publications[write.revision] ?? [])
                    if let revision = write.overwritten { overwritten.insert(revision) }
                }
            }
            // A version from before the device entered the circle again, which the circle knows by its origin.
            for reference in permitted where reference.origin == nil { overwritten.insert(reference.id) }
        }
        for reference in version.replaced where !permitted.contains(reference) && reference.id != version.id {
            if overwritten.contains(reference.id) { continue }
            // The rest of a deletion replaces earlier publications of the deletion.
            if splitsVersions, version.content == nil, let other = published[reference], other.content == nil { continue }
            // An earlier publication of the same write may have replaced it.
            let isAnyEarlier = splitsVersions && version.content == nil
            let isRepeated = published.contains { (isAnyEarlier || $0.key.id == version.id) && $0.value.replaced.contains(reference) }
            if !isRepeated { fail("version \(version.id.hexadecimal) replaces \(reference.id.hexadecimal), which its program did not see") }
        }
    }

    /// Checks that a piece of a checkpoint has items of its lane only.
    mutating func checkPiece(_ lane: Lane?, _ content: PieceContent) {
        guard case .versions(let versions) = content else { return }
        for version in versions where Lane(version.content.accessibility) != lane {
            return fail("a piece of a checkpoint has an item of the other lane")
        }
    }

    func versions(of origin: Origin) -> [VersionReference] { versions[origin] ?? [] }

    /// The set of versions that every device must have at rest, if these batches count.
    func expected(_ counts: (Origin, DeviceID) -> Bool) -> [VersionReference: SimulatedContent] {
        var live: [VersionReference: SimulatedContent] = [:]
        var replaced: Set<VersionReference> = []
        for (reference, version) in published {
            guard let origin = reference.origin, counts(origin, version.author) else { continue }
            if let content = version.content { live[reference] = content }
            replaced.formUnion(version.replaced)
        }
        for reference in replaced { live[reference] = nil }
        return live
    }

    /// Checks that no version is live at rest that an acknowledged write must have replaced.
    mutating func checkReplacements(
        _ live: [VersionReference: SimulatedContent], except isExempt: (Int) -> Bool
    ) {
        for write in writes where !write.mayBeLost && !isExempt(write.device) {
            for reference in write.seen where live[reference] != nil {
                let change = "\(write.isDeletion ? "deletion" : "write") of device \(write.device), \(write.revision.hexadecimal),"
                fail("a \(change) left version \(reference.id.hexadecimal), which it should have replaced")
            }
        }
    }

    /// Checks that a reader keeps every acknowledged write of its programs, unless a program overwrote it, or wrote the same again.
    ///
    /// `kept` are the contents of the versions that are not shared.
    mutating func checkUnshared(_ kept: [SyncVersionID: SimulatedContent], of device: Int) {
        let own = writes.filter { $0.device == device }
        let superseded = Set(own.compactMap(\.overwritten))
        for write in own where !write.isDeletion && !write.mayBeLost && !superseded.contains(write.revision) {
            guard let content = write.content, !content.accessibility.isThisDeviceOnly else { continue }
            let isRepeated = kept.values.contains { $0.name == content.name && $0.summary?.contentDigest == content.summary?.contentDigest }
            if kept[write.revision] != content, !isRepeated { fail("a write of the reader \(device) was lost") }
        }
        for id in kept.keys where writeIndex[id] == nil { fail("the reader \(device) has a version that no program wrote") }
    }

    /// Checks that every acknowledged write was published, or overwritten by a program that saw it.
    mutating func checkAcknowledgedWrites(except isExempt: (Int) -> Bool) {
        let publishedIDs = Set(published.keys.map(\.id))
        var superseded: Set<SyncVersionID> = []
        for write in writes {
            if let overwritten = write.overwritten { superseded.insert(overwritten) }
            for reference in write.permitted where reference.origin == nil { superseded.insert(reference.id) }
        }
        for write in writes where !write.isDeletion && !write.mayBeLost && !isExempt(write.device) {
            guard write.content.map({ !$0.accessibility.isThisDeviceOnly }) ?? true else { continue }
            if !publishedIDs.contains(write.revision), !superseded.contains(write.revision) {
                fail("an acknowledged write of device \(write.device) was lost")
            }
        }
    }
}
