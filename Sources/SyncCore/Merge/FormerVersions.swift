// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The versions that this keychain showed when it last left a circle, and that other devices of the circle know.
///
/// An item with one of them was not changed since, so it is no local write when the keychain enters the circle again: what the circle has takes its
/// place, and a deletion that is still in the storage deletes it. If the circle does not have the item, it was probably deleted so long ago that only a
/// checkpoint lacks it. But absence never means deletion: the item stays on this device, and is not sent, until a person decides. An item that a program
/// has written after the keychain had left has a new revision, and is shared.
package struct FormerVersions: Hashable, Sendable {
    package let circle: CircleID
    /// The versions, and whether it is possible that no other device has read them.
    ///
    /// So it is with what this device has sent itself, if it was removed: the others may have read its log up to an earlier batch.
    private(set) var ids: [SyncVersionID: Bool]

    /// Collects the versions from the ledger of a keychain that is about to leave; nil if it is in no circle.
    ///
    /// A version whose batch is not in the storage yet is known to no other device, so it is left out.
    package init?(leaving ledger: any SyncReading, cipher: any CircleCipher) throws(KeychainFailure) {
        guard let membership = try Membership.stored(in: ledger) else { return nil }
        circle = membership.circle
        ids = [:]
        let isRemoved = try Roster.stored(in: ledger, circle, cipher).removed.contains(membership.device)
        var ownLogs: Set<LogID> = []
        for log in try ledger.logs() where try ledger.marks(of: log).contains(where: { $0.device == membership.device }) {
            ownLogs.insert(log)
        }
        var unsent: Set<Origin> = []
        for name in try ledger.outgoingNames() {
            if case .batch(_, let origin)? = ObjectName(name) { unsent.insert(origin) }
        }
        var last: VersionReference?
        while true {
            let page = try ledger.liveVersions(after: last, limit: 1_000)
            for version in page where version.item != nil {
                guard let origin = version.reference.origin, !unsent.contains(origin) else { continue }
                ids[version.reference.id] = isRemoved && ownLogs.contains(origin.log)
            }
            guard page.count == 1_000, let end = page.last else { break }
            last = end.reference
        }
        if let former = try FormerVersions(in: ledger) { ids.merge(former.ids) { new, _ in new } }
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
            try reader.version(1)
            circle = CircleID(try reader.identifier())
            ids = [:]
            while reader.remaining > 0 { ids[SyncVersionID(try reader.identifier())] = try reader.byte() != 0 }
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

    /// `version (1) ‖ circle (16) ‖ for each version: identifier (16) ‖ whether it is possible that no other device has read it (1)`.
    package var encoded: [UInt8] { [1] + circle.bytes + ids.sorted { $0.key < $1.key }.flatMap { $0.key.bytes + [$0.value ? 1 : 0] } }

    /// Returns the versions that the circle does not have and about which no person has decided, in ascending order of reference.
    package static func unshared(in ledger: any SyncReading) throws(KeychainFailure) -> [LiveVersion] {
        var versions: [LiveVersion] = []
        for id in try FormerVersions(in: ledger)?.ids.keys.sorted() ?? [] {
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
    mutating func remove(_ shared: [SyncVersionID]) { for id in shared { ids[id] = nil } }
}
