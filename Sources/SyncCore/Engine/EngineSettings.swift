// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The circle and this device, as stored in the ledger.
package struct Membership: Hashable, Sendable {
    package let circle: CircleID
    package let device: DeviceID

    package init(circle: CircleID, device: DeviceID) {
        self.circle = circle
        self.device = device
    }

    package var encoded: [UInt8] { [1] + circle.bytes + device.bytes }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        circle = CircleID(try reader.identifier())
        device = DeviceID(try reader.identifier())
        try reader.end()
    }
}

extension Membership {
    /// Returns the membership that is in the ledger; nil if this device is in no circle.
    package static func stored(in ledger: any SyncReading) throws(KeychainFailure) -> Membership? {
        guard let bytes = try ledger.setting(.membership) else { return nil }
        do throws(FormatError) {
            return try Membership(bytes)
        } catch {
            throw KeychainFailure(.decode, "the record of this device's circle is damaged", subject: .store, cause: .damaged)
        }
    }

    /// Founds a circle with this device as its only member, and stores that in the ledger.
    ///
    /// `nonce` has 32 random bytes, so that no two circles have one identifier.
    package static func found(
        name: DeviceName, keys: any CircleDeviceKeys, nonce: [UInt8], cipher: any CircleCipher, in ledger: any SyncWriting
    ) throws(KeychainFailure) -> Membership {
        let device = DeviceID(of: keys.publicKeys, role: .owner, cipher: cipher)
        let founding = try Statement(
            .found(Statement.Founding(nonce: nonce, keys: keys.publicKeys)), circle: nil, author: device, heads: [], keys: keys,
            cipher: cipher)
        let membership = Membership(circle: founding.circle, device: device)
        try ledger.insert(OutgoingObject(name: ObjectName.statement(founding.hash).text, bytes: founding.encoded))
        let stored = StoredStatement(hash: founding.hash, bytes: founding.encoded)
        try membership.store(name: name, statements: [stored], in: ledger)
        return membership
    }

    /// Stores the membership of a device that was admitted, with the statements that prove it.
    package func store(name: DeviceName, statements: [StoredStatement], in ledger: any SyncWriting) throws(KeychainFailure) {
        for statement in statements { try ledger.insert(statement) }
        try ledger.set(.ownName, to: name.utf8)
        try ledger.set(.membership, to: encoded)
    }

    /// Stores the membership of a device in place of another one's, whose identity this machine had, and which has admitted it.
    ///
    /// What the ledger knows stays. The logs and checkpoints of the other identity are those of another device from now on, and what that one has
    /// reported is reported again: it may be removed.
    package func replace(_ other: Membership, in ledger: any SyncWriting) throws(KeychainFailure) {
        guard circle == other.circle else { throw KeychainFailure(.internal, "the other membership is of another circle") }
        try ledger.set(.membership, to: encoded)
        for setting in [SyncSetting.ownLogs, .ownCheckpoint, .toldName] { try ledger.set(setting, to: nil) }
        for log in try ledger.logs() {
            for mark in try ledger.marks(of: log) where try ledger.isRead(mark.origin) { try ledger.insert(mark, isToReport: true) }
        }
    }
}

/// The logs that this device writes, one for each lane.
struct OwnLogs {
    private var logs: [Lane: OwnLog] = [:]

    struct OwnLog {
        let log: LogID
        var number: UInt64
        var hash: BatchHash
    }

    init() {}

    subscript(lane: Lane) -> OwnLog? {
        get { logs[lane] }
        set { logs[lane] = newValue }
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        for lane in Lane.allCases {
            guard let log = logs[lane] else { continue }
            bytes.append(lane.rawValue)
            bytes.append(log.log)
            bytes.append(littleEndian: log.number)
            bytes.append(log.hash)
        }
        return bytes
    }

    init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        while reader.remaining > 0 {
            guard let lane = Lane(rawValue: try reader.byte()) else { throw .malformed }
            logs[lane] = OwnLog(log: LogID(try reader.identifier()), number: try reader.uint64(), hash: try reader.hash())
        }
    }
}

/// Encodings of lists: of statements and names as stored in the ledger, and of origins for a hash.
enum StoredList {
    static func encoded(_ origins: [Origin]) -> [UInt8] {
        var bytes: [UInt8] = [1]
        for origin in origins { bytes.append(origin) }
        return bytes
    }

    static func encoded(_ hashes: [StatementHash]) -> [UInt8] {
        var bytes: [UInt8] = [1]
        for hash in hashes { bytes.append(hash) }
        return bytes
    }

    static func hashes(_ bytes: [UInt8]) throws(FormatError) -> [StatementHash] {
        var reader = FieldReader(bytes)
        try reader.version(1)
        var hashes: [StatementHash] = []
        while reader.remaining > 0 { hashes.append(try reader.hash()) }
        return hashes
    }

    static func encoded(_ names: [ItemName]) -> [UInt8] { [1] + names.flatMap(\.bytes) }

    static func names(_ bytes: [UInt8]?) throws(FormatError) -> [ItemName] {
        guard let bytes else { return [] }
        var reader = FieldReader(bytes)
        try reader.version(1)
        var names: [ItemName] = []
        while reader.remaining > 0 { names.append(ItemName(try reader.identifier())) }
        return names
    }
}

/// The deletions that were applied since a person last confirmed, or within a day.
struct DeletionCount {
    var count: UInt64 = 0
    var start: Double = 0
    /// The deletions for which a person was asked last.
    var asked: UInt64 = 0
    /// The deletions that a person has confirmed.
    var confirmed: UInt64 = 0

    static let day: Double = 86_400

    init() {}

    var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        bytes.append(littleEndian: count)
        bytes.append(seconds: start)
        bytes.append(littleEndian: asked)
        bytes.append(littleEndian: confirmed)
        return bytes
    }

    init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        count = try reader.uint64()
        start = try reader.seconds()
        asked = try reader.uint64()
        confirmed = try reader.uint64()
        try reader.end()
    }
}

/// Waits that do not begin again when the agent is restarted: one that runs for a moment every hour would wait for ever.
struct Waits: Equatable {
    /// When this device publishes a checkpoint that replaces lost batches, unless another device was faster.
    var healingTime: Double?
    /// Since when this device seals nothing, because a statement that a member names is missing, or a batch of its own logs cannot be read.
    var sealingSince: Double?
    /// The statements, and the hashes of the names of batches, that this device has waited for already.
    ///
    /// Another one begins another wait, which has its own reason.
    var waitedFor: Set<ObjectHash> = []
    /// The lanes that were locked, with changes to send, when such a wait ended.
    ///
    /// They do not wait again: a lane that is unlocked for less than an hour at a time would never be sent if something new were missing each time.
    var overdueLanes: Set<Lane> = []

    init() {}

    var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        for time in [healingTime, sealingSince] { bytes.append(optionalSeconds: time) }
        bytes.append(UInt8(overdueLanes.count))
        for lane in overdueLanes.sorted() { bytes.append(lane.rawValue) }
        for hash in waitedFor.sorted() { bytes.append(hash) }
        return bytes
    }

    init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        healingTime = try reader.optionalSeconds()
        sealingSince = try reader.optionalSeconds()
        for _ in 0..<(try reader.byte()) {
            guard let lane = Lane(rawValue: try reader.byte()) else { throw .malformed }
            overdueLanes.insert(lane)
        }
        while reader.remaining > 0 { waitedFor.insert(try reader.hash()) }
    }
}
