// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The removals that stand, and what they make void.
///
/// A removal makes void what the removed device stated, and what rests on it, except for statements that the removal lists and for those
/// that a remaining device listed. There is no seniority: of devices that remove each other, all removals stand.
///
/// A removal by a recovery kit is void because the kit was removed only if a remaining device lists that removal: a thief that the kit removes could
/// otherwise date one back. It is also void with the kit's admission, which a removed device can date back as well.
struct StandingRemovals {
    private let graph: StatementGraph
    private let authority: StatementAuthority
    private var standing: [Int] = []
    private var isStanding: [Bool]
    /// What the statements list that no standing removal makes void.
    private var testimony: Testimony
    /// For each removed device, what at least one of the standing removals lists.
    private var listed: [DeviceID: NumberSet] = [:]
    /// For each device that is no kit, those that it removed, and those that only these have admitted.
    private var outcasts: [DeviceID: Set<DeviceID>] = [:]

    init(_ graph: StatementGraph, _ authority: StatementAuthority) {
        self.graph = graph
        self.authority = authority
        isStanding = Array(repeating: false, count: graph.statements.count)
        testimony = Testimony(graph)
        findOutcasts()
        var undecided = authority.removals
        while !undecided.isEmpty { decideSources(&undecided) }
        for removal in standing {
            for device in graph.removedDevices(removal) {
                listed[device, default: graph.noNumbers].formUnion(graph.known[removal])
                listed[device]?.insert(removal)
            }
        }
        if !standing.isEmpty { findTestimony(accusing: standing) }
    }

    private mutating func findOutcasts() {
        for removal in authority.removals where !graph.isByKit(removal) {
            outcasts[graph.authors[removal], default: []].formUnion(graph.removedDevices(removal))
        }
        let sponsors = authority.admissions.mapValues { admissions in Set(admissions.map { graph.authors[$0] }) }
        var admitted: [DeviceID: [DeviceID]] = [:]
        for (device, sponsors) in sponsors { for sponsor in sponsors { admitted[sponsor, default: []].append(device) } }
        for (remover, removed) in outcasts {
            var found = removed
            var waiting = Array(removed)
            while let sponsor = waiting.popLast() {
                for device in admitted[sponsor] ?? [] where sponsors[device]?.isSubset(of: found) == true && found.insert(device).inserted {
                    waiting.append(device)
                }
            }
            outcasts[remover] = found
        }
    }

    /// Moves the removals that no other one makes void to the standing ones, and drops those that they make void.
    private mutating func decideSources(_ undecided: inout [Int]) {
        findTestimony(accusing: standing + undecided)
        // The edges of the graph in which one removal makes another one void.
        let positions = Dictionary(uniqueKeysWithValues: undecided.enumerated().map { ($1, $0) })
        let targets = undecided.map { removal in voidedStatements(by: removal).compactMap { positions[$0] } }
        var isDecided = SourceComponents.find(targets)
        for position in undecided.indices where isDecided[position] {
            standing.append(undecided[position])
            isStanding[undecided[position]] = true
        }
        for position in undecided.indices where isStanding[undecided[position]] {
            for target in targets[position] { isDecided[target] = true }
        }
        undecided = undecided.indices.filter { !isDecided[$0] }.map { undecided[$0] }
    }

    /// Returns the statements that a removal makes void, or of which it makes void every admission on which they rest.
    private func voidedStatements(by removal: Int) -> [Int] {
        let devices = graph.removedDevices(removal)
        // A device that was removed, or one that it admits, could otherwise date a removal of its remover back, and so bring back the others that
        // the remover removed. Of devices that remove each other all removals stand: the membership only shrinks, and the kit admits again.
        let isMutual = devices.contains { outcasts[$0]?.contains(graph.authors[removal]) == true }
        if !graph.isByKit(removal), isMutual, !isPlanted(.seniority) || !isSenior(removal) { return [] }
        let concernsKits = isWitnessed(removal)
        var voided = devices.flatMap { graph.numbers(of: $0) }.filter {
            !graph.lists(removal, $0) && !isWitnessed($0) && (concernsKits || !graph.isByKit($0))
        }
        guard !voided.isEmpty else { return [] }
        var isVoided = graph.noNumbers
        for number in voided { isVoided.insert(number) }
        var next = 0
        while next < voided.count {
            let admission = voided[next]
            next += 1
            guard authority.isAuthorized[admission], let admitted = graph.admitted[admission] else { continue }
            for number in graph.numbers(of: admitted) where graph.known[number].contains(admission) && !isVoided.contains(number) {
                guard authority.supports(of: number, graph).allSatisfy({ isVoided.contains($0) }) else { continue }
                isVoided.insert(number)
                voided.append(number)
            }
        }
        return voided.filter { $0 != removal }
    }

    /// A planted fault: prefers the device that has been a member for longer.
    private func isSenior(_ removal: Int) -> Bool {
        guard let admission = authority.supports(of: removal, graph).first(where: { _ in true }) else { return false }
        return graph.admitted.prefix(admission).allSatisfy { $0 != graph.removed[removal] }
    }

