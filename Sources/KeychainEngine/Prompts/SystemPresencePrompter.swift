// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

/// Prompts through a pinentry program or on the terminal, depending on the machine and the configuration.
package struct SystemPresencePrompter: PresencePrompter {
    private let selection: PinentrySelection
    private let environment: PromptEnvironment
    private let standardPaths: [String]
    private let interruption: FileDescriptor?

    /// `standardPaths` are searched for a program if the selection names none; `interruption` becomes readable when the person is not to be asked
    /// any more.
    package init(
        _ selection: PinentrySelection, environment: PromptEnvironment, standardPaths: [String] = PinentrySelection.standardPaths,
        interruption: FileDescriptor? = nil
    ) {
        self.selection = selection
        self.environment = environment
        self.standardPaths = standardPaths
        self.interruption = interruption
    }

    package var canAsk: Bool { (pinentry?.canAsk ?? false) || (fallsBack && TerminalPrompter().canAsk) }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard let pinentry else { return try TerminalPrompter(interruption: interruption).ask(question) }
        let deadline = Deadline.after(seconds: question.timeoutSeconds)
        do throws(PresenceRefusal) {
            return try pinentry.ask(question)
        } catch .canceled {
            throw .canceled
        } catch .timedOut {
            throw .timedOut
        } catch {
            // For example, the variable still names a display that is gone.
            guard fallsBack, deadline.remainingSeconds > 0, TerminalPrompter().canAsk else { throw error }
            return try TerminalPrompter(interruption: interruption).ask(question.within(seconds: deadline.remainingSeconds))
        }
    }

    /// No fallback replaces a program that the configuration names.
    private var fallsBack: Bool {
        if case .program = selection { return false }
        return true
    }

    private var pinentry: PinentryPrompter? {
        switch selection {
        case .program(let path): return PinentryPrompter(path: path, environment: environment, interruption: interruption)
        case .never: return nil
        case .automatic:
            guard environment.hasDisplay, let path = standardPaths.first(where: FileSystem.isExecutable) else { return nil }
            return PinentryPrompter(path: path, environment: environment, interruption: interruption)
        }
    }
}

extension SystemPresencePrompter: ConsentPrompter {
    /// With the pinentry program only: a program of the desktop has no terminal.
    package func requestConsent(_ question: ConsentQuestion) throws(PresenceRefusal) {
        guard let pinentry else { throw .promptUnavailable("there is no pinentry program, or no display") }
        try pinentry.requestConsent(question)
    }
}

extension KeychainConfiguration {
    /// The prompter that asks the person for this keychain.
    package var prompter: any PresencePrompter {
        presencePrompter ?? SystemPresencePrompter(pinentry, environment: promptEnvironment)
    }
}

extension PresenceQuestion {
    fileprivate func within(seconds: UInt32) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: requester, purpose: purpose, reason: reason, cancelTitle: cancelTitle, triesLeft: triesLeft,
            timeoutSeconds: seconds)
    }
}

/// The pinentry program that asks the person.
package enum PinentrySelection: Hashable, Sendable {
    /// The first of `standardPaths` that exists if there is a display, otherwise the terminal.
    case automatic
    /// The program at this absolute path, always.
    case program(String)
    /// None: the terminal.
    case never

    /// The value of `KEYCHAIN_PINENTRY` that selects this; nil for automatic.
    var variable: String? {
        switch self {
        case .automatic: nil
        case .program(let path): path
        case .never: ""
        }
    }

    /// The paths of the programs that distributions install, those with windows before those for terminals.
    ///
    /// `PATH` is not searched: a person who can change it could read the passcode.
    package static let standardPaths = ["", "-gnome3", "-qt", "-qt6", "-qt5", "-qt4", "-gtk", "-gtk-2", "-fltk", "-efl", "-curses", "-tty"]
        .map { "/usr/bin/pinentry" + $0 }

    /// Parses `KEYCHAIN_PINENTRY`: unset is automatic, empty is never.
    ///
    /// Throws `.parameter` for a relative path.
    package init(variable value: String?) throws(KeychainFailure) {
        switch value {
        case nil: self = .automatic
        case "": self = .never
        case .some(let path) where path.hasPrefix("/"): self = .program(path)
        case .some:
            throw KeychainFailure(
                .parameter, "KEYCHAIN_PINENTRY must be an absolute path, or empty for no pinentry at all",
                cause: .environmentVariable("KEYCHAIN_PINENTRY"))
        }
    }
}

/// The caller's variables that name displays and languages: the whole environment of a pinentry program.
package struct PromptEnvironment: Hashable, Sendable {
    package let variables: [String: String]

    private static let names: Set<String> = [
        "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "TERM", "LANG", "HOME", "USER", "GPG_TTY",
    ]
    private static let prefixes = ["XDG_", "LC_"]

    /// Selects those variables from a process's environment; the default has neither a display nor a terminal type.
    package init(_ environment: [String: String] = [:]) {
        variables = environment.filter { name, _ in Self.names.contains(name) || Self.prefixes.contains { name.hasPrefix($0) } }
    }

    /// The value of a variable; nil if it is unset or empty.
    package subscript(_ name: String) -> String? {
        variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether the variables name a display.
    package var hasDisplay: Bool { self["DISPLAY"] != nil || self["WAYLAND_DISPLAY"] != nil }

    /// The value of a category of the locale, in the order of setlocale(3).
    func locale(_ category: String) -> String? { self["LC_ALL"] ?? self[category] ?? self["LANG"] }
}
