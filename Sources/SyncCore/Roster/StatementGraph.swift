// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A set of statements with the order that their heads define.
///
/// Statements are numbered so that each follows its predecessors. The numbering depends on nothing but the set.
///
/// A statement whose predecessors are not all there is left out. Otherwise a device from which the storage hides a removal, but not the new
/// lane key that follows it, would take the removed device for a member that lacks the key.
struct StatementGraph {
    let statements: [Statement]
    let authors: [DeviceID]
    /// The device that each statement makes a member, its role, and whether it is a recovery kit.
    private(set) var admitted: [DeviceID?] = []
    private(set) var admittedRoles: [DeviceRole?] = []
    private(set) var isKitAdmission: [Bool] = []
    /// The device that each statement removes.
    private(set) var removed: [DeviceID?] = []
    /// For each statement, the statements that its author counted.
    private(set) var known: [NumberSet] = []
    /// The statements that are not there although others name them, each with the author of such a statement.
    private(set) var missing: [(author: DeviceID, head: StatementHash)] = []

    /// The limit of a circle's statements, because the roster takes time in the square of the number.
    static let largestCount = 8_192

    init(_ set: [Statement]) {
        let sorted = set.sorted { $0.hash < $1.hash }.prefix(Self.largestCount)
        var numbers: [StatementHash: Int] = [:]
        for (index, statement) in sorted.enumerated() { numbers[statement.hash] = index }
        // Depth-first without recursion: a statement is emitted after all its present predecessors.
        var emitted: [StatementHash: Int] = [:]
        var ordered: [Statement] = []
        var isOpen: Set<StatementHash> = []
        for start in sorted {
            var stack = [start]
            while let top = stack.last {
                if emitted[top.hash] != nil {
                    stack.removeLast()
                    continue
                }
                let next = top.heads.first { emitted[$0] == nil && numbers[$0] != nil && !isOpen.contains($0) }
                if isOpen.insert(top.hash).inserted || next != nil, let next, let number = numbers[next] {
                    stack.append(sorted[number])
                } else {
                    emitted[top.hash] = ordered.count
                    ordered.append(top)
                    stack.removeLast()
                }
            }
        }
        var complete: [Statement] = []
        var completed: [StatementHash: Int] = [:]
        for statement in ordered {
            var set = NumberSet(count: ordered.count)
            var isComplete = true
            for head in statement.heads {
                if let predecessor = completed[head] {
                    set.formUnion(known[predecessor])
                    set.insert(predecessor)
                } else {
                    isComplete = false
                    if numbers[head] == nil { missing.append((statement.author, head)) }
                }
            }
            guard isComplete || isPlanted(.incompleteStatements) else { continue }
            completed[statement.hash] = complete.count
            complete.append(statement)
            known.append(set)
        }
        statements = complete
        authors = complete.map(\.author)
        for statement in complete { noteDevices(statement) }
    }

    private mutating func noteDevices(_ statement: Statement) {
        var admitted: (device: DeviceID, role: DeviceRole, isKit: Bool)?
        var removed: DeviceID?
        switch statement.body {
        case .found: admitted = (statement.author, .owner, false)
        case .admit(let admission): admitted = (admission.device, admission.role, admission.circleCode != nil)
        case .remove(let removal): removed = removal.device
        case .rekey, .witness: break
        }
        self.admitted.append(admitted?.device)
        admittedRoles.append(admitted?.role)
        isKitAdmission.append(admitted?.isKit ?? false)
        self.removed.append(removed)
    }

    /// Returns whether the author of `later` counted `earlier`, or they are the same statement.
    func lists(_ later: Int, _ earlier: Int) -> Bool { later == earlier || known[later].contains(earlier) }
}

/// A set of small numbers.
struct NumberSet {
    private var words: [UInt64]

    init(count: Int) { words = Array(repeating: 0, count: (count + 63) / 64) }

    mutating func insert(_ number: Int) { words[number >> 6] |= 1 << UInt64(number & 63) }

    func contains(_ number: Int) -> Bool { words[number >> 6] & 1 << UInt64(number & 63) != 0 }

    mutating func formUnion(_ other: NumberSet) {
        for index in words.indices { words[index] |= other.words[index] }
    }
}
