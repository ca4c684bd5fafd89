// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// The command-line options of a comparison of synchronization.
struct SyncOptions {
    static let usage = """
        usage: Benchmarks compare-sync [--quick] [--no-large] [--only CONTESTANT] [--output FOLDER]
               Benchmarks compare-sync --redraw [--output FOLDER]
          --quick            few items, changes, and samples: to see that it works, not to quote
          --no-large         leave out the stores of 100000 items
          --only CONTESTANT  measure one, and keep what the file has of the others: \(contestants.map(\.rawValue).joined(separator: ", "))
          --output FOLDER    where compare-sync.json and compare-sync.svg are written (Benchmarks/Results)
          --redraw           measure nothing: draw what compare-sync.json holds
        Everything is kept below TMPDIR, which should be on a disk.
        """

    static let contestants = [Contestant.valetSync, .passWithGit, .passWithGcrypt, .gopassWithGit, .keePassXCMerge]

    let arguments: [String]
    var contestants = Self.contestants
    var itemCount = 1_000
    var largeItemCount: Int? = 100_000
    var missedChangeCount = 10_000
    /// The changes of each device before a merge.
    var divergedChangeCount = 100
    var sampleCount = 100
    var onlyRedraws = false
    var output = CompareOptions.resultsFolder

    /// Nil when the arguments are not understood.
    init?(_ arguments: [String]) {
        self.arguments = arguments
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--quick": (missedChangeCount, divergedChangeCount, sampleCount, largeItemCount) = (2_000, 20, 10, nil)
            case "--no-large": largeItemCount = nil
            case "--redraw": onlyRedraws = true
            case "--only":
                guard let contestant = rest.popFirst().flatMap(Contestant.init(rawValue:)) else { return nil }
                contestants = Self.contestants.filter { $0 == contestant }
            case "--output":
                guard let folder = rest.popFirst() else { return nil }
                output = folder
            default: return nil
            }
        }
    }
}
