// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Dispatch
package import KeychainCore
package import KeychainEngine
package import SyncCore
internal import Synchronization

/// This device's engine and the keychain that it works on, one step at a time.
///
/// A step blocks for a transaction of the store, so the actor runs on a queue of its own, and not on the threads of all tasks.
package actor EngineHost {
    let keychain: LocalKeychain
    let clock: any WallClock
    private let sealsChanges: Bool
    private var limits = SyncLimits()
    private let executor = QueueExecutor()
    private var keys: LoadedDeviceKeys?
    /// As it was when the keys were read.
    private var lockState: LockState?
    /// Whether the keychain was found neither locked nor unlocked since then, so that the next step need not read them again.
    private var areKeysCurrent = false
    /// Nil before the first step, and after a step whose transaction was rolled back: then a new engine continues from the ledger.
    private var engine: SyncEngine?
    /// Batches that were created since the last step.
    private var unrecorded: [SyncEvent] = []
    /// What the ledger says after each step of this engine.
    ///
    /// Another process than the agent's may perform a command. This engine then remembers an earlier state of the ledger, for example a device that
    /// is no member any more.
    private let id: [UInt8]

    // The actor keeps its executor.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// `sealsChanges`: whether local changes are sealed and sent.
    package init(_ keychain: LocalKeychain, clock: any WallClock, sealsChanges: Bool = true) {
        self.keychain = keychain
        self.clock = clock
        self.sealsChanges = sealsChanges
        var random = SystemRandomNumberGenerator()
        id = Identifier128(high: random.next(), low: random.next()).bytes
    }

    /// Lets a step fold and apply thousands of writes, because a person waits for them.
    ///
    /// Each of them changes a page of several indexes, and a page that changes several times in a transaction is written once. Programs that write wait
    /// for a part of a second. All batches that are read at the same time can be held, in whatever order they arrive: one that could not would be read
    /// again alone, and so would those that follow it.
    func allowLargeSteps() {
        limits.foldedRecords = 8_192
        limits.heldByteCount = 16 << 20
    }

    /// Handles events in one transaction, and returns what has to be done now that it is committed.
    ///
    /// Throws `.notAvailable` if this device is in no circle, `.interactionNotAllowed` if the keychain was not unlocked since the machine was started,
    /// and the errors of the store.
    package func step(_ events: [SyncEvent]) throws(KeychainFailure) -> [SyncEffect] {
        // First, or a round would create these batches again.
        let events = unrecorded + events
        let rereadsKeys = events.contains { $0.isChangeOfItems ? !areKeysCurrent : $0.mayFollowUnlock }
        areKeysCurrent = false
        let effects = try transact(rereadsKeys: rereadsKeys) {
            engine, now, transaction, isContinued throws(KeychainFailure) in
            var entropy = SystemRandomNumberGenerator()
            var effects: [SyncEffect] = []
            // What an engine before this one had asked for is asked for again.
            for event in isContinued || events.contains(where: \.isCommand) ? events : [.wake] {
                // The listing that the change of items asks for was made after it.
                if case .listed(let folder, _) = event, events.contains(where: \.isChangeOfItems) {
                    effects.removeAll { $0 == .list(folder) }
                }
                effects += try engine.step(event, now: now, entropy: &entropy, in: transaction)
            }
            return effects
        }
        unrecorded = []
        return effects
    }

    /// Lets the next step record that batches were created; returns false if other objects wait for that.
    ///
    /// Until then, the ledger has the batch, and an agent that is started again creates it again. So a change costs one transaction and not two while
    /// others follow soon.
    func delay(_ events: [SyncEvent]) -> Bool {
        guard !events.isEmpty, events.allSatisfy(\.isCreationOfBatch), engine?.isEverythingBeingCreated == true else { return false }
        unrecorded += events
        return true
    }

    var hasUnrecordedCreations: Bool { !unrecorded.isEmpty }

    /// Writes the checkpoint that is due.
    ///
    /// Its pieces are written in many transactions, between which programs write.
    func writeCheckpoint() throws(KeychainFailure) -> [SyncEffect] {
        guard let writer = engine?.checkpointWriter else { return [] }
        let outcome = try keychain.readSynchronized { ledger, items throws(KeychainFailure) in
            guard try ledger.setting(.engine) == id else { return CheckpointOutcome.outdated }
            return try writer.write(ledger, items) { objects throws(KeychainFailure) in
                try keychain.synchronize { ledger, items throws(KeychainFailure) in
                    guard try ledger.setting(.engine) == id else { return false }
                    // The snapshot is from before a lock.
                    for lane in Lane.allCases where try !items.isAvailable(lane) { return false }
                    for object in objects { try ledger.insert(object) }
                    return true
                }
            }
        }
        return try step([.checkpoint(outcome)])
    }

    /// Does what a person has asked for.
    ///
    /// An exchange sends what follows from it.
    package func perform(_ command: SyncCommand) throws(SyncFailure) {
        do throws(KeychainFailure) { _ = try step([.command(command)]) } catch { throw SyncFailure(command: error) }
    }

    /// Runs `body` with the engine, the time, and a transaction.
    ///
    /// The last argument is whether the engine has made the last step on this ledger, so that it knows the objects in the storage.
    func transact<Result>(
        rereadsKeys: Bool = true,
        _ body: (inout SyncEngine, Double, SyncTransaction, _ isContinued: Bool) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let keys = try currentKeys(rereads: rereadsKeys)
        var next: SyncEngine?
        let result = try keychain.synchronize { ledger, items throws(KeychainFailure) in
            // `body` may run again after a rollback.
            next = nil
            let isLast = try ledger.setting(.engine) == id
            if !isLast { try ledger.set(.engine, to: id) }
            let isContinued = isLast && engine != nil
            // Nothing else may refer to what it remembers, which a step would otherwise copy.
            var engine = if isContinued, let taken = engine.take() { taken } else { try makeEngine(keys, ledger) }
            self.engine = nil
            let transaction = SyncTransaction(ledger: ledger, items: items)
            let result = try body(&engine, clock.now(), transaction, isContinued)
            next = engine
            return result
        }
        engine = next
        return result
    }

    /// What has happened to the keychain since the last step.
    enum Changes {
        case none
        /// Only that a program has changed items that synchronize.
        case items
        /// Also that it was locked or unlocked, or that a person has asked another process for something. Neither waits for the storage.
        case others
    }

    /// Returns what has changed since the last step; `.others` if that cannot be found out: the step then fails with the reason.
    func changes() -> Changes {
        do throws(KeychainFailure) {
            guard try keychain.sessionStatus().state == lockState else { return .others }
            return try keychain.readLedger { ledger throws(KeychainFailure) in
                if try ledger.setting(.engine) != id { return .others }
                guard try ledger.hasRecordedChanges() else { return .none }
                areKeysCurrent = true
                return .items
            }
        } catch {
            return .others
        }
    }

    /// Returns whether no change by a program waits to be sent.
    func isAllSent() throws(KeychainFailure) -> Bool {
        try keychain.readLedger { ledger throws(KeychainFailure) in
            guard try !ledger.hasRecordedChanges() else { return false }
            for lane in Lane.allCases where try !ledger.pendingVersions(in: lane, limit: 1).isEmpty { return false }
            return try !ledger.outgoingNames().contains { name in
                ObjectName(name)?.folder == .batches && !unrecorded.contains { if case .created(name) = $0 { true } else { false } }
            }
        }
    }

    /// Whether this device was removed from its circle, as far as the last step knows.
    var isRemoved: Bool { engine.map { $0.roster?.removed.contains($0.membership.device) == true } ?? false }

    /// Returns when the credential of this machine expires; nil if it has none.
    func credentialExpiration() throws(KeychainFailure) -> Double? {
        try keychain.readLedger { ledger throws(KeychainFailure) in try ReaderCredential.expiration(in: ledger) }
    }

    private func makeEngine(_ keys: LoadedDeviceKeys, _ ledger: any SyncReading) throws(KeychainFailure) -> SyncEngine {
        guard let membership = try Membership.stored(in: ledger) else {
            throw KeychainFailure(.notAvailable, "this device is in no circle", subject: .store)
        }
        var engine = SyncEngine(cipher: LocalKeychain.circleCipher, keys: keys, membership: membership, limits: limits)
        engine.sealsChanges = sealsChanges
        return engine
    }

    /// Returns this device's keys, read again at events that may follow a lock or an unlock.
    private func currentKeys(rereads: Bool) throws(KeychainFailure) -> LoadedDeviceKeys {
        if !rereads, let keys { return keys }
        lockState = try keychain.sessionStatus().state
        let loaded = try keychain.deviceKeys()
        if let keys {
            keys.replace(with: loaded)
            return keys
        }
        let keys = LoadedDeviceKeys(loaded)
        self.keys = keys
        return keys
    }
}

