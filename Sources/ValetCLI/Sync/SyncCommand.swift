// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Dispatch
import Foundation
import KeychainCore
import KeychainSync
import KeychainSystem
import Synchronization

struct SyncCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Share the items of iCloud valets with your other devices.",
        discussion: """
            Your devices form a circle, and exchange encrypted files through a folder that another program moves between them, such as \
            Syncthing, Dropbox, Nextcloud, or NFS. Servers can exchange them through etcd: give etcd://HOST:PORT/PATH in place of the folder, \
            with a `valet` that was built for it. Items for this device only never leave it.

            Begin with `valet sync start FOLDER` on one device. For each further one, run `valet sync invite` on a device of the circle and \
            `valet sync join FOLDER` on the new one. `valet sync run` then carries changes for as long as it runs, and `valet sync now` once.
            """,
        subcommands: [
            SyncStartCommand.self, SyncInviteCommand.self, SyncJoinCommand.self, SyncStatusCommand.self, SyncDevicesCommand.self,
            SyncRenameCommand.self, SyncRemoveCommand.self, SyncCredentialCommand.self, SyncConflictsCommand.self, SyncUnsharedCommand.self,
            SyncRunCommand.self, SyncNowCommand.self, SyncAcceptDeletionsCommand.self, SyncRecoverCommand.self, SyncKitCommand.self,
            SyncMoveCommand.self, SyncLeaveCommand.self,
        ]
    )
}

/// The keychain of a command about synchronization.
struct SyncSession {
    private let session: CommandSession

    init(_ passcode: PasscodeOption) throws(CommandFailure) {
        session = try CommandSession.forWholeKeychain(passcode: try passcode.read())
    }

    /// Runs `body` with this keychain, and waits for its end.
    func perform<Result: Sendable>(
        _ body: @escaping @Sendable () async throws(SyncFailure) -> Result
    ) throws(CommandFailure) -> Result {
        let call = BlockingTask { [keychain = session.keychain] in
            await CurrentKeychain.$bound.withValue(keychain) { await Self.outcome(body) }
        }
        switch call.value() {
        case .success(let result): return result
        case .failure(let failure): throw CommandFailure(failure)
        }
    }

    /// Runs `body`, and after a second shows on the terminal how many files it has read and written.
    func performWithProgress<Result: Sendable>(
        _ body: @escaping @Sendable () async throws(SyncFailure) -> Result
    ) throws(CommandFailure) -> Result {
        let line = ProgressLine()
        let clock = SystemContinuousTime()
        let start = clock.nowNanoseconds()
        defer { line.end() }
        return try perform { () async throws(SyncFailure) in
            let report = SyncProgress { count in
                guard count.isMultiple(of: 20), clock.nowNanoseconds() > start + 1_000_000_000 else { return }
                line.show("Synchronizing: \(count) files")
            }
            return try await SyncProgress.$current.withValue(report) { await Self.outcome(body) }.get()
        }
    }

    private static func outcome<Value>(
        _ body: () async throws(SyncFailure) -> Value
    ) async -> Result<Value, SyncFailure> {
        do throws(SyncFailure) { return .success(try await body()) } catch { return .failure(error) }
    }
}

/// A task whose end the main thread of a command waits for.
private final class BlockingTask<Value: Sendable>: Sendable {
    private let result = Mutex<Value?>(nil)
    private let end = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () async -> Value) {
        Task { [self] in
            let value = await body()
            result.withLock { $0 = value }
            end.signal()
        }
    }

    func value() -> Value {
        while true {
            end.wait()
            if let value = result.withLock({ $0 }) { return value }
        }
    }
}

/// Options that several commands share.
struct DeviceNameOption: ParsableArguments {
    @Option(help: ArgumentHelp("The name of this device for people (default: the name of the machine).", valueName: "name"))
    var name: String?

    var value: String { name ?? CurrentProcess.hostName ?? "unnamed" }
}

extension CommandFailure {
    init(_ failure: SyncFailure) {
        let (status, advice): (ExitStatus, String) =
            switch failure.code {
            case .notStarted:
                (.notFound, "Begin a circle with `valet sync start FOLDER`, or join one with `valet sync join FOLDER`.")
            case .alreadyStarted: (.alreadyExists, "`valet sync status` shows it, and `valet sync leave` leaves it.")
            case .circleExists:
                (
                    .alreadyExists,
                    "Join it with `valet sync join FOLDER`. If all its devices are lost, run `valet sync recover FOLDER` with the recovery kit."
                )
            case .noCircle:
                (
                    .notFound,
                    "Wait until the folder has what the other device has put there, or begin a circle with `valet sync start FOLDER`."
                )
            case .invalidInput: (.usage, "Nothing was changed. Enter it again.")
            case .notOwner: (.unavailable, "Run the command on an owner of the circle; `valet sync devices` lists them.")
            case .notFound: (.notFound, "`valet sync devices` lists the devices, and `valet sync conflicts` the conflicts.")
            case .agentRunning: (.unavailable, "Stop `valet sync run`, for example with `systemctl --user stop valet-sync`.")
            case .removed: (.unavailable, "The items stay here. To enter the circle again, run `valet sync leave`, then join.")
            case .unconfirmed:
                (
                    .unavailable,
                    """
                    The changes of this device wait. Devices that knew it before confirm it when they synchronize. Otherwise run `valet sync leave`, then join \
                    with a new code or credential.
                    """
                )
            case .expired:
                (
                    .unavailable,
                    "The items stay here. Make another one on an owner with `valet sync credential create`, and give it to `valet sync join` here."
                )
            case .invalidCredential: (.usage, "Give a credential that `valet sync credential create` has written.")
            case .changesMissing:
                (
                    .unavailable,
                    """
                    What has arrived is here, and `valet sync now` reads the rest. If the storage was restored from a backup, its owners fill it again \
                    within some hours.
                    """
                )
            case .invitationEnded, .codeUsed: (.unavailable, "Run `valet sync invite` again for another code.")
            case .untrusted: (.unavailable, "Run `valet sync invite` again, and tell the code to no other person.")
            case .newerVersion: (.unavailable, "Update valet on this device.")
            case .deletionsWait:
                (
                    .unavailable,
                    """
                    Nothing of it was deleted here. If it was done on purpose, run `valet sync accept-deletions`; otherwise remove the device with \
                    `valet sync remove`.
                    """
                )
            case .storage:
                (
                    .unavailable,
                    """
                    Nothing was deleted here. Check that the folder is mounted and has room, or that the etcd cluster can be reached and \
                    accepts this device. If the folder was moved, run `valet sync move FOLDER`.
                    """
                )
            case .locked: (.unavailable, "Run `valet unlock`, or pass the passcode with --passcode-fd.")
            case .keychain: (.unavailable, "`valet status` shows the state of the keychain.")
            }
        self.init(status, failure.reason, advice: advice)
    }
}
