// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A set of statements with the order that their heads define.
///
/// Statements are numbered so that each follows its predecessors. The numbering depends on nothing but the set.
///
/// A statement whose predecessors are not all there is left out. Otherwise a device from which the storage hides a removal, but not the new
/// lane key that follows it, would take the removed device for a member that lacks the key.
struct StatementGraph {
    private(set) var statements: [Statement] = []
    private(set) var authors: [DeviceID] = []
    /// The device that each statement makes a member, and its role.
    private(set) var admitted: [DeviceID?] = []
    private(set) var admittedRoles: [DeviceRole?] = []
    private var kits: Set<DeviceID> = []
    /// The device that each statement removes.
    private(set) var removed: [DeviceID?] = []
    /// For each statement, the statements that it names as its heads.
    private(set) var predecessors: [[Int]] = []
    /// For each statement, the statements that its author counted: its predecessors, theirs, and so on.
    private(set) var known: [NumberSet] = []
    /// The statements that are not there although others name them, each with the author of such a statement.
    private(set) var missing: [(author: DeviceID, head: StatementHash)] = []
    /// The authors of all statements that do not count because a statement is not there.
    private(set) var dependents: [StatementHash: Set<DeviceID>] = [:]
    private var numbersOfAuthor: [DeviceID: [Int]] = [:]
    private var keysOfDevice: [DeviceID: DevicePublicKeys] = [:]
    private var devicesOfKeys: [DevicePublicKeys: Set<DeviceID>] = [:]
    /// A set without numbers, which can be combined with those in `known`.
    private(set) var noNumbers = NumberSet(count: 0)

    /// The limit of a circle's statements, because the roster takes time and memory in the square of the number.
    static let largestCount = 32_768

    init(_ set: [Statement]) {
        let sorted = Array(set.sorted { $0.hash < $1.hash }.prefix(Self.largestCount))
        noNumbers = NumberSet(count: sorted.count)
        var positions: [StatementHash: Int] = [:]
        for (position, statement) in sorted.enumerated() { positions[statement.hash] = position }
        let predecessors = sorted.map { $0.heads.compactMap { positions[$0] } }
        let order = Self.order(predecessors)
        var numbers: [Int?] = Array(repeating: nil, count: sorted.count)
        for position in order {
            let statement = sorted[position]
            let isComplete = predecessors[position].count == statement.heads.count
            if !isComplete {
                for head in statement.heads where positions[head] == nil { missing.append((statement.author, head)) }
            }
            let known = predecessors[position].compactMap { numbers[$0] }
            guard isComplete && known.count == statement.heads.count || isPlanted(.incompleteStatements) else { continue }
            numbers[position] = statements.count
            add(statement, knowing: known)
        }
        guard !missing.isEmpty else { return }
        // A statement comes after its predecessors, so its own dependents are complete before they are passed on to these.
        var authors: [Int: Set<DeviceID>] = [:]
        for position in order.reversed() where numbers[position] == nil {
            let own = authors[position, default: []].union([sorted[position].author])
            for head in sorted[position].heads {
                if let predecessor = positions[head] {
                    if numbers[predecessor] == nil { authors[predecessor, default: []].formUnion(own) }
                } else {
                    dependents[head, default: []].formUnion(own)
                }
            }
        }
    }

    /// Returns the positions of the statements so that each follows its predecessors: depth-first, without recursion.
    private static func order(_ predecessors: [[Int]]) -> [Int] {
        var order: [Int] = []
        order.reserveCapacity(predecessors.count)
        var isVisited = Array(repeating: false, count: predecessors.count)
        for start in predecessors.indices where !isVisited[start] {
            isVisited[start] = true
            var stack = [(position: start, next: 0)]
            while let (position, next) = stack.last {
                if next == predecessors[position].count {
                    order.append(position)
                    stack.removeLast()
                    continue
                }
                stack[stack.count - 1].next += 1
                let predecessor = predecessors[position][next]
                guard !isVisited[predecessor] else { continue }
                isVisited[predecessor] = true
                stack.append((predecessor, 0))
            }
        }
        return order
    }

    private mutating func add(_ statement: Statement, knowing predecessors: [Int]) {
        var set = noNumbers
        // Most heads that a later head lists are known by it.
        for predecessor in predecessors.sorted(by: >) where !set.contains(predecessor) {
            set.formUnion(known[predecessor])
            set.insert(predecessor)
        }
        self.predecessors.append(predecessors)
        known.append(set)
        numbersOfAuthor[statement.author, default: []].append(statements.count)
        statements.append(statement)
        authors.append(statement.author)
        var admitted: (device: DeviceID, role: DeviceRole)?
        var removed: DeviceID?
        switch statement.body {
        case .found(let founding):
            admitted = (statement.author, .owner)
            note(founding.keys, of: statement.author)
        case .admit(let admission):
            admitted = (admission.device, admission.role)
            if admission.role == .recoveryKit { kits.insert(admission.device) }
            note(admission.keys, of: admission.device)
        case .remove(let removal): removed = removal.device
        case .rekey, .witness: break
        }
        self.admitted.append(admitted?.device)
        admittedRoles.append(admitted?.role)
        self.removed.append(removed)
    }

    private mutating func note(_ keys: DevicePublicKeys, of device: DeviceID) {
        keysOfDevice[device] = keys
        devicesOfKeys[keys, default: []].insert(device)
    }

    /// The devices that a statement removes: one, and those with its keys, which other owners may have admitted in other roles at the same time.
    func removedDevices(_ number: Int) -> Set<DeviceID> {
        guard let device = removed[number] else { return [] }
        return keysOfDevice[device].flatMap { devicesOfKeys[$0] } ?? [device]
    }

    /// Whether the author of a statement is a recovery kit.
    func isByKit(_ number: Int) -> Bool { kits.contains(authors[number]) }

    /// The statements of a device, in ascending order.
    func numbers(of author: DeviceID) -> [Int] { numbersOfAuthor[author] ?? [] }

    /// Returns whether the author of `later` counted `earlier`, or they are the same statement.
    func lists(_ later: Int, _ earlier: Int) -> Bool { later == earlier || known[later].contains(earlier) }
}
