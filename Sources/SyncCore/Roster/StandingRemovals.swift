// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The removals that stand, and what they make void.
///
/// A removal makes void what the removed device stated, and what rests on it, except for statements that the removal lists and for those
/// that a remaining device listed. There is no seniority: of devices that remove each other, all removals stand. A removal by the recovery kit
/// is never void.
struct StandingRemovals {
    private var standing: [Int] = []
    private var authority: StatementAuthority
    /// The statements that no standing removal makes void and that therefore testify for others.
    private var isSafe: [Bool]

    init(_ graph: StatementGraph, _ authority: StatementAuthority) {
        self.authority = authority
        isSafe = authority.isAuthorized
        var undecided = graph.statements.indices.filter { graph.removed[$0] != nil && authority.isAuthorized[$0] }
        while !undecided.isEmpty { decideSources(&undecided, graph) }
        standing.sort()
        findSafeStatements(graph, accusing: standing)
    }

    /// Moves the removals that no other one makes void to the standing ones, and drops those that they make void.
    private mutating func decideSources(_ undecided: inout [Int], _ graph: StatementGraph) {
        findSafeStatements(graph, accusing: standing + undecided)
        // The edges of the graph in which one removal makes another one void.
        var targets: [Set<Int>] = []
        for removal in undecided { targets.append(voidedRemovals(by: removal, undecided, graph)) }
        let sources = Self.sourceComponents(undecided, targets)
        standing += sources
        var decided = Set(sources)
        for (position, removal) in undecided.enumerated() where sources.contains(removal) { decided.formUnion(targets[position]) }
        undecided.removeAll { decided.contains($0) }
    }

    private func voidedRemovals(by removal: Int, _ others: [Int], _ graph: StatementGraph) -> Set<Int> {
        // The kit is no machine that can be stolen, so what it removes cannot remove it.
        guard !isByKit(removal, graph) else { return voidedRemovals(by: removal, among: others, graph) }
        // A device that was removed could otherwise date a removal of its remover back, and so bring back the others that the remover
        // removed. Of devices that remove each other all removals stand: the membership only shrinks, and the kit admits again.
        let isMutual = graph.statements.indices.contains { other in
            authority.isAuthorized[other] && graph.authors[other] == graph.removed[removal]
                && graph.removed[other] == graph.authors[removal]
        }
        guard !isMutual || isPlanted(.seniority) && isSenior(removal, graph) else { return [] }
        return voidedRemovals(by: removal, among: others, graph)
    }

    private func voidedRemovals(by removal: Int, among others: [Int], _ graph: StatementGraph) -> Set<Int> {
        let isVoided = voidedStatements(by: removal, graph)
        return Set(others.filter { $0 != removal && !isByKit($0, graph) && isVoided[$0] })
    }

    /// Returns for each statement whether a removal makes it void, or every admission on which it rests.
    private func voidedStatements(by removal: Int, _ graph: StatementGraph) -> [Bool] {
        var isVoided: [Bool] = []
        for number in graph.statements.indices {
            let supports = authority.supports[number]
            isVoided.append(
                !supports.isEmpty && supports.allSatisfy { isVoided[$0] }
                    || graph.authors[number] == graph.removed[removal] && !graph.lists(removal, number) && !isWitnessed(number, graph))
        }
        return isVoided
    }

    /// A planted fault: prefers the device that has been a member for longer.
    private func isSenior(_ removal: Int, _ graph: StatementGraph) -> Bool {
        guard let admission = authority.supports[removal].first else { return false }
        return graph.admitted.prefix(admission).allSatisfy { $0 != graph.removed[removal] }
    }

    private func isByKit(_ number: Int, _ graph: StatementGraph) -> Bool {
        authority.supports[number].contains { graph.isKitAdmission[$0] }
    }

    /// Returns whether a standing removal makes the statement itself void.
    ///
    /// What it rests on is judged separately.
    func isVoid(_ number: Int, _ graph: StatementGraph) -> Bool {
        guard graph.removed[number] == nil else { return !standing.contains(number) }
        return isVoid(number, by: standing, graph)
    }

    private func isVoid(_ number: Int, by removals: [Int], _ graph: StatementGraph) -> Bool {
        let author = graph.authors[number]
        let relevant = removals.filter { graph.removed[$0] == author }
        if relevant.isEmpty || relevant.contains(where: { graph.lists($0, number) }) { return false }
        return !isWitnessed(number, graph)
    }

    /// Returns whether a safe statement of another device lists this one.
    private func isWitnessed(_ number: Int, _ graph: StatementGraph) -> Bool {
        if isPlanted(.removalVoidsUnlisted) { return false }
        return isSafe.indices.contains { later in
            isSafe[later] && graph.known[later].contains(number) && graph.authors[later] != graph.authors[number]
        }
    }

    /// Finds the least set of statements such that each rests only on statements that no removal concerns, that the removal lists, or that a
    /// safe statement lists.
    private mutating func findSafeStatements(_ graph: StatementGraph, accusing removals: [Int]) {
        isSafe = Array(repeating: false, count: graph.statements.count)
        guard !removals.isEmpty else {
            isSafe = authority.isAuthorized
            return
        }
        var isChanged = true
        while isChanged {
            isChanged = false
            for number in graph.statements.indices where !isSafe[number] && authority.isAuthorized[number] {
                let supports = authority.supports[number]
                guard supports.isEmpty || supports.contains(where: { isSafe[$0] }) else { continue }
                let relevant = removals.filter { graph.removed[$0] == graph.authors[number] }
                if relevant.allSatisfy({ graph.lists($0, number) }) || isWitnessed(number, graph) {
                    isSafe[number] = true
                    isChanged = true
                }
            }
        }
    }

    /// Returns the removals in the strongly connected components into which no edge leads from outside.
    private static func sourceComponents(_ removals: [Int], _ targets: [Set<Int>]) -> [Int] {
        let index = Dictionary(uniqueKeysWithValues: removals.enumerated().map { ($1, $0) })
        // What each removal makes void, directly or through others.
        let reach = targets.map { direct in
            var reached = direct
            var remaining = direct.sorted()
            while let next = remaining.popLast() {
                guard let position = index[next] else { continue }
                for target in targets[position].sorted() where reached.insert(target).inserted { remaining.append(target) }
            }
            return reached
        }
        return removals.indices.filter { position in
            removals.indices.allSatisfy { other in
                !reach[other].contains(removals[position]) || reach[position].contains(removals[other]) || other == position
            }
        }.map { removals[$0] }
    }
}
