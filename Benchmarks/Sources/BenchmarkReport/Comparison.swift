// SPDX-License-Identifier: Apache-2.0
package import Foundation

/// The results of one run.
package struct Comparison: Codable, Equatable, Sendable {
    /// A contestant that could not be measured.
    package struct Absence: Codable, Equatable, Sendable {
        package let contestant: Contestant
        package let reason: String

        package init(_ contestant: Contestant, reason: String) {
            self.contestant = contestant
            self.reason = reason
        }
    }

    /// The layout of the file.
    ///
    /// Increased whenever a reader of the old layout would misread the new one.
    package static let currentFormat = 1

    package let format: Int
    package let date: Date
    package let command: String
    package let machine: Machine
    package let rows: [Row]
    package let memory: [MemoryRow]
    package let goals: [Goal]
    package let absences: [Absence]
    package let notes: [String]

    /// Sorts the rows, computes the ratio of each to Valet's, and checks the goals.
    package init(
        date: Date, command: String, machine: Machine, rows: [Row], memory: [MemoryRow], absences: [Absence], notes: [String]
    ) {
        format = Self.currentFormat
        // Whole seconds, as they are written.
        self.date = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
        self.command = command
        self.machine = machine
        self.rows = Self.sorted(Self.withRatios(rows))
        self.memory = memory
        self.absences = absences
        self.notes = notes
        goals = DesignGoals(rows: rows, memory: memory).all
    }

    /// Returns the same figures with the ratios computed and the goals checked again.
    package func judgedAnew() -> Comparison {
        Comparison(date: date, command: command, machine: machine, rows: rows, memory: memory, absences: absences, notes: notes)
    }

    private static func withRatios(_ rows: [Row]) -> [Row] {
        rows.map { row in
            let isProcess = row.circumstance == .wholeProcess
            let ours = rows.first {
                $0.contestant == (isProcess ? .valetCommand : .valet) && $0.operation == row.operation && $0.itemCount == row.itemCount
                    && $0.circumstance == (isProcess ? .wholeProcess : .alone) && $0.threadCount == 1
            }
            guard let ours, ours.latency.medianMicroseconds > 0 else { return row }
            var row = row
            row.ratioToValet = row.latency.medianMicroseconds / ours.latency.medianMicroseconds
            return row
        }
    }

    private static func sorted(_ rows: [Row]) -> [Row] {
        func place(_ row: Row) -> [Int] {
            [
                row.circumstance == .wholeProcess ? 1 : 0, KeychainOperation.allCases.firstIndex(of: row.operation) ?? 0, row.itemCount,
                Contestant.allCases.firstIndex(of: row.contestant) ?? 0, row.threadCount,
                Circumstance.allCases.firstIndex(of: row.circumstance) ?? 0,
            ]
        }
        return rows.sorted { place($0).lexicographicallyPrecedes(place($1)) }
    }
}
