// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import FoundationEssentials
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// What this device knows about its circle.
public struct SyncStatus: Hashable, Sendable {
    /// The first eight hexadecimal digits of the circle's identifier, in two groups.
    public let circle: String
    /// Where the storage of the circle was when this device entered it: ``SyncStorage/location``.
    public let location: String
    /// The number of devices, with this one.
    public let deviceCount: Int
    /// Whether an agent synchronizes this keychain now.
    public let isAgentRunning: Bool
    /// The number of items that synchronize.
    public let sharedItemCount: Int
    /// The number of items that stay on this device, because the circle does not have them any more: see ``KeychainSync/unsharedItems()``.
    public let unsharedItemCount: Int
    /// The number of changes by programs that were not sent yet.
    public let unsentCount: Int
    /// Whether some of these wait until the keychain is unlocked.
    public let isWaitingForUnlock: Bool
    /// The device, by name, whose changes this one has read last, and when that device sent them; nil if none was read yet.
    public let lastReceived: Received?
    /// The devices, by name, of which changes are known that this one has not read yet.
    ///
    /// They have not arrived in the storage, or wait: for a confirmation, for an update of this program, or for an unlock.
    public let unreadDevices: [String?]
    /// Whether a part of what was stated about the devices of the circle has not arrived.
    ///
    /// This device then waits for an hour before it sends changes.
    public let isWaitingForStatements: Bool
    /// The number of items with several versions: see ``KeychainSync/conflicts()``.
    public let conflictCount: Int
    /// Whether this device was removed from the circle.
    public let isRemoved: Bool
    /// What the last run of an agent has found and a person has to know, the most urgent first, then why it could not use the storage, and then the
    /// credentials that have expired or will within a week.
    ///
    /// Each warning disappears with the first run after its cause is gone.
    public let warnings: [Warning]

    /// Something that a person has to know.
    public struct Warning: Hashable, Sendable {
        /// What waits for a person or for another device: `.deletionsWait`, `.newerVersion`, or `.unconfirmed`; nil if nothing waits.
        public let failure: SyncFailure?
        /// What was found, and what to do, without a full stop.
        public let text: String
        /// The item that the warning is about; nil if it is about none, while the keychain is locked, or if the item cannot be opened.
        public let item: SyncItem?

        init(failure: SyncFailure? = nil, text: String, item: SyncItem? = nil) {
            self.failure = failure
            self.text = text
            self.item = item
        }
    }

    /// A change of another device.
    public struct Received: Hashable, Sendable {
        /// The name of the device; nil if it has not told one.
        public let deviceName: String?
        /// When it sent the change, by its own clock.
        public let sent: Date
    }
}

extension KeychainSync {
    /// Returns what this device knows about its circle.
    ///
    /// The storage is not accessed.
    ///
    /// - Returns: The status.
    /// - Throws: `.notStarted`, `.locked` if the keychain was not unlocked since the machine was started, and `.keychain`.
    public static func status() throws(SyncFailure) -> SyncStatus {
        let local = try LocalCircle.current()
        let membership = try local.membership()
        let roster = try local.roster()
        let counts = try local.counts()
        let isAgentRunning = try local.attempt { () throws(KeychainFailure) in try local.keychain.hasAgent() }
        let state = try local.attempt { () throws(KeychainFailure) in try local.keychain.sessionStatus().state }
        // Best effort: items are opened in a transaction, which a full disk prevents.
        let largeItems = (try? local.largeItems()) ?? [:]
        return try local.readLedger { ledger throws(KeychainFailure) in
            let notes = try DeviceNotes(in: ledger)
            let received = roster.members.keys.filter { $0 != membership.device }.compactMap { device -> SyncStatus.Received? in
                guard let entry = notes[device], let seconds = entry.seconds else { return nil }
                return SyncStatus.Received(deviceName: entry.name?.text, sent: Date(timeIntervalSinceReferenceDate: seconds))
            }
            let waiting = try ledger.pendingVersions(in: .whenUnlocked, limit: 1)
            let isRemoved = roster.removed.contains(membership.device)
            let isMember = roster.members[membership.device] != nil
            // The person at a removed device can do nothing about them any more.
            let alarms = try (isRemoved ? [] : StoredAlarms(in: ledger).all).filter { $0 != .admissionVoid || !isMember }.map { alarm in
                let report = AlarmReport(alarm, notes)
                let item: SyncItem? = if case .itemTooLarge(let name) = alarm { largeItems[name] } else { nil }
                return SyncStatus.Warning(failure: report.failure, text: report.text, item: item)
            }
            let storage = try (isRemoved ? nil : ledger.setting(.storageFailure)).map { reason in
                SyncStatus.Warning(text: "synchronization waits: " + String(decoding: reason, as: UTF8.self))
            }
            let credentials = try CredentialWarnings(membership, roster, notes, now: local.clock.now()).warnings(in: ledger)
            return SyncStatus(
                circle: Self.groups(of: membership.circle),
                location: try Self.location(in: ledger),
                deviceCount: roster.members.values.count { !$0.isRecoveryKit }, isAgentRunning: isAgentRunning,
                sharedItemCount: counts.shared, unsharedItemCount: counts.unshared, unsentCount: counts.unsent,
                isWaitingForUnlock: state != .unlocked && !waiting.isEmpty,
                lastReceived: received.max { $0.sent < $1.sent },
                unreadDevices: try Self.unreadDevices(in: ledger).filter { $0 != membership.device && roster.members[$0] != nil }.sorted()
                    .map { notes[$0]?.name?.text },
                isWaitingForStatements: !roster.missing.isEmpty, conflictCount: counts.conflicts,
                isRemoved: isRemoved, warnings: alarms + [storage].compactMap(\.self) + credentials)
        }
    }

