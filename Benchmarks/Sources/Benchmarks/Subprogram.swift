// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// The subprograms that this program runs as child processes.
enum Subprogram {
    /// Returns false if the arguments name no subprogram.
    static func run(_ arguments: [String]) throws -> Bool {
        let numbers = arguments.dropFirst().compactMap { Int($0) }
        switch (arguments.first, arguments.count) {
        case ("fill", 3) where numbers.count == 2:
            try FilledValet(itemCount: numbers[1]).fill(presentCount: numbers[0])
        case ("benchmark", 5) where numbers.count == 2:
            let benchmarks = BenchmarkList.all + [DaemonBenchmark.self]
            guard let benchmark = benchmarks.first(where: { $0.name == arguments[1] }) else { return false }
            let setting = BenchmarkSetting(
                subject: try FilledValet(itemCount: numbers[0]), sampleCount: numbers[1], directory: arguments[4])
            try send(benchmark.init().run(setting))
        case ("memory", 3) where numbers.count == 1:
            guard let operation = KeychainOperation(rawValue: arguments[1]) else { return false }
            try send(MemoryProbe.run(operation, itemCount: numbers[0]))
        case ("second-process", 3) where numbers.count == 1:
            guard let second = SecondProcess(rawValue: arguments[1]) else { return false }
            try second.run(itemCount: numbers[0])
        case ("listen", 1):
            try FormsBenchmark.listen()
        case ("measure", 4) where numbers.count == 2:
            try send(ValetMeasurement(itemCount: numbers[0]).run(directory: arguments[3], sampleCount: numbers[1]))
        case ("lock", 2) where numbers.count == 1:
            try send(LockMeasurement(sampleCount: numbers[0]).run())
        case ("first-read", 1):
            try send(LockMeasurement.firstRead())
        default:
            return false
        }
        return true
    }

    /// Writes the result to the parent process.
    private static func send(_ result: some Encodable) throws {
        try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
    }
}
