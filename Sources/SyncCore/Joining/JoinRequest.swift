// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A request to join a circle, as the device sees it that wants to join.
///
/// It needs no ledger, and does not survive its process: the keys become those of the device only when it has joined. A code is for one request, so
/// a device that was interrupted after it has published its request needs another code.
package struct JoinRequest: Sendable {
    package private(set) var state: State = .looking

    package enum State: Hashable, Sendable {
        /// No offer was found yet: the code may be wrong, or the storage slow.
        case looking
        /// The request is published, and the approver has not answered it yet.
        case requested
        /// A person has to compare the number, and then confirms or refuses.
        case asking(JoinNumber)
        /// The person at this device has confirmed, and the approver's answer is not there yet.
        case confirmed(JoinNumber)
        case joined(JoinedCircle)
        case ended(End)
    }

    /// Why a device has not joined.
    package enum End: Hashable, Sendable {
        /// Ten minutes have passed without an offer: the code is wrong or too old, or the storage is another one.
        case nothingFound
        /// The approver did not answer in time.
        case expired
        /// The approver has ended the invitation.
        case withdrawn
        /// The approver has a newer version of the program.
        case newerFormat
        /// A request was made with this code before, possibly by this device.
        case codeUsed
        /// The approver has answered another device, which has the code too.
        case answeredAnother
        /// The storage has a message under the code that the approver did not make, so another person has the code too.
        case forgedMessage
        /// The person at this device has refused.
        case refused
        /// The approver's program has made an answer that is not valid.
        case invalidAnswer
    }

    private let cipher: any CircleCipher
    private let circle: CircleID
    private let keys: DevicePublicKeys
    private let deviceName: DeviceName
    private let nonce: [UInt8]
    private var folder: JoinFolder
    private var clock: JoinClock
    private var offer: JoinMessage.Offer?
    private var request: JoinMessage.Request?
    /// Since when the last listings lack the offer, in seconds of `clock`.
    private var missingSince: Double?

    /// The folder of the invitation, by which the caller finds the circle if the storage has several.
    package var invitation: InvitationID { folder.invitation }

    /// Begins a request with new keys.
    ///
    /// `circle` is the one whose folder the events are about, and `nonce` has 32 random bytes.
    package init(
        code: SharedSecretBytes, circle: CircleID, keys: DevicePublicKeys, deviceName: DeviceName, nonce: [UInt8],
        cipher: any CircleCipher, now: Double
    ) throws(KeychainFailure) {
        guard nonce.count == JoinMessage.nonceByteCount else { throw KeychainFailure(.internal, "the nonce of a request has 32 bytes") }
        self.cipher = cipher
        self.circle = circle
        self.keys = keys
        self.deviceName = deviceName
        self.nonce = nonce
        folder = try JoinFolder(code: code, cipher: cipher)
        clock = JoinClock(now: now)
    }

    /// Handles an event of the storage, and returns what has to be done next.
    package mutating func step(_ event: SyncEvent, now: Double) throws(KeychainFailure) -> [SyncEffect] {
        let effects = expire(now)
        guard !isOver else { return effects }
        let reads = folder.note(event, now: now)
        noteAbsence(event)
        if folder.isRead { return try effects + reads + judge() }
        return effects + reads
    }

    private var isOver: Bool {
        switch state {
        case .joined, .ended: true
        case .looking, .requested, .asking, .confirmed: false
        }
    }

    private mutating func expire(_ now: Double) -> [SyncEffect] {
        clock.advance(to: now)
        switch state {
        case .looking: return clock.elapsed >= JoinLimits.lifetime ? end(.nothingFound) : []
        case .requested: return clock.elapsed >= JoinLimits.lifetime ? end(.expired) : []
        case .asking, .confirmed: return clock.elapsed >= JoinLimits.lifetime + JoinLimits.answerLifetime ? end(.expired) : []
        case .joined, .ended: return []
        }
    }

    /// Notes whether a listing lacks the offer, which the approver removes when it ends the invitation.
    private mutating func noteAbsence(_ event: SyncEvent) {
        guard case .listed(.joinMessages, _) = event, let offer else { return }
        missingSince = folder.lists(.offer(offer)) == false ? missingSince ?? clock.elapsed : nil
    }

    private mutating func judge() throws(KeychainFailure) -> [SyncEffect] {
        switch state {
        case .looking: return try look()
        case .requested: try awaitReveal()
        case .asking: break
        case .confirmed(let number):
            if let effects = try takeAnswer(number) { return effects }
        case .joined, .ended: return []
        }
        if case .ended(let reason) = state { return try endForBoth(reason) }
        if let request, folder.isEnded(cipher.hash(JoinMessage.request(request).encoded)) { return end(.withdrawn) }
        if let missingSince, clock.elapsed - missingSince >= JoinLimits.absence { return end(.withdrawn) }
        return []
    }

    /// Binds the request to the offer, if there is exactly one and nothing else.
    private mutating func look() throws(KeychainFailure) -> [SyncEffect] {
        if folder.hasNewerMessage { return end(.newerFormat) }
        var offers: [JoinMessage.Offer] = []
        for message in folder.messages {
            guard case .offer(let offer) = message else { return end(.codeUsed) }
            // The same offer may have been sealed again.
            if !offers.contains(offer) { offers.append(offer) }
        }
        guard let offer = offers.first else { return [] }
        guard offers.count == 1, offer.circle == circle else { return end(.forgedMessage) }
        let hash = cipher.hash(JoinMessage.offer(offer).encoded)
        let request = JoinMessage.Request(offer: hash, keys: keys, nonce: nonce, deviceName: deviceName.utf8)
        self.offer = offer
        self.request = request
        state = .requested
        return [try folder.publish(.request(request))]
    }

    /// Takes the reveal, if it is the one to which the offer is a commitment and names this request.
    private mutating func awaitReveal() throws(KeychainFailure) {
        guard let offer, let request else { return }
        if folder.hasNewerMessage {
            state = .ended(.newerFormat)
            return
        }
        let own = cipher.hash(JoinMessage.request(request).encoded)
        for case .reveal(let nonce, let named) in folder.messages {
            guard cipher.hash(nonce) == offer.commitment || isPlanted(.joinWithoutCommitment) else {
                state = .ended(.forgedMessage)
                return
            }
            guard named == own else {
                state = .ended(.answeredAnother)
                return
            }
            let number = JoinMessage.number(offer: offer, request: request, nonce: nonce, cipher: cipher)
            state = .asking(JoinNumber(number))
            return
        }
    }

    /// Takes the answer; nil if it is not there yet.
    private mutating func takeAnswer(_ number: JoinNumber) throws(KeychainFailure) -> [SyncEffect]? {
        guard let offer, let request else { return nil }
        if folder.hasNewerMessage { return try endForBoth(.newerFormat) }
        for case .answer(let answer) in folder.messages {
            let joined: JoinedCircle
            do throws(JoinAnswer.Rejection) {
                joined = try JoinAnswer.joined(answer, offer: offer, request: request, cipher: cipher)
            } catch {
                switch error {
                case .forged: return try endForBoth(.forgedMessage)
                case .otherDevice: return try endForBoth(.answeredAnother)
                case .invalid: return try endForBoth(.invalidAnswer)
                case .newerFormat: return try endForBoth(.newerFormat)
                }
            }
            state = .joined(joined)
            // The answer stays for an hour, as a sign that the code was used. The approver's engine removes it.
            return folder.removeAll(except: .answer(answer))
        }
        return nil
    }

    private mutating func end(_ reason: End) -> [SyncEffect] {
        state = .ended(reason)
        return folder.removeOwn()
    }

    /// Ends the attempt, and tells the approver.
    private mutating func endForBoth(_ reason: End) throws(KeychainFailure) -> [SyncEffect] {
        let effects = end(reason)
        guard let request else { return effects }
        return effects + [try folder.publish(.end(request: cipher.hash(JoinMessage.request(request).encoded)))]
    }

    // What a person decides

    /// Believes the approver's answer from now on, also one that has come before.
    package mutating func confirm(now: Double) throws(KeychainFailure) -> [SyncEffect] {
        let effects = expire(now)
        guard case .asking(let number) = state else { return effects }
        state = .confirmed(number)
        return folder.isRead ? try judge() : []
    }

    package mutating func refuse(now: Double) throws(KeychainFailure) -> [SyncEffect] {
        let effects = expire(now)
        return isOver ? effects : try endForBoth(.refused)
    }
}
