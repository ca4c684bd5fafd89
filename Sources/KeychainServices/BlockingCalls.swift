// SPDX-License-Identifier: Apache-2.0
internal import Dispatch
internal import Foundation

/// Runs `body`, which may block, on a thread outside Swift's cooperative thread pool.
///
/// On platform versions without task executors, `body` runs on the cooperative pool. In a forked child, which has no other threads, `body`
/// runs on the caller's thread.
nonisolated(nonsending) package func withBlockingCalls<Result>(
    _ body: @Sendable () throws -> sending Result
) async throws -> sending Result {
    guard !isForkedChild else { return try body() }
    return try await withBlockingCallExecutor(body)
}

@concurrent private func withBlockingCallExecutor<Result>(_ body: @Sendable () throws -> sending Result) async throws -> sending Result {
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return try body() }
    return try await withTaskExecutorPreference(BlockingCallExecutor.shared) { try body() }
}

/// An executor for calls that block, for example on the disk or on a keychain that another process is writing.
///
/// The cooperative thread pool has one thread per core, so a few blocked calls would stall all other tasks. A task executor, unlike a
/// call to Dispatch alone, preserves the caller's task-local values and priority.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package final class BlockingCallExecutor: TaskExecutor, @unchecked Sendable {
    // Unchecked: `lock` guards the variables.
    package static let shared = BlockingCallExecutor(maximumCallCount: 64)

    private let maximumCallCount: Int
    private let lock = NSLock()
    private var runningCount = 0
    private var waitingJobs: [UnownedJob] = []

    /// Creates an executor that runs at most `maximumCallCount` calls at once.
    ///
    /// Further calls wait, the most urgent first.
    package init(maximumCallCount: Int) {
        self.maximumCallCount = maximumCallCount
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let hasSlot = lock.withLock {
            guard runningCount < maximumCallCount else {
                waitingJobs.append(job)
                return false
            }
            runningCount += 1
            return true
        }
        guard hasSlot else { return }
        // A serial queue per job always gets a thread. A concurrent queue may not, if many of its threads are blocked.
        DispatchQueue(label: "keychain.blocking-call").async { self.runJobs(startingWith: job) }
    }

    private func runJobs(startingWith first: UnownedJob) {
        var next: UnownedJob? = first
        while let job = next {
            // Each job is run exactly once, by the executor that it was enqueued on.
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            next = lock.withLock { removeNextJob() }
        }
    }

    /// Removes and returns the oldest of the most urgent jobs.
    ///
    /// If no job waits, frees the caller's slot and returns nil.
    private func removeNextJob() -> UnownedJob? {
        guard let index = waitingJobs.indices.min(by: { waitingJobs[$0].priority > waitingJobs[$1].priority }) else {
            runningCount -= 1
            return nil
        }
        return waitingJobs.remove(at: index)
    }
}
