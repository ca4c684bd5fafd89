// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Asks in whatever way this machine and its configuration offer: a pinentry program or the terminal.
package struct SystemPresenceVerifier: PresenceVerifier {
    private let selection: PinentrySelection
    private let environment: PromptEnvironment
    private let standardPaths: [String]

    /// `standardPaths` is where a program is looked for when none is named.
    package init(
        _ selection: PinentrySelection, environment: PromptEnvironment, standardPaths: [String] = PinentrySelection.standardPaths
    ) {
        self.selection = selection
        self.environment = environment
        self.standardPaths = standardPaths
    }

    package var canAsk: Bool { (pinentry?.canAsk ?? false) || (fallsBack && TerminalVerifier().canAsk) }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard let pinentry else { return try TerminalVerifier().ask(question) }
        let deadline = PromptDeadline(seconds: question.timeoutSeconds)
        do throws(PresenceRefusal) {
            return try pinentry.ask(question)
        } catch .canceled {
            throw .canceled
        } catch .timedOut {
            throw .timedOut
        } catch {
            // Such as a display that was there once: the variable is set, and nothing shows.
            guard fallsBack, deadline.remainingSeconds > 0, TerminalVerifier().canAsk else { throw error }
            return try TerminalVerifier().ask(question.within(seconds: deadline.remainingSeconds))
        }
    }

    /// Nobody who named a program wants to be asked in another way.
    private var fallsBack: Bool {
        if case .program = selection { return false }
        return true
    }

    private var pinentry: PinentryVerifier? {
        switch selection {
        case .program(let path): return PinentryVerifier(path: path, environment: environment)
        case .never: return nil
        case .automatic:
            guard environment.hasDisplay, let path = standardPaths.first(where: PinentryVerifier.isProgram) else { return nil }
            return PinentryVerifier(path: path, environment: environment)
        }
    }
}

extension KeychainConfiguration {
    /// Whatever asks the person for this keychain.
    package var verifier: any PresenceVerifier {
        presenceVerifier ?? SystemPresenceVerifier(pinentry, environment: promptEnvironment)
    }
}

extension PresenceQuestion {
    fileprivate func within(seconds: UInt32) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: requester, purpose: purpose, reason: reason, cancelTitle: cancelTitle, triesLeft: triesLeft,
            timeoutSeconds: seconds)
    }
}

/// Which pinentry program asks the person.
package enum PinentrySelection: Hashable, Sendable {
    /// The first of `standardPaths` that exists, where there is a display; without one the terminal.
    case automatic
    /// The program at this absolute path, always.
    case program(String)
    /// None: the terminal.
    case never

    /// The places where distributions install one, those that show windows before those that need a terminal.
    ///
    /// Never looked up along `PATH`: whoever can change that would be told the passcode.
    package static let standardPaths = ["", "-gnome3", "-qt", "-qt6", "-qt5", "-qt4", "-gtk", "-gtk-2", "-fltk", "-efl", "-curses", "-tty"]
        .map { "/usr/bin/pinentry" + $0 }

    /// What `KEYCHAIN_PINENTRY` says: unset is automatic, empty is never.
    ///
    /// Throws `.parameter` for a relative path.
    package init(variable value: String?) throws(KeychainFailure) {
        switch value {
        case nil: self = .automatic
        case "": self = .never
        case .some(let path) where path.hasPrefix("/"): self = .program(path)
        case .some:
            throw KeychainFailure(.parameter, "KEYCHAIN_PINENTRY must be an absolute path, or empty for no pinentry at all")
        }
    }
}

/// Those of the caller's variables that say where a person is and which language to speak: all that a pinentry program is given.
package struct PromptEnvironment: Hashable, Sendable {
    package let variables: [String: String]

    private static let names: Set<String> = [
        "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "TERM", "LANG", "HOME", "USER", "GPG_TTY",
    ]
    private static let prefixes = ["XDG_", "LC_"]

    /// Takes what belongs there from a process's environment; the default has neither display nor terminal type.
    package init(_ environment: [String: String] = [:]) {
        variables = environment.filter { name, _ in Self.names.contains(name) || Self.prefixes.contains { name.hasPrefix($0) } }
    }

    /// A value that is set and says something.
    package subscript(_ name: String) -> String? {
        variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether a window could be shown, as far as the variables tell.
    package var hasDisplay: Bool { self["DISPLAY"] != nil || self["WAYLAND_DISPLAY"] != nil }

    /// The value of a category of the locale, in the order of setlocale(3).
    func locale(_ category: String) -> String? { self["LC_ALL"] ?? self[category] ?? self["LANG"] }
}
