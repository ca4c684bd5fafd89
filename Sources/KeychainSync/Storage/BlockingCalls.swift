// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainSystem
internal import Synchronization

/// Threads for calls that may hang in the kernel, such as those to a network file system whose server is dead.
///
/// Swift's cooperative pool has one thread for each processor, and a call that hangs would block one of them for ever. Here, it blocks one
/// of a few threads, and its caller gets an error at the deadline. While all threads hang, calls fail at once.
package final class BlockingCalls: Sendable {
    /// A call that waits for a thread or has one.
    private final class Call: Sendable {
        let run: @Sendable () -> Void
        let fail: @Sendable (SyncStorageError) -> Void

        init(run: @escaping @Sendable () -> Void, fail: @escaping @Sendable (SyncStorageError) -> Void) {
            self.run = run
            self.fail = fail
        }
    }

    private struct State {
        var waiting: [Call] = []
        var running: Set<ObjectIdentifier> = []
        /// The running calls whose deadline is over.
        var hanging: Set<ObjectIdentifier> = []
    }

    private let threadLimit: Int
    private let deadlineNanoseconds: UInt64
    private let state = Mutex(State())

    package init(threadLimit: Int = 4, deadlineNanoseconds: UInt64 = 30_000_000_000) {
        self.threadLimit = threadLimit
        self.deadlineNanoseconds = deadlineNanoseconds
    }

    /// Runs `body` on a thread.
    ///
    /// Throws `.unavailable` if that has not ended at the deadline. It may still do so later, and its result is lost. `path` is for
    /// the error.
    package func run<Value: Sendable>(
        at path: String, _ body: @escaping @Sendable () throws(SyncStorageError) -> Value
    ) async throws(SyncStorageError) -> Value {
        let result: Result<Value, SyncStorageError> = await withCheckedContinuation { continuation in
            let answer = Answer(continuation)
            let call = Call {
                answer.give(Result { () throws(SyncStorageError) in try body() })
            } fail: {
                answer.give(.failure($0))
            }
            // Retains the call until it is over, so that its identity stays its own.
            answer.setTimer(
                Task { [self, deadlineNanoseconds] in
                    guard (try? await Task.sleep(nanoseconds: deadlineNanoseconds)) != nil else { return }
                    expire(call, path)
                })
            begin(call, path)
        }
        return try result.get()
    }

    /// Starts a thread for a call, or lets it wait for one.
    private func begin(_ call: Call, _ path: String) {
        enum Decision { case run, wait, refuse }
        let decision = state.withLock { state -> Decision in
            guard state.hanging.count < threadLimit else { return .refuse }
            guard state.running.count < threadLimit else {
                state.waiting.append(call)
                return .wait
            }
            state.running.insert(ObjectIdentifier(call))
            return .run
        }
        switch decision {
        case .wait: break
        case .refuse: call.fail(Self.noAnswer(path))
        case .run:
            guard !BackgroundThread.start({ [self] in runAll(from: call) }) else { return }
            state.withLock { state in _ = state.running.remove(ObjectIdentifier(call)) }
            call.fail(SyncStorageError(.failed, "no thread is available to access \(path)"))
        }
    }

    /// Runs a call, and then those that wait.
    private func runAll(from first: Call) {
        var next: Call? = first
        while let call = next {
            call.run()
            next = state.withLock { state in
                state.running.remove(ObjectIdentifier(call))
                state.hanging.remove(ObjectIdentifier(call))
                guard !state.waiting.isEmpty else { return nil }
                let following = state.waiting.removeFirst()
                state.running.insert(ObjectIdentifier(following))
                return following
            }
        }
    }

    private func expire(_ call: Call, _ path: String) {
        state.withLock { state in
            if state.running.contains(ObjectIdentifier(call)) {
                state.hanging.insert(ObjectIdentifier(call))
            } else {
                state.waiting.removeAll { $0 === call }
            }
        }
        call.fail(Self.noAnswer(path))
    }

    private static func noAnswer(_ path: String) -> SyncStorageError {
        SyncStorageError(.unavailable, "\(path) does not answer: is its disk or server working?")
    }
}

/// The answer to a caller, which only the first of several results becomes.
private final class Answer<Value: Sendable>: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Result<Value, SyncStorageError>, Never>?
        var timer: Task<Void, Never>?
    }

    private let state: Mutex<State>

    init(_ continuation: CheckedContinuation<Result<Value, SyncStorageError>, Never>) {
        state = Mutex(State(continuation: continuation))
    }

    /// Sets the task that is canceled with the answer.
    func setTimer(_ timer: Task<Void, Never>) { state.withLock { $0.timer = timer } }

    func give(_ result: Result<Value, SyncStorageError>) {
        let (continuation, timer) = state.withLock { state in
            defer { state = State() }
            return (state.continuation, state.timer)
        }
        timer?.cancel()
        continuation?.resume(returning: result)
    }
}
#endif
