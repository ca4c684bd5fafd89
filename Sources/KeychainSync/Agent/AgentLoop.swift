// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import Logging
internal import SyncCore
internal import Synchronization

/// Turns hints, timers, and results of the storage into events of the engine, and performs what it asks for.
///
/// A round begins only once everything that the one before asked for has ended, so however many hints come, one more round follows.
///
/// It runs on the queue of the host, so that calling the host does not wake another thread.
actor AgentLoop {
    private let host: EngineHost
    private let storage: CircleStorage
    private let clock: any WallClock
    private let inbox: AgentInbox
    private let log = Logger(label: "keychain.sync")

    private let reportProgress = SyncProgress.current?.report
    private var callCount = 0
    /// How many objects were read or created.
    private var doneCount = 0
    private var isRoundDue = true
    /// The batches of which the storage has told, and that were not handed to the engine.
    private var appeared: Set<String> = []
    /// The batches that this agent has created in the present round, of which it is told too.
    private var created: Set<String> = []
    private var areChangesDue = false
    /// Whether it will be recorded soon which batches were created.
    private var areCreationsDue = false
    private var isStopping = false
    private var endsWhenQuiet = false
    /// Whether the present round has read anything for the first time, or created anything.
    private var hasProgressed = false
    /// What has been read, if the loop ends when nothing is left: each round reads again what is of no use.
    private var readNames: Set<String> = []
    private var timer: (time: Double, task: Task<Void, Never>)?
    private var failureCount = 0
    /// The kind of error of the storage that was logged last; nil after a round without an error.
    private var loggedError: SyncStorageError.Code?
    /// The first error in the present round.
    private var roundError: SyncStorageError?
    /// When the credential of this machine expires, in seconds since 2001-01-01 00:00:00 UTC; nil if it has none.
    private var credentialExpiration: Double?
    /// The alarms that were logged.
    private var alarms: Set<SyncAlarm> = []
    /// The alarms of the present round.
    private var roundAlarms: Set<SyncAlarm> = []
    /// Whether the ledger has no alarms.
    private var areAlarmsClear = false
    /// Why the last round could not use the storage, as stored in the ledger: an empty text if it could, nil if it is not known what is stored.
    private var storedFailure: String?
    /// Whether the present round looks at everything in the storage.
    private var isRoundFull = false
    /// The first alarm in the present round that ends a run which ends when it is quiet.
    private var roundAlarm: SyncFailure?

    init(_ host: EngineHost, _ storage: CircleStorage, clock: any WallClock, inbox: AgentInbox) {
        self.host = host
        self.storage = storage
        self.clock = clock
        self.inbox = inbox
    }

    deinit { timer?.task.cancel() }

    // The loop keeps the host, which keeps its executor.
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe host.unownedExecutor }

    /// Handles inputs until it is stopped or, with `endsWhenQuiet`, until a round has nothing to do.
    ///
    /// Waits for the calls of the storage that have begun, each of which has a deadline. Throws `.removed` and `.expired`, and with `endsWhenQuiet`
    /// also `.storage`, `.deletionsWait`, `.newerVersion`, `.unconfirmed`, and the first failure of the keychain.
    func run(endsWhenQuiet: Bool) async throws(SyncFailure) {
        self.endsWhenQuiet = endsWhenQuiet
        do throws(KeychainFailure) {
            credentialExpiration = try await host.credentialExpiration()
        } catch {
            throw SyncFailure(error)
        }
        try await proceed()
        while true {
            try await handle(await inbox.receive())
            guard callCount == 0 else { continue }
            await storeAlarms()
            if isStopping {
                // If it fails, the next agent creates them again. Whatever else has to be done is found by it, too.
                if await host.hasUnrecordedCreations { _ = try? await host.step([]) }
                return
            }
            // An agent that is started again after its device was removed says so, too.
            if await host.isRemoved { throw Self.removed }
            if endsWhenQuiet, !isRoundDue, appeared.isEmpty, !hasProgressed {
                if let roundError { throw SyncFailure(.storage, roundError.reason) }
                if let roundAlarm { throw roundAlarm }
                return
            }
            try await proceed()
        }
    }

    private func handle(_ inputs: [AgentInput]) async throws(SyncFailure) {
        var events: [SyncEvent] = []
        for input in inputs {
            switch input {
            case .storageChanged(let change): note(change)
            case .keychainChanged: areChangesDue = true
            case .timer:
                timer = nil
                isRoundDue = true
            case .ended(let followers, let error):
                callCount -= 1
                note(error)
                for event in followers { noteProgress(event) }
                events += followers
            case .creationsDue:
                areCreationsDue = false
                if await host.hasUnrecordedCreations { try await step([]) }
            case .stop: isStopping = true
            }
        }
        guard !isStopping else { return }
        if !endsWhenQuiet, await host.delay(events) { return recordCreations() }
        var handledCount = 0
        while handledCount < events.count {
            let group = group(of: events[handledCount...])
            try await step(Array(group))
            handledCount = group.endIndex
        }
    }

    /// The first of `events` that share a transaction, and so a flush: without groups, a flush for each received object takes most of the time.
    ///
    /// A transaction keeps programs from writing, so a group is small while an agent runs: an object of the largest size is alone in its group. A person
    /// waits for a run that ends when it is quiet. There a group has thousands of items, because each of them changes a page of several indexes, and a
    /// page that changes several times is written once.
    private func group(of events: ArraySlice<SyncEvent>) -> ArraySlice<SyncEvent> {
        let largestByteCount = endsWhenQuiet ? 4 << 20 : 32 << 10
        var byteCount = 0
        let end = events.prefix(64).firstIndex { event in
            if case .read(_, let bytes?) = event { byteCount += bytes.count }
            return byteCount > largestByteCount
        }
        guard let end else { return events.prefix(64) }
        return events[..<max(end, events.startIndex + 1)]
    }

    private func noteProgress(_ event: SyncEvent) {
        switch event {
        case .created: hasProgressed = true
        case .read: break
        case .wake, .itemsChanged, .listed, .appeared, .failed, .command, .checkpoint: return
        }
        doneCount += 1
        reportProgress?(doneCount)
    }

    /// Lets a step record within a second what was created, if none does before.
    private func recordCreations() {
        guard !areCreationsDue else { return }
        areCreationsDue = true
        let inbox = inbox
        Task {
            try? await Task.sleep(for: .seconds(1))
            inbox.send(.creationsDue)
        }
    }

    /// Notes the names of new batches; whatever else has changed is found by a round.
    private func note(_ change: SyncStorageChange) {
        let names: [String]
        switch change {
        case .created(let created): names = created
        case .replaced:
            log.warning("the storage went back to an earlier state, or was replaced; what is missing there is sent again")
            isRoundDue = true
            return
        case .unknown:
            isRoundDue = true
            return
        }
        for name in names {
            guard let name = storage.name(of: name) else { continue }
            if ObjectName(name)?.folder != .batches {
                isRoundDue = true
            } else if created.remove(name) == nil {
                appeared.insert(name)
            }
        }
        if appeared.count > SyncStorageChange.largestNameCount { isRoundDue = true }
        // It lists them.
        if isRoundDue { appeared = [] }
    }

    /// Begins what is due, until something is waited for.
    private func proceed() async throws(SyncFailure) {
        repeat { try await beginNext() } while callCount == 0 && (isRoundDue || areChangesDue || !appeared.isEmpty)
    }

    private func beginNext() async throws(SyncFailure) {
        if isRoundDue || endsWhenQuiet {
            if let credentialExpiration, let failure = SyncFailure.expired(credentialExpiration, named: nil, now: clock.now()) {
                throw failure
            }
            isRoundDue = false
            areChangesDue = false
            appeared = []
            created = []
            hasProgressed = false
            if roundError == nil { loggedError = nil }
            roundError = nil
            roundAlarm = nil
            roundAlarms = []
            isRoundFull = true
            // Hints may be lost.
            wake(at: clock.now() + Self.longestPauseSeconds)
            try await step([.wake])
            return
        }
        if areChangesDue {
            areChangesDue = false
            isRoundFull = false
            switch await host.changes() {
            // Most changes are of other items, or this agent's own.
            case .none: break
            case .items:
                // The step asks for this listing. With it, what a program has written is recorded and sealed in one transaction.
                call { objects async throws(SyncStorageError) in [.itemsChanged, .listed(.statements, try await objects.list(.statements))]
                }
            case .others: try await step([.itemsChanged])
            }
        }
        // Also while programs write all the time.
        if !appeared.isEmpty {
            isRoundFull = false
            let names = appeared.sorted()
            appeared = []
            try await step([.appeared(names)])
        }
    }

    private func step(_ events: [SyncEvent]) async throws(SyncFailure) {
        try await perform { host throws(KeychainFailure) in try host.step(events) }
    }

    /// Lets the host take a step, and performs its effects.
    private func perform(
        _ body: @Sendable (isolated EngineHost) throws(KeychainFailure) -> [SyncEffect]
    ) async throws(SyncFailure) {
        let effects: [SyncEffect]
        do throws(KeychainFailure) {
            effects = try await body(host)
            failureCount = 0
        } catch {
            if endsWhenQuiet { throw SyncFailure(error) }
            // What this round does not find may still be the case.
            isRoundFull = false
            // Locked: an unlock is a change of the keychain.
            guard error.status != .interactionNotAllowed else { return }
            failureCount += 1
            if failureCount == 1 { log.warning("synchronization waits: \(error.reason)") }
            wake(at: clock.now() + min(Double(1 << min(failureCount, 6)), 60))
            return
        }
        for effect in effects { try await perform(effect) }
    }

    private func perform(_ effect: SyncEffect) async throws(SyncFailure) {
        switch effect {
        case .list(let folder):
            call { objects async throws(SyncStorageError) in [.listed(folder, try await objects.list(folder))] }
        case .read(let name, let byteCount):
            if endsWhenQuiet, readNames.insert(name).inserted { hasProgressed = true }
            call(orElse: [.failed(name)]) { objects async throws(SyncStorageError) in
                [.read(name, try await objects.read(name, atMost: byteCount))]
            }
        case .create(let name, let bytes):
            if ObjectName(name)?.folder == .batches { created.insert(name) }
            call(orElse: [.failed(name)]) { objects async throws(SyncStorageError) in
                try await objects.create(name, bytes)
                return [.created(name)]
            }
        case .remove(let name):
            call { objects async throws(SyncStorageError) in
                try await objects.remove(name)
                return []
            }
        case .writeCheckpoint: try await perform { host throws(KeychainFailure) in try host.writeCheckpoint() }
        case .wake(let time): if time <= clock.now() { isRoundDue = true } else { wake(at: time) }
        case .alarm(.removed): throw Self.removed
        case .alarm(let alarm): await note(alarm)
        }
    }

    /// Begins a call of the storage, whose end is an input.
    private func call(
        orElse failure: [SyncEvent] = [], _ body: @escaping @Sendable (CircleObjects) async throws(SyncStorageError) -> [SyncEvent]
    ) {
        callCount += 1
        let inbox = inbox
        storage.begin(body) { result in
            switch result {
            case .success(let events): inbox.send(.ended(events, nil))
            case .failure(let error): inbox.send(.ended(failure, error))
            }
        }
    }

    /// Remembers that the storage has failed, and tries again.
    ///
    /// Logs it, if it is not thrown at the end, once until a round succeeds.
    private func note(_ error: SyncStorageError?) {
        guard let error else { return }
        if !endsWhenQuiet, loggedError != error.code {
            loggedError = error.code
            log.warning("synchronization waits: \(error.reason)")
        }
        roundError = roundError ?? error
        wake(at: clock.now() + 30)
    }

    /// Logs an alarm once, unless it is thrown at the end.
    private func note(_ alarm: SyncAlarm) async {
        roundAlarms.insert(alarm)
        let isNew = alarms.insert(alarm).inserted
        guard isNew || endsWhenQuiet else { return }
        let report = await host.report(of: alarm)
        if endsWhenQuiet, let failure = report.failure {
            roundAlarm = roundAlarm ?? failure
        } else if isNew {
            log.warning("\(report.text)")
        }
    }

    /// Stores the alarms of the present round, and the failure of the storage, unless there are and were none.
    private func storeAlarms() async {
        let failure = roundError?.reason ?? ""
        if failure != storedFailure, !isStopping, await host.storeStorageFailure(failure) { storedFailure = failure }
        guard !roundAlarms.isEmpty || !areAlarmsClear else { return }
        areAlarmsClear = await host.store(roundAlarms, isComplete: isRoundFull && roundError == nil && !isStopping)
    }

    private static var removed: SyncFailure { SyncFailure(.removed, "this device was removed from its circle") }

    private static let longestPauseSeconds = 3_600.0

    /// Begins a round at that time, or after an hour: the clock may be set meanwhile.
    private func wake(at time: Double) {
        let time = min(time, clock.now() + Self.longestPauseSeconds)
        if let timer, timer.time <= time { return }
        timer?.task.cancel()
        let seconds = max(time - clock.now(), 0)
        let inbox = inbox
        timer = (
            time,
            Task {
                guard (try? await Task.sleep(for: .seconds(seconds))) != nil else { return }
                inbox.send(.timer)
            }
        )
    }
}

