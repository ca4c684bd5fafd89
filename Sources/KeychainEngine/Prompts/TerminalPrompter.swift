// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

/// Prompts on the controlling terminal, without echo.
package struct TerminalPrompter: PresencePrompter {
    private static let attemptCount = 3

    private let interruption: FileDescriptor?

    /// `interruption` becomes readable when the person is not to be asked any more.
    package init(interruption: FileDescriptor? = nil) {
        self.interruption = interruption
    }

    package var canAsk: Bool { Terminal.isUsable }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        let deadline = Deadline.after(seconds: question.timeoutSeconds)
        let text = PresenceText(question)
        var typed: [UInt8]?
        defer { typed?.wipe() }
        do throws(TerminalFailure) {
            typed = try Terminal().dialog(interrupt: .cancels, interruption: interruption, timeout: .until(deadline)) {
                (dialog) throws(TerminalFailure) in try Self.enter(text, in: dialog)
            }
        } catch {
            throw PresenceRefusal(error)
        }
        guard let typed else { throw .failed("the two entries differed every time") }
        return try Self.answer(typed)
    }

    /// Reads the secret, a new one twice; nil if the two entries differed at every attempt.
    private static func enter(_ text: PresenceText, in dialog: borrowing Terminal.Dialog) throws(TerminalFailure) -> [UInt8]? {
        dialog.show(text.description + "\n" + (text.error.map { $0 + "\n" } ?? ""))
        for _ in 0..<attemptCount {
            var first = try dialog.readLine(prompt: text.prompt + " ", byteLimit: Passcode.largestByteCount)
            guard let repeatPrompt = text.repeatPrompt, !first.isEmpty else { return first }
            do throws(TerminalFailure) {
                var second = try dialog.readLine(prompt: repeatPrompt + " ", byteLimit: Passcode.largestByteCount)
                defer { second.wipe() }
                if first == second { return first }
            } catch {
                first.wipe()
                throw error
            }
            first.wipe()
            dialog.show(PresenceText.entriesDifferMessage + "\n")
        }
        return nil
    }

    private static func answer(_ typed: [UInt8]) throws(PresenceRefusal) -> PresenceAnswer {
        guard !typed.isEmpty else { return .empty }
        do throws(KeychainFailure) {
            // The bytes are read within the closure.
            let secret = try unsafe typed.span.withUnsafeBytes { (bytes) throws(KeychainFailure) in
                try unsafe SecretBytes(copying: bytes)
            }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}

extension PresenceRefusal {
    fileprivate init(_ failure: TerminalFailure) {
        self =
            switch failure {
            case .unavailable(let reason): .promptUnavailable(reason)
            case .hungUp: .promptUnavailable("the terminal is gone")
            case .timedOut: .timedOut
            case .canceled, .interrupted: .canceled
            case .lineTooLong: .failed("more was typed than the \(Passcode.largestByteCount) bytes that are accepted")
            }
    }
}
