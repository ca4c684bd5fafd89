// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The words of a question: the program that asks, its purpose, and the reason that the program gives, as a quotation.
package struct PresenceText: Hashable, Sendable {
    package let title: String
    /// One or two lines.
    package let description: String
    package let prompt: String
    /// The prompt for repeating a new password; nil for an existing secret.
    package let repeatPrompt: String?
    /// The reason why the last answer was rejected.
    package let error: String?
    /// The title of the button that cancels, if the program gives one.
    package let cancelTitle: String?

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
        let cancel = SanitizedText.line(question.cancelTitle ?? "", byteLimit: Self.cancelByteLimit)
        cancelTitle = cancel.isEmpty ? nil : cancel
    }
}

/// Makes text from a program safe to show beside the library's own text.
///
/// The result is one line, without characters that move the cursor or change the writing direction.
package enum SanitizedText {
    private static let ellipsis = "…"

    /// Returns one line of at most `byteLimit` bytes of UTF-8, in which a series of control characters, format characters, and line breaks
    /// is one space.
    package static func line(_ text: String, byteLimit: Int, keepsEnd: Bool = false) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .privateUse, .unassigned, .surrogate:
                if !shown.isEmpty, shown.last != " " { shown.append(" ") }
            default: shown.unicodeScalars.append(scalar)
            }
        }
        if shown.last == " " { shown.removeLast() }
        guard shown.utf8.count > byteLimit else { return shown }
        return keepsEnd
            ? ellipsis + String(cut(shown.reversed(), byteLimit: byteLimit - ellipsis.utf8.count).reversed())
            : String(cut(Array(shown), byteLimit: byteLimit - ellipsis.utf8.count)) + ellipsis
    }

    /// Returns one line without quotation marks, so that the text cannot end the quotation around it.
    static func quotation(_ text: String, byteLimit: Int) -> String {
        let marks: Set<Unicode.Scalar> = ["\"", "“", "”", "„", "‟", "«", "»", "＂"]
        var plain = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { plain.append(marks.contains(scalar) ? "'" : scalar) }
        return line(String(plain), byteLimit: byteLimit)
    }

    /// The first characters that fit.
    private static func cut(_ characters: [Character], byteLimit: Int) -> [Character] {
        var byteCount = 0
        return Array(
            characters.prefix { character in
                byteCount += character.utf8.count
                return byteCount <= byteLimit
            })
    }
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
