// SPDX-License-Identifier: Apache-2.0
import Dispatch
import KeychainSystem
import Synchronization

/// Lets a command that exchanges messages with another device tell that device when Ctrl-C or SIGTERM ends the command.
///
/// The other device would wait until its time is over. A second signal ends the process at once: the storage may not answer.
final class SyncInterruption: Sendable {
    private struct State {
        var message: String?
        var ending: (@Sendable () async -> Void)?
        var isInterrupted = false
    }

    private let state = Mutex(State())

    /// Sets what is done when a signal comes, and what the person is told then.
    func set(_ message: String, _ ending: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            state.message = message
            state.ending = ending
        }
    }

    /// Runs `body`, during which a signal ends the command.
    ///
    /// What follows from the interruption is no result for the person, so this does not return then.
    func run<Result>(_ body: () throws(CommandFailure) -> Result) throws(CommandFailure) -> Result {
        let signals = TerminationSignals { [self] in end(by: $0) }
        defer {
            withExtendedLifetime(signals) {}
            // The process ends soon: each call of the storage has a deadline.
            if state.withLock(\.isInterrupted) { DispatchSemaphore(value: 0).wait() }
        }
        return try body()
    }

    private func end(by signal: Int32) {
        let (isFirst, message, ending) = state.withLock { state in
            defer { state.isInterrupted = true }
            return (!state.isInterrupted, state.message, state.ending)
        }
        guard isFirst, let ending else { TerminationSignals.endProcess(by: signal) }
        Task {
            await ending()
            if let message { StandardError.write(message) }
            TerminationSignals.endProcess(by: signal)
        }
    }
}