    /// Returns whether a standing removal makes the statement itself void.
    ///
    /// What it rests on is judged separately.
    func isVoid(_ number: Int) -> Bool {
        guard graph.removed[number] == nil else { return !isStanding[number] }
        guard let listed = listed[graph.authors[number]], !listed.contains(number) else { return false }
        return !isWitnessed(number)
    }

    /// Returns whether a safe statement of another device lists this one.
    private func isWitnessed(_ number: Int) -> Bool {
        !isPlanted(.removalVoidsUnlisted) && testimony.covers(number, of: graph.authors[number])
    }

    /// Finds the least set of safe statements, each of which rests only on safe statements, and which no removal concerns, or which all
    /// removals of its author list, or which a safe statement of another device lists.
    private mutating func findTestimony(accusing removals: [Int]) {
        var unaccused: [DeviceID: NumberSet] = [:]
        for removal in removals {
            var listed = graph.known[removal]
            listed.insert(removal)
            for device in graph.removedDevices(removal) where unaccused[device]?.formIntersection(listed) == nil {
                unaccused[device] = listed
            }
        }
        testimony = Testimony(graph)
        var isSafe = Array(repeating: false, count: graph.statements.count)
        var unheard: [Int] = []
        func isBelievable(_ number: Int) -> Bool {
            guard !isSafe[number], authority.isAuthorized[number] else { return false }
            return unaccused[graph.authors[number]]?.contains(number) ?? true || isWitnessed(number)
        }
        for number in graph.statements.indices where isBelievable(number) {
            guard authority.isSupported(number, graph, where: { isSafe[$0] }) else { continue }
            isSafe[number] = true
            unheard.append(number)
        }
        while let witness = unheard.popLast() {
            for number in testimony.hear(graph.authors[witness], graph.known[witness]) where isBelievable(number) {
                guard authority.isSupported(number, graph, where: { isSafe[$0] }) else { continue }
                isSafe[number] = true
                unheard.append(number)
            }
            guard let admitted = graph.admitted[witness] else { continue }
            for number in graph.numbers(of: admitted) where graph.known[number].contains(witness) && isBelievable(number) {
                isSafe[number] = true
                unheard.append(number)
            }
        }
    }
}

/// Which statements are listed by others, and whether by other devices than their authors.
struct Testimony {
    /// The first device found to list a statement.
    private var witnesses: [DeviceID?]
    /// The statements that several devices list.
    private var confirmed: NumberSet
    /// What each device lists.
    private var heard: [DeviceID: NumberSet] = [:]
    private let noNumbers: NumberSet

    init(_ graph: StatementGraph) {
        witnesses = Array(repeating: nil, count: graph.statements.count)
        noNumbers = graph.noNumbers
        confirmed = noNumbers
    }

    /// Notes what a device lists, and returns the statements that it or a second device is the first to list.
    ///
    /// Each statement is returned at most twice.
    mutating func hear(_ device: DeviceID, _ known: NumberSet) -> [Int] {
        var new: [Int] = []
        known.forEach(notIn: confirmed, heard[device] ?? noNumbers) { new.append($0) }
        if heard[device]?.formUnion(known) == nil { heard[device] = known }
        for number in new {
            if witnesses[number] == nil { witnesses[number] = device } else { confirmed.insert(number) }
        }
        return new
    }

    /// Returns whether another device than the author lists a statement.
    func covers(_ number: Int, of author: DeviceID) -> Bool {
        confirmed.contains(number) || witnesses[number].map { $0 != author } ?? false
    }
}

/// The strongly connected components of a graph into which no edge leads from outside.
enum SourceComponents {
    /// Returns for each node whether it belongs to such a component.
    ///
    /// Of the nodes in reverse order of completion by a depth-first search, each that no earlier one reaches is in such a component, and the
    /// component consists of the nodes that reach it.
    static func find(_ targets: [[Int]]) -> [Bool] {
        var sources: [[Int]] = Array(repeating: [], count: targets.count)
        for (node, targets) in targets.enumerated() { for target in targets { sources[target].append(node) } }
        var isVisited = Array(repeating: false, count: targets.count)
        var completed: [Int] = []
        for node in targets.indices { search(from: node, targets, &isVisited) { completed.append($0) } }
        isVisited = Array(repeating: false, count: targets.count)
        var roots: [Int] = []
        for node in completed.reversed() where !isVisited[node] {
            roots.append(node)
            search(from: node, targets, &isVisited) { _ in }
        }
        var isSource = Array(repeating: false, count: targets.count)
        for node in roots { search(from: node, sources, &isSource) { _ in } }
        return isSource
    }

    /// Visits the nodes that can be reached and were not visited, without recursion, and calls `complete` after the successors of each.
    private static func search(from start: Int, _ targets: [[Int]], _ isVisited: inout [Bool], _ complete: (Int) -> Void) {
        guard !isVisited[start] else { return }
        isVisited[start] = true
        var stack = [(node: start, next: 0)]
        while let (node, next) = stack.last {
            if next == targets[node].count {
                complete(node)
                stack.removeLast()
                continue
            }
            stack[stack.count - 1].next += 1
            let target = targets[node][next]
            guard !isVisited[target] else { continue }
            isVisited[target] = true
            stack.append((target, 0))
        }
    }
}
