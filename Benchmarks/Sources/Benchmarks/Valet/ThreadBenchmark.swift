// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// Each operation in eight concurrent threads, in turns with one thread.
struct ThreadBenchmark: Benchmark {
    static let name = "threads"
    private static let threadCount = 8
    private static let roundCount = 5

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        var rows: [Row] = []
        // The next operation removes the new keys, so that listing finds the original number of items.
        var (latencies, rates, singleRates) = (
            [KeychainOperation: Samples](), [KeychainOperation: [Double]](), [KeychainOperation: [Double]]()
        )
        for round in 0..<Self.roundCount {
            for threadCount in [1, Self.threadCount] {
                for operation in KeychainOperation.allCases {
                    guard let count = operationCount(operation, setting, round) else { continue }
                    let scope = "round-\(round)-of-\(threadCount)"
                    let run = try ConcurrentRun(threadCount: threadCount, operationCount: count) { thread, index in
                        try setting.subject.perform(operation, thread * count + index, scope: scope)
                    }
                    if threadCount == 1 {
                        singleRates[operation, default: []].append(run.operationsPerSecond)
                    } else {
                        latencies[operation, default: Samples()].append(run.samples)
                        rates[operation, default: []].append(run.operationsPerSecond)
                    }
                }
            }
        }
        for (operation, samples) in latencies {
            guard
                var row = Row(.valet, operation, itemCount: setting.itemCount, threadCount: Self.threadCount, samples),
                let rate = median(rates[operation]), let single = median(singleRates[operation])
            else { continue }
            row.operationsPerSecond = rate
            row.rateAgainstOneThread = rate / single
            rows.append(row)
        }
        return rows
    }

    /// The number of operations of each thread in a round; nil to skip the operation.
    private func operationCount(_ operation: KeychainOperation, _ setting: BenchmarkSetting, _ round: Int) -> Int? {
        switch operation {
        case .get, .contains: max(50, setting.sampleCount / (2 * Self.roundCount))
        case .setNew, .overwrite, .remove: max(10, setting.writeSampleCount / (2 * Self.roundCount))
        // Eight concurrent lists of a million keys are not a realistic load.
        case .allKeys: setting.itemCount <= 10_000 ? 2 : setting.itemCount <= 100_000 && round == 0 ? 1 : nil
        }
    }

    private func median(_ values: [Double]?) -> Double? {
        Latency.percentile(0.5, ofSorted: (values ?? []).sorted())
    }
}
