// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A lane key as statements describe it.
package struct LaneKeyRecord: Hashable, Sendable {
    package let lane: Lane
    package let key: LaneKeyID
    /// The lowest generation that a statement gives it.
    package private(set) var generation: UInt64
    /// The devices that know the key: those that boxed it and those for which it is boxed.
    package private(set) var holders: Set<DeviceID> = []
    /// The devices for which counted statements box it.
    package private(set) var recipients: Set<DeviceID> = []
    package private(set) var boxes: [Statement.Rekeying.Box] = []
    package private(set) var olderKeys: [Statement.Rekeying.WrappedKey] = []

    /// Returns whether new objects may be sealed under the key: every member has it, and nobody else.
    package func isUsable(_ roster: Roster) -> Bool {
        let isOfMembers = isPlanted(.rekeyMissesRemoval) || holders.allSatisfy { roster.members[$0] != nil }
        return !recipients.isEmpty && isOfMembers && roster.members.keys.allSatisfy { recipients.contains($0) }
    }

    static func records(_ graph: StatementGraph, _ authority: StatementAuthority, _ isCounted: [Bool]) -> [LaneKeyRecord] {
        var records: [LaneKeyRecord] = []
        var indices: [LaneKeyID: Int] = [:]
        for (number, statement) in graph.statements.enumerated() {
            guard authority.isAuthorized[number], case .rekey(let rekeying) = statement.body else { continue }
            let index: Int
            if let known = indices[rekeying.key] {
                // A key belongs to one lane: its identifier is a hash of the lane and the key.
                guard records[known].lane == rekeying.lane else { continue }
                index = known
            } else {
                index = records.count
                indices[rekeying.key] = index
                records.append(LaneKeyRecord(lane: rekeying.lane, key: rekeying.key, generation: rekeying.generation))
            }
            records[index].generation = min(records[index].generation, rekeying.generation)
            records[index].holders.insert(statement.author)
            records[index].holders.formUnion(rekeying.boxes.map(\.device))
            records[index].boxes += rekeying.boxes
            records[index].olderKeys += rekeying.olderKeys
            if isCounted[number] { records[index].recipients.formUnion(rekeying.boxes.map(\.device)) }
        }
        return records.sorted { ($0.lane.rawValue, $0.generation, $0.key) < ($1.lane.rawValue, $1.generation, $1.key) }
    }
}
