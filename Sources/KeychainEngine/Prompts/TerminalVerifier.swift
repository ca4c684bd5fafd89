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
        guard ControllingTerminal.use.take(untilNanoseconds: deadline.nanoseconds) else { throw .timedOut }
        defer { ControllingTerminal.use.giveBack() }
        while !deadline.isOver {
            guard terminal.isForeground else { throw .nobodyToAsk("the process is in the background of its terminal") }
            if let answer = try Self.answer(PresenceText(question), on: terminal, until: deadline) { return answer }
        }
        throw .timedOut
    }

    /// Asks with the terminal silent and signals noted meanwhile; nil after a stop.
    private static func answer(
        _ text: PresenceText, on terminal: borrowing ControllingTerminal, until deadline: PromptDeadline
    ) throws(PresenceRefusal) -> PresenceAnswer? {
        let signals = keychain_terminal_signals_note(true)
        guard signals >= 0 else { throw .failed("signals cannot be noted: error \(errno)") }
        guard let found = terminal.mode(), terminal.setMode(silent(found), discardingInput: true) else {
            _ = keychain_terminal_signals_restore()
            throw .nobodyToAsk("the terminal is gone")
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
