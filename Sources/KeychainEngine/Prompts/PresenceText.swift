// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A question in words: who asks, what for, and, set off as a quotation, what the program says of it.
package struct PresenceText: Hashable, Sendable {
    package let title: String
    /// One or two lines.
    package let description: String
    package let prompt: String
    /// Asks for a new password once more; nil for one that exists.
    package let repeatPrompt: String?
    /// What was wrong with the last answer.
    package let error: String?
    /// The program's word for the button that cancels.
    package let cancelTitle: String?

    static let entriesDiffer = "The two entries differ."

    private static let requesterByteLimit = 200
    private static let textByteLimit = 250
    private static let cancelByteLimit = 40

    package init(_ question: PresenceQuestion) {
        // The end of a path says more than its beginning.
        let requester = HarmlessText.line(question.requester, byteLimit: Self.requesterByteLimit, keepsEnd: true)
        let purpose = HarmlessText.line(question.purpose, byteLimit: Self.textByteLimit)
        let reason = question.reason.map { HarmlessText.quotation($0, byteLimit: Self.textByteLimit) } ?? ""
        title = "Keychain"
        description =
            "\(requester.isEmpty ? "A program" : requester) wants to \(purpose)." + (reason.isEmpty ? "" : "\nIt says: \"\(reason)\"")
        let name =
            switch question.secret {
            case .passcode: "passcode"
            case .applicationPassword, .newApplicationPassword: "password"
            }
        switch question.secret {
        case .passcode: (prompt, repeatPrompt) = ("Passcode:", nil)
        case .applicationPassword: (prompt, repeatPrompt) = ("Password:", nil)
        case .newApplicationPassword: (prompt, repeatPrompt) = ("New password:", "Again:")
        }
        error = question.triesLeft.map { left in
            left < 1 ? "Wrong \(name)." : "Wrong \(name); \(left) \(left == 1 ? "try" : "tries") left."
        }
        let cancel = HarmlessText.line(question.cancelTitle ?? "", byteLimit: Self.cancelByteLimit)
        cancelTitle = cancel.isEmpty ? nil : cancel
    }
}
