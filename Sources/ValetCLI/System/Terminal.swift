// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Foundation
import KeychainEngine

// Rules for asking a person:
// - Ask only if standard input is a terminal; a script gets an error that names the option to give.
// - Ask on the controlling terminal, not on standard output, which may be a file.
// - Turn the echo off before the question shows, and drop what was typed before it.
// - However it ends (answer, signal, hang-up, deadline), the terminal is as it was found.
// - A signal that arrives meanwhile does what it always does, after the terminal is put back. After a stop, ask anew.
// - Nobody answering is an answer after five minutes: the command fails.

/// The person's terminal.
final class Terminal {
    private let descriptor: Int32
    private let ownsDescriptor: Bool
    private static let timeoutMilliseconds: Int32 = 5 * 60 * 1000
    private static let maximumByteCount = 64 << 10

    init() {
        let opened = unsafe open("/dev/tty", O_RDWR | O_CLOEXEC)
        // Without a controlling terminal, standard input is still one: the caller has checked.
        ownsDescriptor = opened >= 0
        descriptor = opened >= 0 ? opened : STDIN_FILENO
    }

    deinit {
        if ownsDescriptor { close(descriptor) }
    }

    /// What a person types in one line, unseen.
    ///
    /// The caller wipes it.
    func readWithoutEcho(prompt: String) throws(CommandFailure) -> [UInt8] {
        var found = termios()
        // The pointers of this function are used during the calls only.
        guard unsafe tcgetattr(descriptor, &found) == 0 else { throw Self.gone }
        var silent = found
        // Without canonical mode too: there the kernel cuts a line off after 4095 bytes and says nothing.
        silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON)
        return try read(prompt: prompt, mode: silent, restoring: found)
    }

    /// Whether the person answers yes.
    ///
    /// Anything else is no.
    func confirm(_ question: String) throws(CommandFailure) -> Bool {
        var found = termios()
        guard unsafe tcgetattr(descriptor, &found) == 0 else { throw Self.gone }
        let answer = try read(prompt: question + " [y/N] ", mode: found, restoring: found)
        return ["y", "yes"].contains(String(decoding: answer, as: UTF8.self).lowercased())
    }

    private func read(prompt: String, mode: termios, restoring found: termios) throws(CommandFailure) -> [UInt8] {
        var line = TypedLine(mode: mode, limit: Self.maximumByteCount)
        while true {
            let signal = try readLine(into: &line, prompt: prompt, mode: mode, restoring: found)
            guard let signal else { break }
            // Whatever was typed so far goes; if the signal only stopped the process, the question is asked anew.
            line.clear()
            raise(signal)
        }
        switch line.end {
        case .complete: return line.bytes
        case .tooLong:
            line.clear()
            throw CommandFailure(
                .usage, "more was typed than a prompt takes (64 KiB), and nothing was stored", advice: "Give the secret through a pipe."
            )
        case .cancelled, .gone, nil:
            line.clear()
            throw Self.gone
        }
    }

    /// Reads up to the end of the line, a signal (whose number it returns) or the deadline, with the terminal in `mode` meanwhile.
    private func readLine(
        into line: inout TypedLine, prompt: String, mode: termios, restoring found: termios
    ) throws(CommandFailure) -> Int32? {
        var mode = mode
        var found = found
        var mask = keychain_signal_mask()
        let held = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]
        let signals = unsafe keychain_signals_block(held, held.count, &mask)
        guard signals >= 0 else { throw Self.gone }
        let isSilent = mode.c_lflag & tcflag_t(ECHO) == 0
        guard unsafe tcsetattr(descriptor, TCSAFLUSH, &mode) == 0 else {
            unsafe keychain_signals_unblock(signals, &mask)
            throw Self.gone
        }
        defer {
            _ = unsafe tcsetattr(descriptor, TCSADRAIN, &found)
            unsafe keychain_signals_unblock(signals, &mask)
        }
        show(prompt)
        // The newline that ended the line was not shown either.
        defer { if isSilent { show("\n") } }
        while line.end == nil {
            var waiting = [
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0), pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            ]
            let count = unsafe poll(&waiting, nfds_t(waiting.count), Self.timeoutMilliseconds)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.gone }
            if waiting[0].revents != 0 {
                let signal = keychain_signals_next(signals)
                if signal != 0 { return signal }
            }
            if waiting[1].revents != 0 { line.take(from: descriptor) }
        }
        return nil
    }

    private func show(_ text: String) {
        _ = FileDescriptor.write(Data(text.utf8), to: ownsDescriptor ? descriptor : STDERR_FILENO)
    }

    private static let gone = CommandFailure(
        .unavailable, "nobody answered on the terminal, and nothing was done", advice: "Run the command again."
    )
}
