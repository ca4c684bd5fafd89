// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Threads on which tasks may wait for the disk, or for a keychain that somebody else writes to.
///
/// Swift's own threads are one for each core: a few calls that wait there would bring all other tasks to a stop. A task that runs here
/// keeps its task-local values. A thread ends when nothing was to be done for a while.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class BlockingCallThreads: TaskExecutor, @unchecked Sendable {
    // Unchecked: everything that changes is touched only while `condition` is held.
    static let shared = BlockingCallThreads(greatestThreadCount: 64, idleSeconds: 10)

    private let greatestThreadCount: Int
    private let idleSeconds: Double
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []
    private var threadCount = 0
    private var idleThreadCount = 0

    init(greatestThreadCount: Int, idleSeconds: Double) {
        self.greatestThreadCount = greatestThreadCount
        self.idleSeconds = idleSeconds
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.lock()
        defer { condition.unlock() }
        jobs.append(job)
        if idleThreadCount >= jobs.count || threadCount == greatestThreadCount {
            condition.signal()
        } else {
            threadCount += 1
            Thread.detachNewThread { self.runJobs() }
        }
    }

    private func runJobs() {
        while let job = nextJob() { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// The most urgent, and of those the one that waits longest; nil: the thread is to end.
    private func nextJob() -> UnownedJob? {
        condition.lock()
        defer { condition.unlock() }
        idleThreadCount += 1
        defer { idleThreadCount -= 1 }
        let end = Date(timeIntervalSinceNow: idleSeconds)
        while jobs.isEmpty {
            guard condition.wait(until: end) else { break }
        }
        var next: Int?
        for index in jobs.indices where next.map({ jobs[index].priority > jobs[$0].priority }) ?? true { next = index }
        if let next { return jobs.remove(at: next) }
        threadCount -= 1
        return nil
    }
}

/// Runs `body` where it may wait, and not on the caller's actor.
///
/// Platforms that do not let a task choose its threads run it on Swift's own.
@concurrent func withBlockingCalls<Result>(_ body: @Sendable () throws -> sending Result) async throws -> sending Result {
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return try body() }
    return try await withTaskExecutorPreference(BlockingCallThreads.shared) { try body() }
}
