// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// Something to measure with a keychain of each size, in a process of its own.
///
/// A new one becomes part of every run when it stands in `BenchmarkList.all`. It leaves the keychain with the items that it found.
protocol Benchmark {
    /// Names it in an argument list.
    static var name: String { get }

    init()

    func run(_ setting: BenchmarkSetting) throws -> [Row]
}

/// What a benchmark works with.
struct BenchmarkSetting {
    let subject: FilledValet
    /// How often each cheap operation is measured.
    ///
    /// Those that wait for the disk are measured less often.
    let sampleCount: Int
    /// A folder beside the keychain, on the same file system.
    let directory: String

    var itemCount: Int { subject.itemCount }
    var writeSampleCount: Int { max(100, sampleCount / 10) }
    /// Listing takes longer the more there is.
    var listingSampleCount: Int { itemCount <= 10_000 ? 20 : itemCount <= 100_000 ? 5 : 3 }
}

/// All benchmarks, in the order in which they run.
enum BenchmarkList {
    static var all: [any Benchmark.Type] {
        [ReadBenchmark.self, WriteBenchmark.self, ListBenchmark.self, ThreadBenchmark.self, SecondProcessBenchmark.self]
    }
}
