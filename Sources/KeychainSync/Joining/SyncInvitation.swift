// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// What a device may do in its circle.
public enum SyncRole: Hashable, Sendable, CaseIterable {
    /// Reads and writes, and admits and removes devices.
    case owner
    /// Reads and writes.
    case writer
    /// Reads.
    ///
    /// What its programs write stays on the device.
    case reader

    init(_ role: DeviceRole) {
        self =
            switch role {
            // A kit is no device that anything lists.
            case .owner, .recoveryKit: .owner
            case .writer: .writer
            case .reader: .reader
            }
    }

    var role: DeviceRole {
        switch self {
        case .owner: .owner
        case .writer: .writer
        case .reader: .reader
        }
    }
}

extension KeychainSync {
    /// Invites one device to the circle, for ten minutes.
    ///
    /// ```swift
    /// let invitation = try await KeychainSync.invite(on: folder)
    /// print(invitation.code.text)
    /// let request = try await invitation.request()
    /// if confirm(request.deviceName, request.number) { try await request.admit() } else { await request.refuse() }
    /// ```
    ///
    /// - Parameters:
    ///   - storage: The storage of the circle.
    ///   - role: What the device will be permitted to do.
    /// - Returns: The invitation, which ends with this process.
    /// - Throws: `.notStarted`, `.notOwner`, `.locked`, and `.keychain`.
    public static func invite(on storage: any SyncStorage, as role: SyncRole = .owner) async throws(SyncFailure) -> SyncInvitation {
        let local = try LocalCircle.current()
        let membership = try local.membership()
        guard try local.roster().members[membership.device]?.role == .owner else {
            throw SyncFailure(.notOwner, "only an owner of the circle can invite a device")
        }
        return try await SyncInvitation(local, membership, role.role, storage)
    }
}

/// An invitation of one device to the circle of this one.
public actor SyncInvitation {
    /// What the person at the other device types: seven groups of four characters.
    ///
    /// A device with the code can ask to join, for ten minutes. A person at this device then decides.
    public nonisolated let code: SyncSecret
    private let local: LocalCircle
    private let host: EngineHost
    private let role: DeviceRole
    private let storage: any SyncStorage
    private let loop: JoinLoop
    private var invitation: Invitation

    fileprivate init(
        _ local: LocalCircle, _ membership: Membership, _ role: DeviceRole, _ storage: any SyncStorage
    ) async throws(SyncFailure) {
        self.local = local
        self.role = role
        self.storage = storage
        host = EngineHost(local.keychain, clock: local.clock)
        loop = JoinLoop(storage: CircleStorage(storage, membership.circle), clock: local.clock)
        let cipher = LocalCircle.cipher
        do throws(KeychainFailure) {
            let code = try cipher.makeInvitationCode()
            self.code = try SyncSecret(code, as: .invitationCode)
            let nonce = try cipher.randomBytes(32)
            invitation = try await host.begin(code, nonce: nonce, membership)
        } catch {
            throw SyncFailure(error)
        }
    }

    /// Waits until a device asks to join.
    ///
    /// If this fails or its task is canceled, call it again, or ``cancel()``: a device that asks later waits otherwise.
    ///
    /// - Returns: The request. Its number has to be the one that the other device shows.
    /// - Throws: `.invitationEnded` after ten minutes, or if the task is canceled; `.untrusted`, `.newerVersion`, `.locked`, and `.keychain`.
    public func request() async throws(SyncFailure) -> SyncJoinRequest {
        var candidate = asking
        if candidate == nil {
            try await exchange()
            candidate = asking
        }
        guard let candidate else { throw ended }
        return SyncJoinRequest(invitation: self, deviceName: candidate.name.text, number: candidate.number.text)
    }

    /// Ends the invitation, unless a device was admitted.
    ///
    /// A device that has asked, or asks later, learns of it. The code cannot be used again.
    public func cancel() async {
        // Without the ledger, the engine removes the messages after ten minutes.
        let refused = try? await host.refuse(invitation)
        guard let (next, effects) = refused else { return }
        invitation = next
        await loop.finish(effects)
    }

    fileprivate func admit() async throws(SyncFailure) {
        // A second request ends the invitation, also one that has come while the person looked at the number.
        try await exchange(isLast: true)
        guard asking != nil else { throw ended }
        let effects: [SyncEffect]
        do throws(KeychainFailure) {
            (invitation, effects) = try await host.admit(invitation, role)
        } catch {
            throw SyncFailure(command: error)
        }
        await loop.finish(effects)
        guard case .answered = invitation.state else { throw ended }
        if let failure = await local.exchange(over: storage) { throw failure }
    }

    private var asking: Invitation.Candidate? { if case .asking(let candidate) = invitation.state { candidate } else { nil } }

    /// Exchanges messages until a device asks or the invitation ends, or, with `isLast`, for one round.
    private func exchange(isLast: Bool = false) async throws(SyncFailure) {
        var isFirst = true
        try await loop.run(continues: isLast) { event async throws(SyncFailure) in
            if case .wake = event {
                guard isFirst || !isLast else { return nil }
                isFirst = false
            }
            return try await handle(event, endsWhenAsking: !isLast)
        }
    }

    private func handle(_ event: SyncEvent, endsWhenAsking: Bool) async throws(SyncFailure) -> [SyncEffect]? {
        let effects: [SyncEffect]
        do throws(KeychainFailure) {
            (invitation, effects) = try await host.step(invitation, event)
        } catch {
            throw SyncFailure(error)
        }
        switch invitation.state {
        case .waiting: return effects
        case .asking: if !endsWhenAsking { return effects }
        case .admitting, .answered, .ended: break
        }
        await loop.finish(effects)
        return nil
    }

    /// Why no device is admitted.
    private var ended: SyncFailure {
        guard case .ended(let end) = invitation.state else { return SyncFailure(.invitationEnded, "the invitation is over") }
        return switch end {
        case .expired: SyncFailure(.invitationEnded, "no device has asked to join within ten minutes")
        case .refused: SyncFailure(.invitationEnded, "the device was refused")
        case .withdrawn:
            SyncFailure(
                .invitationEnded, "the other device has ended its request: the numbers differ there, or its command was interrupted")
        case .secondRequest:
            SyncFailure(.untrusted, "two devices have asked to join with one code, so another person has it; no device was admitted")
        case .forgedMessage:
            SyncFailure(
                .untrusted, "a message was made by neither of the two devices, so another person has the code; no device was admitted")
        case .newerFormat: SyncFailure(.newerVersion, "the other device has a newer version of the program")
        }
    }
}

