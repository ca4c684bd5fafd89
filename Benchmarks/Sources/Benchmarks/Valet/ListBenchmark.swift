// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// Listing all keys.
struct ListBenchmark: Benchmark {
    static let name = "list"

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        let samples = try Samples.measure(setting.listingSampleCount) { try setting.subject.perform(.allKeys, $0) }
        return [Row(.valet, .allKeys, itemCount: setting.itemCount, samples)].compactMap(\.self)
    }
}
