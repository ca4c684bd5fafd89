// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// Synchronization of a keychain with a person's other devices.
///
/// The devices of a person form a circle, and exchange encrypted objects through a ``SyncStorage`` that all of them can reach. Items of iCloud
/// valets, and all others with `kSecAttrSynchronizable`, are shared; items for this device only never leave it.
///
/// ```swift
/// let folder = try await FolderStorage.make(path: "/srv/sync/keychain")
/// let start = try await KeychainSync.start(on: folder, deviceName: "spaceball-one")
/// print(start.recoveryKit.text)
/// ```
///
/// The calls work on the keychain of the process's user, without an agent or beside one that runs in this or another process. ``SyncAgent``
/// carries changes for as long as it runs. Without one, programs read and write the keychain as ever, and nothing is sent.
public enum KeychainSync {
    /// Founds a circle with this device as its first owner.
    ///
    /// From now on the items that synchronize are shared with every device that is invited. Programs of versions without synchronization
    /// can no longer write to this keychain, until it leaves the circle.
    ///
    /// - Parameters:
    ///   - storage: The storage of the circle, which must not have one yet.
    ///   - deviceName: The name of this device for people: 1 to 64 bytes of UTF-8, visible characters with single spaces between them.
    /// - Returns: The recovery kit, which a person has to store now, and what is shared.
    /// - Throws: `.alreadyStarted`, `.circleExists`, `.invalidInput` for the name, `.storage`, `.locked`, and `.keychain`.
    public static func start(on storage: any SyncStorage, deviceName: String) async throws(SyncFailure) -> SyncStart {
        let local = try LocalCircle.current()
        let name = try LocalCircle.deviceName(deviceName)
        try local.requireNoCircle()
        guard try await circles(in: storage).isEmpty else {
            throw SyncFailure(.circleExists, "\(storage.location) has a circle already")
        }
        let cipher = LocalCircle.cipher
        let keys = try local.attempt { () throws(KeychainFailure) in try cipher.makeDeviceKeys() }
        try local.enter(keys, at: storage) { ledger throws(KeychainFailure) in
            _ = try Membership.found(name: name, keys: keys, nonce: try cipher.randomBytes(32), cipher: cipher, in: ledger)
        }
        let kit = try await admitRecoveryKit(in: local)
        let unsent = await local.exchange(over: storage)
        return SyncStart(recoveryKit: kit, sharedItemCount: try local.counts().shared, unsent: unsent)
    }

    /// Makes a recovery kit in place of the present one, which can no longer be used.
    ///
    /// If it throws, the present kit can still be used.
    ///
    /// - Parameter storage: The storage of the circle.
    /// - Returns: The kit, which a person has to store now.
    /// - Throws: `.notStarted`, `.notOwner`, `.removed` or `.unconfirmed` if this device is no member, `.storage` if the kit cannot be sent, `.locked`, and
    ///   `.keychain`.
    public static func makeRecoveryKit(on storage: any SyncStorage) async throws(SyncFailure) -> SyncSecret {
        let local = try LocalCircle.current()
        let former = try local.roster().members.filter(\.value.isRecoveryKit).keys.sorted()
        let host = EngineHost(local.keychain, clock: local.clock)
        let kit = try await admitRecoveryKit(in: local)
        do throws(SyncFailure) {
            // A kit of which the storage does not know recovers nothing, so the present one is removed afterwards.
            try await local.sendStatements(over: storage)
        } catch {
            // Best effort: the code of this kit was shown to no person, so it does no harm if it stays.
            if let keys = try? LocalCircle.cipher.deviceKeys(ofRecoveryKit: kit.bytes) {
                let device = DeviceID(of: keys.publicKeys, role: .recoveryKit, cipher: LocalCircle.cipher)
                _ = try? await host.perform(.remove(device))
            }
            throw error
        }
        for device in former { try await host.perform(.remove(device)) }
        _ = await local.exchange(over: storage)
        return kit
    }

