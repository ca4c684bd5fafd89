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
