// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The frame of a report as plain text.
enum ReportText {
    /// Puts the date, the machine, the absent contestants, and the notes around the tables.
    static func make(
        date: Date, command: String, machine: Machine, tables: [String], absences: [Comparison.Absence], notes: [String]
    ) -> String {
        let parts =
            ["\(date.formatted(.iso8601))  \(command)\n\(machine.summary)"] + tables + [
                absences.map { "Not here: \($0.contestant.rawValue): \($0.reason)" }.joined(separator: "\n"),
                notes.map { "Note: " + $0 }.joined(separator: "\n"),
            ]
        return parts.filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
    }
}
