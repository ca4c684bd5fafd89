// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A lane key as statements describe it.
package struct LaneKeyRecord: Hashable, Sendable {
    package let lane: Lane
    package let key: LaneKeyID
    /// The lowest generation that a statement gives it.
    ///
    /// This property and the next ones are by counted statements; only if there is none, by others of devices with the right to make keys.
    package private(set) var generation: UInt64
    /// The devices that know the key: those that stated it and those for which it is boxed.
    package private(set) var holders: Set<DeviceID> = []
    /// The devices that an author of the key had seen removed.
    ///
    /// None of them ever gets the key, even if its removal turns out to be void: the author sealed for a circle without it.
    package private(set) var excluded: Set<DeviceID> = []
    /// The devices that every author of a counted statement about the key had seen removed.
    ///
    /// Another device may have given an older key to a device that it did not know was removed.
    package private(set) var madeAfterRemovals: Set<DeviceID>?
    /// The devices that each author of counted statements about the key had seen removed when it made the last one.
    private var removalsSeen: [DeviceID: Set<DeviceID>] = [:]
    /// The devices for which counted statements box it.
    package private(set) var recipients: Set<DeviceID> = []
    /// Whether a counted statement is about the key.
    private(set) var isCounted = false
    /// The boxes and wrapped keys of all statements.
    package private(set) var boxes: [Statement.Rekeying.Box] = []
    package private(set) var olderKeys: [Statement.Rekeying.WrappedKey] = []

    /// Returns whether new objects may be sealed under the key: every member has it, and it was made after every removal.
    package func isUsable(_ roster: Roster, trusting device: DeviceID? = nil) -> Bool {
        isOfMembersOnly(roster, trusting: device) && !recipients.isEmpty && roster.members.keys.allSatisfy { recipients.contains($0) }
    }

    /// Returns whether only members can have the key.
    ///
    /// With `device`, what that device knew of the key decides alone, and not what other members have stated: any of them can give the key away,
    /// and date a statement back.
    func isOfMembersOnly(_ roster: Roster, trusting device: DeviceID? = nil) -> Bool {
        if isPlanted(.rekeyMissesRemoval) { return true }
        let removals = if let device { removalsSeen[device] } else { madeAfterRemovals }
        guard isPlanted(.keyOlderThanRemoval) || (removals ?? []).isSuperset(of: roster.removed) else { return false }
        return device != nil || holders.allSatisfy { roster.members[$0] != nil }
    }

    /// Returns whether the key may be wrapped under a newer one that only members have.
    ///
    /// Not if an author of the key had seen a removal that is void here. It may count for another member, which then knows who must not get the key,
    /// and this device does not. But if every author of the newer key had seen it too, the removed device, which is no member here, never gets that
    /// key either.
    func mayBeWrapped(under newer: LaneKeyRecord? = nil, _ roster: Roster) -> Bool {
        if isPlanted(.wrapsForRemoved) || excluded.isSubset(of: roster.removed) { return true }
        return excludesNoMember(of: roster) && newer?.madeAfterRemovals?.isSuperset(of: excluded) == true
    }

    /// Returns whether a device has stated the key when it had seen these devices removed.
    func isStated(by device: DeviceID, knowing removed: Set<DeviceID>) -> Bool { removalsSeen[device]?.isSuperset(of: removed) == true }

    func excludesNoMember(of roster: Roster) -> Bool { excluded.allSatisfy { roster.members[$0] == nil } }

    static func records(_ graph: StatementGraph, _ authority: StatementAuthority, _ isCounted: [Bool]) -> [LaneKeyRecord] {
        var records: [LaneKeyRecord] = []
        // A key belongs to one lane, but the statement of a member may give its identifier to the other lane.
        var indices: [Lane: [LaneKeyID: Int]] = [:]
        var stated: [(number: Int, rekeying: Statement.Rekeying, index: Int)] = []
        // For each record, what the authors of counted statements about the key had counted when they went on with it.
        var counted: [NumberSet] = []
        for (number, statement) in graph.statements.enumerated() {
            guard authority.isAuthorized[number], case .rekey(let rekeying) = statement.body else { continue }
            if isPlanted(.keyTakenByOtherLane), records.contains(where: { $0.key == rekeying.key && $0.lane != rekeying.lane }) { continue }
            let index = indices[rekeying.lane]?[rekeying.key] ?? records.count
            if index == records.count {
                indices[rekeying.lane, default: [:]][rekeying.key] = index
                records.append(LaneKeyRecord(lane: rekeying.lane, key: rekeying.key, generation: .max))
                counted.append(graph.noNumbers)
            }
            records[index].boxes += rekeying.boxes
            records[index].olderKeys += rekeying.olderKeys
            if isCounted[number] {
                records[index].recipients.formUnion(rekeying.boxes.map(\.device))
                records[index].isCounted = true
                counted[index].formUnion(graph.known[number])
            }
            stated.append((number, rekeying, index))
        }
        // Statements that do not count help to open a key, and say nothing else about one of a member: a removed device can make any number of them.
        // But a member may have gone on with a key by a statement that it counted at that time. The devices that have the key by that one still have it.
        for (number, rekeying, index) in stated where !isCounted[number] && counted[index].contains(number) {
            records[index].holders.insert(graph.authors[number])
            records[index].holders.formUnion(rekeying.boxes.map(\.device))
        }
        stated.removeAll { !isCounted[$0.number] && records[$0.index].isCounted }
        var removals: [Int] = []
        var removed: Set<DeviceID> = []
        for (number, rekeying, index) in stated {
            records[index].generation = min(records[index].generation, rekeying.generation)
            records[index].holders.insert(graph.authors[number])
            records[index].holders.formUnion(rekeying.boxes.map(\.device))
            let known = authority.removals.filter { graph.known[number].contains($0) }
            // Most authors know the same removals as the one before.
            if known != removals {
                removals = known
                removed = known.reduce(into: []) { $0.formUnion(graph.removedDevices($1)) }
            }
            records[index].excluded.formUnion(removed)
            if isCounted[number] {
                records[index].madeAfterRemovals = records[index].madeAfterRemovals?.intersection(removed) ?? removed
                records[index].removalsSeen[graph.authors[number], default: []].formUnion(removed)
            }
        }
        return records.sorted { ($0.lane.rawValue, $0.generation, $0.key) < ($1.lane.rawValue, $1.generation, $1.key) }
    }
}
