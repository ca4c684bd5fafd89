// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
package import KeychainEngine
internal import KeychainSystem
internal import SyncCore

/// Synchronizes a keychain with the other devices of its circle, for as long as it runs.
///
/// Programs read and write the keychain meanwhile, in this process and in others, and never wait for the agent. One agent at a time has a
/// keychain.
public final class SyncAgent: Sendable {
    private let keychain: LocalKeychain
    private let storage: CircleStorage
    private let host: EngineHost
    private let clock: any WallClock
    /// Held until the agent is released.
    private let lock: AgentLock

    /// Creates an agent for the keychain of this process's user.
    ///
    /// - Parameter storage: The storage of the circle.
    /// - Throws: `.notStarted` if this keychain is in no circle, `.agentRunning` if another agent has it, `.keychain` if it cannot be used.
    public convenience init(on storage: any SyncStorage) throws(SyncFailure) {
        let engine: LocalKeychain?
        do throws(KeychainFailure) { engine = try DefaultKeychain.engine() } catch { throw SyncFailure(error) }
        guard let keychain = engine else {
            throw SyncFailure(.keychain, "this keychain cannot be synchronized")
        }
        try self.init(keychain, on: storage)
    }

    /// `sealsChanges`: whether local changes are sealed and sent, or only those of other devices are read.
    package init(
        _ keychain: LocalKeychain, on storage: any SyncStorage, clock: any WallClock = SystemWallClock(), sealsChanges: Bool = true
    ) throws(SyncFailure) {
        do throws(KeychainFailure) {
            guard try keychain.isSynchronizing(),
                let membership = try keychain.readLedger({ ledger throws(KeychainFailure) in try Membership.stored(in: ledger) })
            else { throw KeychainFailure(.itemNotFound, "this keychain is in no circle") }
            guard let lock = try keychain.lockForAgent() else {
                throw KeychainFailure(.duplicateItem, "another agent synchronizes this keychain")
            }
            self.lock = lock
            self.storage = CircleStorage(storage, membership.circle)
        } catch {
            switch error.status {
            case .itemNotFound: throw .notStarted
            case .duplicateItem: throw SyncFailure(.agentRunning, error.reason)
            default: throw SyncFailure(error)
            }
        }
        self.keychain = keychain
        self.clock = clock
        host = EngineHost(keychain, clock: clock, sealsChanges: sealsChanges)
    }

    /// Synchronizes until the task is canceled.
    ///
    /// A keychain that is locked, and a storage that is gone or full, are waited for. After a cancellation the calls of the storage that have
    /// begun are completed. What has not been sent then is sent by the next run.
    ///
    /// - Throws: `.removed` once this device learns of its removal, `.expired` within an hour after its credential has expired, and `.keychain` if the
    ///   changes of the keychain cannot be observed.
    public func run() async throws(SyncFailure) { try await run(endsWhenQuiet: false) }

    /// Synchronizes until there is nothing to do.
    ///
    /// - Throws: `.removed` once this device learns of its removal, `.expired`, `.storage` if a call of the storage failed, and `.locked` or
    ///   `.keychain` if the keychain cannot be used. After everything else was done: `.deletionsWait`, `.newerVersion`, and `.unconfirmed`.
    public func runUntilQuiet() async throws(SyncFailure) { try await run(endsWhenQuiet: true) }

    /// Waits until everything that programs have written is in the storage.
    ///
    /// Call it while ``run()`` runs in another task, for example before a server ends. It also waits for what programs write meanwhile.
    ///
    /// - Parameter duration: The longest time to wait.
    /// - Returns: Whether everything was sent. What is missing waits for the storage, for an unlock, or for `run()`.
    /// - Throws: `.locked` and `.keychain`.
    public func flush(within duration: Duration) async throws(SyncFailure) -> Bool {
        let (seconds, attoseconds) = duration.components
        let milliseconds = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000)
        let deadline =
            milliseconds.overflow
            ? Deadline.never
            : Deadline.after(milliseconds: milliseconds.partialValue + UInt64(clamping: attoseconds / 1_000_000_000_000_000))
        // That an object was created is not reported as a change of the keychain.
        while try await !isAllSent() {
            guard !deadline.isOver, (try? await Task.sleep(for: Self.pauseBetweenLooks)) != nil else { return false }
        }
        return true
    }

    private static let pauseBetweenLooks = Duration.milliseconds(20)

    private func isAllSent() async throws(SyncFailure) -> Bool {
        do throws(KeychainFailure) { return try await host.isAllSent() } catch { throw SyncFailure(error) }
    }

    private func run(endsWhenQuiet: Bool) async throws(SyncFailure) {
        let inbox = AgentInbox()
        var observation: (any ChangeObservation)?
        // Each round of a run that ends when it is quiet looks at what programs have written.
        if !endsWhenQuiet {
            do throws(KeychainFailure) {
                observation = try keychain.observeChanges { inbox.send(.keychainChanged) }
            } catch {
                throw SyncFailure(error)
            }
        }
        let storage = storage
        let hints = Task {
            for await change in storage.storage.changes() { inbox.send(.storageChanged(change)) }
        }
        defer {
            hints.cancel()
            observation?.cancel()
            // Nothing else in this call uses the agent to its end, so the lock could be released with it.
            withExtendedLifetime(lock) {}
        }
        if endsWhenQuiet { await host.allowLargeSteps() }
        let loop = AgentLoop(host, storage, clock: clock, inbox: inbox)
        let result = await withTaskCancellationHandler {
            await Self.result { () async throws(SyncFailure) in try await loop.run(endsWhenQuiet: endsWhenQuiet) }
        } onCancel: {
            inbox.send(.stop)
        }
        try result.get()
    }

    private static func result(
        _ body: () async throws(SyncFailure) -> Void
    ) async -> Result<Void, SyncFailure> {
        do throws(SyncFailure) { return .success(try await body()) } catch { return .failure(error) }
    }
}
#endif
