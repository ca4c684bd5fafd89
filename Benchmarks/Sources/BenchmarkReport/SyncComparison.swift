// SPDX-License-Identifier: Apache-2.0
package import Foundation

/// The results of one run that compares how programs synchronize two devices.
package struct SyncComparison: Codable, Equatable, Sendable {
    /// The layout of the file.
    ///
    /// Increased whenever a reader of the old layout would misread the new one.
    package static let currentFormat = 1

    package let format: Int
    package let date: Date
    package let command: String
    package let machine: Machine
    package let figures: [SyncFigure]
    package let answers: [SyncAnswer]
    package let absences: [Comparison.Absence]
    package let notes: [String]

    /// Sorts the figures and the answers by question.
    package init(
        date: Date, command: String, machine: Machine, figures: [SyncFigure], answers: [SyncAnswer], absences: [Comparison.Absence],
        notes: [String]
    ) {
        format = Self.currentFormat
        // Whole seconds, as they are written.
        self.date = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
        self.command = command
        self.machine = machine
        self.figures = figures.sorted { $0.place.lexicographicallyPrecedes($1.place) }
        self.answers = answers.sorted { $0.place.lexicographicallyPrecedes($1.place) }
        self.absences = absences
        self.notes = notes
    }

    package func json() throws -> Data { try ReportFile.encoder.encode(self) + Data("\n".utf8) }

    package init(json: Data) throws {
        self = try ReportFile.decoder.decode(SyncComparison.self, from: json)
        guard format == Self.currentFormat else { throw Comparison.UnknownFormat(format: format) }
    }
}