/// What an agent's loop reacts to.
enum AgentInput: Sendable {
    case storageChanged(SyncStorageChange)
    case keychainChanged
    case timer
    /// It has to be recorded which batches were created.
    case creationsDue
    /// A call of the storage has ended, with the events that follow from it.
    case ended([SyncEvent], SyncStorageError?)
    case stop
}

/// The inputs of one loop, in the order in which they were sent.
///
/// An `AsyncStream` ends when the task of its consumer is canceled. The loop then still waits for the calls that have begun. It also takes all
/// inputs at once, so that they can share a transaction.
final class AgentInbox: Sendable {
    private struct State {
        var inputs: [AgentInput] = []
        /// What the storage has told; it may tell faster than the loop listens.
        var change: SyncStorageChange?
        var receiver: CheckedContinuation<[AgentInput], Never>?
    }

    private let state = Mutex(State())

    func send(_ input: AgentInput) {
        let receiver = state.withLock { state -> CheckedContinuation<[AgentInput], Never>? in
            guard let receiver = state.receiver.take() else {
                if case .storageChanged(let change) = input {
                    state.change = state.change?.merged(with: change) ?? change
                } else {
                    state.inputs.append(input)
                }
                return nil
            }
            return receiver
        }
        receiver?.resume(returning: [input])
    }

    /// Waits until there is an input, and takes all that there are.
    ///
    /// There is one receiver.
    func receive() async -> [AgentInput] {
        await withCheckedContinuation { receiver in
            let inputs = state.withLock { state -> [AgentInput] in
                if let change = state.change.take() { state.inputs.append(.storageChanged(change)) }
                guard !state.inputs.isEmpty else {
                    state.receiver = receiver
                    return []
                }
                defer { state.inputs = [] }
                return state.inputs
            }
            if !inputs.isEmpty { receiver.resume(returning: inputs) }
        }
    }
}
#endif
