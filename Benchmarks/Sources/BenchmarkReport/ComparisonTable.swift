// SPDX-License-Identifier: Apache-2.0

/// A comparison as plain text.
package struct ComparisonTable {
    private let comparison: Comparison

    package init(_ comparison: Comparison) {
        self.comparison = comparison
    }

    package var text: String {
        ReportText.make(
            date: comparison.date, command: comparison.command, machine: comparison.machine, tables: [rows, memory, goals],
            absences: comparison.absences, notes: comparison.notes)
    }

    private var rows: String {
        var columns = TextColumns([false, true, false, false, true, true, true, true, true])
        columns.append(["operation", "items", "who", "how", "median", "p99", "x Valet", "samples", "per second"])
        for row in comparison.rows {
            var how = [row.circumstance.title]
            if row.threadCount > 1 { how.append("\(row.threadCount) threads") }
            var rate = row.operationsPerSecond.map(Quantity.short) ?? ""
            if let factor = row.rateAgainstOneThread { rate += " (\(Quantity.short(factor)) x one thread)" }
            columns.append([
                row.operation.title, Quantity.grouped(row.itemCount), row.contestant.rawValue,
                how.filter { !$0.isEmpty }.joined(separator: ", "), Quantity.time(microseconds: row.latency.medianMicroseconds),
                Quantity.time(microseconds: row.latency.p99Microseconds), row.ratioToValet.map(Quantity.short) ?? "",
                Quantity.grouped(row.latency.sampleCount), rate,
            ])
        }
        return columns.text
    }

    /// Returns one line per contestant and number of items, with one column per operation.
    private var memory: String {
        guard !comparison.memory.isEmpty else { return "" }
        let operations: [KeychainOperation?] = KeychainOperation.allCases + [nil]
        var columns = TextColumns([false, true] + operations.map { _ in true })
        columns.append(["peak memory in MB", "items"] + operations.map { $0?.title ?? "all of them" })
        var seen: [(Contestant, Int)] = []
        for row in comparison.memory where !seen.contains(where: { $0 == (row.contestant, row.itemCount) }) {
            seen.append((row.contestant, row.itemCount))
            let alike = comparison.memory.filter { $0.contestant == row.contestant && $0.itemCount == row.itemCount }
            let cells = operations.map { operation in
                alike.first { $0.operation == operation }.map { Quantity.short($0.megabytes) } ?? ""
            }
            columns.append([row.contestant.rawValue, Quantity.grouped(row.itemCount)] + cells)
        }
        return columns.text
    }

    private var goals: String {
        var columns = TextColumns([false, true, true, false])
        columns.append(["goal", "is", "goal", ""])
        for goal in comparison.goals {
            let limit = "\(goal.direction == .atMost ? "<=" : ">=") \(Quantity.short(goal.limit)) \(goal.unit)"
            columns.append([goal.name, goal.measured.map { "\(Quantity.short($0)) \(goal.unit)" } ?? "-", limit, outcome(goal)])
        }
        return columns.text
    }

    private func outcome(_ goal: Goal) -> String {
        guard let isMet = goal.isMet, let margin = goal.margin else { return "not measured" }
        return isMet ? "met, \(Quantity.short(margin)) x better" : "MISSED by \(Quantity.short(margin)) x"
    }
}
