// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The command-line options of a comparison.
struct CompareOptions {
    static let usage = """
        usage: Benchmarks compare [--full | --quick] [--samples N] [--no-peers] [--output FOLDER]
               Benchmarks compare --redraw [--output FOLDER]
          --full           keychains of up to 1000000 items, not only 100000
          --quick          keychains of up to 1000 items and few samples: to see that it works, not to quote
          --samples N      how often each reading is measured (5000)
          --no-peers       leave out everyone but Valet and the limits
          --output FOLDER  where compare.json and compare.svg are written (Benchmarks/Results)
          --redraw         measure nothing: judge and draw what compare.json holds
        Everyone keeps what is measured below TMPDIR: it should be on a disk, not in memory.
        """

    let arguments: [String]
    var itemCounts = [100, 1_000, 10_000, 100_000]
    var sampleCount = 5_000
    var includesPeers = true
    var onlyRedraws = false
    var output = Self.resultsFolder

    static let resultsFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Results").path

    /// Nil when the arguments are not understood.
    init?(_ arguments: [String]) {
        self.arguments = arguments
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--full": itemCounts = [100, 1_000, 10_000, 100_000, 1_000_000]
            case "--quick": (itemCounts, sampleCount) = ([100, 1_000], 500)
            case "--no-peers": includesPeers = false
            case "--redraw": onlyRedraws = true
            case "--samples":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number >= 500 else { return nil }
                sampleCount = number
            case "--output":
                guard let folder = rest.popFirst() else { return nil }
                output = folder
            default: return nil
            }
        }
    }
}
