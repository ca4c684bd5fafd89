// SPDX-License-Identifier: Apache-2.0
internal import Glibc
package import KeychainCore

/// Asks through a pinentry program: a window, or a dialog on the terminal.
package struct PinentryVerifier: PresenceVerifier {
    /// The program, an absolute path.
    package let path: String
    private let environment: PromptEnvironment

    package init(path: String, environment: PromptEnvironment) {
        self.path = path
        self.environment = environment
    }

    /// Whether the program is there; it may know ways to a person that we do not.
    package var canAsk: Bool { Self.isProgram(path) }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard path.hasPrefix("/") else { throw .failed("the path of the pinentry program must be absolute") }
        guard Self.isProgram(path) else { throw .failed("\(path) is no program that can be started") }
        let deadline = PromptDeadline(seconds: question.timeoutSeconds)
        let place = PromptLocation(environment)
        var variables = environment.variables
        variables["GPG_TTY"] = place.terminalName
        let terminal = place.sharesProcessGroup ? TerminalGuard() : nil
        // The program is gone by then; one that died leaves its terminal without echo.
        var isAnswered = false
        defer { terminal?.finish(puttingBack: !isAnswered) }
        let process = try PipedProcess(
            path: path, environment: variables, leadsSession: !place.sharesProcessGroup, interruption: terminal?.signals ?? -1)
        do throws(PresenceRefusal) {
            var dialog = try PinentryDialog(process, PresenceText(question), place: place, environment: environment, deadline: deadline)
            let answer = try dialog.run()
            process.end()
            isAnswered = !process.wasKilled
            return answer
        } catch {
            process.kill()
            throw error
        }
    }

    static func isProgram(_ path: String) -> Bool {
        var information = stat()
        // `information` is ours; the path is copied for the calls.
        guard unsafe stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return false }
        return unsafe access(path, X_OK) == 0
    }
}

/// Where a pinentry program can show its question.
struct PromptLocation {
    /// The terminal to be named to the program.
    let terminalName: String?
    /// Whether the program belongs to the caller's job on its terminal: then ^C reaches it.
    let sharesProcessGroup: Bool
    let hasDisplay: Bool

    /// The caller's terminal if the caller is in its foreground; without one, the terminal that `GPG_TTY` names.
    init(_ environment: PromptEnvironment) {
        hasDisplay = environment.hasDisplay
        sharesProcessGroup = ControllingTerminal.isUsable
        if sharesProcessGroup {
            terminalName = ControllingTerminal.path
        } else if !Self.hasTerminal, let name = environment["GPG_TTY"], Self.isTerminal(name) {
            terminalName = name
        } else {
            terminalName = nil
        }
    }

    /// Whether a person could see anything there, as far as it can be told.
    var canShow: Bool { hasDisplay || terminalName != nil }

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
