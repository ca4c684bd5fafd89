// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import Synchronization

/// The keychains of all users, one directory each.
///
/// A keychain gets here by its adoption, and is used by programs whose signposts name it.
final class UserKeychains: Sendable {
    private struct Entry {
        let used: UsedKeychain
        var connectionCount = 0
        /// The identifier of the store, once a program has named it.
        var storeID: StoreID?
    }

    private struct State {
        var entries: [UInt32: Entry] = [:]
        /// The users without a connection whose keychains are open, the one that was used last at the end.
        var unused: [UInt32] = []
        /// The users whose keychains may be unlocked: the keys of a keychain that is closed stay in memory.
        var used: Set<UInt32> = []
        /// The users whose keychains are being handed over.
        var inHandover: Set<UInt32> = []
    }

    /// How many keychains stay open without a connection: each takes descriptors and memory, and opening it again takes time.
    private static let largestUnusedCount = 16

    private let directory: String
    private let quota: StoreQuota?
    private let fingerprints: Fingerprints?
    private let state = Mutex(State())

    /// Creates the keychains below an absolute path, in directories that are named by the numbers of the users.
    ///
    /// `quota` is that of each user; `fingerprints` verifies fingers.
    init(in directory: String, quota: StoreQuota? = nil, fingerprints: Fingerprints? = nil) {
        self.fingerprints = fingerprints
        self.directory = directory
        self.quota = quota
    }

    func stage(ofUser user: UInt32) -> HandoverStage { HandoverStage(directory: "\(directory)/\(user)") }

    // MARK: Use

    /// Returns the keychain of a user, with the entitlements of no program, for a connection that calls `endUse` at its end.
    ///
    /// `storeID` is the store that the program's signpost names, if it has one. Throws `.notAvailable` for another store or none, with the cause
    /// `.notKept`, while the keychain is handed over, for a user that the machine does not know, because a process of a container may have any
    /// number, and if the user database cannot be read.
    func beginUse(ofUser user: UInt32, storeID: StoreID?) throws(KeychainFailure) -> UsedKeychain {
        // Otherwise any program could make a keychain here, and nothing else would use it.
        guard let storeID else { throw Self.notKept }
        let used = try beginUse(ofUser: user)
        do throws(KeychainFailure) {
            try requireUsable(used.keychain, ofUser: user, storeID: storeID)
            return used
        } catch {
            endUse(ofUser: user)
            throw error
        }
    }

    private func requireUsable(_ keychain: LocalKeychain, ofUser user: UInt32, storeID: StoreID) throws(KeychainFailure) {
        if state.withLock({ $0.entries[user]?.storeID == storeID }) { return }
        let stage = stage(ofUser: user)
        let kept = try stage.read()
        switch kept {
        case .inUse, .prepared: break
        case .releasing:
            throw KeychainFailure(
                .notAvailable, "keychaind was giving this keychain back when that was interrupted: run `valet daemon release` again as root"
            )
        case .nothing, .incomplete: throw Self.notKept
        }
        do throws(KeychainFailure) {
            guard try keychain.storeID() == storeID else { throw Self.notKept }
        } catch {
            throw error.status == .itemNotFound ? Self.notKept : error
        }
        // The signpost is in place.
        if kept == .prepared { try stage.change(from: .prepared, to: .inUse) }
        state.withLock { $0.entries[user]?.storeID = storeID }
    }

