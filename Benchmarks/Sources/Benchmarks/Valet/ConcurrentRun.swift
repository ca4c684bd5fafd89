// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation
import Synchronization

/// A run of one operation in several concurrent threads.
struct ConcurrentRun {
    struct TooLate: Error {}

    private final class Findings: Sendable {
        let samples = Mutex(Samples())
        let errors = Mutex<[any Error]>([])
    }

    let samples: Samples
    let operationsPerSecond: Double

    /// Starts the threads, releases them together, and waits for all.
    ///
    /// Each performs `operation` the given number of times.
    init(
        threadCount: Int, operationCount: Int, timeoutSeconds: Double = 300,
        _ operation: @escaping @Sendable (_ thread: Int, _ index: Int) throws -> Void
    ) throws {
        let findings = Findings()
        let (ready, gate, ended) = (DispatchGroup(), DispatchSemaphore(value: 0), DispatchGroup())
        for thread in 0..<threadCount {
            ready.enter()
            ended.enter()
            Thread {
                var own = Samples()
                ready.leave()
                gate.wait()
                do {
                    for index in 0..<operationCount { try own.measure { try operation(thread, index) } }
                } catch {
                    findings.errors.withLock { $0.append(error) }
                }
                findings.samples.withLock { $0.append(own) }
                ended.leave()
            }.start()
        }
        let deadline = DispatchTime.now() + timeoutSeconds
        guard ready.wait(timeout: deadline) == .success else { throw TooLate() }
        let start = Samples.now()
        for _ in 0..<threadCount { gate.signal() }
        guard ended.wait(timeout: deadline) == .success else { throw TooLate() }
        let seconds = Double(Samples.now() - start) / 1e9
        if let error = findings.errors.withLock({ $0.first }) { throw error }
        samples = findings.samples.withLock { $0 }
        operationsPerSecond = Double(threadCount * operationCount) / seconds
    }
}
