// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// What is shown and typed on a terminal that is silent already.
struct TerminalDialog {
    let text: PresenceText
    /// As it was before it became silent: its characters for editing hold.
    let mode: termios
    /// Readable when a signal was noted.
    let signals: Int32
    let deadline: PromptDeadline

    private static let attemptCount = 3

    /// The answer; nil when a signal was noted.
    func run(on terminal: borrowing ControllingTerminal) throws(PresenceRefusal) -> PresenceAnswer? {
        terminal.show(text.description + "\n" + (text.error.map { $0 + "\n" } ?? ""), until: deadline)
        var first = TypedLine(mode: mode, limit: Passcode.largestByteCount)
        var second = TypedLine(mode: mode, limit: Passcode.largestByteCount)
        defer {
            first.clear()
            second.clear()
        }
        for _ in 0..<Self.attemptCount {
            guard try read(&first, prompt: text.prompt, on: terminal) else { return nil }
            guard let repeatPrompt = text.repeatPrompt, !first.bytes.isEmpty else { return try Self.answer(first) }
            guard try read(&second, prompt: repeatPrompt, on: terminal) else { return nil }
            if first.bytes == second.bytes { return try Self.answer(first) }
            terminal.show(PresenceText.entriesDiffer + "\n", until: deadline)
        }
        throw .failed("the two entries differed every time")
    }

    /// False when a signal was noted.
    private func read(
        _ line: inout TypedLine, prompt: String, on terminal: borrowing ControllingTerminal
    ) throws(PresenceRefusal) -> Bool {
        line.begin()
        terminal.show(prompt + " ", until: deadline)
        // The line break that ends the line is not shown either.
        defer { terminal.show("\n", until: deadline) }
        while line.end == nil {
            var requests = [
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
                pollfd(fd: terminal.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            // As many requests as there are.
            let count = unsafe poll(&requests, nfds_t(requests.count), deadline.remainingMilliseconds)
            if requests[0].revents != 0 { return false }
            if count > 0, requests[1].revents != 0 { line.take(from: terminal.descriptor) }
            guard line.end != nil || !deadline.isOver else { throw .timedOut }
        }
        switch line.end {
        case .complete, nil: return true
        case .cancelled: throw .canceled
        case .tooLong: throw .failed("more was typed than the \(Passcode.largestByteCount) bytes that are taken")
        case .gone: throw .nobodyToAsk("the terminal is gone")
        }
    }

    private static func answer(_ line: borrowing TypedLine) throws(PresenceRefusal) -> PresenceAnswer {
        guard !line.bytes.isEmpty else { return .empty }
        do throws(KeychainFailure) {
            // The bytes are read within the closure.
            let secret = try unsafe line.bytes.span.withUnsafeBytes { (bytes) throws(KeychainFailure) in
                try unsafe SecretBytes(copying: bytes)
            }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}
