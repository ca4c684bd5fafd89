// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import Synchronization

/// Prompts of an in-memory keychain.
///
/// Items with access control and `LAContext` ask a person. By default no person is present: such a call returns
/// `errSecInteractionNotAllowed` immediately, and a test never waits for input. A test scripts the answers:
///
///     try keychain.setPasscode("swordfish")
///     keychain.person.answers(.text("wrong"), .correctPasscode)
///     try await LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
///     #expect(keychain.person.questions.map(\.reason) == ["open the safe", "open the safe"])
extension InMemoryKeychain {
    /// The simulated person who answers the prompts of the program under test.
    public var person: Person { Person(keychain: self) }

    /// A simulated person who gives the answers that a test specifies, and records the questions.
    public struct Person: Sendable {
        let keychain: InMemoryKeychain

        /// The answer to one question.
        public enum Answer: Hashable, Sendable {
            /// Enters the current passcode, which the test or the program under test has set.
            case correctPasscode
            /// Enters this text: a passcode or a password, correct or wrong.
            case text(String)
            /// Cancels the prompt. The status is `errSecUserCanceled`.
            case cancel
            /// Does not answer before the prompt times out. The status is `errSecInteractionNotAllowed`; the test does not wait.
            case tooLate
            /// Is absent: no prompt can be shown. The status is `errSecInteractionNotAllowed`.
            case absence
        }

        /// Adds answers after those that are left from earlier calls.
        ///
        /// Each answer serves one question, in this order. After the last answer no person is present. A keychain asks again after a
        /// wrong passcode, up to three times in all.
        ///
        /// - Parameter answers: The answers, in order.
        public func answers(_ answers: Answer...) {
            for answer in answers { keychain.prompter.then(reaction(to: answer)) }
        }

        /// Adds the same answer for several questions.
        ///
        /// - Parameters:
        ///   - answer: The answer.
        ///   - times: The number of questions that it answers.
        public func answers(_ answer: Answer, times: Int) {
            for _ in 0..<max(0, times) { answers(answer) }
        }

        /// The number of answers that are left.
        public var remainingAnswerCount: Int { keychain.prompter.remainingCount }

        /// The questions so far, in order, including those for which no person was present.
        public var questions: [Question] { keychain.prompter.questions.map(Question.init) }

        private func reaction(to answer: Answer) -> ScriptedPresencePrompter.Reaction {
            switch answer {
            // Decided when the question is asked: the passcode may change until then.
            case .correctPasscode: .decide { [keychain] _ in .type(keychain.currentPasscodeText() ?? "") }
            case .text(let text): .type(text)
            case .cancel: .cancel
            case .tooLate: .timeOut
            case .absence: .promptUnavailable
            }
        }
    }
}

extension InMemoryKeychain {
    /// A question that a person was asked.
    public struct Question: Hashable, Sendable {
        /// The kind of secret that a question asks for.
        public enum Secret: Hashable, Sendable {
            /// The keychain's passcode.
            case passcode
            /// The program's application password, for existing items.
            case applicationPassword
            /// A new application password, for a new item.
            case newApplicationPassword
        }

        /// The kind of secret that the question asks for.
        public let secret: Secret
        /// The program that asks: its application identifier.
        public let requester: String
        /// The action to authorize, in the words of the keychain.
        public let purpose: String
        /// The reason in the words of the program (`kSecUseOperationPrompt`, `localizedReason`); nil if it gave none.
        public let reason: String?
        /// The program's title for the cancel button (`localizedCancelTitle`); nil for the default title.
        public let cancelTitle: String?
        /// The number of attempts that are left; nil at the first attempt.
        public let triesLeft: Int?

        init(_ question: PresenceQuestion) {
            secret =
                switch question.secret {
                case .passcode, .fingerprint, .passcodeOrFingerprint: .passcode
                case .applicationPassword: .applicationPassword
                case .newApplicationPassword: .newApplicationPassword
                }
            requester = question.requester
            purpose = question.purpose
            reason = question.reason
            cancelTitle = question.cancelTitle
            triesLeft = question.triesLeft
        }
    }
}

/// A prompter with scripted answers that records the questions.
///
/// Each answer is used once, in order. Without an answer, no prompt can be shown.
package final class ScriptedPresencePrompter: PresencePrompter {
    /// The reaction to one question.
    package enum Reaction: Sendable {
        /// Enters this text. Empty text is an empty answer.
        case type(String)
        case cancel
        case timeOut
        case promptUnavailable
        case fail(String)
        /// Decides when the question is asked. The closure may block.
        case decide(@Sendable (PresenceQuestion) -> Reaction)
    }

    private struct State {
        var reactions: ArraySlice<Reaction>
        var questions: [PresenceQuestion] = []
    }

    private let state: Mutex<State>

    package init(_ reactions: Reaction...) {
        state = Mutex(State(reactions: reactions[...]))
    }

    /// Adds reactions after those that are left.
    package func then(_ reactions: Reaction...) {
        state.withLock { $0.reactions += reactions }
    }

    /// The questions so far, in order, including those for which no prompt could be shown.
    package var questions: [PresenceQuestion] { state.withLock { $0.questions } }

    /// The number of reactions that are left.
    package var remainingCount: Int { state.withLock { $0.reactions.count } }

    /// Whether a prompt can be shown for the next question.
    package var canAsk: Bool {
        state.withLock { state in
            switch state.reactions.first {
            case nil, .promptUnavailable: false
            default: true
            }
        }
    }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        var reaction = state.withLock { state in
            state.questions.append(question)
            return state.reactions.popFirst() ?? .promptUnavailable
        }
        while true {
            switch reaction {
            // Outside the lock, because the closure may block.
            case .decide(let decide): reaction = decide(question)
            case .type(let text): return try Self.answer(text)
            case .cancel: throw .canceled
            case .timeOut: throw .timedOut
            case .promptUnavailable: throw .promptUnavailable("the script has no person")
            case .fail(let why): throw .failed(why)
            }
        }
    }

    private static func answer(_ text: String) throws(PresenceRefusal) -> PresenceAnswer {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { return .empty }
        do throws(KeychainFailure) {
            // The text of a test is not secret. The buffer has exactly as many bytes.
            let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}
#endif
