// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// One caller's write that waits until another caller runs it, or until it is its own turn to write.
final class WriteRequest: @unchecked Sendable {
    // Unchecked: it belongs to its caller until it is queued, then to who holds the writer's turn, and to its caller again once it was
    // answered. The locks of the queue and of the answer lie between them.
    typealias Body = (StoreSession) throws(KeychainFailure) -> Void

    enum Answer {
        /// The caller now holds the writer's turn.
        case turn
        /// What was written is durable.
        case written
        case failed(KeychainFailure)
        /// Undone through no fault of its own: it is to be written in a transaction of its own.
        case repeatAlone
        /// Nobody has looked at it until its deadline.
        case late
    }

    /// Whether it may be one of several in a transaction.
    let sharesFlush: Bool
    private var body: Body?
    private var answer = Answer.late
    private let isAnswered = TimedLock()

    init(sharesFlush: Bool, _ body: @escaping Body) {
        self.sharesFlush = sharesFlush
        self.body = body
        _ = isAnswered.take(withinSeconds: 0)
    }

    /// Hands the body over: what is lent by a caller must not be kept when that caller goes on.
    func takeBody() -> Body? {
        defer { body = nil }
        return body
    }

    /// Lets go of what was lent: nobody asks for it any more.
    func withdraw() { body = nil }

    func answer(_ answer: Answer) {
        body = nil
        self.answer = answer
        isAnswered.giveBack()
    }

    /// Nil when there is no answer until the deadline.
    func waitForAnswer(untilNanoseconds deadline: UInt64) -> Answer? {
        isAnswered.take(untilNanoseconds: deadline) ? answer : nil
    }
}
