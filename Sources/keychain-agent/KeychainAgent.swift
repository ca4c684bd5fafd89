// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainSystem

/// The program `keychain-agent`: shows keychaind's prompts to the person of a session, and types the answers into keychaind.
///
/// A program that calls keychaind starts it in its own terminal, or on its own display, for as long as the call takes. It can also be started once in
/// a session, for the programs that have neither. It has no key and no secret but the text that is typed, until that is sent.
@main
enum KeychainAgent {
    private struct Arguments {
        var socketPath = DaemonClient.standardSocketPath
        var scope = AgentScope.allProcesses
    }

    static func main() {
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        guard let arguments = arguments() else { fail("usage: keychain-agent [--socket /PATH] [--for parent]", status: 64) }
        do throws(KeychainFailure) {
            try run(arguments)
        } catch {
            fail("keychain-agent: \(error.reason)", status: 1)
        }
    }

    private static func arguments() -> Arguments? {
        var arguments = Arguments()
        for index in stride(from: 1, to: ProcessArguments.count, by: 2) {
            guard let value = ProcessArguments.text(at: index + 1) else { return nil }
            switch ProcessArguments.text(at: index) {
            case "--socket" where value.hasPrefix("/"): arguments.socketPath = value
            case "--for" where value == "parent": arguments.scope = .parentProcess
            default: return nil
            }
        }
        return arguments
    }

    private static func run(_ arguments: Arguments) throws(KeychainFailure) {
        let variables = ProcessEnvironment.variables
        let interruption = try Interruption()
        let prompter = SystemPresencePrompter(
            try PinentrySelection(variable: variables["KEYCHAIN_PINENTRY"]), environment: PromptEnvironment(variables),
            interruption: interruption.descriptor)
        let agent = try PresenceAgent(DaemonClient.connector(toSocketAt: arguments.socketPath), arguments.scope)
        var isWatched = BackgroundThread.start {
            // keychaind ends the connection when an answer is of no use any more.
            agent.waitForEnd()
            interruption.set()
        }
        if arguments.scope == .parentProcess {
            isWatched =
                isWatched
                && BackgroundThread.start {
                    // The program that has started this one keeps the other end of a pipe, into which it writes nothing.
                    _ = try? FileDescriptor.wait(for: [.standardInput], until: .never)
                    agent.end()
                }
        }
        guard isWatched else { throw KeychainFailure(.allocate, "there is no thread for a prompt") }
        // The program that has started this one waits for it.
        try? FileDescriptor.standardOutput.writeAll("ready\n".utf8)
        agent.run(prompter)
    }

    private static func fail(_ reason: String, status: Int32) -> Never {
        try? FileDescriptor.standardError.writeAll("\(reason)\n".utf8)
        CurrentProcess.exit(with: status)
    }
}

/// What ends a prompt.
private final class Interruption: Sendable {
    private let flag: WakeupDescriptor

    init() throws(KeychainFailure) {
        do throws(Errno) {
            flag = try WakeupDescriptor()
        } catch {
            throw KeychainFailure(.allocate, "there is no descriptor for a prompt: \(error)", cause: .system(errno: error.rawValue))
        }
    }

    var descriptor: FileDescriptor { flag.descriptor }

    func set() { flag.set() }
}
