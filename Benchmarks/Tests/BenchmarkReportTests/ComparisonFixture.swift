// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// A comparison with a row of every kind.
enum ComparisonFixture {
    static let machine = Machine(
        processor: "Processor <\"Skroob\"> & \u{1} Co", coreCount: 2, memoryGigabytes: 8, kernel: "6.1.0", operatingSystem: "Debian",
        fileSystem: "ext4")

    static func comparison(getMicroseconds: Double = 20) -> Comparison {
        var threads = row(.valet, .overwrite, 700, threadCount: 8)
        threads.operationsPerSecond = 4_000
        threads.rateAgainstOneThread = 3.5
        return Comparison(
            date: Date(timeIntervalSince1970: 1_800_000_000.7), command: "make compare", machine: machine,
            rows: [
                row(.libsecret, .get, 2_000), row(.valet, .get, getMicroseconds), row(.rawSQLite, .get, 4), threads,
                row(.valet, .overwrite, 600), row(.bareAppend, .setNew, 500), row(.valet, .overwrite, 4_800, itemCount: 100_000),
                row(.bareAppend, .setNew, 4_000, itemCount: 100_000), row(.valet, .get, 30, .besideWriter),
                row(.valet, .get, 40, itemCount: 100_000), row(.valetCommand, .get, 10_000, .wholeProcess),
                row(.secretTool, .get, 15_000, .wholeProcess), row(.aesGCM, .get, 0.9), row(.valet, .allKeys, 50_000, itemCount: 10_000),
            ],
            memory: [
                MemoryRow(.valet, .get, itemCount: 1_000, kibibytes: 20_000),
                MemoryRow(.valet, .get, itemCount: 100_000, kibibytes: 21_000),
                MemoryRow(.libsecret, nil, itemCount: 1_000, kibibytes: 9_000),
            ],
            absences: [Comparison.Absence(.pass, reason: "gpg is not installed")], notes: ["A note"])
    }

    private static func row(
        _ contestant: Contestant, _ operation: KeychainOperation, _ median: Double, _ circumstance: Circumstance = .alone,
        itemCount: Int = 1_000, threadCount: Int = 1
    ) -> Row {
        Row(
            contestant, operation, circumstance, itemCount: itemCount, threadCount: threadCount,
            latency: Latency(medianMicroseconds: median, p99Microseconds: median * 3, sampleCount: 100))
    }
}
