// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Makes every set of up to six statements of four devices, each statement with every set of predecessors that its author could have counted,
/// and evaluates each set in every order.
package struct ExhaustiveRoster {
    package private(set) var setCount = 0
    package private(set) var failures: [String] = []
    private let cipher = FakeCipher(seed: 1)
    private let keys: [FakeDeviceKeys]
    private let ids: [DeviceID]
    private let statementCount: Int
    private let ordersOfLargeSets: Int
    private var seen: Set<[StatementHash]> = []

    /// `ordersOfLargeSets` is the number of orders tried for a set with more than four statements; 720 are all.
    package init(statementCount: Int = 6, ordersOfLargeSets: Int = 720) {
        let cipher = cipher
        keys = (0..<4).map { FakeDeviceKeys(seed: [UInt8($0)]) }
        ids = keys.map { DeviceID(of: $0.publicKeys, role: .owner, cipher: cipher) }
        self.statementCount = statementCount
        self.ordersOfLargeSets = ordersOfLargeSets
    }

    package mutating func run() {
        do {
            let founding = try Statement(
                .found(.init(nonce: [UInt8](repeating: 0, count: 32), keys: keys[0].publicKeys)), circle: nil, author: ids[0], heads: [],
                keys: keys[0], cipher: cipher)
            try extend([founding], founding.circle)
        } catch {
            failures.append("\(error)")
        }
    }

    private mutating func extend(_ statements: [Statement], _ circle: CircleID) throws {
        guard seen.insert(statements.map(\.hash).sorted()).inserted, failures.count < 3 else { return }
        setCount += 1
        check(statements, circle)
        guard statements.count < statementCount else { return }
        for subset in closedSubsets(statements) {
            let known = subset.map { statements[$0] }
            let roster = Roster(known, circle: circle)
            // An author lists what it counts.
            guard roster.counted.count == known.count else { continue }
            for author in ids.indices where roster.members[ids[author]]?.role == .owner {
                // An author knows its own statements.
                guard
                    statements.indices.allSatisfy({ statements[$0].author != ids[author] || subset.contains($0) })
                        || isThief(author, statements)
                else { continue }
                for subject in ids.indices {
                    let body: Statement.Body
                    if roster.members[ids[subject]] != nil {
                        guard subject != author else { continue }
                        body = .remove(.init(device: ids[subject], checkpoints: []))
                    } else {
                        guard !roster.removed.contains(ids[subject]) else { continue }
                        body = .admit(.init(device: ids[subject], keys: keys[subject].publicKeys, role: .owner, circleCode: nil))
                    }
                    let statement = try Statement(
                        body, circle: circle, author: ids[author], heads: roster.heads, keys: keys[author], cipher: cipher)
                    if !statements.contains(where: { $0.hash == statement.hash }) { try extend(statements + [statement], circle) }
                }
            }
        }
    }

    /// Whether a device may make statements that conceal what it knows, because it was removed.
    private func isThief(_ device: Int, _ statements: [Statement]) -> Bool {
        statements.contains { statement in
            if case .remove(let removal) = statement.body { removal.device == ids[device] } else { false }
        }
    }

    /// The sets of statements that contain the predecessors of each member.
    private func closedSubsets(_ statements: [Statement]) -> [[Int]] {
        (1..<(1 << statements.count)).compactMap { bits in
            let subset = statements.indices.filter { bits & 1 << $0 != 0 }
            let hashes = Set(subset.map { statements[$0].hash })
            return subset.allSatisfy { statements[$0].heads.allSatisfy { hashes.contains($0) } } ? subset : nil
        }
    }

    private mutating func check(_ statements: [Statement], _ circle: CircleID) {
        let roster = Roster(statements, circle: circle)
        var orders = statements.count > 4 ? ordersOfLargeSets : 24
        forEachOrder(statements) { order in
            orders -= 1
            let other = Roster(order, circle: circle)
            if other.members != roster.members || other.counted != roster.counted || other.heads != roster.heads {
                failures.append("the order of statements changes the roster")
            }
            return orders > 0 && failures.isEmpty
        }
        for device in roster.removed where roster.members[device] != nil { failures.append("device \(device) is removed and a member") }
        checkThieves(statements, roster, circle)
    }

    /// Checks that statements of removed devices that no other device lists make no removed device a member again.
    private mutating func checkThieves(_ statements: [Statement], _ roster: Roster, _ circle: CircleID) {
        for (index, last) in statements.enumerated() where !statements.contains(where: { $0.heads.contains(last.hash) }) {
            var before = statements
            before.remove(at: index)
            let without = Roster(before, circle: circle)
            guard without.removed.contains(last.author) else { continue }
            for device in without.removed where roster.members[device] != nil {
                // A removal that the thief's own removal lists keeps its effect.
                failures.append("a statement of a removed device made a removed device a member again")
            }
            for device in roster.members.keys where without.members[device] == nil {
                if case .remove = last.body { continue }
                failures.append("a statement of a removed device made \(device) a member")
            }
        }
    }

    private func forEachOrder(_ statements: [Statement], _ body: ([Statement]) -> Bool) {
        var order = Array(statements.indices)
        repeat {
            if !body(order.map { statements[$0] }) { return }
        } while Self.advance(&order)
    }

    /// Changes a permutation to the next one in lexicographic order; returns false after the last.
    private static func advance(_ order: inout [Int]) -> Bool {
        guard let pivot = order.indices.dropLast().last(where: { order[$0] < order[$0 + 1] }),
            let successor = order.indices.last(where: { order[$0] > order[pivot] })
        else { return false }
        order.swapAt(pivot, successor)
        order[(pivot + 1)...].reverse()
        return true
    }
}
