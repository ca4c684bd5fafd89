// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The invitations of this device, as stored in the ledger: what has to be removed from the storage, even after a restart.
///
/// An invitation itself does not survive the process that made it. Its code and its nonce are secrets that are never stored, and a process that
/// had forgotten that it has revealed the nonce would reveal it to a second request. The records have the public identifier only.
package struct InvitationRecords: Hashable, Sendable {
    private(set) var records: [Record] = []

    struct Record: Hashable, Sendable {
        let invitation: InvitationID
        var phase: Phase
        /// Since when the invitation is in this phase.
        var seconds: Double

        /// Whether the phase has ended, or the clock was set back so far that its end cannot be known.
        func isPast(_ now: Double) -> Bool {
            !(now < seconds + phase.duration && now >= seconds - JoinLimits.clockTolerance)
        }
    }

    enum Phase: UInt8, Sendable {
        case current = 1
        /// The answer is in the ledger or in the storage.
        case answered = 2
        /// The storage has the last message, by which a device learns that the code cannot be used. Then everything has to be removed.
        case over = 3

        var duration: Double {
            switch self {
            case .current: JoinLimits.lifetime
            case .answered: JoinLimits.answerLifetime
            case .over: JoinLimits.retention
            }
        }
    }

    init(in ledger: any SyncReading) throws(KeychainFailure) {
        guard let bytes = try ledger.setting(.joining) else { return }
        do throws(FormatError) {
            try parse(bytes)
        } catch {
            throw KeychainFailure(
                .decode, "the keychain's record of invitations is \(error == .newer ? "of a newer version" : "damaged")", subject: .store,
                cause: error == .newer ? .newerVersion : .damaged)
        }
    }

    private mutating func parse(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        while reader.remaining > 0 {
            let invitation = InvitationID(try reader.identifier())
            guard let phase = Phase(rawValue: try reader.byte()) else { throw .malformed }
            records.append(Record(invitation: invitation, phase: phase, seconds: try reader.seconds()))
        }
    }

    /// `version (1) ‖ records: invitation (16) ‖ phase (1) ‖ seconds (8)`.
    private var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        for record in records {
            bytes.append(record.invitation)
            bytes.append(record.phase.rawValue)
            bytes.append(seconds: record.seconds)
        }
        return bytes
    }

    /// Stores a phase of an invitation.
    static func set(_ invitation: InvitationID, to phase: Phase, now: Double, in ledger: any SyncWriting) throws(KeychainFailure) {
        var all = try InvitationRecords(in: ledger)
        all.records.removeAll { $0.invitation == invitation }
        all.records.append(Record(invitation: invitation, phase: phase, seconds: now))
        try all.store(in: ledger)
    }

    private func store(in ledger: any SyncWriting) throws(KeychainFailure) {
        try ledger.set(.joining, to: records.isEmpty ? nil : encoded)
    }

    /// Returns whether the messages of an invitation have to be removed, for which `clean` needs a listing.
    package static func isCleaningDue(now: Double, in ledger: any SyncReading) throws(KeychainFailure) -> Bool {
        try InvitationRecords(in: ledger).records.contains { $0.isPast(now) }
    }

    /// Removes the messages of invitations whose phase has ended, and forgets those invitations that have none any more.
    package static func clean(listed names: [String], now: Double, in ledger: any SyncWriting) throws(KeychainFailure) -> [SyncEffect] {
        let before = try InvitationRecords(in: ledger)
        var after = before
        var effects: [SyncEffect] = []
        for record in before.records where record.isPast(now) {
            let listed = names.filter { if case .joinMessage(record.invitation, _) = ObjectName($0) { true } else { false } }
            effects += listed.map { .remove($0) }
            for name in try ledger.outgoingNames() {
                if case .joinMessage(record.invitation, _) = ObjectName(name) { try ledger.removeOutgoing(name) }
            }
            guard let index = after.records.firstIndex(of: record) else { continue }
            if record.phase != .over {
                after.records[index].phase = .over
                after.records[index].seconds = now
            } else if listed.isEmpty {
                after.records.remove(at: index)
            }
        }
        if after != before { try after.store(in: ledger) }
        return effects
    }
}
