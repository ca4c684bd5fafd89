// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Who had the right to make a statement, by what its author counted.
struct StatementAuthority {
    private(set) var isAuthorized: [Bool] = []
    /// The authorized admissions of each device, in ascending order.
    private(set) var admissions: [DeviceID: [Int]] = [:]
    /// The authorized removals, in ascending order.
    private(set) var removals: [Int] = []
    private var removalsOfDevice: [DeviceID: [Int]] = [:]
    /// The authorized statements about keys.
    private var rekeyings: [KeyGeneration: [Int]] = [:]

    private struct KeyGeneration: Hashable {
        let lane: Lane
        let generation: UInt64
    }

    init(_ graph: StatementGraph, circle: CircleID) {
        for (number, statement) in graph.statements.enumerated() {
            let isValid = statement.circle == circle && mayState(number, statement, graph)
            isAuthorized.append(isValid)
            if isValid { note(number, statement, graph) }
        }
    }

    private func mayState(_ number: Int, _ statement: Statement, _ graph: StatementGraph) -> Bool {
        if case .found = statement.body { return true }
        let known = graph.known[number]
        // A device has one role.
        guard let role = supports(of: number, graph).first(where: { _ in true }).flatMap({ graph.admittedRoles[$0] }),
            !(removalsOfDevice[statement.author] ?? []).contains(where: { known.contains($0) })
        else { return false }
        switch statement.body {
        case .found: return true
        case .admit, .remove: return role.isOwner
        case .rekey(let rekeying): return role.mayWrite && isNext(rekeying, known)
        case .witness: return role.mayWrite
        }
    }

    /// Returns whether the generation of a key is at most one higher than those that the author knew.
    ///
    /// Of the known keys with this generation or a higher one, the earliest has exactly one generation less than this key, because the same
    /// holds for it. So it suffices to look for that.
    private func isNext(_ rekeying: Statement.Rekeying, _ known: NumberSet) -> Bool {
        guard rekeying.generation > 1 else { return rekeying.generation == 1 }
        let earlier = KeyGeneration(lane: rekeying.lane, generation: rekeying.generation - 1)
        return (rekeyings[earlier] ?? []).contains { known.contains($0) }
    }

    private mutating func note(_ number: Int, _ statement: Statement, _ graph: StatementGraph) {
        switch statement.body {
        case .found: admissions[statement.author, default: []].append(number)
        case .admit(let admission): admissions[admission.device, default: []].append(number)
        case .remove:
            removals.append(number)
            for device in graph.removedDevices(number) { removalsOfDevice[device, default: []].append(number) }
        case .rekey(let rekeying):
            rekeyings[KeyGeneration(lane: rekeying.lane, generation: rekeying.generation), default: []].append(number)
        case .witness: break
        }
    }

    /// The admissions of a statement's author that the author counted; the statement rests on any of them.
    ///
    /// Two owners may admit one device, and one of the two admissions may be void.
    func supports(of number: Int, _ graph: StatementGraph) -> some Sequence<Int> {
        let known = graph.known[number]
        return (admissions[graph.authors[number]] ?? []).lazy.filter { known.contains($0) }
    }

    /// Returns whether a statement rests on nothing, or on an admission that fulfills a condition.
    func isSupported(_ number: Int, _ graph: StatementGraph, where isIncluded: (Int) -> Bool) -> Bool {
        var isFounding = true
        for admission in supports(of: number, graph) {
            if isIncluded(admission) { return true }
            isFounding = false
        }
        return isFounding
    }
}
