// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// A queue that shows one prompt at a time and lets concurrent calls with the same question share one answer.
///
/// Questions are the same if their keys are equal, so a key must contain everything that matters to the person or to the answer.
/// The body of a prompt must not show another prompt: it would wait for itself until the deadline.
package final class PromptQueue<Key: Hashable & Sendable>: Sendable {
    /// A question that is shown or waits to be shown.
    private struct Question: Hashable, Sendable {
        let key: Key
        /// The type of the answer: questions with answers of different types are different.
        let result: ObjectIdentifier
    }

    /// An answer that several calls wait for.
    private final class PendingAnswer: Sendable {
        /// Locked until the answer is available.
        ///
        /// Each waiter that acquires it releases it to the next.
        let isOpen = TimedLock()
        let answer = Mutex<Result<any Sendable, KeychainFailure>?>(nil)
    }

    private enum Role {
        case asks(PendingAnswer)
        case waits(PendingAnswer)
    }

    private let promptLock: TimedLock
    private let callers = Atomic(0)
    private let pending = Mutex<[Question: PendingAnswer]>([:])

    /// Questions are shared within one `PromptQueue` only.
    ///
    /// The lock is the process's by default, so that two queues do not show prompts at the same time.
    package init(promptLock: TimedLock = .promptLock) {
        self.promptLock = promptLock
    }

    /// Runs `body` when no other prompt is shown, or returns the outcome of a concurrent call with the same question.
    ///
    /// Every outcome is shared, failures too: a person who cancels is not asked again by the next thread. `timeoutSeconds` limits the
    /// wait, not `body`. Throws `.interactionNotAllowed` if the wait is longer.
    package func share<Answer: Sendable>(
        key: Key, timeoutSeconds: UInt32, _ body: () throws(KeychainFailure) -> Answer
    ) throws(KeychainFailure) -> Answer {
        let question = Question(key: key, result: ObjectIdentifier(Answer.self))
        let deadline = Deadline.after(seconds: timeoutSeconds)
        let outcome: Result<any Sendable, KeychainFailure>
        let role = role(for: question)
        callers.add(1, ordering: .sequentiallyConsistent)
        defer { callers.subtract(1, ordering: .sequentiallyConsistent) }
        switch role {
        case .waits(let pendingAnswer):
            guard pendingAnswer.isOpen.acquire(until: deadline) else { throw Self.timedOut(timeoutSeconds) }
            pendingAnswer.isOpen.release()
            outcome = pendingAnswer.answer.withLock { $0 } ?? .failure(Self.timedOut(timeoutSeconds))
        case .asks(let pendingAnswer):
            outcome = withPromptLock(until: deadline, timeoutSeconds, body)
            pendingAnswer.answer.withLock { $0 = outcome }
            // Later calls ask again.
            pending.withLock { $0[question] = nil }
            pendingAnswer.isOpen.release()
        }
        guard let answer = try outcome.get() as? Answer else { throw KeychainFailure(.internal, "a shared answer has another type") }
        return answer
    }

    /// The number of calls that are asking, waiting to ask, or waiting for the answer to another call's question.
    package var participantCount: Int { callers.load(ordering: .sequentiallyConsistent) }

    private func role(for question: Question) -> Role {
        pending.withLock { pending in
            if let pendingAnswer = pending[question] { return .waits(pendingAnswer) }
            let pendingAnswer = PendingAnswer()
            _ = pendingAnswer.isOpen.acquire(until: .now)
            pending[question] = pendingAnswer
            return .asks(pendingAnswer)
        }
    }

    private func withPromptLock<Answer: Sendable>(
        until deadline: Deadline, _ timeoutSeconds: UInt32, _ body: () throws(KeychainFailure) -> Answer
    ) -> Result<any Sendable, KeychainFailure> {
        guard promptLock.acquire(until: deadline) else { return .failure(Self.timedOut(timeoutSeconds)) }
        defer { promptLock.release() }
        do throws(KeychainFailure) {
            let answer = try body()
            return .success(answer)
        } catch {
            return .failure(error)
        }
    }

    private static func timedOut(_ seconds: UInt32) -> KeychainFailure {
        KeychainFailure(.interactionNotAllowed, "another prompt was open for longer than \(seconds) s", refusal: .timedOut)
    }
}

extension TimedLock {
    /// Held while a prompt of this process is shown.
    package static let promptLock = TimedLock()
}

/// Identifies a question: calls on the same keychain that ask in the same words share one prompt.
package struct PromptKey: Hashable, Sendable {
    let storeID: StoreID?
    let question: PresenceQuestion
    let classes: Set<ItemAccessibility>
    /// The biometric keys that the answer may release.
    var biometry: Set<BiometryKind> = []
    /// A unique value for a question that is not shared; nil otherwise.
    var item: Identifier128?
}
