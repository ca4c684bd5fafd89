// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import SyncCore

/// The keychain of this process, and what its ledger knows about the circle.
struct LocalCircle: Sendable {
    let keychain: LocalKeychain
    let clock: any WallClock

    static var cipher: any CircleCipher { LocalKeychain.circleCipher }

    /// The keychain bound to the task; without one, the keychain of the process's user.
    static func current() throws(SyncFailure) -> LocalCircle {
        let engine: LocalKeychain?
        do throws(KeychainFailure) { engine = try DefaultKeychain.engine() } catch { throw SyncFailure(error) }
        guard let keychain = engine else {
            throw SyncFailure(.keychain, "this keychain cannot be synchronized")
        }
        return LocalCircle(keychain: keychain, clock: SystemWallClock())
    }

    /// Runs `body`, and translates its failure.
    func attempt<Result>(_ body: () throws(KeychainFailure) -> Result) throws(SyncFailure) -> Result {
        do throws(KeychainFailure) { return try body() } catch { throw SyncFailure(error) }
    }

    /// The membership of this device; nil if the keychain is in no circle, or if there is no keychain.
    func membershipIfAny() throws(SyncFailure) -> Membership? {
        do throws(KeychainFailure) {
            guard try keychain.isSynchronizing() else { return nil }
            return try keychain.readLedger { ledger throws(KeychainFailure) in try Membership.stored(in: ledger) }
        } catch {
            if error.status == .itemNotFound { return nil }
            throw SyncFailure(error)
        }
    }

    /// The membership of this device.
    ///
    /// Throws `.notStarted` if the keychain is in no circle.
    func membership() throws(SyncFailure) -> Membership {
        guard let membership = try membershipIfAny() else { throw .notStarted }
        return membership
    }

    /// Throws `.alreadyStarted` if the keychain is in a circle.
    func requireNoCircle() throws(SyncFailure) {
        guard try membershipIfAny() == nil else { throw SyncFailure(.alreadyStarted, "this keychain is in a circle already") }
    }

    /// Throws `.locked` unless every item can be read and written; a keychain that does not exist yet is not locked.
    func requireUnlocked() throws(SyncFailure) {
        do throws(KeychainFailure) {
            guard try keychain.sessionStatus().state != .unlocked else { return }
        } catch {
            if error.status == .itemNotFound { return }
            throw SyncFailure(error)
        }
        throw SyncFailure(.locked, "the keychain is locked")
    }

    /// The roster, as the ledger has it.
    ///
    /// Throws `.notStarted` if the keychain is in no circle.
    func roster() throws(SyncFailure) -> Roster {
        let membership = try membership()
        return try readLedger { ledger throws(KeychainFailure) in try Roster.stored(in: ledger, membership.circle, Self.cipher) }
    }

    func readLedger<Result>(
        _ body: (any SyncStoreReading) throws(KeychainFailure) -> Result
    ) throws(SyncFailure) -> Result {
        try attempt { () throws(KeychainFailure) in try keychain.readLedger(body) }
    }

    /// Turns synchronization on, makes keys for this device, and stores what `body` stores.
    ///
    /// Turns it off again if that fails. If the keychain was in `circle` before, it shares only what was written since.
    func enter(
        _ keys: any CircleDeviceKeys, at storage: any SyncStorage, again circle: CircleID? = nil,
        _ body: (any SyncWriting) throws(KeychainFailure) -> Void
    ) throws(SyncFailure) {
        try attempt { () throws(KeychainFailure) in
            try keychain.startSynchronizing()
            do throws(KeychainFailure) {
                try keychain.storeDeviceKeys(keys)
                let record = if let circle { try keychain.formerVersions(of: circle) } else { [UInt8]?.none }
                let former = try record.map { bytes throws(KeychainFailure) in try FormerVersions(stored: bytes) }
                try keychain.synchronize { ledger, _ throws(KeychainFailure) in
                    try body(ledger)
                    try former?.store(in: ledger)
                    try ledger.set(.storage, to: Array(storage.location.utf8))
                }
            } catch {
                try keychain.stopSynchronizing()
                throw error
            }
        }
    }

    /// Turns synchronization off, and remembers which items the circle has.
    func leave() throws(KeychainFailure) {
        let former = try keychain.readLedger { ledger throws(KeychainFailure) in
            try FormerVersions(leaving: ledger)
        }
        if let former { try keychain.storeFormerVersions(former.encoded, of: former.circle) }
        try keychain.stopSynchronizing()
    }

    /// Sends what waits, and reads what is new, unless an agent runs, which does it.
    ///
    /// Returns why something could not be sent, or, with `reportsUnread`, also why something could not be read; nil if all is well. Without `sealsChanges`
    /// local changes wait.
    func exchange(over storage: any SyncStorage, reportsUnread: Bool = false, sealsChanges: Bool = true) async -> SyncFailure? {
        do throws(SyncFailure) {
            try await SyncAgent(keychain, on: storage, clock: clock, sealsChanges: sealsChanges).runUntilQuiet()
            return nil
        } catch {
            switch error.code {
            case .agentRunning: return nil
            case .deletionsWait, .newerVersion: return reportsUnread ? error : nil
            default: return error
            }
        }
    }

    /// Sends what this device has stated about the circle, and waits for it if an agent does it.
    ///
    /// Throws `.storage` if it is not sent.
    func sendStatements(over storage: any SyncStorage) async throws(SyncFailure) {
        let failure = await exchange(over: storage)
        let deadline = Deadline.after(milliseconds: Self.agentTimeoutMilliseconds)
        while try hasUnsentStatements() {
            if let failure { throw failure }
            guard !deadline.isOver, (try? await Task.sleep(for: .milliseconds(20))) != nil else {
                throw SyncFailure(.storage, "\(storage.location) did not get what this device has stated")
            }
        }
    }

    private static let agentTimeoutMilliseconds: UInt64 = 20_000

    private func hasUnsentStatements() throws(SyncFailure) -> Bool {
        try readLedger { ledger throws(KeychainFailure) in
            try ledger.outgoingNames().contains { ObjectName($0)?.folder == .statements }
        }
    }

    /// Parses the name of a device.
    static func deviceName(_ text: String) throws(SyncFailure) -> DeviceName {
        guard let name = DeviceName(text) else {
            throw SyncFailure(
                .invalidInput,
                "a device name has 1 to \(DeviceName.largestByteCount) bytes of visible characters, with single spaces between them")
        }
        return name
    }
}
#endif
