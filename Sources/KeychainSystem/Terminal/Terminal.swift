// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

// Rules for asking on a terminal:
// - The echo is off before the question appears, and input typed earlier is discarded.
// - The mode of the terminal is restored on every exit: answer, signal, hang-up, timeout.
// - A signal that arrives meanwhile has its usual effect after the mode is restored. After a stop, the question appears again, also after one by
//   SIGSTOP, which cannot be recorded: a shell sets the mode of the terminal then, and the echo may be on when the process continues.
// - No call waits for the terminal: it is open without blocking, and its mode is changed without waiting for output.

/// The reason why a question on a terminal has no answer.
package enum TerminalFailure: Error, Hashable, Sendable {
    /// The process has no terminal, is in the background of its terminal, or cannot record signals.
    case unavailable(String)
    case hungUp
    case timedOut
    /// The person typed ^C or ^D, or a signal that ends the process was handled by a handler of the program.
    case canceled
    case lineTooLong
    /// A signal was recorded. `Terminal.dialog` delivers it and throws another error or asks again.
    case interrupted
}

/// The terminal that this process was started from.
package struct Terminal: ~Copyable {
    /// The effect of ^C during a dialog.
    package enum Interrupt: Sendable {
        /// Cancels the dialog; the caller decides how to continue. For libraries.
        case cancels
        /// Raises SIGINT after the terminal is restored. For commands.
        case raisesSignal
    }

    /// How long a dialog waits for the person.
    package enum DialogTimeout: Sendable {
        case until(Deadline)
        /// The time restarts with every key.
        case idleSeconds(UInt32)

        var deadline: Deadline {
            switch self {
            case .until(let deadline): deadline
            case .idleSeconds(let seconds): .after(seconds: seconds)
            }
        }
    }

    package static let path = "/dev/tty"
    /// Held while the mode of the terminal or the signal handlers are changed: both belong to the whole process.
    static let lock = TimedLock()

    /// Nil for standard input.
    private let file: OpenFile?
    private let input: FileDescriptor
    private let output: FileDescriptor

    /// Opens the controlling terminal of a foreground process.
    ///
    /// Throws `.unavailable` in the background: the question would not be seen, and asking would stop the process.
    package init() throws(TerminalFailure) {
        let file = try Self.openControllingTerminal()
        guard Self.isForeground(file.descriptor) else { throw .unavailable("the process is in the background of its terminal") }
        self.init(input: file.descriptor, output: file.descriptor, file: file)
    }

    /// Opens the controlling terminal; without one, uses standard input, which the caller knows to be a terminal, and standard error.
    ///
    /// Asking in the background stops the process until it is in the foreground.
    package init(fallingBackToStandardInput: Void) {
        do throws(TerminalFailure) {
            let file = try Self.openControllingTerminal()
            self.init(input: file.descriptor, output: file.descriptor, file: file)
        } catch {
            self.init(input: .standardInput, output: .standardError, file: nil)
        }
    }

    private init(input: FileDescriptor, output: FileDescriptor, file: consuming OpenFile?) {
        self.input = input
        self.output = output
        self.file = file
    }

    private static func openControllingTerminal() throws(TerminalFailure) -> OpenFile {
        do throws(Errno) { return try OpenFile(terminal: path) } catch { throw .unavailable("the process has no terminal") }
    }

    /// Whether the process has a terminal and is in its foreground.
    package static var isUsable: Bool {
        do throws(TerminalFailure) {
            _ = try Terminal()
            return true
        } catch {
            return false
        }
    }

    /// Whether the process has a terminal, in its foreground or background.
    package static var exists: Bool { FileSystem.isTerminal(path) }

    private static func isForeground(_ terminal: FileDescriptor) -> Bool { tcgetpgrp(terminal.rawValue) == getpgrp() }

    // MARK: Dialogs

    /// Runs `body`, which asks the person, with signals recorded and the mode of the terminal changed.
    ///
    /// Runs `body` again after a stop, or after a signal whose handler returned. With `.cancels` the process must be in the
    /// foreground: a library may not stop its program. The dialog is canceled when `interruption` becomes readable.
    package borrowing func dialog<Answer>(
        echo: Bool = false, interrupt: Interrupt, interruption: FileDescriptor? = nil, timeout: DialogTimeout,
        _ body: (borrowing Dialog) throws(TerminalFailure) -> Answer
    ) throws(TerminalFailure) -> Answer {
        let start = timeout.deadline
        guard Self.lock.acquire(until: start) else { throw .timedOut }
        defer { Self.lock.release() }
        while true {
            if case .until(let deadline) = timeout, deadline.isOver { throw .timedOut }
            guard interrupt == .raisesSignal || Self.isForeground(input) else {
                throw .unavailable("the process is in the background of its terminal")
            }
            do throws(TerminalFailure) {
                return try runOnce(echo: echo, interrupt, interruption, timeout, body)
            } catch .interrupted {
                continue
            } catch {
                throw error
            }
        }
    }

    private borrowing func runOnce<Answer>(
        echo: Bool, _ interrupt: Interrupt, _ interruption: FileDescriptor?, _ timeout: DialogTimeout,
        _ body: (borrowing Dialog) throws(TerminalFailure) -> Answer
    ) throws(TerminalFailure) -> Answer {
        let signals = keychain_terminal_signals_record(true)
        guard signals >= 0 else { throw .unavailable("signals cannot be recorded: \(Errno.current)") }
        guard let found = mode(),
            setMode(
                echo ? found : Self.silent(found, interrupt), discardingInput: true, stopsInBackground: interrupt == .raisesSignal)
        else {
            _ = keychain_terminal_signals_restore()
            throw .hungUp
        }
        let dialog = Dialog(
            input: input, output: output, signals: FileDescriptor(rawValue: signals), interruption: interruption, mode: found,
            showsLineEnds: !echo, timeout: timeout)
        let answer = Result { () throws(TerminalFailure) in try body(dialog) }
        // The rest of an abandoned answer would go to the shell, which shows it.
        var isAnswered = false
        if case .success = answer { isAnswered = true }
        _ = setMode(found, discardingInput: !isAnswered)
        let isEnding = keychain_terminal_signals_restore()
        if case .failure(.interrupted) = answer, isEnding { throw .canceled }
        return try answer.get()
    }

    private static func silent(_ found: termios, _ interrupt: Interrupt) -> termios {
        var mode = found
        // Canonical mode is off too: in it the kernel silently cuts a line off after 4095 bytes.
        mode.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON)
        // The buffer is used within the closure only.
        unsafe withUnsafeMutableBytes(of: &mode.c_cc) { characters in
            if interrupt == .cancels { unsafe characters[Int(VINTR)] = 0 }
            unsafe characters[Int(VMIN)] = 1
            unsafe characters[Int(VTIME)] = 0
        }
        return mode
    }

    // MARK: Modes

    /// Nil if the terminal has hung up.
    fileprivate borrowing func mode() -> termios? {
        var mode = termios()
        // Here and below: `mode` is a local variable and outlives the call.
        return unsafe tcgetattr(input.rawValue, &mode) == 0 ? mode : nil
    }

    /// Sets the mode immediately; returns false if that failed.
    ///
    /// Without `stopsInBackground`, SIGTTOU is blocked: a process in the background must be able to restore the terminal.
    fileprivate borrowing func setMode(_ mode: termios, discardingInput: Bool, stopsInBackground: Bool = false) -> Bool {
        var mode = mode
        let wasBlocked = keychain_terminal_output_signal_block(!stopsInBackground)
        defer { _ = keychain_terminal_output_signal_block(wasBlocked) }
        var isSet = false
        // A stopped process sees EINTR when it continues.
        repeat { isSet = unsafe tcsetattr(input.rawValue, TCSANOW, &mode) == 0 } while !isSet && errno == EINTR
        if discardingInput { tcflush(input.rawValue, TCIFLUSH) }
        return isSet
    }
}

