// SPDX-License-Identifier: Apache-2.0

/// Asks the person in front of the machine for a passcode or password.
///
/// It only asks: whether the answer is right, and how often it is asked again, is decided by whoever asks.
package protocol PresenceVerifier: Sendable {
    /// Whether there is a terminal or a display, as far as that can be told without asking.
    var canAsk: Bool { get }

    /// Asks once, and waits for the answer no longer than the question allows.
    ///
    /// Throws `.promptUnavailable` at once where nobody can see a question. The answer is UTF-8 as it was typed, at least one byte; an
    /// empty one comes back as `.empty`.
    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer
}

/// What the person said.
package enum PresenceAnswer: ~Copyable, Sendable {
    case secret(SecretBytes)
    /// Nothing was typed.
    case empty
}

/// Why there is no answer.
package enum PresenceRefusal: Error, Hashable, Sendable {
    /// No terminal, no display, no program that could ask. The text says which, for people who set up machines.
    case promptUnavailable(String)
    /// The person does not want to.
    case canceled
    /// The person did not answer in time.
    case timedOut
    /// Whatever was to ask failed: it died, or said what makes no sense.
    case failed(String)
}

/// What a person is asked, and by whom.
///
/// Texts may come from the program that asks: whoever shows them shows no control characters.
package struct PresenceQuestion: Hashable, Sendable {
    /// What is to be typed.
    package enum Secret: Hashable, Sendable {
        /// The keychain's passcode.
        case passcode
        /// A password of the program's own, which protects items that exist.
        case applicationPassword
        /// The same, chosen now: to be typed twice.
        case newApplicationPassword
    }

    package let secret: Secret
    /// The program that asks: the path of its executable.
    package let requester: String
    /// What for, in our words: "read an item of its access group …".
    package let purpose: String
    /// What for, in the program's own words; nil when it gave none.
    package let reason: String?
    /// The program's word for the button that cancels; nil: the usual one.
    package let cancelTitle: String?
    /// Nil at the first attempt; after a wrong answer, how often more it can be tried.
    package var triesLeft: Int?
    /// How long the person may take.
    package let timeoutSeconds: UInt32

    package static let standardTimeoutSeconds: UInt32 = 60

    package init(
        secret: Secret, requester: String, purpose: String, reason: String? = nil, cancelTitle: String? = nil, triesLeft: Int? = nil,
        timeoutSeconds: UInt32 = Self.standardTimeoutSeconds
    ) {
        self.secret = secret
        self.requester = requester
        self.purpose = purpose
        self.reason = reason
        self.cancelTitle = cancelTitle
        self.triesLeft = triesLeft
        self.timeoutSeconds = timeoutSeconds
    }
}
