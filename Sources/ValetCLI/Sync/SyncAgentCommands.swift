// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainSync
import KeychainSystem

/// Carrying changes.
struct SyncNowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "now",
        abstract: "Send what waits and read what is new, once.",
        discussion: "For cron and scripts. If an agent runs, it does that by itself, and this command does nothing."
    )

    @Flag(name: .customLong("check-items"), help: "Also restore items that are damaged or lost. Otherwise they are looked for once a day.")
    var checksItems = false

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        try session.performWithProgress { () async throws(SyncFailure) in
            if checksItems { try await KeychainSync.checkItems() }
            do throws(SyncFailure) {
                try await SyncAgent(on: storage).runUntilQuiet()
            } catch {
                guard error.code == .agentRunning else { throw error }
            }
        }
        let status = try session.perform { () async throws(SyncFailure) in try KeychainSync.status() }
        // A locked keychain is no error for cron.
        if status.unsentCount > 0 {
            StandardError.write(SyncText.sent(status))
            if let line = SyncText.wait(status) { StandardError.write(line) }
        }
        try? session.warnOfOtherCircle(in: storage)
    }
}

struct SyncRunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Carry changes between this device and the circle until Ctrl-C or SIGTERM.",
        discussion: "A folder that is gone and a locked keychain are waited for. Programs never wait for this command."
    )

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        // The agent waits for a folder that is gone.
        try? session.warnOfOtherCircle(in: storage)
        // A signal that comes before the agent runs ends it too.
        let (stops, stop) = AsyncStream<Void>.makeStream()
        let signals = TerminationSignals { _ in stop.yield() }
        defer { withExtendedLifetime(signals) {} }
        try session.perform { () async throws(SyncFailure) in
            let agent = try SyncAgent(on: storage)
            WarningLog.showImmediately()
            StandardError.write("Synchronizing through \(SyncText.path(storage)), until Ctrl-C.")
            let run = Task { await Self.outcome(of: agent) }
            let cancellation = Task { for await _ in stops { run.cancel() } }
            defer { cancellation.cancel() }
            if let failure = await run.value { throw failure }
        }
    }

    private static func outcome(of agent: SyncAgent) async -> SyncFailure? {
        do throws(SyncFailure) {
            try await agent.run()
            return nil
        } catch {
            return error
        }
    }
}

extension SyncSession {
    /// Two people may both have begun a circle in one folder, which neither of them would notice otherwise.
    fileprivate func warnOfOtherCircle(in storage: any SyncStorage) throws(CommandFailure) {
        guard try perform({ () async throws(SyncFailure) in try await KeychainSync.isAloneBesideAnotherCircle(in: storage) }) else {
            return
        }
        StandardError.write(
            """
            \(SyncText.path(storage)) has another circle too, with which this device does not share. If another device of yours has begun it, run \
            `valet sync leave` on one of the two, and join the circle of the other.
            """)
    }
}

struct SyncAcceptDeletionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept-deletions",
        abstract: "Delete here the many items that other devices have deleted.",
        discussion: """
            If other devices delete more than 100 items, and more than a tenth of all, within a day, their changes wait for this command: a mistake \
            or a stolen device could be the reason. Otherwise remove the device with `valet sync remove`.
            """
    )

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let storage = try session.storage()
        try session.perform { () async throws(SyncFailure) in try await KeychainSync.acceptDeletions(on: storage) }
    }
}