extension Terminal {
    /// Output and input while the mode of the terminal is changed.
    package struct Dialog: ~Copyable {
        fileprivate let input: FileDescriptor
        fileprivate let output: FileDescriptor
        /// Readable if a signal was recorded.
        fileprivate let signals: FileDescriptor
        fileprivate let interruption: FileDescriptor?
        /// The mode before the dialog, with the characters for editing.
        fileprivate let mode: termios
        /// Whether the line break that ends a line must be shown: without echo the terminal does not show it.
        fileprivate let showsLineEnds: Bool
        fileprivate let timeout: DialogTimeout

        /// Shows text; best effort, because the terminal may have stopped its output.
        package borrowing func show(_ text: String) {
            try? output.writeAll(text.utf8, until: timeout.deadline)
        }

        /// Shows a prompt and reads a line.
        ///
        /// The caller wipes the result. Throws `.lineTooLong` for more than `byteLimit` bytes.
        package borrowing func readLine(prompt: String, byteLimit: Int) throws(TerminalFailure) -> [UInt8] {
            var line = TypedLine(mode: mode, limit: byteLimit)
            show(prompt)
            defer { if showsLineEnds { show("\n") } }
            do throws(TerminalFailure) {
                while line.end == nil {
                    try waitForInput()
                    line.append(from: input)
                }
                switch line.end {
                case .complete, nil: return line.bytes
                case .canceled: throw .canceled
                case .tooLong: throw .lineTooLong
                case .hungUp: throw .hungUp
                }
            } catch {
                line.clear()
                throw error
            }
        }

        private borrowing func waitForInput() throws(TerminalFailure) {
            let ready: Set<Int>
            do throws(Errno) {
                let none = FileDescriptor(rawValue: -1)
                ready = try FileDescriptor.wait(for: [signals, input, interruption ?? none], until: timeout.deadline)
            } catch {
                throw .hungUp
            }
            if ready.contains(0) { throw .interrupted }
            if ready.contains(2) { throw .canceled }
            if ready.isEmpty { throw .timedOut }
        }
    }

    /// Restores the terminal after a child process that used it: one that was killed cannot do so itself.
    package final class ModeGuard {
        private let terminal: Terminal
        private let found: termios
        /// Readable if this process received a signal that ends it; nil while another dialog of this process records signals.
        ///
        /// A stop is not recorded: the child, in the same process group, stops and continues with this process.
        package let interruption: FileDescriptor?

        /// Nil if the process has no terminal or is in its background.
        package init?() {
            do throws(TerminalFailure) {
                terminal = try Terminal()
            } catch {
                return nil
            }
            guard let mode = terminal.mode() else { return nil }
            found = mode
            guard Terminal.lock.acquire(until: Deadline(nanoseconds: 0)) else {
                interruption = nil
                return
            }
            let signals = keychain_terminal_signals_record(false)
            interruption = signals >= 0 ? FileDescriptor(rawValue: signals) : nil
            if signals < 0 { Terminal.lock.release() }
        }

        /// Delivers recorded signals, and with `mode` restores the mode first.
        ///
        /// Call once, after the child has ended.
        package func restore(mode: Bool) {
            if mode { _ = terminal.setMode(found, discardingInput: true) }
            guard interruption != nil else { return }
            _ = keychain_terminal_signals_restore()
            Terminal.lock.release()
        }
    }
}
