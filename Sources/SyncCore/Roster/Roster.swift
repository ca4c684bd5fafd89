// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The devices of a circle and its lane keys: a pure function of the set of statements.
package struct Roster: Sendable {
    package private(set) var members: [DeviceID: Member] = [:]
    /// Every device that was ever removed.
    ///
    /// None of them is admitted again.
    package private(set) var removed: Set<DeviceID> = []
    /// The newest counted statements, in ascending order.
    package private(set) var heads: [StatementHash] = []
    package private(set) var counted: Set<StatementHash> = []
    /// The statements that a statement of a writer or an owner names and that are not there.
    package private(set) var missing: Set<StatementHash> = []
    /// The checkpoints of removed devices that stay usable.
    package private(set) var listedCheckpoints: Set<CheckpointHash> = []
    /// The lane keys, in ascending order of lane, generation, and identifier.
    package private(set) var laneKeys: [LaneKeyRecord] = []
    /// The public keys of every device that an owner admitted, also of removed ones.
    package private(set) var publicKeys: [DeviceID: DevicePublicKeys] = [:]

    package struct Member: Hashable, Sendable {
        package let keys: DevicePublicKeys
        package let role: DeviceRole
        package let isRecoveryKit: Bool
    }

    /// Evaluates statements whose signatures the caller has checked.
    package init(_ statements: [Statement], circle: CircleID) {
        let graph = StatementGraph(statements)
        let authority = StatementAuthority(graph, circle: circle)
        let standing = StandingRemovals(graph, authority)
        evaluate(graph, authority, standing)
    }

    private mutating func evaluate(_ graph: StatementGraph, _ authority: StatementAuthority, _ standing: StandingRemovals) {
        var isCounted: [Bool] = []
        var roles: [DeviceID: (role: DeviceRole, isKit: Bool)] = [:]
        for (number, statement) in graph.statements.enumerated() {
            let supports = authority.supports[number]
            isCounted.append(
                authority.isAuthorized[number] && (supports.isEmpty || supports.contains { isCounted[$0] })
                    && !standing.isVoid(number, graph))
            guard isCounted[number] else { continue }
            counted.insert(statement.hash)
            switch statement.body {
            case .found(let founding):
                publicKeys[statement.author] = founding.keys
                roles[statement.author] = (.owner, false)
            case .admit(let admission):
                publicKeys[admission.device] = admission.keys
                // Of two concurrent admissions, the one with fewer rights counts.
                let earlier = roles[admission.device]?.role.rawValue ?? 0
                let role = DeviceRole(rawValue: max(earlier, admission.role.rawValue)) ?? admission.role
                roles[admission.device] = (role, admission.circleCode != nil)
            case .remove(let removal):
                removed.insert(removal.device)
                listedCheckpoints.formUnion(removal.checkpoints)
            case .rekey, .witness: break
            }
        }
        for (device, entry) in roles where !removed.contains(device) || isAdmittedAgain(device, graph, isCounted) {
            guard let keys = publicKeys[device] else { continue }
            members[device] = Member(keys: keys, role: entry.role, isRecoveryKit: entry.isKit)
        }
        heads = maximalStatements(graph, isCounted)
        for (author, head) in graph.missing where members[author].map({ $0.role.mayWrite || isPlanted(.waitsForReaders) }) == true {
            missing.insert(head)
        }
        laneKeys = LaneKeyRecord.records(graph, authority, isCounted)
    }

    /// A planted fault: lets an admission that no removal lists, because the storage withheld it, bring a removed device back.
    private func isAdmittedAgain(_ device: DeviceID, _ graph: StatementGraph, _ isCounted: [Bool]) -> Bool {
        guard isPlanted(.replayedAdmission) else { return false }
        let numbers = graph.statements.indices.filter { isCounted[$0] }
        let removals = numbers.filter { graph.removed[$0] == device }
        return numbers.contains { number in
            graph.admitted[number] == device && !removals.contains { graph.known[$0].contains(number) }
        }
    }

    private func maximalStatements(_ graph: StatementGraph, _ isCounted: [Bool]) -> [StatementHash] {
        var isListed = Array(repeating: false, count: isCounted.count)
        for number in isCounted.indices where isCounted[number] {
            for earlier in 0..<number where graph.known[number].contains(earlier) { isListed[earlier] = true }
        }
        return isCounted.indices.filter { isCounted[$0] && !isListed[$0] }.map { graph.statements[$0].hash }.sorted()
    }
}

/// Who had the right to make a statement, by what its author counted.
struct StatementAuthority {
    private(set) var isAuthorized: [Bool] = []
    /// For each statement, the admissions of its author that the author counted; it rests on any of them.
    ///
    /// Two owners may admit one device, and one of the two admissions may be void.
    private(set) var supports: [[Int]] = []

    init(_ graph: StatementGraph, circle: CircleID) {
        var admissions: [Int] = []
        var removals: [Int] = []
        var rekeyings: [Int] = []
        for (number, statement) in graph.statements.enumerated() {
            let known = graph.known[number]
            let support = admissions.filter { known.contains($0) && graph.admitted[$0] == statement.author }
            let role = support.compactMap { graph.admittedRoles[$0] }.max { $0.rawValue < $1.rawValue }
            let isRemoved = removals.contains { known.contains($0) && graph.removed[$0] == statement.author }
            var isValid = statement.circle == circle
            switch statement.body {
            case .found: break
            case .admit, .remove: isValid = isValid && role == .owner && !isRemoved
            case .rekey(let rekeying):
                let highest = rekeyings.lazy.filter { known.contains($0) }.compactMap {
                    graph.statements[$0].body.generation(of: rekeying.lane)
                }
                .max()
                isValid =
                    isValid && role?.mayWrite == true && !isRemoved && rekeying.generation > 0
                    && (rekeying.generation - 1 <= highest ?? 0)
            case .witness: isValid = isValid && role?.mayWrite == true && !isRemoved
            }
            isAuthorized.append(isValid)
            supports.append(support)
            guard isValid else { continue }
            switch statement.body {
            case .found, .admit: admissions.append(number)
            case .remove: removals.append(number)
            case .rekey: rekeyings.append(number)
            case .witness: break
            }
        }
    }
}

extension Statement.Body {
    func generation(of lane: Lane) -> UInt64? {
        if case .rekey(let rekeying) = self, rekeying.lane == lane { rekeying.generation } else { nil }
    }
}
