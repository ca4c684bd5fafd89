// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Lets one question be shown at a time, and lets those who would ask the same at the same moment share one answer.
///
/// Two ask the same when their keys are equal: whatever makes a difference to the person or to the answer belongs into the key.
/// The body of a turn must not take another turn: it would wait for itself until the deadline.
package final class PromptQueue<Key: Hashable & Sendable>: Sendable {
    /// One question of the process, in flight or waiting to be shown.
    private struct Question: Hashable, Sendable {
        let key: Key
        /// An answer of another type is an answer to another question.
        let result: ObjectIdentifier
    }

    /// Where those who share an answer wait for it.
    private final class PendingAnswer: Sendable {
        /// Taken until the answer is there; every waiter that gets it hands it on to the next.
        let isOpen = TimedLock()
        let answer = Mutex<Result<any Sendable, KeychainFailure>?>(nil)
    }

    private enum Part {
        case asks(PendingAnswer)
        case waits(PendingAnswer)
    }

    private let turn: TimedLock
    private let callers = Atomic(0)
    private let pending = Mutex<[Question: PendingAnswer]>([:])

    /// Keys are compared within one `PromptQueue`; the turn itself is the process's, since a person has one pair of eyes.
    package init(turn: TimedLock = .promptLock) {
        self.turn = turn
    }

    /// Runs `body` when nothing else is shown, and gives its outcome; or gives the outcome of somebody who asks the same right now.
    ///
    /// Every outcome is shared, a refusal too: who cancels does not want to be asked once more by the next thread. Throws
    /// `.interactionNotAllowed` when neither a turn nor a shared outcome was to be had within `timeoutSeconds`. How long `body` takes is
    /// its own affair.
    package func share<Answer: Sendable>(
        key: Key, timeoutSeconds: UInt32, _ body: () throws(KeychainFailure) -> Answer
    ) throws(KeychainFailure) -> Answer {
        let question = Question(key: key, result: ObjectIdentifier(Answer.self))
        let deadline = Deadline.after(seconds: timeoutSeconds)
        let outcome: Result<any Sendable, KeychainFailure>
        let part = part(in: question)
        callers.add(1, ordering: .sequentiallyConsistent)
        defer { callers.subtract(1, ordering: .sequentiallyConsistent) }
        switch part {
        case .waits(let pendingAnswer):
            guard pendingAnswer.isOpen.acquire(until: deadline) else { throw Self.timedOut(timeoutSeconds) }
            pendingAnswer.isOpen.giveBack()
            outcome = pendingAnswer.answer.withLock { $0 } ?? .failure(Self.timedOut(timeoutSeconds))
        case .asks(let pendingAnswer):
            outcome = inTurn(until: deadline, timeoutSeconds, body)
            pendingAnswer.answer.withLock { $0 = outcome }
            // Whoever comes from here on asks anew.
            pending.withLock { $0[question] = nil }
            pendingAnswer.isOpen.giveBack()
        }
        guard let answer = try outcome.get() as? Answer else { throw KeychainFailure(.internal, "a shared answer has another type") }
        return answer
    }

    /// How many calls have their part in a question: those that ask it, wait for a turn, or wait for somebody else's answer.
    package var participantCount: Int { callers.load(ordering: .sequentiallyConsistent) }

    private func part(in question: Question) -> Part {
        pending.withLock { pending in
            if let pendingAnswer = pending[question] { return .waits(pendingAnswer) }
            let pendingAnswer = PendingAnswer()
            _ = pendingAnswer.isOpen.acquire(until: .now)
            pending[question] = pendingAnswer
            return .asks(pendingAnswer)
        }
    }

    private func inTurn<Answer: Sendable>(
        until deadline: Deadline, _ timeoutSeconds: UInt32, _ body: () throws(KeychainFailure) -> Answer
    ) -> Result<any Sendable, KeychainFailure> {
        guard turn.acquire(until: deadline) else { return .failure(Self.timedOut(timeoutSeconds)) }
        defer { turn.giveBack() }
        do throws(KeychainFailure) {
            let answer = try body()
            return .success(answer)
        } catch {
            return .failure(error)
        }
    }

    private static func timedOut(_ seconds: UInt32) -> KeychainFailure {
        KeychainFailure(.interactionNotAllowed, "another question was shown for longer than \(seconds) s", refusal: .timedOut)
    }
}

extension TimedLock {
    /// Held by whatever asks the person something in this process.
    package static let promptLock = TimedLock()
}

/// Two who ask the same of the same keychain, in the same words, share one question.
package struct PromptKey: Hashable, Sendable {
    let storeID: StoreID?
    let question: PresenceQuestion
    let classes: Set<Accessibility>
    /// Makes the question one that nobody shares.
    var item: Identifier128?
}

/// How a keychain asks the person, and who it says is asking.
package struct Prompting: Sendable {
    package var verifier: any PresenceVerifier
    /// The program: the path of its executable.
    package var requester: String
    package var timeoutSeconds: UInt32
    /// What the windows of contexts are measured with.
    package var time: any ContinuousTime

    package init(
        verifier: any PresenceVerifier, requester: String, timeoutSeconds: UInt32 = PresenceQuestion.standardTimeoutSeconds,
        time: any ContinuousTime = SystemContinuousTime()
    ) {
        self.verifier = verifier
        self.requester = requester
        self.timeoutSeconds = timeoutSeconds
        self.time = time
    }
}
