// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

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
        guard ControllingTerminal.use.take(untilNanoseconds: 0) else {
            signals = -1
            return
        }
        signals = keychain_terminal_signals_note(false)
        if signals < 0 { ControllingTerminal.use.giveBack() }
    }

    /// To be called once, when the program is gone: puts the terminal back, and lets signals do what they were sent for.
    func finish(puttingBack putsBack: Bool) {
        if putsBack { _ = terminal.setMode(found, discardingInput: true) }
        guard signals >= 0 else { return }
        _ = keychain_terminal_signals_restore()
        ControllingTerminal.use.giveBack()
    }
}
