// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

/// Prompts through a pinentry program, which shows a window or uses the terminal.
package struct PinentryPrompter: PresencePrompter {
    /// The program, an absolute path.
    package let path: String
    private let environment: PromptEnvironment
    private let interruption: FileDescriptor?

    /// `interruption` becomes readable when the person is not to be asked any more.
    package init(path: String, environment: PromptEnvironment, interruption: FileDescriptor? = nil) {
        self.path = path
        self.environment = environment
        self.interruption = interruption
    }

    /// Whether the program exists; only the program knows whether it can reach a person.
    package var canAsk: Bool { FileSystem.isExecutable(path) }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        try ask(PresenceText(question), timeoutSeconds: question.timeoutSeconds)
    }

    private func ask(_ text: PresenceText, timeoutSeconds: UInt32) throws(PresenceRefusal) -> PresenceAnswer {
        guard path.hasPrefix("/") else { throw .failed("the path of the pinentry program must be absolute") }
        guard FileSystem.isExecutable(path) else { throw .failed("\(path) is not an executable program") }
        let deadline = Deadline.after(seconds: timeoutSeconds)
        let place = PromptLocation(environment)
        var variables = environment.variables
        variables["GPG_TTY"] = place.terminalName
        let terminal = place.sharesProcessGroup ? Terminal.ModeGuard() : nil
        // A program that was killed or died leaves the terminal without echo.
        var isAnswered = false
        defer { terminal?.restore(mode: !isAnswered) }
        let process = try start(variables, place, interruptions: [terminal?.interruption, interruption].compactMap(\.self))
        do throws(PresenceRefusal) {
            var dialog = try PinentryDialog(process, text, place: place, environment: environment, deadline: deadline)
            let answer = try dialog.run()
            process.terminate()
            isAnswered = !process.wasKilled
            return answer
        } catch {
            process.kill()
            throw error
        }
    }

    private func start(
        _ variables: [String: String], _ place: PromptLocation, interruptions: [FileDescriptor]
    ) throws(PresenceRefusal) -> PipedProcess {
        do throws(Errno) {
            return try PipedProcess(
                path: path, environment: variables, leadsSession: !place.sharesProcessGroup, interruptions: interruptions)
        } catch {
            throw .failed("\(path) cannot be started: \(error)")
        }
    }
}

extension PinentryPrompter: ConsentPrompter {
    package func requestConsent(_ question: ConsentQuestion) throws(PresenceRefusal) {
        _ = try ask(PresenceText(question), timeoutSeconds: question.timeoutSeconds)
    }
}

/// The places where a pinentry program can show its question.
struct PromptLocation {
    /// The terminal that the program is told to use.
    let terminalName: String?
    /// Whether the program runs in the caller's process group, so that ^C reaches it.
    let sharesProcessGroup: Bool
    let hasDisplay: Bool

    /// Uses the caller's terminal if the caller is in its foreground; without a terminal, the one that `GPG_TTY` names.
    init(_ environment: PromptEnvironment) {
        hasDisplay = environment.hasDisplay
        sharesProcessGroup = Terminal.isUsable
        if sharesProcessGroup {
            terminalName = Terminal.path
        } else if !Terminal.exists, let name = environment["GPG_TTY"], name.hasPrefix("/dev/"), FileSystem.isTerminal(name) {
            terminalName = name
        } else {
            terminalName = nil
        }
    }

    /// Whether a person could see the question, as far as the process can tell.
    var canShow: Bool { hasDisplay || terminalName != nil }
}
