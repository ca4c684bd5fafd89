// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

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

        private func reaction(to answer: Answer) -> ScriptedPresence.Reaction {
            switch answer {
            // Known when the question is there: the passcode may be another one by then.
            case .correctPasscode: .decide { [control = keychain.control] _ in .type(control.passcodeInForce() ?? "") }
            case .text(let text): .type(text)
            case .cancel: .cancel
            case .tooLate: .timeOut
            case .absence: .nobodyThere
            }
        }
    }
}
#endif
