// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The words of a question: the program that asks, its purpose, and the reason that the program gives, as a quotation.
package struct PresenceText: Hashable, Sendable {
    package let title: String
    /// One or two lines.
    package let description: String
    package let prompt: String
    /// Whether nothing is typed, and the only button cancels.
    package let isConfirmation: Bool
    /// The prompt for repeating a new password; nil for an existing secret.
    package let repeatPrompt: String?
    /// The reason why the last answer was rejected.
    package let error: String?
    /// The title of the button that cancels, if the program gives one.
    package let cancelTitle: String?

    /// The titles of the two buttons of a question without an entry; nil for a question with one.
    package let choice: Choice?

    package struct Choice: Hashable, Sendable {
        let allow: String
        let refuse: String
    }

    static let entriesDifferMessage = "The two entries differ."

    private static let requesterByteLimit = 200
    private static let textByteLimit = 250
    private static let cancelByteLimit = 40

    package init(_ question: PresenceQuestion) {
        // The end of a path identifies the program.
        let requester = SanitizedText.line(question.requester, byteLimit: Self.requesterByteLimit, keepsEnd: true)
        let purpose = SanitizedText.line(question.purpose, byteLimit: Self.textByteLimit)
        let reason = question.reason.map { SanitizedText.quotation($0, byteLimit: Self.textByteLimit) } ?? ""
        title = "Keychain"
        isConfirmation = question.secret == .fingerprint
        let instruction =
            switch question.secret {
            case .fingerprint: "\nTouch the fingerprint reader."
            case .passcodeOrFingerprint: "\nTouch the fingerprint reader, or enter the passcode."
            default: ""
            }
        description =
            "\(requester.isEmpty ? "A program" : requester) wants to \(purpose)." + (reason.isEmpty ? "" : "\nIt says: \"\(reason)\"")
            + instruction
        let name =
            switch question.secret {
            case .passcode, .passcodeOrFingerprint, .fingerprint: "passcode"
            case .applicationPassword, .newApplicationPassword: "password"
            }
        switch question.secret {
        case .passcode, .passcodeOrFingerprint: (prompt, repeatPrompt) = ("Passcode:", nil)
        case .fingerprint: (prompt, repeatPrompt) = ("Press Return to cancel:", nil)
        case .applicationPassword: (prompt, repeatPrompt) = ("Password:", nil)
        case .newApplicationPassword: (prompt, repeatPrompt) = ("New password:", "Again:")
        }
        error = question.triesLeft.map { left in
            left < 1 ? "Wrong \(name)." : "Wrong \(name); \(left) \(left == 1 ? "try" : "tries") left."
        }
        let cancel = SanitizedText.line(question.cancelTitle ?? "", byteLimit: Self.cancelByteLimit)
        cancelTitle = cancel.isEmpty ? nil : cancel
        choice = nil
    }

    package init(_ question: ConsentQuestion) {
        let requester = SanitizedText.line(question.requester, byteLimit: Self.requesterByteLimit, keepsEnd: true)
        title = "Keychain"
        description = "\(requester) wants to \(SanitizedText.line(question.purpose, byteLimit: Self.textByteLimit))."
        prompt = ""
        (repeatPrompt, error, cancelTitle) = (nil, nil, nil)
        isConfirmation = false
        choice = Choice(allow: "Allow", refuse: "Refuse")
    }
}
