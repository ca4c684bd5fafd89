// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

extension KeychainSync {
    /// Asks to join the circle that has made an invitation, and waits for the number that both devices show.
    ///
    /// If this fails or its task is canceled, the request ends, and the other device learns of it.
    ///
    /// ```swift
    /// let joining = try await KeychainSync.join(on: folder, code: .code(typed), deviceName: "eagle-5")
    /// if await confirm(joining.number) { try await joining.confirm() } else { await joining.refuse() }
    /// ```
    ///
    /// - Parameters:
    ///   - storage: The storage of the circle.
    ///   - code: The code of the invitation, by ``SyncSecret/code(_:)``. Each code is for one request.
    ///   - deviceName: The name of this device for people: 1 to 64 bytes of UTF-8, visible characters with single spaces between them.
    /// - Returns: The request, which a person confirms if the other device shows the same number.
    /// - Throws: `.alreadyStarted`, `.noCircle`, `.invalidInput` for the name, `.codeUsed`, `.invitationEnded`, `.untrusted`, `.newerVersion`,
    ///   `.storage`, `.locked`, and `.keychain`.
    public static func join(
        on storage: any SyncStorage, code: SyncSecret, deviceName: String
    ) async throws(SyncFailure) -> SyncJoining {
        let local = try LocalCircle.current()
        let name = try LocalCircle.deviceName(deviceName)
        try local.requireNoCircle()
        // This device's keys could not be stored once the other device has admitted it.
        try local.requireUnlocked()
        let circle = try await circle(of: code, in: storage)
        let joining = try SyncJoining(local, storage, circle, code, name)
        do throws(SyncFailure) {
            try await joining.requestNumber()
            return joining
        } catch {
            // The other device would wait until its time is over.
            await joining.refuse()
            throw error
        }
    }

    /// Returns the circle that has the invitation, or the only one, where it may still arrive.
    private static func circle(of code: SyncSecret, in storage: any SyncStorage) async throws(SyncFailure) -> CircleID {
        let circles = try await circles(in: storage)
        guard let first = circles.first else {
            throw SyncFailure(.noCircle, "\(storage.location) has no circle, or it has not arrived yet")
        }
        if circles.count == 1 { return first }
        let invitation: InvitationID
        do throws(KeychainFailure) { invitation = try LocalCircle.cipher.invitationID(of: code.bytes) } catch { throw SyncFailure(error) }
        do throws(SyncStorageError) {
            for circle in circles {
                let folder = ObjectName.Folder.joinMessages.rawValue + "/" + invitation.hexadecimal
                if try await !CircleStorage(storage, circle).list(folder).isEmpty { return circle }
            }
        } catch {
            throw SyncFailure(error)
        }
        throw SyncFailure(.noCircle, "\(storage.location) has several circles, and the invitation has not arrived in any of them")
    }
}