/// A device that asks to join, which a person admits or refuses.
public struct SyncJoinRequest: Sendable {
    fileprivate let invitation: SyncInvitation
    /// The name that the device has given itself.
    public let deviceName: String
    /// Eight digits in two groups, such as `4031 8827`.
    ///
    /// If the other device shows the same ones, no other device is between the two.
    public let number: String

    /// Admits the device, and sends what it needs.
    ///
    /// - Throws: `.invitationEnded` and `.untrusted` if the invitation has ended meanwhile; `.storage` if the answer could not be sent yet: an agent sends
    ///   it. Also `.locked` and `.keychain`.
    public func admit() async throws(SyncFailure) { try await invitation.admit() }

    /// Refuses the device.
    ///
    /// The code cannot be used again.
    public func refuse() async { await invitation.cancel() }
}

/// Only an admission needs the engine. The other steps do not take its place, because a running agent would begin again after each.
extension EngineHost {
    fileprivate func begin(
        _ code: SharedSecretBytes, nonce: [UInt8], _ membership: Membership
    ) throws(KeychainFailure) -> Invitation {
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            try Invitation(code: code, nonce: nonce, membership: membership, cipher: LocalCircle.cipher, now: clock.now(), in: ledger)
        }
    }

    fileprivate func step(
        _ invitation: Invitation, _ event: SyncEvent
    ) throws(KeychainFailure) -> (Invitation, [SyncEffect]) {
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            var next = invitation
            let effects = try next.step(event, now: clock.now(), in: ledger)
            return (next, effects)
        }
    }

    fileprivate func refuse(_ invitation: Invitation) throws(KeychainFailure) -> (Invitation, [SyncEffect]) {
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            var next = invitation
            let effects = try next.refuse(now: clock.now(), in: ledger)
            return (next, effects)
        }
    }

    /// Admits the device and stores the answer, in one transaction.
    fileprivate func admit(_ invitation: Invitation, _ role: DeviceRole) throws(KeychainFailure) -> (Invitation, [SyncEffect]) {
        let keys = try keychain.deviceKeys()
        return try transact { engine, now, transaction, _ throws(KeychainFailure) in
            var next = invitation
            let (command, effects) = try next.confirm(role, now: now, in: transaction.ledger)
            guard let command else { return (next, effects) }
            var entropy = SystemRandomNumberGenerator()
            _ = try engine.step(.command(command), now: now, entropy: &entropy, in: transaction)
            if case .admitting(let candidate) = next.state {
                let device = DeviceID(of: candidate.request.keys, role: role, cipher: LocalCircle.cipher)
                try DeviceNotes.note(candidate.name, of: device, in: transaction.ledger)
            }
            try next.answer(keys: keys, checkpoint: nil, now: now, in: transaction.ledger)
            return (next, effects)
        }
    }
}
#endif
