// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import Synchronization

/// Who is asked when an item has access control, or an `LAContext` evaluates.
///
/// Unless a test says otherwise nobody is there, and what would have to ask is answered `errSecInteractionNotAllowed` at once: no test
/// waits for a person.
///
///     try keychain.setPasscode("swordfish")
///     keychain.person.answers(.text("wrong"), .correctPasscode)
///     try await LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
///     #expect(keychain.person.questions.map(\.reason) == ["open the safe", "open the safe"])
extension InMemoryKeychain {
    /// The person in front of the keychain.
    public var person: Person { Person(keychain: self) }

    /// A person who does what a test says, and tells what they were asked.
    public struct Person: Sendable {
        let keychain: InMemoryKeychain

        /// What the person does when asked.
        public enum Answer: Hashable, Sendable {
            /// Types the passcode that is set, whoever has set it; nothing, if the test cannot know it.
            case correctPasscode
            /// Types this: a passcode or a password, right or wrong.
            case text(String)
            /// Cancels: `errSecUserCanceled`.
            case cancel
            /// Lets the time pass in which an answer counts. Nobody waits for that.
            case tooLate
            /// Is not there to be asked: `errSecInteractionNotAllowed`.
            case absence
        }

        /// What the person does from now on, after what they were told before: each answer is for one question, in this order.
        ///
        /// After the last of them nobody is there. A wrong passcode is asked for again, up to three times.
        ///
        /// - Parameter answers: The answers.
        public func answers(_ answers: Answer...) {
            for answer in answers { keychain.keychain.parts.presence.then(reaction(to: answer)) }
        }

        /// The same answer to as many questions.
        ///
        /// - Parameters:
        ///   - answer: The answer.
        ///   - times: How often.
        public func answers(_ answer: Answer, times: Int) {
            for _ in 0..<max(0, times) { answers(answer) }
        }

        /// How many answers the person has left.
        public var remainingAnswerCount: Int { keychain.keychain.parts.presence.remainingCount }

        /// What the person was asked so far, in order, questions that found nobody included.
        public var questions: [Question] { keychain.keychain.parts.presence.questions.map(Question.init) }

        private func reaction(to answer: Answer) -> ScriptedPresenceVerifier.Reaction {
            switch answer {
            // Known when the question is there: the passcode may be another one by then.
            case .correctPasscode: .decide { [control = keychain.control] _ in .type(control.currentPasscodeText() ?? "") }
            case .text(let text): .type(text)
            case .cancel: .cancel
            case .tooLate: .timeOut
            case .absence: .promptUnavailable
            }
        }
    }
}

extension InMemoryKeychain {
    /// What a person was asked.
    public struct Question: Hashable, Sendable {
        /// What was to be typed.
        public enum Secret: Hashable, Sendable {
            /// The keychain's passcode.
            case passcode
            /// The program's own password, of items that exist.
            case applicationPassword
            /// The program's own password, chosen for a new item.
            case newApplicationPassword
        }

        /// What was to be typed.
        public let secret: Secret
        /// Who asked: here the application identifier of the program under test.
        public let requester: String
        /// What for, in the keychain's words.
        public let purpose: String
        /// What for, in the program's own words (`kSecUseOperationPrompt`, `localizedReason`); nil when it gave none.
        public let reason: String?
        /// The program's word for the button that cancels (`localizedCancelTitle`); nil: the usual one.
        public let cancelTitle: String?
        /// How often more it could be tried; nil at the first attempt.
        public let triesLeft: Int?

        init(_ question: PresenceQuestion) {
            secret =
                switch question.secret {
                case .passcode: .passcode
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

/// A person who does what a test says, and tells what they were asked.
///
/// Answers are used up in order. When there is none left, nobody is there.
package final class ScriptedPresenceVerifier: PresenceVerifier {
    /// What the person does when asked.
    package enum Reaction: Sendable {
        /// Types this; nothing at all comes back as an empty answer.
        case type(String)
        case cancel
        case timeOut
        case promptUnavailable
        case fail(String)
        /// Decides when the question is there; a test can hold it up in the meantime.
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

    /// What the person does after everything they were told before.
    package func then(_ reactions: Reaction...) {
        state.withLock { $0.reactions += reactions }
    }

    /// Every question so far, in order, those that found nobody too.
    package var questions: [PresenceQuestion] { state.withLock { $0.questions } }

    /// How many answers are left.
    package var remainingCount: Int { state.withLock { $0.reactions.count } }

    /// Whether the next question finds somebody.
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
            // Outside the lock: others may be asked meanwhile.
            case .decide(let decide): reaction = decide(question)
            case .type(let text): return try Self.answer(text)
            case .cancel: throw .canceled
            case .timeOut: throw .timedOut
            case .promptUnavailable: throw .promptUnavailable("the script says that nobody is there")
            case .fail(let why): throw .failed(why)
            }
        }
    }

    private static func answer(_ text: String) throws(PresenceRefusal) -> PresenceAnswer {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { return .empty }
        do throws(KeychainFailure) {
            // The text is the test's, and no secret; as many bytes as the buffer has.
            let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}
#endif
