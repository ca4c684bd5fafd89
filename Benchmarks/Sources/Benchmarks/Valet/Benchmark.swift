// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// A measurement with a keychain of each size, in its own process.
///
/// `BenchmarkList.all` lists the benchmarks of a run. A benchmark must leave the items of the keychain unchanged.
protocol Benchmark {
    /// The name in an argument list.
    static var name: String { get }

    init()

    func run(_ setting: BenchmarkSetting) throws -> [Row]
}

/// The environment of a benchmark.
struct BenchmarkSetting {
    let subject: FilledValet
    /// The number of samples of a cheap operation.
    ///
    /// Operations that wait for the disk have fewer samples.
    let sampleCount: Int
    /// A folder on the file system of the keychain.
    let directory: String

    var itemCount: Int { subject.itemCount }
    var writeSampleCount: Int { max(100, sampleCount / 10) }
    /// The duration of a listing increases with the number of items.
    var listingSampleCount: Int { itemCount <= 10_000 ? 20 : itemCount <= 100_000 ? 5 : 3 }
}

/// All benchmarks, in the order in which they run.
enum BenchmarkList {
    static var all: [any Benchmark.Type] {
        [
            ReadBenchmark.self, WriteBenchmark.self, ListBenchmark.self, ThreadBenchmark.self, SecondProcessBenchmark.self,
            FormsBenchmark.self,
        ]
    }
}
