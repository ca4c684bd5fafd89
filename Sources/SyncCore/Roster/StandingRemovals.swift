// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The removals that stand, and what they make void.
///
/// A removal makes void what the removed device stated, and what rests on it, except for statements that the removal lists and for those
/// that a remaining device listed. There is no seniority: of devices that remove each other, all removals stand, and make no other removal void.
///
/// A removal by a recovery kit is void because the kit was removed only if a remaining device lists that removal: a thief that the kit removes could
/// otherwise date one back. It is also void with the kit's admission, which a removed device can date back as well.
struct StandingRemovals {
    private let graph: StatementGraph
    private let authority: StatementAuthority
    private var standing: [Int] = []
    private var isStanding: [Bool]
    /// The standing removals that make other removals void: those that are in no circle of removals of which each makes the next one void, and that
    /// no standing removal makes void.
    private var voiding: [Int] = []
    /// What the statements list that no standing removal makes void.
    private var testimony: Testimony
    /// The removals that they list, and for which they do not testify: see `believed(by:)`.
    private var doubted: Testimony
    /// For each removed device, what at least one of the standing removals lists.
    private var listed: [DeviceID: NumberSet] = [:]
    /// For each removed device, its removals that list no other one: all others list what these list.
    private let firstRemovals: [DeviceID: [Int]]

