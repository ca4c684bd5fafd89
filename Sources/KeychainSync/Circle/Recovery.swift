// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// What a person has after a circle was recovered.
public struct SyncRecovery: Sendable {
    /// The recovery kit from now on.
    ///
    /// The one that was used is no longer of use.
    public let recoveryKit: SyncSecret
    /// The number of items that were recovered, with those of this device.
    public let sharedItemCount: Int
    /// The number of items that stay on this device, because the circle, in which it was before, does not have them any more.
    ///
    /// See ``KeychainSync/unsharedItems()``.
    public let unsharedItemCount: Int
    /// The devices that were removed: all that the circle had.
    public let removedDeviceCount: Int
    /// Whether the former devices had deleted so many items that they were brought back.
    public let areDeletionsUndone: Bool
    /// The newest change in the storage; nil if there is none.
    ///
    /// If other changes followed it, the storage was taken back to an earlier state.
    public let newestChange: SyncStatus.Received?
    /// Why not everything was sent yet; nil if it was.
    ///
    /// An agent sends the rest.
    public let unsent: SyncFailure?
}

extension KeychainSync {
    /// Enters a circle with its recovery kit, when all of its devices are lost.
    ///
    /// This device becomes an owner. All other devices are removed, and new keys are made, so a person with a stolen device cannot read what is
    /// written from now on.
    ///
    /// - Parameters:
    ///   - storage: The storage of the circle.
    ///   - recoveryKit: The kit, by ``SyncSecret/recoveryKit(_:)``.
    ///   - deviceName: The name of this device for people: 1 to 64 bytes of UTF-8, visible characters with single spaces between them.
    ///   - acceptsDeletions: Whether items stay deleted of which the former devices have deleted more than 100, and more than a tenth of all. Otherwise
    ///     they are back: a thief may have deleted them.
    /// - Returns: The new kit, which a person has to store now, and what was recovered.
    /// - Throws: `.alreadyStarted`, `.noCircle` if the storage has no circle of this kit, `.invalidInput` for the name, `.storage`,
    ///   `.locked`, and `.keychain`. After an error this device is in no circle, the others may be removed already, and the kit can be used again.
    public static func recover(
        on storage: any SyncStorage, recoveryKit: SyncSecret, deviceName: String, acceptsDeletions: Bool = false
    ) async throws(SyncFailure) -> SyncRecovery {
        let local = try LocalCircle.current()
        let name = try LocalCircle.deviceName(deviceName)
        try local.requireNoCircle()
        let kit = try local.attempt { () throws(KeychainFailure) in
            try LocalCircle.cipher.deviceKeys(ofRecoveryKit: recoveryKit.bytes)
        }
        let founding = try await KitSearch(local, recoveryKit.bytes, kit).founding(in: storage)
        // Until this device is admitted, it is the kit: it reads everything, and then admits itself under new keys.
        let membership = Membership(
            circle: founding.circle, device: DeviceID(of: kit.publicKeys, role: .recoveryKit, cipher: LocalCircle.cipher))
        try local.enter(kit, at: storage, again: founding.circle) { ledger throws(KeychainFailure) in
            try membership.store(name: name, statements: [founding.stored], in: ledger)
        }
        do throws(SyncFailure) {
            let isComplete = try await readAll(in: local, on: storage, acceptsDeletions)
            return try await takeOver(from: membership, in: local, on: storage, name, areDeletionsUndone: !isComplete)
        } catch {
            // What was not sent yet is dropped. The kit is replaced last, so it can be used again. What was read is no local write then.
            try local.attempt { () throws(KeychainFailure) in try local.leave() }
            throw error
        }
    }

    /// Reads what the circle has, and returns whether that is everything: very many deletions may not be wanted.
    ///
    /// What is not read before the other devices are removed is never read: deletions among it would be undone.
    private static func readAll(
        in local: LocalCircle, on storage: any SyncStorage, _ acceptsDeletions: Bool
    ) async throws(SyncFailure) -> Bool {
        // Each confirmation lets at least one more batch be read.
        for _ in 0..<10_000 {
            guard let failure = await local.exchange(over: storage, reportsUnread: true) else { return true }
            switch failure.code {
            case .removed: throw SyncFailure(.noCircle, "the recovery kit was used or replaced; there is a newer one")
            case .deletionsWait:
                guard acceptsDeletions else { return false }
                try await EngineHost(local.keychain, clock: local.clock).perform(.acceptDeletions)
            default: throw failure
            }
        }
        return false
    }

