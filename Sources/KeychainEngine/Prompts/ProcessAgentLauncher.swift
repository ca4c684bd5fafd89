// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainIPC
internal import KeychainSystem

/// Starts the agent that shows keychaind's prompts for this process, in the terminal and on the display of this process.
///
/// A program with a prompter of its own is its own agent.
package struct ProcessAgentLauncher: AgentLauncher {
    private let configuration: Result<KeychainConfiguration, KeychainFailure>
    private let socketPath: String

    package init(for keychain: LocalKeychain, socketPath: String) {
        configuration = Result { () throws(KeychainFailure) in try keychain.configuration() }
        self.socketPath = socketPath
    }

    package var canAsk: Bool { (try? configuration.get().prompter.canAsk) ?? false }

    package func launch(_ program: String) throws(KeychainFailure) -> any RunningAgent {
        let configuration = try configuration.get()
        if let prompter = configuration.presencePrompter { return try AgentThread(prompter, socketPath) }
        return try AgentProcess(program, configuration, socketPath)
    }
}

/// An agent that is a process of its own, which ends with its standard input.
private final class AgentProcess: RunningAgent {
    private let process: LockedValue<PipedProcess?>

    init(_ program: String, _ configuration: KeychainConfiguration, _ socketPath: String) throws(KeychainFailure) {
        var variables = configuration.promptEnvironment.variables
        variables["KEYCHAIN_PINENTRY"] = configuration.pinentry.variable
        let process: PipedProcess
        do throws(Errno) {
            process = try PipedProcess(
                path: program, arguments: ["--socket", socketPath, "--for", "parent"], environment: variables,
                // In the foreground of the terminal, as this process.
                leadsSession: !Terminal.isUsable)
            // It writes a line when keychaind knows it.
            guard try process.wait(until: .after(seconds: 10)) == .ready, !process.hasEnded else { throw .timedOut }
        } catch {
            throw KeychainFailure(
                .interactionNotAllowed, "the agent \(program), which shows prompts, does not start: \(error)", refusal: .notInteractive)
        }
        self.process = LockedValue(process)
    }

    var hasEnded: Bool { process.withLock { $0?.hasEnded ?? true } }

    func end() {
        let process = process.withLock { process in
            defer { process = nil }
            return process
        }
        process?.terminate()
    }
}

/// An agent that is a thread of this process.
private final class AgentThread: RunningAgent {
    private let agent: PresenceAgent
    private let isAtEnd = LockedValue(false)

    init(_ prompter: any PresencePrompter, _ socketPath: String) throws(KeychainFailure) {
        let agent = try PresenceAgent(DaemonClient.connector(toSocketAt: socketPath), .ownProcess)
        self.agent = agent
        let isStarted = BackgroundThread.start { [weak self] in
            agent.run(prompter)
            self?.isAtEnd.withLock { $0 = true }
        }
        guard isStarted else { throw KeychainFailure(.allocate, "there is no thread for a prompt") }
    }

    var hasEnded: Bool { isAtEnd.withLock(\.self) }

    func end() { agent.end() }
}
