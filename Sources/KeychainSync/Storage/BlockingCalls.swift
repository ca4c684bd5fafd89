// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Dispatch
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

    /// A thread with its present or its next call.
    private final class Worker: Sendable {
        let semaphore = DispatchSemaphore(value: 0)
        let call: Mutex<Call?>

        init(_ call: Call) {
            self.call = Mutex(call)
        }
    }

    private struct State {
        var waiting: [Call] = []
        var running: Set<ObjectIdentifier> = []
        /// The running calls whose deadline is over.
        var hanging: Set<ObjectIdentifier> = []
        /// Those that wait for their next call.
        var idle: [Worker] = []
    }

    private let threadLimit: Int
    private let idleMilliseconds: Int
    private let deadlines: CallDeadlines
    private let state = Mutex(State())

    /// `idleMilliseconds`: how long a thread waits for its next call.
    ///
    /// An agent that uses a folder looks at it every five seconds.
    package init(threadLimit: Int = 4, deadlineNanoseconds: UInt64 = 30_000_000_000, idleMilliseconds: Int = 10_000) {
        self.threadLimit = threadLimit
        self.idleMilliseconds = idleMilliseconds
        deadlines = CallDeadlines(nanoseconds: deadlineNanoseconds)
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
            let call = Call { [deadlines] in
                answer.give(Result { () throws(SyncStorageError) in try body() }, deadlines)
            } fail: { [deadlines] in
                answer.give(.failure($0), deadlines)
            }
            // Retains the call until it is over, so that its identity stays its own.
            answer.setDeadline(deadlines.begin { [self] in expire(call, path) })
            begin(call, path)
        }
        return try result.get()
    }

    /// Gives a call to a thread, or lets it wait for one.
    private func begin(_ call: Call, _ path: String) {
        enum Decision {
            case give(Worker)
            case start, wait, refuse
        }
        let decision = state.withLock { state -> Decision in
            guard state.hanging.count < threadLimit else { return .refuse }
            guard state.running.count < threadLimit else {
                state.waiting.append(call)
                return .wait
            }
            state.running.insert(ObjectIdentifier(call))
            guard let worker = state.idle.popLast() else { return .start }
            worker.call.withLock { $0 = call }
            return .give(worker)
        }
        switch decision {
        case .give(let worker): worker.semaphore.signal()
        case .wait: break
        case .refuse: call.fail(Self.noAnswer(path))
        case .start:
            let worker = Worker(call)
            guard !BackgroundThread.start({ [self] in run(worker) }) else { return }
            state.withLock { state in _ = state.running.remove(ObjectIdentifier(call)) }
            call.fail(SyncStorageError(.failed, "no thread is available to access \(path)"))
        }
    }

    /// Runs a call, then those that wait, and then those that come until none has come for a while.
    private func run(_ worker: Worker) {
        while let hasNext = runCall(of: worker) {
            guard !hasNext else { continue }
            _ = worker.semaphore.wait(timeout: .now() + .milliseconds(idleMilliseconds))
            state.withLock { $0.idle.removeAll { $0 === worker } }
        }
    }

    /// Runs the call of a thread, which keeps nothing of it; returns whether it has another one, or nil if it had none.
    private func runCall(of worker: Worker) -> Bool? {
        guard let call = worker.call.withLock({ $0.take() }) else { return nil }
        call.run()
        return state.withLock { state in
            state.running.remove(ObjectIdentifier(call))
            state.hanging.remove(ObjectIdentifier(call))
            guard !state.waiting.isEmpty else {
                state.idle.append(worker)
                return false
            }
            let following = state.waiting.removeFirst()
            state.running.insert(ObjectIdentifier(following))
            worker.call.withLock { $0 = following }
            return true
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
        var deadline: CallDeadlines.Identifier?
    }

    private let state: Mutex<State>

    init(_ continuation: CheckedContinuation<Result<Value, SyncStorageError>, Never>) {
        state = Mutex(State(continuation: continuation))
    }

    /// Sets the deadline that ends with the answer.
    func setDeadline(_ deadline: CallDeadlines.Identifier) { state.withLock { $0.deadline = deadline } }

    func give(_ result: Result<Value, SyncStorageError>, _ deadlines: CallDeadlines) {
        let (continuation, deadline) = state.withLock { state in
            defer { state = State() }
            return (state.continuation, state.deadline)
        }
        if let deadline { deadlines.end(deadline) }
        continuation?.resume(returning: result)
    }
}

/// Ends calls that have not ended at their deadlines; all calls may take equally long.
///
/// One task looks after all of them. A timer for each call would nearly always be set and canceled for nothing, and wake a thread each time.
package final class CallDeadlines: Sendable {
    package typealias Identifier = UInt64

    private struct State {
        var lastIdentifier: Identifier = 0
        /// The calls that have begun and not ended.
        var calls: [Identifier: (deadline: Deadline, expire: @Sendable () -> Void)] = [:]
        var isWatched = false
    }

    private let nanoseconds: UInt64
    private let state = Mutex(State())

    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// Notes a call that begins; `expire` is called at its deadline.
    package func begin(_ expire: @escaping @Sendable () -> Void) -> Identifier {
        let (identifier, isFirst) = state.withLock { state in
            defer { state.isWatched = true }
            state.lastIdentifier += 1
            state.calls[state.lastIdentifier] = (.after(nanoseconds: nanoseconds), expire)
            return (state.lastIdentifier, !state.isWatched)
        }
        // Not with what belongs to the task of the first call.
        if isFirst { Task.detached { await self.watch() } }
        return identifier
    }

    package func end(_ identifier: Identifier) { state.withLock { $0.calls[identifier] = nil } }

    /// Sleeps until the next deadline, until there is none.
    private func watch() async {
        while true {
            let (expired, next) = state.withLock { state -> ([@Sendable () -> Void], Deadline?) in
                let expired = state.calls.filter { $0.value.deadline.isOver }
                for identifier in expired.keys { state.calls[identifier] = nil }
                let next = state.calls.values.map(\.deadline).min()
                state.isWatched = next != nil
                return (expired.sorted { $0.key < $1.key }.map(\.value.expire), next)
            }
            for expire in expired { expire() }
            guard let next else { return }
            try? await Task.sleep(nanoseconds: next.remainingNanoseconds)
        }
    }
}
#endif
