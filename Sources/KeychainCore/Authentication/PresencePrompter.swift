// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// Prompts the local person for a passcode or password.
///
/// It only shows the prompt. The caller checks the answer and decides about further attempts.
package protocol PresencePrompter: Sendable {
    /// Whether there seems to be a terminal or a display for a prompt.
    var canAsk: Bool { get }

    /// Prompts once, and waits for the answer until the question's timeout.
    ///
    /// Throws `.promptUnavailable` immediately if no prompt can be shown. Returns the UTF-8 text as typed, or `.empty` if it has no
    /// bytes.
    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer

    /// Prompts as `ask(_:)` does, until `end` ends the prompt.
    ///
    /// Throws soon afterwards. A prompter that cannot end a prompt ignores it.
    func ask(_ question: PresenceQuestion, endedBy end: PromptEnd) throws(PresenceRefusal) -> PresenceAnswer

    /// Runs `body`, which may wait for a person, and for other prompts before; what others need can be given up meanwhile.
    func waiting<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result
}

extension PresencePrompter {
    package func ask(_ question: PresenceQuestion, endedBy end: PromptEnd) throws(PresenceRefusal) -> PresenceAnswer {
        try ask(question)
    }

    package func waiting<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result { try body() }
}

/// Asks the local person to allow or refuse something, without a passcode.
///
/// Any program of the user can click in the person's place, so an answer is no proof of presence.
package protocol ConsentPrompter: Sendable {
    /// Whether there seems to be a display for a prompt.
    var canAsk: Bool { get }

    /// Prompts once, and waits for the answer until the question's timeout.
    ///
    /// Returns if the person allows it. Throws `.canceled` if not, and `.promptUnavailable` immediately if no prompt can be shown.
    func requestConsent(_ question: ConsentQuestion) throws(PresenceRefusal)
}

/// The content of a prompt with two buttons.
///
/// Texts may come from programs, so an implementation must not output their control characters.
package struct ConsentQuestion: Hashable, Sendable {
    /// The name of the requesting program.
    package let requester: String
    /// What it wants: "read, change, and delete the items of …".
    package let purpose: String
    /// How long the person may take.
    package let timeoutSeconds: UInt32

    package init(requester: String, purpose: String, timeoutSeconds: UInt32) {
        self.requester = requester
        self.purpose = purpose
        self.timeoutSeconds = timeoutSeconds
    }
}

/// Ends a prompt whose answer is of no use any more.
package final class PromptEnd: Sendable {
    private let state = Mutex<(isEnded: Bool, handler: (@Sendable () -> Void)?)>((false, nil))

    package init() {}

    package var isEnded: Bool { state.withLock { $0.isEnded } }

    package func end() {
        let handler = state.withLock { state in
            state.isEnded = true
            return state.handler
        }
        handler?()
    }

    /// Runs `body`, and calls `handler` at the end of the prompt, if that comes before `body` returns.
    ///
    /// Returns nil without running `body` if it has come already.
    package func whileHandled<Result>(by handler: @escaping @Sendable () -> Void, _ body: () -> Result) -> Result? {
        let isEnded = state.withLock { state in
            state.handler = handler
            return state.isEnded
        }
        defer { state.withLock { $0.handler = nil } }
        return isEnded ? nil : body()
    }
}

/// The answer to a prompt.
package enum PresenceAnswer: ~Copyable, Sendable {
    case secret(SecretBytes)
    /// Nothing was typed.
    case empty
}

/// Why a prompt has no answer.
package enum PresenceRefusal: Error, Hashable, Sendable {
    /// There is no terminal, display, or prompting program. The text names what is missing, for administrators.
    case promptUnavailable(String)
    /// The person canceled.
    case canceled
    /// The person did not answer in time.
    case timedOut
    /// The prompting program failed: it crashed or violated the protocol.
    case failed(String)
}

extension KeychainFailure {
    /// The failure of a call whose question was not answered.
    ///
    /// `.userCanceled` if a person refused. Otherwise `.interactionNotAllowed`: the question reached no person, and asking again later may
    /// help.
    package init(_ refusal: PresenceRefusal) {
        switch refusal {
        case .canceled: self.init(.userCanceled, "the person canceled")
        case .timedOut: self.init(.interactionNotAllowed, "the prompt was not answered in time", refusal: .timedOut)
        case .promptUnavailable(let why):
            self.init(.interactionNotAllowed, "no prompt can be shown: \(why)", refusal: .notInteractive)
        case .failed(let why):
            self.init(.interactionNotAllowed, "the prompt failed: \(why)", refusal: .notInteractive)
        }
    }
}

/// The content of a prompt.
///
/// Texts may come from the requesting program, so an implementation must not output their control characters.
package struct PresenceQuestion: Hashable, Sendable {
    /// The secret that the person must type.
    package enum Secret: Hashable, Sendable {
        /// The keychain's passcode.
        case passcode
        /// The application password of existing items.
        case applicationPassword
        /// A new application password, to be typed twice.
        case newApplicationPassword
        /// Nothing is typed: the person touches the sensor, or cancels.
        case fingerprint
        /// The keychain's passcode, unless the person touches the sensor.
        case passcodeOrFingerprint
    }

    package let secret: Secret
    /// The executable path of the requesting program.
    package let requester: String
    /// The purpose in this library's words: "read an item of its access group …".
    package let purpose: String
    /// The purpose in the program's words; nil if it gave none.
    package let reason: String?
    /// The program's title for the cancel button; nil: the default.
    package let cancelTitle: String?
    /// The number of remaining attempts after a wrong answer; nil at the first attempt.
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