/// This device's request to join a circle.
public actor SyncJoining {
    /// Eight digits in two groups, such as `4031 8827`.
    ///
    /// If the other device shows the same ones, no other device is between the two.
    public private(set) var number = ""
    private let local: LocalCircle
    private let storage: any SyncStorage
    private let name: DeviceName
    private let keys: any CircleDeviceKeys
    private let loop: JoinLoop
    private var request: JoinRequest

    fileprivate init(
        _ local: LocalCircle, _ storage: any SyncStorage, _ circle: CircleID, _ code: SyncSecret, _ name: DeviceName
    ) throws(SyncFailure) {
        self.local = local
        self.storage = storage
        self.name = name
        loop = JoinLoop(storage: CircleStorage(storage, circle), clock: local.clock)
        let cipher = LocalCircle.cipher
        do throws(KeychainFailure) {
            keys = try cipher.makeDeviceKeys()
            request = try JoinRequest(
                code: code.bytes, circle: circle, keys: keys.publicKeys, deviceName: name, nonce: try cipher.randomBytes(32),
                cipher: cipher, now: local.clock.now())
        } catch {
            throw SyncFailure(error)
        }
    }

    fileprivate func requestNumber() async throws(SyncFailure) {
        try await exchange(continues: false)
        guard case .asking(let number) = request.state else { throw ended }
        self.number = number.text
    }

    /// Waits until the other device has admitted this one, and reads what the circle has.
    ///
    /// Call it once a person has seen the same number on both devices. If it fails or its task is canceled, call it again, or ``refuse()``: the other
    /// device waits otherwise.
    ///
    /// - Returns: What this device may do, and what it has received.
    /// - Throws: `.invitationEnded`, `.untrusted`, `.newerVersion`, `.locked`, and `.keychain`.
    @discardableResult
    public func confirm() async throws(SyncFailure) -> SyncJoined {
        try local.requireUnlocked()
        let effects: [SyncEffect]
        do throws(KeychainFailure) { effects = try request.confirm(now: local.clock.now()) } catch { throw SyncFailure(error) }
        if try await store(before: effects) { try await exchange(continues: true) }
        guard case .joined(let circle) = request.state else { throw ended }
        let unread = await local.exchange(over: storage, reportsUnread: true)
        let counts = try local.counts()
        return SyncJoined(
            role: SyncRole(circle.role), sharedItemCount: counts.shared, unsharedItemCount: counts.unshared,
            conflictCount: counts.conflicts, unread: unread)
    }

    /// Ends the request: the numbers differ, or the person has changed their mind.
    ///
    /// The other device learns of it.
    public func refuse() async {
        // Without the message, the other device waits until its time is over.
        guard let effects = try? request.refuse(now: local.clock.now()) else { return }
        await loop.finish(effects)
    }

    private func exchange(continues: Bool) async throws(SyncFailure) {
        try await loop.run(continues: continues) { event async throws(SyncFailure) in try await handle(event) }
    }

    private func handle(_ event: SyncEvent) async throws(SyncFailure) -> [SyncEffect]? {
        let effects: [SyncEffect]
        do throws(KeychainFailure) { effects = try request.step(event, now: local.clock.now()) } catch { throw SyncFailure(error) }
        return try await store(before: effects) ? effects : nil
    }

    /// Stores the circle once this device has joined it, then ends the exchange; returns whether there is something to wait for.
    ///
    /// The messages are removed only afterwards: without them, a device that was admitted could not join.
    private func store(before effects: [SyncEffect]) async throws(SyncFailure) -> Bool {
        switch request.state {
        case .looking, .requested, .confirmed: return true
        case .asking: if !number.isEmpty { return true }
        case .joined(let circle):
            let now = local.clock.now()
            try local.enter(keys, at: storage, again: circle.membership.circle) { ledger throws(KeychainFailure) in
                try circle.store(name: name, now: now, in: ledger)
            }
        case .ended: break
        }
        await loop.finish(effects)
        return false
    }

    /// Why this device has not joined.
    private var ended: SyncFailure {
        guard case .ended(let end) = request.state else { return SyncFailure(.invitationEnded, "the request is over") }
        return switch end {
        case .nothingFound:
            SyncFailure(
                .invitationEnded,
                "no invitation with this code has arrived in \(storage.location) within ten minutes: it is too old, or of another circle")
        case .expired: SyncFailure(.invitationEnded, "the other device has not answered in time")
        case .withdrawn: SyncFailure(.invitationEnded, "the other device has ended the invitation")
        case .refused: SyncFailure(.invitationEnded, "the request was refused")
        case .newerFormat: SyncFailure(.newerVersion, "the other device has a newer version of the program")
        case .codeUsed: SyncFailure(.codeUsed, "the code was used before, or its invitation has ended; each code is for one request")
        case .answeredAnother:
            SyncFailure(.untrusted, "the other device has answered another request with this code, so another person has it")
        case .forgedMessage:
            SyncFailure(.untrusted, "a message was made by neither of the two devices, so another person has the code")
        case .invalidAnswer: SyncFailure(.untrusted, "the answer of the other device is not valid")
        }
    }
}

/// What a device has after it has joined a circle.
public struct SyncJoined: Hashable, Sendable {
    /// What it may do.
    public let role: SyncRole
    /// The number of items that it shares with the circle.
    public let sharedItemCount: Int
    /// The number of items that stay on this device, because the circle, in which it was before, does not have them any more.
    ///
    /// See ``KeychainSync/unsharedItems()``.
    public let unsharedItemCount: Int
    /// The number of items of which the circle had another value than this device: see ``KeychainSync/conflicts()``.
    public let conflictCount: Int
    /// Why not everything was read yet; nil if it was.
    ///
    /// An agent reads the rest.
    public let unread: SyncFailure?
}
#endif