    private static var notKept: KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "keychaind does not keep the keychain to which the signpost of this program points: it may be that of another machine",
            cause: .notKept)
    }

    private func beginUse(ofUser user: UInt32) throws(KeychainFailure) -> UsedKeychain {
        try waitForHandover { state.withLock { !$0.inHandover.contains(user) } }
        let known = state.withLock { state in state.inHandover.contains(user) ? nil : Self.use(user, &state) }
        if let known { return known }
        try Accounts.requireInDatabase(user)
        let made = UsedKeychain(
            keychain: LocalKeychain(
                configuration: configuration(ofUser: user), entitlements: Entitlements(applicationIdentifier: "", origin: "keychaind")),
            grants: UserGrants(inDirectory: "\(directory)/\(user)"), biometry: fingerprints?.user(user))
        return try state.withLock { state throws(KeychainFailure) in
            if state.inHandover.contains(user) { throw Self.inHandover }
            if let known = Self.use(user, &state) { return known }
            state.entries[user] = Entry(used: made, connectionCount: 1)
            state.used.insert(user)
            return made
        }
    }

    /// Calls `body` with the keychain of a user, with the entitlements of no program.
    ///
    /// Throws `.itemNotFound` if there is none in use.
    func withKeychainInUse(ofUser user: UInt32, _ body: (LocalKeychain) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        func requireInUse() throws(KeychainFailure) {
            guard try stage(ofUser: user).read() == .inUse else {
                throw KeychainFailure(.itemNotFound, "keychaind keeps no keychain of user \(user)")
            }
        }
        // Before as well, so that a user without a keychain takes no place among the open ones.
        try requireInUse()
        let used = try beginUse(ofUser: user)
        defer { endUse(ofUser: user) }
        let keychain = used.keychain.with(entitlements: used.keychain.entitlements, biometry: used.biometry)
        // A handover may have ended meanwhile. From here on none can begin.
        try requireInUse()
        try body(keychain)
    }

    /// Locks the keychain of a user, or those of all users, for what can be read only while it is unlocked.
    ///
    /// Tries all of them at the same time, so that a slow one delays no other, and throws one of the failures.
    func lock(ofUser user: UInt32?) throws(KeychainFailure) {
        let users = state.withLock { $0.used.filter { user == nil || $0 == user } }
        let failures = ThreadGroup.results(for: Array(users)) { [self] user in lockKeychain(ofUser: user) }
        if let failure = failures.lazy.compactMap(\.self).first { throw failure }
    }

    private func lockKeychain(ofUser user: UInt32) -> KeychainFailure? {
        // After the keys are gone, for which a release of the scan comes too late.
        defer { fingerprints?.user(user).sessionWasLocked() }
        do throws(KeychainFailure) {
            // Not only if it is unlocked: a keychain that cannot be read loses its keys too.
            try withKeychainInUse(ofUser: user) { keychain throws(KeychainFailure) in try keychain.lock(.whenUnlocked) }
            return nil
        } catch {
            // Without a passcode nothing is locked, and a keychain that was given back is not unlocked here.
            return error.refusal == .passcodeNotSet || error.status == .itemNotFound ? nil : error
        }
    }

    private static func use(_ user: UInt32, _ state: inout State) -> UsedKeychain? {
        state.unused.removeAll { $0 == user }
        state.entries[user]?.connectionCount += 1
        return state.entries[user]?.used
    }

    func endUse(ofUser user: UInt32) {
        // Closed outside the lock.
        var closed: LocalKeychain?
        state.withLock { state in
            state.entries[user]?.connectionCount -= 1
            guard state.entries[user]?.connectionCount == 0 else { return }
            state.unused.append(user)
            guard state.unused.count > Self.largestUnusedCount else { return }
            closed = state.entries.removeValue(forKey: state.unused.removeFirst())?.used.keychain
        }
        withExtendedLifetime(closed) {}
    }

    /// Returns the memory of the keychains that were not used since the last call to the system.
    func releaseUnusedMemory() {
        let keychains = state.withLock { $0.entries.values.map(\.used.keychain) }
        // Each of them, not the first one only.
        let releasedCount = keychains.count { $0.releaseMemoryIfUnused() }
        if releasedCount > 0 { CurrentProcess.returnFreeMemory() }
    }

    func configuration(ofUser user: UInt32) -> KeychainConfiguration {
        var configuration = KeychainConfiguration(home: "\(directory)/\(user)")
        // The kernel's keyrings have room for some keys only, and all users' keys are those of one user here.
        configuration.keyHolder = .processMemory
        configuration.presencePrompter = NoPrompter()
        // A prompt of one user keeps no other user's waiting.
        configuration.promptLock = TimedLock()
        configuration.quota = quota
        return configuration
    }

    // MARK: Handover

    /// Keeps programs from using the keychain of a user until `endHandover`, and waits until none does.
    ///
    /// `endConnections` ends those that the user's programs have. Throws `.notAvailable` if one takes too long, or if the keychain is being handed
    /// over already.
    func beginHandover(ofUser user: UInt32, endConnections: () -> Void = {}) throws(KeychainFailure) {
        try Accounts.requireInDatabase(user)
        // One of them may be adopting a keychain.
        endConnections()
        try waitForHandover { state.withLock { $0.inHandover.insert(user).inserted } }
        endConnections()
        let deadline = Deadline.after(seconds: Self.handoverTimeoutSeconds)
        while true {
            var closed: LocalKeychain?
            let isFree = state.withLock { state in
                guard state.entries[user]?.connectionCount ?? 0 == 0 else { return false }
                state.unused.removeAll { $0 == user }
                closed = state.entries.removeValue(forKey: user)?.used.keychain
                return true
            }
            withExtendedLifetime(closed) {}
            if isFree { return }
            guard !deadline.isOver else {
                endHandover(ofUser: user)
                throw KeychainFailure(.notAvailable, "a program of the user has been using the keychain for too long", cause: .busy)
            }
            MonotonicClock.sleep(nanoseconds: 1_000_000)
        }
    }

    /// Returns what there is of the keychain of a user, and its identifier if it is complete.
    ///
    /// Throws `.notAvailable` while it is handed over.
    func keptKeychain(ofUser user: UInt32) throws(KeychainFailure) -> (KeptKeychain, storeID: StoreID?) {
        let kept = try stage(ofUser: user).read()
        switch kept {
        case .nothing, .incomplete: return (kept, nil)
        case .inUse, .prepared, .releasing:
            let keychain = try beginUse(ofUser: user).keychain
            defer { endUse(ofUser: user) }
            return (kept, try keychain.storeID())
        }
    }

    /// The users with a directory, which may have a keychain in it; best effort.
    var users: Set<UInt32> { Set(((try? FileSystem.names(in: directory)) ?? []).compactMap { UInt32($0) }) }

    /// Removes the copies that were not complete when keychaind ended; best effort.
    func removeIncompleteCopies() {
        for user in users { stage(ofUser: user).removeIncomplete() }
    }

    func endHandover(ofUser user: UInt32) { state.withLock { _ = $0.inHandover.remove(user) } }

    private static let handoverTimeoutSeconds: UInt32 = 30

    /// Waits for a handover that is about to end, because its program has just ended.
    private func waitForHandover(_ isOver: () -> Bool) throws(KeychainFailure) {
        let deadline = Deadline.after(seconds: 2)
        while !isOver() {
            guard !deadline.isOver else { throw Self.inHandover }
            MonotonicClock.sleep(nanoseconds: 1_000_000)
        }
    }

    private static var inHandover: KeychainFailure {
        KeychainFailure(.notAvailable, "the keychain is being handed over between keychaind and its user", cause: .busy)
    }
}

/// keychaind has neither a terminal nor a display: it asks a person only through the agent of a program.
private struct NoPrompter: PresencePrompter {
    var canAsk: Bool { false }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        throw .promptUnavailable("no program has called that could ask a person")
    }
}
