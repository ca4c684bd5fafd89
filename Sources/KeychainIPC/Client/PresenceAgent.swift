// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

/// The connection of an agent: a process of a person's session that shows keychaind's prompts.
///
/// It types what the person has entered into keychaind, which alone decides whether that is right.
package final class PresenceAgent: Sendable {
    private let connection: DaemonConnection

    /// Offers to show the prompts of one process, or of all processes of the user.
    ///
    /// When this returns, keychaind knows the agent.
    package init(
        _ connector: DaemonClient.Connector, _ scope: AgentScope, until deadline: Deadline = .after(seconds: 5)
    ) throws(KeychainFailure) {
        connection = try DaemonConnection(
            try connector(deadline), Entitlements(applicationIdentifier: ""), storeID: nil, until: deadline)
        switch connection.exchange(Request(.showPrompts(scope)), until: deadline) {
        case .response(let response):
            if case .failure(let failure) = response.reply { throw failure }
            guard case .done = response.reply else { throw KeychainFailure(.malformed, isOutcomeUnknown: false) }
        case .notSent(let failure), .noReply(let failure): throw KeychainFailure(failure, isOutcomeUnknown: false)
        }
    }

    /// Shows prompts with `prompter`, until the connection ends.
    package func run(_ prompter: some PresencePrompter) {
        while let reply = try? connection.nextReply(until: .never), case .question(let question) = reply {
            do throws(MessageChannel.Failure) {
                // The secret ends here, and not with the next question.
                try connection.send(Request(.answer(Self.answer(question, prompter))), until: .after(seconds: Self.sendingTimeoutSeconds))
            } catch {
                return
            }
            SecretArena.wipeStackOfCipher()
        }
    }

    private static let sendingTimeoutSeconds: UInt32 = 10

    private static func answer(_ question: PresenceQuestion, _ prompter: some PresencePrompter) -> PromptAnswer {
        do throws(PresenceRefusal) {
            switch try prompter.ask(question) {
            case .secret(let secret): return .secret(SharedSecretBytes(secret))
            case .empty: return .empty
            }
        } catch {
            return .refused(error)
        }
    }

    /// Returns when keychaind has ended the connection, also while a prompt is shown.
    package func waitForEnd() { connection.waitForEnd() }

    /// Ends the connection, and `run` after the prompt that it shows.
    package func end() { connection.shutDown() }
}

/// What starts an agent for this process when a call needs one.
package protocol AgentLauncher: Sendable {
    /// Whether there seems to be a terminal or a display for a prompt.
    var canAsk: Bool { get }

    /// Starts an agent; keychaind knows it when this returns.
    ///
    /// `program` is the path of keychaind's agent. Throws `.interactionNotAllowed` if it does not start.
    func launch(_ program: String) throws(KeychainFailure) -> any RunningAgent
}

/// An agent that this process has started.
package protocol RunningAgent: Sendable {
    /// Whether it shows no prompts any more.
    var hasEnded: Bool { get }

    /// Ends the agent, with the prompt that it shows.
    func end()
}