    /// Uses another storage for the circle of this keychain, for example after its folder was moved.
    ///
    /// The other devices are not affected: each has its own folder, or its own way to the storage.
    ///
    /// - Parameter storage: The storage, which has the circle already.
    /// - Throws: `.notStarted`; `.noCircle` if the storage does not have the circle of this keychain; `.agentRunning` while an agent runs; `.storage`,
    ///   `.locked`, and `.keychain`.
    public static func move(to storage: any SyncStorage) async throws(SyncFailure) {
        let local = try LocalCircle.current()
        let circle = try local.membership().circle
        guard try await circles(in: storage).contains(circle) else {
            throw SyncFailure(.noCircle, "\(storage.location) does not have circle \(groups(of: circle)) of this device")
        }
        guard let lock = try local.attempt({ () throws(KeychainFailure) in try local.keychain.lockForAgent() }) else {
            throw SyncFailure(.agentRunning, "an agent synchronizes this keychain; stop it first")
        }
        try local.noteLocation(of: storage)
        withExtendedLifetime(lock) {}
    }

    /// Lets the next synchronization look at all items, and restore those that are damaged or lost from the storage.
    ///
    /// An agent does that by itself once a day. A running one begins at once. A million items take half a minute.
    ///
    /// - Throws: `.notStarted`, `.locked` if the keychain was not unlocked since the machine was started, and `.keychain`.
    public static func checkItems() async throws(SyncFailure) {
        let local = try LocalCircle.current()
        _ = try local.membership()
        try await EngineHost(local.keychain, clock: local.clock).perform(.checkContents)
    }

    /// Takes this keychain out of its circle.
    ///
    /// The items stay, and the storage is not touched. If the keychain enters the circle again, only what was written since is shared; what was
    /// deleted there meanwhile does not come back. See ``unsharedItems()``.
    ///
    /// What was not sent yet is not sent any more. The other devices still list this one until an owner removes it. Older programs can write to the
    /// keychain again.
    ///
    /// - Returns: The number of items that synchronized.
    /// - Throws: `.notStarted`, `.agentRunning` while an agent runs, `.locked`, and `.keychain`.
    @discardableResult
    public static func leave() throws(SyncFailure) -> Int {
        let local = try LocalCircle.current()
        _ = try local.membership()
        let counts = try local.counts()
        let lock: AgentLock?
        do throws(KeychainFailure) {
            lock = try local.keychain.lockForAgent()
            if lock != nil { try local.leave() }
        } catch {
            throw SyncFailure(error)
        }
        guard let lock else { throw SyncFailure(.agentRunning, "an agent synchronizes this keychain; stop it first") }
        withExtendedLifetime(lock) {}
        return counts.shared + counts.unshared
    }

    /// Returns whether this keychain is alone in its circle, and the storage has another circle: two devices may each have begun one.
    package static func isAloneBesideAnotherCircle(in storage: any SyncStorage) async throws(SyncFailure) -> Bool {
        let local = try LocalCircle.current()
        let circle = try local.membership().circle
        guard try local.roster().members.values.count(where: { !$0.isRecoveryKit }) == 1 else { return false }
        return try await circles(in: storage).contains { $0 != circle }
    }

    static func circles(in storage: any SyncStorage) async throws(SyncFailure) -> [CircleID] {
        do throws(SyncStorageError) { return try await CircleStorage.circles(in: storage) } catch { throw SyncFailure(error) }
    }

    static func admitRecoveryKit(in local: LocalCircle) async throws(SyncFailure) -> SyncSecret {
        let kit = try local.attempt { () throws(KeychainFailure) in try LocalCircle.cipher.makeRecoveryKit() }
        try await EngineHost(local.keychain, clock: local.clock).perform(.admitRecoveryKit(kit))
        return try local.attempt { () throws(KeychainFailure) in try SyncSecret(kit, as: .recoveryKit) }
    }
}

/// What a person has to know after a circle was founded.
public struct SyncStart: Sendable {
    /// The recovery kit: nine groups of four characters.
    ///
    /// With it and the storage a person can read everything, also when all devices are lost.
    ///
    /// It is stored nowhere. ``KeychainSync/makeRecoveryKit(on:)`` makes another one.
    public let recoveryKit: SyncSecret
    /// The number of items that are shared from now on.
    public let sharedItemCount: Int
    /// Why not everything was sent yet; nil if it was.
    ///
    /// An agent sends the rest.
    public let unsent: SyncFailure?
}
#else
/// On Apple platforms the system synchronizes: iCloud Keychain has the items of iCloud valets.
@available(*, unavailable, message: "iCloud Keychain synchronizes on Apple platforms; use KeychainSync in `#if !canImport(Darwin)`")
public enum KeychainSync {}
#endif
