// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import BenchmarkReport

struct SyncComparisonTests {
    private let comparison = SyncFixture.comparison()

    @Test("A report encoded as JSON decodes to an equal report")
    func roundTrip() throws {
        #expect(try SyncComparison(json: comparison.json()) == comparison)
    }

    @Test("The JSON file has the documented keys")
    func names() throws {
        let object = try #require(JSONSerialization.jsonObject(with: comparison.json()) as? [String: Any])
        #expect(object["format"] as? Int == 1)
        let figures = try #require(object["figures"] as? [[String: Any]])
        let names: Set = ["contestant", "measure", "itemCount", "changeCount", "median", "p99", "sampleCount"]
        #expect(Set(try #require(figures.first).keys) == names)
        let answers = try #require(object["answers"] as? [[String: Any]])
        #expect(Set(try #require(answers.first).keys) == ["contestant", "question", "outcome"])
    }

    @Test("A figure without a sample does not exist")
    func noSamples() {
        #expect(SyncFigure(.valetSync, .merging, itemCount: 1_000, samples: []) == nil)
    }

    @Test("A figure has the median and p99 of its samples")
    func figure() throws {
        let figure = try #require(SyncFigure(.valetSync, .bytesMoved, itemCount: 1_000, samples: [9, 1, 2]))
        #expect((figure.median, figure.p99, figure.sampleCount) == (2, 9, 3))
    }

    @Test("The figures of one question follow each other, ours first")
    func order() {
        #expect(comparison.figures.map(\.measure) == [.bytesMoved, .bytesMoved, .catchingUp])
        #expect(comparison.figures.prefix(2).map(\.contestant) == [.valetSync, .passWithGit])
    }

    @Test("The table has the unit of each figure, the number of changes, and the outcomes in words")
    func table() {
        let lines = SyncTable(comparison).text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(lines.contains("moved for one changed password 1,000 1 valet sync 700 B 700 B 1"))
        #expect(lines.contains("catching up with missed changes 1,000 10,000 pass with git 2.00 s 2.00 s 1"))
        #expect(lines.contains("both edit one entry in the same second valet sync both kept"))
        #expect(lines.contains("Not here: gopass with git: gopass is not installed"))
    }
}

/// A comparison of synchronization with bytes, a time, and an outcome.
enum SyncFixture {
    static func comparison() -> SyncComparison {
        SyncComparison(
            date: Date(timeIntervalSince1970: 1_800_000_000.7), command: "make compare-sync", machine: ComparisonFixture.machine,
            figures: [
                SyncFigure(.passWithGit, .catchingUp, itemCount: 1_000, changeCount: 10_000, samples: [2_000_000]),
                SyncFigure(.passWithGit, .bytesMoved, itemCount: 1_000, samples: [900]),
                SyncFigure(.valetSync, .bytesMoved, itemCount: 1_000, samples: [700]),
            ].compactMap(\.self),
            answers: [SyncAnswer(.valetSync, .editedInOneSecond, .bothKept)],
            absences: [Comparison.Absence(.gopassWithGit, reason: "gopass is not installed")], notes: ["A note"])
    }
}
