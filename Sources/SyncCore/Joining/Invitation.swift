// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// An invitation of a device to a circle, as its approver sees it.
///
/// The approver publishes an offer, answers the first request with the reveal, and admits the device once a person has confirmed the number. Each call runs in
/// one transaction of the store. If the transaction fails, the caller drops the changed copy of this value.
///
/// It lasts as long as its process. If that ends before the person has confirmed, the code is of no use any more, and the engine of the device
/// removes what is in the storage. Afterwards the answer is in the ledger, from which the engine publishes it.
package struct Invitation: Sendable {
    package private(set) var state: State = .waiting

    package enum State: Hashable, Sendable {
        /// No device has asked yet.
        case waiting
        /// A person has to compare the number, and then confirms or refuses.
        case asking(Candidate)
        /// Confirmed: the admission has to be made, and then the answer.
        case admitting(Candidate)
        /// The answer is in the ledger.
        case answered(Candidate)
        case ended(End)
    }

    /// A device that asks to join.
    package struct Candidate: Hashable, Sendable {
        package let name: DeviceName
        package let number: JoinNumber
        package let request: JoinMessage.Request
    }

    /// Why an invitation has ended without an admission.
    package enum End: Hashable, Sendable {
        /// Ten minutes have passed.
        case expired
        /// A person has refused the device.
        case refused
        /// The device has ended its request: for example because its person has refused.
        case withdrawn
        /// Two devices asked to join, so another person has the code too.
        case secondRequest
        /// The storage has a message under the code that neither side makes, so another person has the code too.
        case forgedMessage
        /// The device that asks to join has a newer version of the program.
        case newerFormat
    }

    private let cipher: any CircleCipher
    private let membership: Membership
    private let nonce: [UInt8]
    private let offer: JoinMessage.Offer
    private var folder: JoinFolder
    private var clock: JoinClock

    /// Begins an invitation, and stores in the ledger that its messages have to be removed.
    ///
    /// `nonce` has 32 random bytes that are used for nothing else. The first step, with `wake`, publishes the offer.
    package init(
        code: SharedSecretBytes, nonce: [UInt8], membership: Membership, cipher: any CircleCipher, now: Double, in ledger: any SyncWriting
    ) throws(KeychainFailure) {
        guard nonce.count == JoinMessage.nonceByteCount else { throw KeychainFailure(.internal, "the nonce of an invitation has 32 bytes") }
        self.cipher = cipher
        self.membership = membership
        self.nonce = nonce
        offer = JoinMessage.Offer(circle: membership.circle, approver: membership.device, commitment: cipher.hash(nonce))
        folder = try JoinFolder(code: code, cipher: cipher)
        clock = JoinClock(now: now)
        try InvitationRecords.set(folder.invitation, to: .current, now: now, in: ledger)
        firstEffects = [try folder.publish(.offer(offer))]
    }

    private var firstEffects: [SyncEffect]

    /// Handles an event of the storage, whose names are those of the circle's folder, and returns what has to be done after the transaction.
    package mutating func step(_ event: SyncEvent, now: Double, in ledger: any SyncWriting) throws(KeychainFailure) -> [SyncEffect] {
        var effects = try expire(now, in: ledger)
        switch state {
        case .waiting, .asking: break
        case .admitting, .answered, .ended: return effects
        }
        effects += firstEffects + folder.note(event, now: now)
        firstEffects = []
        if folder.isRead { effects += try judge(now, in: ledger) }
        return effects
    }

    private mutating func judge(_ now: Double, in ledger: any SyncWriting) throws(KeychainFailure) -> [SyncEffect] {
        if folder.hasNewerMessage { return try end(.newerFormat, now, in: ledger) }
        for message in folder.messages {
            if case .end = message { continue }
            guard case .request(let request) = message, request.offer == cipher.hash(JoinMessage.offer(offer).encoded) else {
                // The messages of this side are not among those that it reads.
                return try end(.forgedMessage, now, in: ledger)
            }
            guard let candidate = candidate(request) else { continue }
            switch state {
            case .waiting where folder.isEnded(cipher.hash(JoinMessage.request(request).encoded)):
                return try end(.withdrawn, now, in: ledger)
            case .waiting: return try ask(candidate)
            case .asking(candidate): continue
            case .asking:
                guard isPlanted(.revealsToSecondRequest) else { return try end(.secondRequest, now, in: ledger) }
                if candidate.request == lastRequest { return try ask(candidate) }
            case .admitting, .answered, .ended: return []
            }
        }
        guard folder.messages.contains(where: { if case .end = $0 { true } else { false } }) else { return [] }
        let isWithdrawn = folder.isEnded(asked.map { cipher.hash(JoinMessage.request($0.request).encoded) })
        return try end(isWithdrawn ? .withdrawn : .forgedMessage, now, in: ledger)
    }

    /// The device that waits for a decision.
    private var asked: Candidate? { if case .asking(let candidate) = state { candidate } else { nil } }

    private var lastRequest: JoinMessage.Request? {
        if case .request(let request)? = folder.messages.last { request } else { nil }
    }

    /// Answers the first request with the reveal, and lets a person compare the number.
    private mutating func ask(_ candidate: Candidate) throws(KeychainFailure) -> [SyncEffect] {
        state = .asking(candidate)
        let hash = cipher.hash(JoinMessage.request(candidate.request).encoded)
        return [try folder.publish(.reveal(nonce: nonce, request: hash))]
    }

    /// Returns the device of a request; nil if it cannot be admitted, or has a name that cannot be shown.
    private func candidate(_ request: JoinMessage.Request) -> Candidate? {
        guard let name = DeviceName(utf8: request.deviceName), request.keys.areUsable(cipher),
            DeviceID(of: request.keys, role: .owner, cipher: cipher) != membership.device
        else { return nil }
        let number = JoinMessage.number(offer: offer, request: request, nonce: nonce, cipher: cipher)
        return Candidate(name: name, number: JoinNumber(number), request: request)
    }

    private mutating func expire(_ now: Double, in ledger: any SyncWriting) throws(KeychainFailure) -> [SyncEffect] {
        clock.advance(to: now)
        switch state {
        case .waiting, .asking: return clock.elapsed >= JoinLimits.lifetime ? try end(.expired, now, in: ledger) : []
        case .admitting, .answered, .ended: return []
        }
    }

    private mutating func end(_ end: End, _ now: Double, in ledger: any SyncWriting) throws(KeychainFailure) -> [SyncEffect] {
        let request = asked.map { cipher.hash(JoinMessage.request($0.request).encoded) }
        state = .ended(end)
        try InvitationRecords.set(folder.invitation, to: .over, now: now, in: ledger)
        firstEffects = []
        // The engine removes the last message after an hour.
        return folder.removeAll() + [try folder.publish(.end(request: request ?? .none))]
    }

    // What a person decides

    /// Returns the command for the engine that admits the device; nil if no device waits for a decision.
    package mutating func confirm(
        _ role: DeviceRole, now: Double, in ledger: any SyncWriting
    ) throws(KeychainFailure) -> (command: SyncCommand?, effects: [SyncEffect]) {
        let effects = try expire(now, in: ledger)
        guard case .asking(let candidate) = state else { return (nil, effects) }
        state = .admitting(candidate)
        return (.admit(candidate.request.keys, role), effects)
    }

    /// Ends the invitation, also while no device has asked.
    package mutating func refuse(now: Double, in ledger: any SyncWriting) throws(KeychainFailure) -> [SyncEffect] {
        switch state {
        case .waiting, .asking: try end(.refused, now, in: ledger)
        case .admitting, .answered, .ended: []
        }
    }

    /// Adds the answer to the objects that the engine publishes, after the admission.
    ///
    /// Called after the engine has performed the command, in the same transaction, so that no device is admitted without an answer. `keys` are those of
    /// this device, and `checkpoint` is the newest one that it knows. Afterwards a step of the engine publishes the answer.
    package mutating func answer(
        keys: any CircleDeviceKeys, checkpoint: CheckpointHash?, now: Double, in ledger: any SyncWriting
    ) throws(KeychainFailure) {
        guard case .admitting(let candidate) = state else { return }
        var answer = try JoinAnswer.make(
            for: candidate.request.keys, membership: membership, approver: keys.publicKeys, checkpoint: checkpoint, cipher: cipher,
            in: ledger)
        answer.signature = try keys.sign(JoinMessage.signedMessage(answer, to: candidate.request, cipher: cipher))
        try ledger.insert(try folder.outgoing(.answer(answer)))
        try InvitationRecords.set(folder.invitation, to: .answered, now: now, in: ledger)
        state = .answered(candidate)
    }
}
