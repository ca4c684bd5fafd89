// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation
import Synchronization
import Valet

/// Typed keys and asynchronous calls, measured in turns with the plain calls, and the time until another process is told of a change.
struct FormsBenchmark: Benchmark {
    static let name = "forms"
    private static let blockSize = 100

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        let (subject, itemCount) = (setting.subject, setting.itemCount)
        var (get, typedGet, asynchronousGet, overwrite, typedOverwrite) = (Samples(), Samples(), Samples(), Samples(), Samples())
        func key(_ index: Int) -> ValetKey<String> { ValetKey(subject.spreadKey(index)) }
        for start in stride(from: 0, to: setting.sampleCount, by: Self.blockSize) {
            get.append(try Samples.measure(Self.blockSize) { try subject.perform(.get, start + $0) })
            typedGet.append(try Samples.measure(Self.blockSize) { _ = try subject.valet.value(for: key(start + $0)) })
            asynchronousGet.append(try Self.asynchronousReads(of: subject, from: start))
        }
        for start in stride(from: 0, to: setting.writeSampleCount, by: Self.blockSize) {
            overwrite.append(try Samples.measure(Self.blockSize) { try subject.perform(.overwrite, start + $0) })
            typedOverwrite.append(
                try Samples.measure(Self.blockSize) { try subject.valet.set(FilledValet.value, for: key(start + $0)) })
        }
        return [
            Row(.valet, .get, .besideOtherForms, itemCount: itemCount, get), Row(.valet, .get, .typedKey, itemCount: itemCount, typedGet),
            Row(.valet, .get, .asynchronous, itemCount: itemCount, asynchronousGet),
            Row(.valet, .overwrite, .besideOtherForms, itemCount: itemCount, overwrite),
            Row(.valet, .overwrite, .typedKey, itemCount: itemCount, typedOverwrite),
            Row(.valet, .overwrite, .untilNoticed, itemCount: itemCount, try notices(setting)),
        ].compactMap(\.self)
    }

    private static func asynchronousReads(of subject: FilledValet, from start: Int) throws -> Samples {
        let result = Mutex<Result<Samples, any Error>>(.success(Samples()))
        let end = DispatchSemaphore(value: 0)
        // This thread waits for the task, which reads one value after the other.
        withExtendedLifetime(result) {
            Task { @Sendable in
                var samples = Samples()
                do {
                    for index in 0..<blockSize + blockSize / 5 {
                        let begin = Samples.now()
                        _ = try await subject.valet.asynchronously.string(forKey: subject.spreadKey(start + index))
                        if index >= blockSize / 5 { samples.append(nanoseconds: Samples.now() - begin) }
                    }
                    let measured = samples
                    result.withLock { $0 = .success(measured) }
                } catch {
                    result.withLock { $0 = .failure(error) }
                }
                end.signal()
            }
            end.wait()
        }
        return try result.withLock { $0 }.get()
    }

    /// The times from the call that stores a value to the notice in another process.
    private func notices(_ setting: BenchmarkSetting) throws -> Samples {
        let listener = try CompanionProcess(Command(Program.path, ["listen"], environment: ProcessInfo.processInfo.environment))
        defer { listener.end() }
        _ = try listener.readLine()
        var samples = Samples()
        for index in 0..<100 {
            let begin = Samples.now()
            try setting.subject.perform(.overwrite, index)
            while true {
                guard let noticed = UInt64(try listener.readLine()), noticed >= begin else { continue }
                samples.append(nanoseconds: noticed - begin)
                break
            }
        }
        return samples
    }

    /// The other process: prints the time of each notice until its input ends.
    static func listen() throws {
        let changes = try FilledValet(itemCount: 1).valet.changes
        try FileHandle.standardOutput.write(contentsOf: Data("ready\n".utf8))
        Task {
            for await _ in changes { try FileHandle.standardOutput.write(contentsOf: Data("\(Samples.now())\n".utf8)) }
        }
        _ = FileHandle.standardInput.readDataToEndOfFile()
    }
}
