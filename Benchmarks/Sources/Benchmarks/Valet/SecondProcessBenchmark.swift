// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// Every operation while a second process continuously reads or writes the same keychain.
struct SecondProcessBenchmark: Benchmark {
    static let name = "second-process"

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        try SecondProcess.allCases.flatMap { second in
            let companion = try CompanionProcess(
                Command(
                    Program.path, ["second-process", second.rawValue, String(setting.itemCount)],
                    environment: ProcessInfo.processInfo.environment))
            defer { companion.end() }
            _ = try companion.readLine()
            return try KeychainOperation.allCases.compactMap { operation in
                let samples = try Samples.measure(count(operation, setting)) {
                    try setting.subject.perform(operation, $0, scope: second.rawValue)
                }
                return Row(.valet, operation, second.circumstance, itemCount: setting.itemCount, samples)
            }
        }
    }

    private func count(_ operation: KeychainOperation, _ setting: BenchmarkSetting) -> Int {
        switch operation {
        case .get, .contains: setting.sampleCount / 2
        // As many new keys as are removed later.
        case .setNew, .overwrite, .remove: setting.writeSampleCount / 2
        case .allKeys: max(3, setting.listingSampleCount / 2)
        }
    }
}

/// The second process, which runs during the measurement.
enum SecondProcess: String, CaseIterable {
    case reader
    case writer

    var circumstance: Circumstance { self == .reader ? .besideReader : .besideWriter }

    /// Runs until its input ends, and at most an hour, in case the measuring process is gone.
    func run(itemCount: Int) throws {
        let subject = try FilledValet(itemCount: itemCount)
        let operation = self == .reader ? KeychainOperation.get : .overwrite
        try subject.perform(operation, 0)
        try FileHandle.standardOutput.write(contentsOf: Data("ready\n".utf8))
        let deadline = Samples.now() + 3_600 * 1_000_000_000
        var index = 1
        while Samples.now() < deadline {
            var input = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&input, 1, 0) != 0 { return }
            try subject.perform(operation, index &* 31)
            index += 1
        }
    }
}
