// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import FoundationEssentials
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// An item that devices have changed without knowing of each other.
///
/// SecItem shows the version that was modified last. The others are kept until a person decides.
public struct SyncConflict: Identifiable, Sendable {
    /// Identifies the item on this device, as long as the conflict lasts: 32 hexadecimal digits.
    public let id: String
    /// The versions, the visible one first if there is one.
    public let versions: [Version]
    /// All versions, also those of equal content.
    fileprivate let references: Set<String>

    /// One of the values of an item.
    public struct Version: Identifiable, Sendable {
        /// Identifies the version on this device.
        public let id: String
        /// Whether SecItem shows it.
        public let isVisible: Bool
        /// The name of the device that has written it; nil if that is not known.
        public let deviceName: String?
        /// When it was modified, by that device's clock; nil if that is not known while the keychain is locked.
        public let modified: Date?
        /// Whether it stays on this device: a reader wrote it, or the circle has not received it before this device left.
        public let isNotShared: Bool
        /// What the item contains; nil while the keychain is locked, or if it is damaged.
        public let content: Content?
    }

    /// What an item contains.
    public struct Content: Sendable, CustomStringConvertible, CustomReflectable {
        /// The item, as it is without its secret.
        public let item: SyncItem
        /// The secret of the item; nil if it has none.
        public let secret: Data?

        /// The item, without the secret.
        public var description: String { item.description }
        /// Has no children.
        public var customMirror: Mirror { Mirror(self, children: []) }
    }
}

extension KeychainSync {
    /// Lists the items that devices have changed without knowing of each other, in the order of their identifiers.
    ///
    /// - Returns: The conflicts; empty if there is none.
    /// - Throws: `.notStarted` and `.keychain`. While the keychain is locked, the contents of its items are nil.
    public static func conflicts() throws(SyncFailure) -> [SyncConflict] {
        let local = try LocalCircle.current()
        let membership = try local.membership()
        return try local.attempt { () throws(KeychainFailure) in
            try local.keychain.synchronize { ledger, items throws(KeychainFailure) in
                let authors = try VersionAuthors(membership.device, ledger)
                var conflicts: [SyncConflict] = []
                for (name, live) in try LocalCircle.conflicts(in: ledger) {
                    var versions: [SyncConflict.Version] = []
                    var digests: Set<Identifier128> = []
                    for version in live {
                        // What is equal to another version is no choice.
                        if let digest = version.contentDigest, !digests.insert(digest).inserted { continue }
                        versions.append(
                            SyncConflict.Version(
                                id: text(of: version.reference), isVisible: version.item != nil,
                                deviceName: try authors.name(of: version),
                                modified: version.date.map { Date(timeIntervalSinceReferenceDate: $0) },
                                isNotShared: try isNotShared(version, ledger), content: try conflictContent(of: version, items)))
                    }
                    conflicts.append(
                        SyncConflict(id: name.hexadecimal, versions: versions, references: Set(live.map { text(of: $0.reference) })))
                }
                return conflicts
            }
        }
    }

    /// Ends a conflict: all devices read this version from now on, and the others are deleted.
    ///
    /// - Parameters:
    ///   - version: A version of `conflict`. To keep the visible one throws the others away.
    ///   - conflict: One of ``conflicts()``.
    ///   - storage: The storage of the circle.
    /// - Throws: `.notStarted`, `.notFound` if the conflict has ended or has other versions now, `.notOwner` on a reader, `.locked`, and `.keychain`.
    public static func keep(
        _ version: SyncConflict.Version, of conflict: SyncConflict, on storage: any SyncStorage
    ) async throws(SyncFailure) {
        let local = try LocalCircle.current()
        let membership = try local.membership()
        guard try local.roster().members[membership.device]?.role.mayWrite == true else {
            throw SyncFailure(.notOwner, "this device is a reader of the circle, so it cannot decide for all devices")
        }
        guard let name = Identifier128(hexadecimal: conflict.id).map({ ItemName($0) }) else { throw conflictIsOver }
        let live = try local.readLedger { ledger throws(KeychainFailure) in try ledger.liveVersions(named: name) }
        guard Set(live.map { text(of: $0.reference) }) == conflict.references, live.count > 1,
            let kept = live.first(where: { text(of: $0.reference) == version.id })
        else { throw conflictIsOver }
        try await EngineHost(local.keychain, clock: local.clock).perform(.keep(name, kept.reference))
        _ = await local.exchange(over: storage)
    }

    private static var conflictIsOver: SyncFailure {
        SyncFailure(.notFound, "the conflict has ended, or has other versions now; list the conflicts again")
    }

    private static func text(of reference: VersionReference) -> String {
        reference.id.hexadecimal + (reference.origin.map { "-\($0.log.hexadecimal)-\($0.number)-\($0.hash.hexadecimal)" } ?? "")
    }

    /// Whether a version is neither in a batch nor waits to be sent.
    private static func isNotShared(_ version: LiveVersion, _ ledger: any SyncReading) throws(KeychainFailure) -> Bool {
        guard version.reference.origin == nil else { return false }
        return try ledger.pendingVersion(version.reference.id) == nil
    }

    private static func conflictContent(
        of version: LiveVersion, _ items: any SyncItemReading
    ) throws(KeychainFailure) -> SyncConflict.Content? {
        guard let content = try content(of: version, items), let item = SyncItem(content) else { return nil }
        return SyncConflict.Content(item: item, secret: content.secret.map { Data($0) })
    }
}

/// The names of the devices that have written versions.
private struct VersionAuthors {
    private let device: DeviceID
    private let ledger: any SyncReading
    private let notes: DeviceNotes
    private let ownName: String?

    init(_ device: DeviceID, _ ledger: any SyncReading) throws(KeychainFailure) {
        self.device = device
        self.ledger = ledger
        notes = try DeviceNotes(in: ledger)
        ownName = try ledger.setting(.ownName).flatMap { DeviceName(utf8: $0)?.text }
    }

    func name(of version: LiveVersion) throws(KeychainFailure) -> String? {
        guard let origin = version.reference.origin else { return ownName }
        guard let author = try ledger.readBatches(of: origin.log).first?.device else { return nil }
        return author == device ? ownName : notes[author]?.name?.text
    }
}
#endif
