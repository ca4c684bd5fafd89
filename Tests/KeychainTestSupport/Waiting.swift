// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Synchronization

/// Polls a condition until it holds, and returns whether it held before the deadline.
///
/// The pause between two polls grows from half a millisecond to 50 ms, because some conditions cost much time themselves.
/// The deadline only decides how long a failing test takes, so it is generous.
@discardableResult
package func waitUntil(withinSeconds seconds: Double = 60, _ condition: () throws -> Bool) rethrows -> Bool {
    let deadline = ContinuousClock.now.advanced(by: .seconds(seconds))
    var pauseMicroseconds: UInt32 = 500
    while try !condition() {
        guard ContinuousClock.now < deadline else { return false }
        usleep(pauseMicroseconds)
        pauseMicroseconds = min(2 * pauseMicroseconds, 50_000)
    }
    return true
}

/// A clock that stands still until a test advances it.
package final class ManualTime: ContinuousTime {
    private let now = Atomic<UInt64>(1_000_000_000_000)

    package init() {}

    package func nowNanoseconds() -> UInt64 { now.load(ordering: .sequentiallyConsistent) }

    package func pass(nanoseconds: UInt64) { now.add(nanoseconds, ordering: .sequentiallyConsistent) }

    package func pass(seconds: Double) { pass(nanoseconds: UInt64(seconds * 1e9)) }

    /// Moves the clock back, as seen by a thread that read the time and was then delayed.
    package func turnBack(seconds: Double) { now.subtract(UInt64(seconds * 1e9), ordering: .sequentiallyConsistent) }
}

/// Runs each body on a thread of its own, all at once, and returns their results in no particular order.
///
/// The bodies neither occupy a thread of Swift's cooperative pool nor wait for one.
package func onThreads<Outcome: Sendable>(_ bodies: [@Sendable () -> Outcome]) async -> [Outcome] {
    guard !bodies.isEmpty else { return [] }
    let results = ThreadResults<Outcome>(count: bodies.count)
    return await withCheckedContinuation { continuation in
        for body in bodies {
            Thread.detachNewThread {
                if let all = results.add(body()) { continuation.resume(returning: all) }
            }
        }
    }
}

/// Bodies that run on threads of their own while a test goes on.
///
/// A test that blocks may occupy the last thread of Swift's cooperative pool, so a task that it has begun with `async let` may never start.
package final class StartedThreads<Outcome: Sendable>: Sendable {
    private let results: ThreadResults<Outcome>
    private let all = Mutex<[Outcome]?>(nil)

    package init(_ bodies: [@Sendable () -> Outcome]) {
        results = ThreadResults(count: bodies.count)
        for body in bodies {
            Thread.detachNewThread { [self] in
                if let all = results.add(body()) { self.all.withLock { $0 = all } }
            }
        }
    }

    /// Waits until all have ended, and returns their results in no particular order; nil if they do not end.
    package func outcomes() -> [Outcome]? {
        waitUntil { all.withLock { $0 != nil } }
        return all.withLock { $0 }
    }
}

private final class ThreadResults<Outcome: Sendable>: Sendable {
    private let count: Int
    private let outcomes = Mutex<[Outcome]>([])

    init(count: Int) {
        self.count = count
    }

    /// Returns all results once the last one has been added.
    func add(_ outcome: Outcome) -> [Outcome]? {
        outcomes.withLock { outcomes in
            outcomes.append(outcome)
            return outcomes.count == count ? outcomes : nil
        }
    }
}

/// Threads for tests that block: they wait for child processes, for files to be flushed, or for other threads.
///
/// Swift's cooperative pool has one thread for each processor. Tests that block those threads delay all other tests and the reports
/// of tests that have ended.
package final class BlockingTestExecutor: TaskExecutor {
    /// Shared by all tests: some are waiting while others use the processors.
    package static let shared = BlockingTestExecutor(threadCount: 2 * ProcessInfo.processInfo.activeProcessorCount)
    /// For tests that mostly wait until a time has passed, so that they do not hold back those above.
    package static let waitingForClock = BlockingTestExecutor(threadCount: 8)

    private let condition = NSCondition()
    // Guarded by `condition`. The runtime keeps a job that it has enqueued until it has run, which each does once.
    nonisolated(unsafe) private var jobs: [UnownedJob] = []

    private init(threadCount: Int) {
        for _ in 0..<threadCount { Thread.detachNewThread { self.run() } }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.withLock {
            unsafe jobs.append(job)
            condition.signal()
        }
    }

    private func run() {
        while true {
            let job = condition.withLock {
                while unsafe jobs.isEmpty { condition.wait() }
                return unsafe jobs.removeFirst()
            }
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
