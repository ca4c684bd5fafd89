// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// The terminal that a person started this process from.
///
/// No call on it waits: it is open without blocking, and its mode is changed without waiting for output, which a person may have stopped.
struct ControllingTerminal: ~Copyable {
    static let path = "/dev/tty"
    /// Held by whoever changes the terminal's mode or the handlers of signals: both are the whole process's.
    static let use = TimedLock()

    let descriptor: Int32

    /// Throws where there is none, or where another job has it: then a question would not be seen, and asking stops the process.
    init() throws(PresenceRefusal) {
        // The path is a constant.
        descriptor = unsafe open(Self.path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .promptUnavailable("the process has no terminal") }
        guard isForeground else { throw .promptUnavailable("the process is in the background of its terminal") }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    static var isUsable: Bool {
        do throws(PresenceRefusal) {
            _ = try ControllingTerminal()
            return true
        } catch {
            return false
        }
    }

    var isForeground: Bool { tcgetpgrp(descriptor) == getpgrp() }

    /// Nil once the terminal has hung up.
    func mode() -> termios? {
        var mode = termios()
        // Here and below: `mode` is ours and outlives the call.
        return unsafe tcgetattr(descriptor, &mode) == 0 ? mode : nil
    }

    /// Whether the mode could be set; it takes effect at once.
    func setMode(_ mode: termios, discardingInput discards: Bool) -> Bool {
        var mode = mode
        // A process that was put in the background meanwhile must not be stopped while it puts the terminal back.
        let wasBlocked = keychain_terminal_output_signal_block(true)
        defer { _ = keychain_terminal_output_signal_block(wasBlocked) }
        let isSet = unsafe tcsetattr(descriptor, TCSANOW, &mode) == 0
        if discards { tcflush(descriptor, TCIFLUSH) }
        return isSet
    }

    /// Shows as much as the terminal takes until the deadline.
    func show(_ text: String, until deadline: PromptDeadline) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            // The bytes are read during the call.
            let count = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
                continue
            }
            guard errno == EAGAIN || errno == EINTR, !deadline.isOver else { return }
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            // One request, which is ours.
            _ = unsafe poll(&request, 1, deadline.remainingMilliseconds)
        }
    }
}

/// Keeps the controlling terminal from staying as a program left it that died, or was ended together with this process.
final class TerminalGuard {
    private let terminal: ControllingTerminal
    private let found: termios
    /// Readable when this process is to end; -1 while somebody else in it takes care of that.
    ///
    /// A stop is not among them: the program, which is in the same job, stops too and goes on with it.
    let signals: Int32

    init?() {
        do throws(PresenceRefusal) {
            let terminal = try ControllingTerminal()
            guard let mode = terminal.mode() else { return nil }
            found = mode
            self.terminal = terminal
        } catch {
            return nil
        }
        guard ControllingTerminal.use.acquire(untilNanoseconds: 0) else {
            signals = -1
            return
        }
        signals = keychain_terminal_signals_record(false)
        if signals < 0 { ControllingTerminal.use.release() }
    }

    /// To be called once, when the program is gone: puts the terminal back, and lets signals do what they were sent for.
    func finish(puttingBack putsBack: Bool) {
        if putsBack { _ = terminal.setMode(found, discardingInput: true) }
        guard signals >= 0 else { return }
        _ = keychain_terminal_signals_restore()
        ControllingTerminal.use.release()
    }
}
