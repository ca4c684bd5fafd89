// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// Runs tests that wait for a child process, a person's answer, or the kernel's clock on threads of their own.
///
/// Swift's cooperative pool has one thread for each processor. A test that blocks one of them delays all other tests.
struct OwnThreadTrait: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(OwnThreadExecutor.shared) { try await function() }
    }
}

extension Trait where Self == OwnThreadTrait {
    /// The test blocks, so it runs on a thread of its own.
    static var onOwnThread: Self { Self() }
}

/// A pool of threads that mostly wait.
private final class OwnThreadExecutor: TaskExecutor {
    static let shared = OwnThreadExecutor(threadCount: 16)

    private let condition = NSCondition()
    // Guarded by `condition`. The runtime keeps an enqueued job until it has run, which each does once.
    nonisolated(unsafe) private var jobs: [UnownedJob] = []

    private init(threadCount: Int) {
        for _ in 0..<threadCount { Thread.detachNewThread { self.run() } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
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

/// Polls a condition every millisecond until it holds; returns false if it does not hold within a minute.
func waitUntil(_ condition: () throws -> Bool) rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(60)
    while try !condition() {
        guard ContinuousClock.now < deadline else { return false }
        usleep(1_000)
    }
    return true
}
