// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The published versions that this keychain showed when it last left a circle.
///
/// An item with one of them was not changed since, so it is no local write when the keychain enters the circle again. If this device reads the batch with
/// that version again, or a checkpoint that covers it, the circle knew the version, and what the circle has now takes its place. Otherwise other devices
/// may never have read it, because its author was removed: beside another version of the circle it is a conflict. If the circle does not have the item at
/// all, it stays on this device, and is not sent, until a person decides: absence never means deletion. An item that a program has written after the
/// keychain had left has a new revision, and is shared.
package struct FormerVersions: Hashable, Sendable {
    package let circle: CircleID
    /// The versions in each batch.
    ///
    /// A batch has hundreds of them, so this takes a fraction of the memory of `origins`.
    private var batches: [Origin: [SyncVersionID]]

    /// Collects the versions from the ledger of a keychain that is about to leave; nil if it is in no circle.
    ///
    /// A version whose batch is not in the storage yet is known to no other device, so it is left out.
    package init?(leaving ledger: any SyncReading) throws(KeychainFailure) {
        guard let membership = try Membership.stored(in: ledger) else { return nil }
        circle = membership.circle
        batches = [:]
        var unsent: Set<Origin> = []
        for name in try ledger.outgoingNames() {
            if case .batch(_, let origin)? = ObjectName(name) { unsent.insert(origin) }
        }
        var last: VersionReference?
        while true {
            let page = try ledger.liveVersions(after: last, limit: 1_000)
            for version in page where version.item != nil {
                guard let origin = version.reference.origin, !unsent.contains(origin) else { continue }
                batches[origin, default: []].append(version.reference.id)
            }
            guard page.count == 1_000, let end = page.last else { break }
            last = end.reference
        }
        guard let former = try FormerVersions(in: ledger) else { return }
        let shown = Set(batches.values.joined())
        for (origin, ids) in former.batches { batches[origin, default: []] += ids.filter { !shown.contains($0) } }
    }

    /// The batch that contains each version.
    package var origins: [SyncVersionID: Origin] {
        var origins: [SyncVersionID: Origin] = [:]
        for (origin, ids) in batches {
            for id in ids { origins[id] = origin }
        }
        return origins
    }

    /// Returns what is in the ledger; nil if this keychain has not entered the circle again.
    package init?(in ledger: any SyncReading) throws(KeychainFailure) {
        guard let bytes = try ledger.setting(.former) else { return nil }
        try self.init(stored: bytes)
    }

    /// Parses what this program or a later one has stored.
    package init(stored bytes: [UInt8]) throws(KeychainFailure) {
        do throws(FormatError) {
            var reader = FieldReader(bytes)
            try reader.version(2)
            circle = CircleID(try reader.identifier())
            batches = [:]
            while reader.remaining > 0 {
                let origin = try reader.origin()
                for _ in 0..<(try reader.uint32()) { batches[origin, default: []].append(SyncVersionID(try reader.identifier())) }
            }
        } catch {
            let problem =
                error == .newer
                ? "of a newer version; update valet"
                : "damaged, so it is not known what was deleted there meanwhile; restore a backup of the keychain, or enter the circle with an empty one"
            throw KeychainFailure(
                .decode, "the keychain's record of the circle that it has left is \(problem)", subject: .store,
                cause: error == .newer ? .newerVersion : .damaged)
        }
    }

    /// `version 2 (1) ‖ circle (16) ‖ for each batch: log (16) ‖ number (8) ‖ hash (16) ‖ count (4) ‖ for each of its versions: identifier (16)`.
    package var encoded: [UInt8] {
        var bytes = [2] + circle.bytes
        for (origin, ids) in batches.sorted(by: { $0.key < $1.key }) where !ids.isEmpty {
            bytes.append(origin)
            bytes.append(littleEndian: UInt32(clamping: ids.count))
            for id in ids.sorted() { bytes.append(id) }
        }
        return bytes
    }

    /// Returns the versions that the circle does not have and about which no person has decided, in ascending order of reference.
    package static func unshared(in ledger: any SyncReading) throws(KeychainFailure) -> [LiveVersion] {
        var versions: [LiveVersion] = []
        for id in try FormerVersions(in: ledger)?.origins.keys.sorted() ?? [] {
            guard let version = try ledger.liveVersion(VersionReference(id: id, origin: nil)), version.item != nil,
                // A newer one than the circle's is a conflict.
                try ledger.liveVersions(named: version.name).count == 1
            else { continue }
            versions.append(version)
        }
        return versions
    }

    /// Stores the versions in the ledger of a keychain that has entered a circle; a no-op if it is another circle.
    ///
    /// Other devices may have deleted what this one has, so its person is asked about very many deletions as on any device.
    package func store(in ledger: any SyncWriting) throws(KeychainFailure) {
        guard try Membership.stored(in: ledger)?.circle == circle else { return }
        try ledger.set(.former, to: encoded)
        try ledger.set(.deletionGuard, to: nil)
    }

    /// Removes the versions that are shared from now on.
    mutating func remove(_ shared: [SyncVersionID]) {
        let shared = Set(shared)
        batches = batches.mapValues { $0.filter { !shared.contains($0) } }
    }
}