    init(_ graph: StatementGraph, _ authority: StatementAuthority) {
        self.graph = graph
        self.authority = authority
        isStanding = Array(repeating: false, count: graph.statements.count)
        testimony = Testimony(graph)
        doubted = Testimony(graph)
        firstRemovals = Self.firstRemovals(graph, authority)
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

    private static func firstRemovals(_ graph: StatementGraph, _ authority: StatementAuthority) -> [DeviceID: [Int]] {
        var first: [DeviceID: [Int]] = [:]
        // In ascending order, so those that a removal lists come before it.
        for removal in authority.removals {
            for device in graph.removedDevices(removal) where first[device]?.contains(where: { graph.lists(removal, $0) }) != true {
                first[device, default: []].append(removal)
            }
        }
        return first
    }

    /// Moves the removals that no other one may make void to the standing ones, and drops those that they make void.
    ///
    /// Removals that make each other void, in a circle, all stand, and make no removal void. Neither does one that a standing removal makes void: if
    /// it stands, then because that removal is in such a circle. The membership only shrinks then, and the kit admits again.
    private mutating func decideSources(_ undecided: inout [Int]) {
        findTestimony(accusing: standing + undecided)
        let doubtful = isPlanted(.voidRemovalsVoid) ? [] : Set(voidedStatements(by: standing, restingOnAny: true))
        // The edges of the graph in which one removal makes another one void.
        let positions = Dictionary(uniqueKeysWithValues: undecided.enumerated().map { ($1, $0) })
        let removals = removalsByPair(undecided)
        let targets = undecided.map { removal in
            var targets = Set(voidedStatements(by: [removal], restingOnAny: true).compactMap { positions[$0] })
            for device in graph.removedDevices(removal) where !graph.isByKit(removal) {
                for position in removals[Pair(author: device, removed: graph.authors[removal])] ?? [] {
                    if !isPlanted(.seniority) || isSenior(removal) { targets.insert(position) } else { targets.remove(position) }
                }
            }
            if let position = positions[removal] { targets.remove(position) }
            return Array(targets)
        }
        let sizes = SourceComponents.sizes(targets)
        for position in undecided.indices where sizes[position] > 0 {
            standing.append(undecided[position])
            isStanding[undecided[position]] = true
            if sizes[position] == 1, !doubtful.contains(undecided[position]) { voiding.append(undecided[position]) }
        }
        let voided = Set(voidedStatements(by: voiding, restingOnAny: false))
        // What a remaining device has counted stands, also if that device has learned of it with the answer of the removed one. But a removed device
        // can make up a kit, whose removals are counted until it is known that the device was removed.
        for removal in undecided where !isStanding[removal] && voided.contains(removal) && !isPlanted(.doubtedRemovalsEnd) {
            guard !graph.isByKit(removal), doubted.covers(removal, of: graph.authors[removal]) else { continue }
            standing.append(removal)
            isStanding[removal] = true
        }
        undecided.removeAll { isStanding[$0] || voided.contains($0) }
    }

    private struct Pair: Hashable {
        let author: DeviceID
        let removed: DeviceID
    }

    /// The positions of the removals by devices that are no kits.
    ///
    /// Two devices that remove each other make each other's removals void, even if another device lists these: one of them could otherwise date its
    /// removal of the other one back, and so bring back the others that this one removed.
    private func removalsByPair(_ removals: [Int]) -> [Pair: [Int]] {
        var positions: [Pair: [Int]] = [:]
        for (position, removal) in removals.enumerated() where !graph.isByKit(removal) {
            for device in graph.removedDevices(removal) {
                positions[Pair(author: graph.authors[removal], removed: device), default: []].append(position)
            }
        }
        return positions
    }

    /// Returns the statements that removals make void, and those that rest on admissions which they make void: on any of these, or only on them.
    private func voidedStatements(by removals: [Int], restingOnAny: Bool) -> [Int] {
        var voided = removals.flatMap { voidedStatements(by: $0) }
        guard !voided.isEmpty else { return [] }
        var isVoided = graph.noNumbers
        for number in voided { isVoided.insert(number) }
        addDependents(to: &voided, &isVoided, restingOnAny: restingOnAny) { _ in true }
        return voided
    }

    /// Adds the statements that rest only on admissions in a list, or with `restingOnAny` on any of these.
    private func addDependents(
        to list: inout [Int], _ isListed: inout NumberSet, restingOnAny: Bool = false, where isIncluded: (Int) -> Bool
    ) {
        var next = 0
        while next < list.count {
            let admission = list[next]
            next += 1
            guard authority.isAuthorized[admission], let admitted = graph.admitted[admission] else { continue }
            for number in graph.numbers(of: admitted) where graph.known[number].contains(admission) && !isListed.contains(number) {
                guard isIncluded(number) else { continue }
                guard restingOnAny || authority.supports(of: number, graph).allSatisfy({ isListed.contains($0) }) else { continue }
                isListed.insert(number)
                list.append(number)
            }
        }
    }

    /// Returns the statements of removed devices that a removal makes void.
    private func voidedStatements(by removal: Int) -> [Int] {
        let devices = graph.removedDevices(removal)
        let concernsKits = isWitnessed(removal)
        return devices.flatMap { graph.numbers(of: $0) }.filter {
            !graph.lists(removal, $0) && !isWitnessed($0) && (concernsKits || !graph.isByKit($0))
        }
    }

    /// A planted fault: prefers the device that has been a member for longer.
    private func isSenior(_ removal: Int) -> Bool {
        guard let admission = authority.supports(of: removal, graph).first(where: { _ in true }) else { return false }
        return graph.admitted.prefix(admission).allSatisfy { $0 != graph.removed[removal] }
    }

    /// Returns whether a removal stands; then it counts, whatever it rests on.
    ///
    /// If removals make each other void only through the admissions on which they rest, none of them would count otherwise.
    func stands(_ removal: Int) -> Bool { isStanding[removal] }

    /// Returns whether a standing removal makes another statement itself void.
    ///
    /// What it rests on is judged separately.
    func isVoid(_ number: Int) -> Bool {
        guard let listed = listed[graph.authors[number]], !listed.contains(number) else { return false }
        return !isWitnessed(number)
    }

    /// Returns whether a safe statement of another device lists this one.
    private func isWitnessed(_ number: Int) -> Bool {
        !isPlanted(.removalVoidsUnlisted) && testimony.covers(number, of: graph.authors[number])
    }

    /// Returns the statements for which a statement testifies: those that it lists, but not through a removal whose author it knows to be removed,
    /// or to be admitted by a removed device only; and these removals, each with those that its author had made before.
    ///
    /// Such a removal may stand although nothing else counts that its author knew.
    private func believed(by witness: Int) -> (believed: NumberSet, doubted: NumberSet) {
        let known = graph.known[witness]
        var accused: [Int] = []
        for (device, removals) in firstRemovals {
            let removals = removals.filter { known.contains($0) }
            guard !removals.isEmpty else { continue }
            let numbers = graph.numbers(of: device).filter { known.contains($0) }
            accused += numbers.filter { number in removals.contains { !graph.lists($0, number) } }
        }
        guard !accused.isEmpty else { return (known, graph.noNumbers) }
        var isAccused = graph.noNumbers
        for number in accused { isAccused.insert(number) }
        addDependents(to: &accused, &isAccused) { known.contains($0) }
        let doubtful = accused.filter { graph.removed[$0] != nil }
        guard !doubtful.isEmpty else { return (known, graph.noNumbers) }
        var isDoubtful = graph.noNumbers
        var doubtfulOfAuthor: [DeviceID: NumberSet] = [:]
        for number in doubtful {
            isDoubtful.insert(number)
            doubtfulOfAuthor[graph.authors[number], default: graph.noNumbers].insert(number)
        }
        var (believed, doubted) = (graph.noNumbers, graph.noNumbers)
        var waiting = graph.predecessors[witness]
        while let number = waiting.popLast() {
            guard !believed.contains(number) else { continue }
            if isDoubtful.contains(number) {
                // With the earlier ones of the same author.
                guard !doubted.contains(number), let earlier = doubtfulOfAuthor[graph.authors[number]] else { continue }
                doubted.insert(number)
                doubted.formUnion(earlier, and: graph.known[number])
                continue
            }
            believed.insert(number)
            waiting += graph.predecessors[number]
        }
        return (believed, doubted)
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
        doubted = Testimony(graph)
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
            let believed = believed(by: witness)
            _ = doubted.hear(graph.authors[witness], believed.doubted)
            for number in testimony.hear(graph.authors[witness], believed.believed) where isBelievable(number) {
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
    /// Returns for each node the number of nodes of its component if it is such a one, otherwise 0.
    ///
    /// Of the nodes in reverse order of completion by a depth-first search, each that no earlier one reaches is in such a component, and the
    /// component consists of the nodes that reach it.
    static func sizes(_ targets: [[Int]]) -> [Int] {
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
        isVisited = Array(repeating: false, count: targets.count)
        var sizes = Array(repeating: 0, count: targets.count)
        for node in roots {
            var component: [Int] = []
            search(from: node, sources, &isVisited) { component.append($0) }
            for node in component { sizes[node] = component.count }
        }
        return sizes
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
