// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore

/// Where a pinentry program can show its question.
struct PromptPlace {
    /// The terminal to be named to the program.
    let terminalName: String?
    /// Whether the program belongs to the caller's job on its terminal: then ^C reaches it.
    let sharesJob: Bool
    let hasDisplay: Bool

    /// The caller's terminal if the caller is in its foreground; without one, the terminal that `GPG_TTY` names.
    init(_ environment: PromptEnvironment) {
        hasDisplay = environment.hasDisplay
        sharesJob = ControllingTerminal.isUsable
        if sharesJob {
            terminalName = ControllingTerminal.path
        } else if !Self.hasTerminal, let name = environment["GPG_TTY"], Self.isTerminal(name) {
            terminalName = name
        } else {
            terminalName = nil
        }
    }

    /// Whether a person could see anything there, as far as it can be told.
    var hasPerson: Bool { hasDisplay || terminalName != nil }

    /// Whether there is a controlling terminal at all, in whatever ground the process is.
    private static var hasTerminal: Bool {
        let descriptor = unsafe open(ControllingTerminal.path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }

    private static func isTerminal(_ name: String) -> Bool {
        guard name.hasPrefix("/dev/") else { return false }
        // The path is copied for the call.
        let descriptor = unsafe open(name, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return isatty(descriptor) == 1
    }
}