extension SyncEvent {
    fileprivate var isCreationOfBatch: Bool { if case .created(let name) = self { ObjectName(name)?.folder == .batches } else { false } }

    fileprivate var isChangeOfItems: Bool { if case .itemsChanged = self { true } else { false } }

    fileprivate var mayFollowUnlock: Bool {
        switch self {
        case .listed, .appeared, .read, .created, .failed, .checkpoint: false
        case .wake, .itemsChanged, .command: true
        }
    }
}

/// The keys of this device as they were read last: without those of locked lanes.
private final class LoadedDeviceKeys: CircleDeviceKeys {
    private let loaded: Mutex<any CircleDeviceKeys>

    init(_ keys: any CircleDeviceKeys) { loaded = Mutex(keys) }

    func replace(with keys: any CircleDeviceKeys) { loaded.withLock { $0 = keys } }

    private var current: any CircleDeviceKeys { loaded.withLock { $0 } }

    var publicKeys: DevicePublicKeys { current.publicKeys }

    func sign(_ message: [UInt8]) throws(KeychainFailure) -> [UInt8] { try current.sign(message) }

    func openBox(_ box: [UInt8], binding: LaneKeyBox.Binding) throws(KeychainFailure) -> SharedSecretBytes {
        try current.openBox(box, binding: binding)
    }
}

/// Runs the jobs of one actor on a queue, which always has a thread.
private final class QueueExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "keychain.sync")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Each job is run exactly once, by the executor that it was enqueued on.
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
#endif
