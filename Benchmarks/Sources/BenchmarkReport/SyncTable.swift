// SPDX-License-Identifier: Apache-2.0

/// A comparison of synchronization as plain text.
package struct SyncTable {
    private let comparison: SyncComparison

    package init(_ comparison: SyncComparison) {
        self.comparison = comparison
    }

    package var text: String {
        ReportText.make(
            date: comparison.date, command: comparison.command, machine: comparison.machine, tables: [figures, answers],
            absences: comparison.absences, notes: comparison.notes)
    }

    private var figures: String {
        var columns = TextColumns([false, true, true, false, true, true, true])
        columns.append(["figure", "items", "changes", "who", "median", "p99", "samples"])
        for figure in comparison.figures {
            columns.append([
                figure.measure.title, Quantity.grouped(figure.itemCount), Quantity.grouped(figure.changeCount),
                figure.contestant.rawValue, figure.measure.unit.text(figure.median), figure.measure.unit.text(figure.p99),
                Quantity.grouped(figure.sampleCount),
            ])
        }
        return columns.text
    }

    private var answers: String {
        var columns = TextColumns([false, false, false])
        columns.append(["two devices", "who", "outcome"])
        for answer in comparison.answers {
            columns.append([answer.question.title, answer.contestant.rawValue, answer.outcome.title])
        }
        return columns.text
    }
}
