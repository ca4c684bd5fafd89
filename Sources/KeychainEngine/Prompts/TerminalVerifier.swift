// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
package import KeychainCore

// Rules for asking on a terminal:
// - The echo is off before the question shows, and what was typed before is dropped.
// - However it ends (answer, signal, hang-up, deadline), the terminal is as it was found.
// - ^C means no and is no signal: whoever asks decides what follows.
// - A signal that arrives meanwhile does what it always does, after the terminal is put back. After a stop the question is asked anew.

/// Asks on the controlling terminal, without echo.
package struct TerminalVerifier: PresenceVerifier {
    private enum Outcome: ~Copyable {
        case answer(PresenceAnswer)
        case signal
        case refusal(PresenceRefusal)

        var isAnswer: Bool {
            switch self {
            case .answer: true
            case .signal: false
            case .refusal: false
            }
        }
    }

    package init() {}

    package var canAsk: Bool { ControllingTerminal.isUsable }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        let deadline = PromptDeadline(seconds: question.timeoutSeconds)
        let terminal = try ControllingTerminal()
        guard ControllingTerminal.use.acquire(untilNanoseconds: deadline.nanoseconds) else { throw .timedOut }
        defer { ControllingTerminal.use.release() }
        while !deadline.isOver {
            guard terminal.isForeground else { throw .promptUnavailable("the process is in the background of its terminal") }
            if let answer = try Self.answer(PresenceText(question), on: terminal, until: deadline) { return answer }
        }
        throw .timedOut
    }

    /// Asks with the terminal silent and signals noted meanwhile; nil after a stop.
    private static func answer(
        _ text: PresenceText, on terminal: borrowing ControllingTerminal, until deadline: PromptDeadline
    ) throws(PresenceRefusal) -> PresenceAnswer? {
        let signals = keychain_terminal_signals_record(true)
        guard signals >= 0 else { throw .failed("signals cannot be noted: error \(errno)") }
        guard let found = terminal.mode(), terminal.setMode(silent(found), discardingInput: true) else {
            _ = keychain_terminal_signals_restore()
            throw .promptUnavailable("the terminal is gone")
        }
        let outcome = outcome(of: TerminalDialog(text: text, mode: found, signals: signals, deadline: deadline), on: terminal)
        // What was typed of an answer that nobody waits for any more would go to the shell, which shows it.
        _ = terminal.setMode(found, discardingInput: !outcome.isAnswer)
        let isEnding = keychain_terminal_signals_restore()
        switch consume outcome {
        case .answer(let answer): return answer
        case .refusal(let refusal): throw refusal
        case .signal:
            // A handler of the process's own took it, or it was stopped and goes on.
            guard !isEnding else { throw .canceled }
            return nil
        }
    }

    private static func outcome(of dialog: TerminalDialog, on terminal: borrowing ControllingTerminal) -> Outcome {
        do throws(PresenceRefusal) {
            guard let answer = try dialog.run(on: terminal) else { return .signal }
            return .answer(answer)
        } catch {
            return .refusal(error)
        }
    }

    private static func silent(_ found: termios) -> termios {
        var mode = found
        // Without canonical mode too: there the kernel cuts a line off after 4095 bytes and says nothing.
        mode.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON)
        // The buffer is used within the closure only.
        unsafe withUnsafeMutableBytes(of: &mode.c_cc) { characters in
            unsafe characters[Int(VINTR)] = 0
            unsafe characters[Int(VMIN)] = 1
            unsafe characters[Int(VTIME)] = 0
        }
        return mode
    }
}

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
            terminal.show(PresenceText.entriesDifferMessage + "\n", until: deadline)
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
        case .gone: throw .promptUnavailable("the terminal is gone")
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
