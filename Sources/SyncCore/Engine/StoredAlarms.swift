// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The alarms whose causes last, as stored in the ledger for people who ask for the status.
///
/// Each round raises most of them again, so a round that has read everything replaces those of the round before. The alarms about items are raised
/// by the daily check of all contents, and stay for a day.
package struct StoredAlarms: Equatable, Sendable {
    private var seconds: [SyncAlarm: Double] = [:]

    /// More are not stored: they are for people, and a hostile storage can cause one for each device.
    private static let largestCount = 32
    /// A day, and the time that the check takes.
    private static let longestCheckSeconds: Double = 90_000

    package init(in ledger: any SyncReading) throws(KeychainFailure) {
        guard let bytes = try ledger.setting(.alarms) else { return }
        // They are raised again if they cannot be read.
        seconds = (try? Self.parsed(bytes)) ?? [:]
    }

    /// The alarms, the most urgent kind first.
    package var all: [SyncAlarm] { seconds.keys.sorted { $0.sortKey.lexicographicallyPrecedes($1.sortKey) } }

    /// Takes over the alarms of a round.
    ///
    /// `isComplete`: whether the round has read everything, so that an alarm that it has not raised is over.
    package mutating func note(_ raised: Set<SyncAlarm>, isComplete: Bool, now: Double) {
        seconds = seconds.filter { alarm, time in
            if case .massDeletion = alarm, raised.contains(where: { if case .massDeletion = $0 { true } else { false } }) { return false }
            return alarm.isOfDailyCheck ? abs(now - time) < Self.longestCheckSeconds : !isComplete
        }
        for alarm in raised where alarm != .removed { seconds[alarm] = now }
        // Each batch that waits raises one.
        let deletions = all.filter { if case .massDeletion = $0 { true } else { false } }
        for alarm in deletions.dropLast() { seconds[alarm] = nil }
        for alarm in all.dropFirst(Self.largestCount) { seconds[alarm] = nil }
    }

    /// Stores the alarms, if they are others than before.
    package func store(insteadOf before: StoredAlarms, in ledger: any SyncWriting) throws(KeychainFailure) {
        if self != before { try ledger.set(.alarms, to: seconds.isEmpty ? nil : encoded) }
    }

    /// `version (1) ‖ alarms: kind (1) ‖ counted(subject) ‖ seconds (8)`.
    private var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        for alarm in all {
            let key = alarm.sortKey
            bytes += key.prefix(1)
            bytes.append(lengthPrefixed: Array(key.dropFirst()))
            bytes.append(seconds: seconds[alarm] ?? 0)
        }
        return bytes
    }

    private static func parsed(_ bytes: [UInt8]) throws(FormatError) -> [SyncAlarm: Double] {
        var reader = FieldReader(bytes)
        try reader.version(1)
        var alarms: [SyncAlarm: Double] = [:]
        while reader.remaining > 0 {
            let kind = try reader.byte()
            let subject = try reader.counted(atMost: ObjectHash.byteCount)
            guard let alarm = SyncAlarm(kind: kind, subject: subject) else { throw .malformed }
            alarms[alarm] = try reader.seconds()
        }
        return alarms
    }
}

extension SyncAlarm {
    fileprivate var isOfDailyCheck: Bool {
        switch self {
        case .itemLeftAlone, .unsentWriteLost: true
        case .newerFormat, .invalidBatch, .removed, .admissionVoid, .missingStatement, .massDeletion, .itemTooLarge: false
        }
    }

    /// The kind, in order of urgency, and what the alarm is about.
    ///
    /// A greater number of deletions is ordered after a smaller one.
    fileprivate var sortKey: [UInt8] {
        switch self {
        case .removed: [0]
        case .admissionVoid: [1]
        case .massDeletion(let count): [2] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: UInt64(count) >> (8 * $0)) }
        case .newerFormat(let device): [3] + (device?.bytes ?? [])
        case .invalidBatch(let device): [4] + device.bytes
        case .missingStatement(let hash): [5] + hash.bytes
        case .unsentWriteLost(let name): [6] + name.bytes
        case .itemLeftAlone(let name): [7] + name.bytes
        case .itemTooLarge(let name): [8] + name.bytes
        }
    }

    fileprivate init?(kind: UInt8, subject: [UInt8]) {
        switch kind {
        case 1 where subject.isEmpty: self = .admissionVoid
        case 2 where subject.count == 8:
            guard let count = Int(exactly: subject.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) else { return nil }
            self = .massDeletion(count)
        case 3 where subject.isEmpty: self = .newerFormat(nil)
        case 5:
            guard let hash = ObjectHash(subject) else { return nil }
            self = .missingStatement(hash)
        default:
            guard let identifier = Identifier128(subject) else { return nil }
            switch kind {
            case 3: self = .newerFormat(DeviceID(identifier))
            case 4: self = .invalidBatch(DeviceID(identifier))
            case 6: self = .unsentWriteLost(ItemName(identifier))
            case 7: self = .itemLeftAlone(ItemName(identifier))
            case 8: self = .itemTooLarge(ItemName(identifier))
            default: return nil
            }
        }
    }
}
