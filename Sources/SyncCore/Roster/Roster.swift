// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The devices of a circle and its lane keys: a pure function of the set of statements.
package struct Roster: Sendable {
    package private(set) var members: [DeviceID: Member] = [:]
    /// Every device that was ever removed.
    ///
    /// None of them is admitted again.
    package private(set) var removed: Set<DeviceID> = []
    /// The devices in all removals that a new statement knows, also in those that do not count.
    private(set) var seenRemoved: Set<DeviceID> = []
    /// The newest counted statements, in ascending order.
    package private(set) var heads: [StatementHash] = []
    package private(set) var counted: Set<StatementHash> = []
    /// The statements that a statement of a writer or an owner names and that are not there.
    package private(set) var missing: Set<StatementHash> = []
    /// The writers and owners of whose statements some do not count because a statement is not there.
    package private(set) var dependents: [StatementHash: Set<DeviceID>] = [:]
    /// The checkpoints of removed devices that stay usable.
    package private(set) var listedCheckpoints: Set<CheckpointHash> = []
    /// The statements that count, and those that they list: a statement counts only if all these are there.
    package private(set) var needed: Set<StatementHash> = []
    /// The lane keys, in ascending order of lane, generation, and identifier.
    package private(set) var laneKeys: [LaneKeyRecord] = []
    /// The public keys of every device that an owner admitted, also of removed ones.
    package private(set) var publicKeys: [DeviceID: DevicePublicKeys] = [:]
    /// The public keys of every device that an owner admitted as an owner or a writer, also if the admission is void.
    ///
    /// What others state never counts.
    package private(set) var authors: [DeviceID: DevicePublicKeys] = [:]
    /// The authors that are no members: they were removed, or their admission is void.
    ///
    /// What remaining writers have read of their batches counts.
    private(set) var formerAuthors: Set<DeviceID> = []
    private var laneKeyIndices: [LaneKeyID: [Int]] = [:]

    package struct Member: Hashable, Sendable {
        package let keys: DevicePublicKeys
        package let role: DeviceRole
        package var isRecoveryKit: Bool { role == .recoveryKit }
    }

    /// Evaluates statements whose signatures the caller has checked.
    package init(_ statements: [Statement], circle: CircleID) {
        let graph = StatementGraph(statements)
        let authority = StatementAuthority(graph, circle: circle)
        let standing = StandingRemovals(graph, authority)
        evaluate(graph, authority, standing)
    }

    /// Evaluates the statements of a ledger.
    package static func stored(in ledger: any SyncReading, _ circle: CircleID, _ cipher: any CircleCipher) throws(KeychainFailure) -> Roster
    {
        var statements: [Statement] = []
        for stored in try ledger.statements() {
            do throws(FormatError) {
                statements.append(try Statement(stored.bytes, cipher: cipher))
            } catch {
                throw KeychainFailure(.decode, "the keychain's record of the circle is damaged", subject: .store, cause: .damaged)
            }
        }
        return Roster(statements, circle: circle)
    }

    private mutating func evaluate(_ graph: StatementGraph, _ authority: StatementAuthority, _ standing: StandingRemovals) {
        var isCounted: [Bool] = []
        var roles: [DeviceID: DeviceRole] = [:]
        for (number, statement) in graph.statements.enumerated() {
            if graph.removed[number] != nil {
                isCounted.append(standing.stands(number))
            } else {
                let isSupported = authority.isSupported(number, graph) { isCounted[$0] }
                isCounted.append(authority.isAuthorized[number] && isSupported && !standing.isVoid(number))
            }
            guard isCounted[number] else { continue }
            counted.insert(statement.hash)
            switch statement.body {
            case .found(let founding):
                publicKeys[statement.author] = founding.keys
                roles[statement.author] = .owner
            case .admit(let admission):
                publicKeys[admission.device] = admission.keys
                roles[admission.device] = admission.role
            case .remove(let removal):
                removed.formUnion(graph.removedDevices(number))
                listedCheckpoints.formUnion(removal.checkpoints)
            case .rekey, .witness: break
            }
        }
        for (device, role) in roles where !removed.contains(device) || isAdmittedAgain(device, graph, isCounted) {
            guard let keys = publicKeys[device] else { continue }
            members[device] = Member(keys: keys, role: role)
        }
        findHeads(graph, authority, isCounted)
        for (author, head) in graph.missing where members[author]?.role.mayWrite == true {
            missing.insert(head)
        }
        dependents = graph.dependents.mapValues { authors in authors.filter { members[$0]?.role.mayWrite == true } }
        laneKeys = LaneKeyRecord.records(graph, authority, isCounted)
        for (index, record) in laneKeys.enumerated() { laneKeyIndices[record.key, default: []].append(index) }
        noteAuthors(graph, authority)
        formerAuthors = Set(authors.keys).subtracting(members.keys)
    }

    private mutating func noteAuthors(_ graph: StatementGraph, _ authority: StatementAuthority) {
        for (device, admissions) in authority.admissions {
            for admission in admissions where graph.admittedRoles[admission]?.mayWrite == true {
                switch graph.statements[admission].body {
                case .found(let founding): authors[device] = founding.keys
                case .admit(let admission): authors[device] = admission.keys
                case .remove, .rekey, .witness: break
                }
            }
        }
    }

    /// The lane keys of an identifier: a member's program may give the identifier of a key to the other lane too.
    func laneKeys(named id: LaneKeyID) -> [LaneKeyRecord] { (laneKeyIndices[id] ?? []).map { laneKeys[$0] } }

    /// A planted fault: lets an admission that no removal lists, because the storage withheld it, bring a removed device back.
    private func isAdmittedAgain(_ device: DeviceID, _ graph: StatementGraph, _ isCounted: [Bool]) -> Bool {
        guard isPlanted(.replayedAdmission) else { return false }
        let numbers = graph.statements.indices.filter { isCounted[$0] }
        let removals = numbers.filter { graph.removed[$0] == device }
        return numbers.contains { number in
            graph.admitted[number] == device && !removals.contains { graph.known[$0].contains(number) }
        }
    }

    private mutating func findHeads(_ graph: StatementGraph, _ authority: StatementAuthority, _ isCounted: [Bool]) {
        var listed = graph.noNumbers
        // Most statements are listed by a later one that lists their predecessors too.
        for number in isCounted.indices.reversed() where isCounted[number] && !listed.contains(number) {
            listed.formUnion(graph.known[number])
        }
        heads = isCounted.indices.filter { isCounted[$0] && !listed.contains($0) }.map { graph.statements[$0].hash }.sorted()
        needed = Set(isCounted.indices.lazy.filter { isCounted[$0] || listed.contains($0) }.map { graph.statements[$0].hash })
        for number in authority.removals where isCounted[number] || listed.contains(number) {
            seenRemoved.formUnion(graph.removedDevices(number))
        }
    }
}