    /// Where the storage of the circle is, as ``SyncStatus/location``.
    package static func location() throws(SyncFailure) -> String {
        let local = try LocalCircle.current()
        _ = try local.membership()
        return try local.readLedger { ledger throws(KeychainFailure) in try location(in: ledger) }
    }

    private static func location(in ledger: any SyncReading) throws(KeychainFailure) -> String {
        try ledger.setting(.storage).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The devices that have told of batches which this one has not read.
    private static func unreadDevices(in ledger: any SyncReading) throws(KeychainFailure) -> Set<DeviceID> {
        var devices: Set<DeviceID> = []
        for log in try ledger.logs() {
            for mark in try ledger.marks(of: log) where try !ledger.isRead(mark.origin) { devices.insert(mark.device) }
        }
        return devices
    }

    static func groups(of circle: CircleID) -> String {
        let digits = circle.hexadecimal.prefix(8)
        return digits.prefix(4) + " " + digits.suffix(4)
    }
}

/// Warnings about credentials that have expired, or expire soon.
private struct CredentialWarnings {
    private let membership: Membership
    private let roster: Roster
    private let notes: DeviceNotes
    private let now: Double

    private static let noticeSeconds: Double = 7 * 86_400

    init(_ membership: Membership, _ roster: Roster, _ notes: DeviceNotes, now: Double) {
        self.membership = membership
        self.roster = roster
        self.notes = notes
        self.now = now
    }

    /// Returns the warning about the credential of this machine, and on an owner those about all credentials.
    func warnings(in ledger: any SyncReading) throws(KeychainFailure) -> [SyncStatus.Warning] {
        var warnings: [SyncStatus.Warning] = []
        if let expiration = try ReaderCredential.expiration(in: ledger), let state = state(expiration) {
            warnings.append(warning("the credential of this machine \(state); give it another one of the circle"))
        }
        guard roster.members[membership.device]?.role.isOwner == true else { return warnings }
        for device in roster.members.keys.sorted() {
            guard let note = notes[device], let expiration = note.expiration, let state = state(expiration) else { continue }
            warnings.append(
                warning(
                    "the credential \(note.name?.text ?? "without a name") \(state); give its machines another one with "
                        + "`valet sync credential create`, then end this one with `valet sync remove`"))
        }
        return warnings
    }

    private func state(_ expiration: Double) -> String? {
        guard expiration - now < Self.noticeSeconds else { return nil }
        return (expiration <= now ? "has expired on " : "expires on ") + SyncFailure.day(expiration)
    }

    private func warning(_ text: String) -> SyncStatus.Warning { SyncStatus.Warning(text: text) }
}

extension LocalCircle {
    /// The numbers of items that synchronize, of items that the circle does not have any more, of conflicts, and of changes that were not sent.
    func counts() throws(SyncFailure) -> (shared: Int, unshared: Int, conflicts: Int, unsent: Int) {
        try readLedger { ledger throws(KeychainFailure) in
            let shared = try ledger.shownVersionCount()
            var unsent = try ledger.recordedChangeCount() + ledger.pendingVersionCount()
            let folders = try ledger.outgoingNames().map { ObjectName($0)?.folder }
            // What was stated about the circle is one change for a person: a removal, for example, is followed by new keys.
            unsent += folders.count { $0 == .batches } + (folders.contains(.statements) ? 1 : 0)
            let unshared = try FormerVersions.unshared(in: ledger).count
            return (shared - unshared, unshared, try Self.conflicts(in: ledger).count, unsent)
        }
    }

    /// The items that are too large to be shared, as far as the last round knows; without those that are locked or damaged.
    func largeItems() throws(SyncFailure) -> [ItemName: SyncItem] {
        let alarms = try readLedger { ledger throws(KeychainFailure) in try StoredAlarms(in: ledger).all }
        let names = alarms.compactMap { if case .itemTooLarge(let name) = $0 { name } else { nil } }
        guard !names.isEmpty else { return [:] }
        return try attempt { () throws(KeychainFailure) in
            try keychain.synchronize { ledger, items throws(KeychainFailure) in
                var found: [ItemName: SyncItem] = [:]
                for name in names {
                    guard let version = try ledger.liveVersions(named: name).first(where: { $0.item != nil }),
                        let content = try KeychainSync.content(of: version, items)
                    else { continue }
                    found[name] = SyncItem(content)
                }
                return found
            }
        }
    }

    /// The versions of each item that has different contents, the visible one first.
    static func conflicts(in ledger: any SyncReading) throws(KeychainFailure) -> [(name: ItemName, versions: [LiveVersion])] {
        var conflicts: [(name: ItemName, versions: [LiveVersion])] = []
        for name in try ledger.namesOfHiddenVersions() {
            let versions = try ledger.liveVersions(named: name)
            let digests = Set(versions.map(\.contentDigest))
            // A write that was recorded while its class was locked has no digest yet.
            guard versions.count > 1, digests.count > 1 || digests.contains(nil) else { continue }
            conflicts.append((name, versions.filter { $0.item != nil } + versions.filter { $0.item == nil }))
        }
        return conflicts
    }

    static func forEachLiveVersion(
        in ledger: any SyncReading, _ body: (LiveVersion) -> Void
    ) throws(KeychainFailure) {
        var last: VersionReference?
        while true {
            let page = try ledger.liveVersions(after: last, limit: 1_000)
            page.forEach(body)
            guard page.count == 1_000, let end = page.last else { return }
            last = end.reference
        }
    }
}
#endif
