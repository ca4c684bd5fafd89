// SPDX-License-Identifier: Apache-2.0
internal import Dispatch
internal import Foundation

/// Runs `body`, which may block, on a thread outside Swift's cooperative thread pool.
///
/// If the task is canceled, the wait ends with a `CancellationError`. A call that has begun completes nevertheless; one that has not is not
/// made. In a forked child, which has no other threads, `body` runs on the caller's thread.
///
/// `mayPrompt` says whether `body` may wait for a person. No other call waits for a thread of such calls.
nonisolated(nonsending) package func withBlockingCalls<Result>(
    mayPrompt: Bool = false, _ body: @escaping @Sendable () throws -> sending Result
) async throws -> sending Result {
    guard !isForkedChild else { return try body() }
    let wait = CancelableWait<Result>()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { wait.begin(body, mayPrompt: mayPrompt, $0) }
    } onCancel: {
        wait.cancel()
    }
}

/// The wait of a task for a call on another thread; it ends once: with the call or with a cancellation.
///
/// `@unchecked Sendable`: `lock` guards the variables.
private final class CancelableWait<Result>: @unchecked Sendable {
    private let lock = NSLock()
    private var continuation: CheckedContinuation<Result, any Error>?
    private var isCanceled = false

    func begin(
        _ body: @escaping @Sendable () throws -> sending Result, mayPrompt: Bool, _ continuation: CheckedContinuation<Result, any Error>
    ) {
        let isCanceled = lock.withLock {
            if !self.isCanceled { self.continuation = continuation }
            return self.isCanceled
        }
        guard !isCanceled else { return continuation.resume(throwing: CancellationError()) }
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
            // Without task executors the call has no task-local values.
            DispatchQueue.global().async { self.run(body) }
            return
        }
        // The task has the caller's task-local values and priority, and is not canceled with the caller.
        Task(executorPreference: mayPrompt ? BlockingCallExecutor.prompting : .shared) { self.run(body) }
    }

    private func run(_ body: @Sendable () throws -> sending Result) {
        guard !lock.withLock({ isCanceled }) else { return }
        do {
            let result = try body()
            takeContinuation()?.resume(returning: result)
        } catch {
            takeContinuation()?.resume(throwing: error)
        }
    }

    func cancel() {
        lock.withLock { isCanceled = true }
        takeContinuation()?.resume(throwing: CancellationError())
    }

    private func takeContinuation() -> CheckedContinuation<Result, any Error>? {
        lock.withLock {
            defer { continuation = nil }
            return continuation
        }
    }
}

/// An executor for calls that block, for example on the disk or on a keychain that another process is writing.
///
/// The cooperative thread pool has one thread per core, so a few blocked calls would stall all other tasks. A task executor, unlike a
/// call to Dispatch alone, preserves the caller's task-local values and priority.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package final class BlockingCallExecutor: TaskExecutor, @unchecked Sendable {
    // Unchecked: `lock` guards the variables.
    package static let shared = BlockingCallExecutor(maximumCallCount: 64)
    /// For calls that may wait for a person: a prompt can be open for a minute.
    static let prompting = BlockingCallExecutor(maximumCallCount: 64)

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