    private static func takeOver(
        from kit: Membership, in local: LocalCircle, on storage: any SyncStorage, _ name: DeviceName, areDeletionsUndone: Bool
    ) async throws(SyncFailure) -> SyncRecovery {
        let members = try local.roster().members
        guard members[kit.device] != nil else {
            throw SyncFailure(.noCircle, "what admits the recovery kit has not arrived in \(storage.location) yet")
        }
        let newest = try status().lastReceived
        let host = EngineHost(local.keychain, clock: local.clock)
        let others = members.keys.filter { $0 != kit.device }.sorted()
        for device in others { try await host.perform(.remove(device)) }
        let keys = try local.attempt { () throws(KeychainFailure) in try LocalCircle.cipher.makeDeviceKeys() }
        try await host.perform(.admit(keys.publicKeys, .owner))
        // What the kit has stated is sent before it is replaced, so that an interruption leaves a kit that can be used again.
        if let failure = await local.exchange(over: storage) { throw failure }
        try local.attempt { () throws(KeychainFailure) in
            try local.keychain.storeDeviceKeys(keys)
            try local.keychain.synchronize { ledger, _ throws(KeychainFailure) in
                let device = DeviceID(of: keys.publicKeys, role: .owner, cipher: LocalCircle.cipher)
                try Membership(circle: kit.circle, device: device).replace(kit, in: ledger)
            }
        }
        let newKit = try await admitRecoveryKit(in: local)
        try await EngineHost(local.keychain, clock: local.clock).perform(.remove(kit.device))
        let unsent = await local.exchange(over: storage)
        let counts = try local.counts()
        return SyncRecovery(
            recoveryKit: newKit, sharedItemCount: counts.shared, unsharedItemCount: counts.unshared,
            removedDeviceCount: others.count { members[$0]?.isRecoveryKit == false }, areDeletionsUndone: areDeletionsUndone,
            newestChange: newest, unsent: unsent)
    }
}

/// Finds the circle of a recovery kit in a storage that may have several.
private struct KitSearch {
    private let local: LocalCircle
    private let kit: SharedSecretBytes
    private let keys: any CircleDeviceKeys

    init(_ local: LocalCircle, _ kit: SharedSecretBytes, _ keys: any CircleDeviceKeys) {
        self.local = local
        self.kit = kit
        self.keys = keys
    }

    /// Returns the circle that has admitted the kit, and its founding statement.
    ///
    /// The code in the admission can be made only with the kit, so no circle is found that was made up.
    func founding(in storage: any SyncStorage) async throws(SyncFailure) -> (circle: CircleID, stored: StoredStatement) {
        for circle in try await KeychainSync.circles(in: storage) {
            let code = try local.attempt { () throws(KeychainFailure) in
                try LocalCircle.cipher.circleCode(circle, recoveryKit: kit)
            }
            var founding: StoredStatement?
            var isAdmitted = false
            for statement in try await statements(of: circle, in: storage) {
                switch statement.body {
                case .found(let body)
                where statement.circle == circle
                    && LocalCircle.cipher.isValid(
                        statement.signature, of: Statement.signedMessage(statement.hash), by: body.keys.signing):
                    founding = StoredStatement(hash: statement.hash, bytes: statement.encoded)
                case .admit(let admission): isAdmitted = isAdmitted || admission.keys == keys.publicKeys && admission.circleCode == code
                default: break
                }
            }
            if isAdmitted, let founding { return (circle, founding) }
        }
        throw SyncFailure(.noCircle, "\(storage.location) has no circle of this recovery kit, or it has not arrived yet")
    }

    private func statements(of circle: CircleID, in storage: any SyncStorage) async throws(SyncFailure) -> [Statement] {
        let storage = CircleStorage(storage, circle)
        var statements: [Statement] = []
        do throws(SyncStorageError) {
            for name in try await storage.list(.statements) {
                guard case .statement(let hash)? = ObjectName(name),
                    let bytes = try await storage.read(name, atMost: Statement.largestByteCount), let statement = parsed(bytes),
                    statement.hash == hash
                else { continue }
                statements.append(statement)
            }
        } catch {
            throw SyncFailure(error)
        }
        return statements
    }

    private func parsed(_ bytes: [UInt8]) -> Statement? {
        do throws(FormatError) { return try Statement(bytes, cipher: LocalCircle.cipher) } catch { return nil }
    }
}
#endif
