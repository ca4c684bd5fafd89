// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// What a storage that has the code, and programs that are interrupted, do to an invitation.
@Suite("Joining, attacked and interrupted")
struct JoiningAttackTests {
    @Test("A storage that stands between two devices gets two numbers (C6)", arguments: JoinCipher.allCases)
    func inTheMiddle(kind: JoinCipher) throws {
        var bench = try JoinBench(kind)
        try bench.wake(.approver)
        let offer = try #require(bench.messages(1).first)
        // The device that joins sees only an offer of the storage, for which the storage knows the nonce.
        bench.hidden[.joiner] = [offer.name]
        let nonce = try bench.cipher.randomBytes(32)
        let honest = try #require(bench.offer())
        let forged = JoinMessage.Offer(circle: honest.circle, approver: honest.approver, commitment: bench.cipher.hash(nonce))
        try bench.put(.offer(forged))
        bench.hideAll(from: .approver)
        try bench.wake(.joiner)
        bench.hideAll(from: .approver)
        bench.hideAll(from: .joiner)
        // It asks the approver itself, and reveals its own nonce to the device.
        try bench.put(.request(try bench.strangersRequest(offer: bench.cipher.hash(JoinMessage.offer(honest).encoded))))
        try bench.wake(.approver)
        bench.hideAll(from: .joiner)
        let request = try #require(
            bench.messages(2).first { entry in
                if case .request(let request) = entry.message { request.keys == bench.joinerKeys.publicKeys } else { false }
            })
        try bench.put(.reveal(nonce: nonce, request: bench.cipher.hash(request.message.encoded)))
        try bench.wake(.joiner)
        guard case .asking(let candidate) = bench.invitation.state, case .asking(let number) = bench.request.state else {
            Issue.record("both devices show a number")
            return
        }
        #expect(candidate.number != number)
        #expect(number.text.count == 9 && candidate.number.text.count == 9)
    }

    @Test("Messages that only another holder of the code can have made end the attempt", arguments: JoinCipher.allCases)
    func forgedMessages(kind: JoinCipher) throws {
        var bench = try JoinBench(kind)
        try bench.wake(.approver)
        let begun = bench
        let offer = try #require(bench.offer())
        let other = JoinMessage.Offer(circle: offer.circle, approver: offer.approver, commitment: .none)

        try bench.put(.offer(other))
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.forgedMessage), "two offers")
        try bench.wake(.approver)
        #expect(bench.invitation.state == .ended(.forgedMessage))

        bench = try JoinBench(kind)
        try bench.wake(.approver)
        try bench.put(.request(try bench.strangersRequest(offer: bench.cipher.hash([1]))))
        try bench.wake(.approver)
        #expect(bench.invitation.state == .ended(.forgedMessage), "a request that is bound to another offer")

        bench = begun
        try bench.wake(.joiner)
        let request = try #require(bench.messages(2).first)
        try bench.put(.reveal(nonce: [UInt8](repeating: 1, count: 32), request: bench.cipher.hash(request.message.encoded)))
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.forgedMessage), "a reveal of another nonce")
    }

    @Test("An offer of another circle than the one whose folder has it is forged")
    func otherCircle() throws {
        var bench = try JoinBench()
        try bench.put(.offer(.init(circle: CircleID(Identifier128(high: 1, low: 1)), approver: bench.membership.device, commitment: .none)))
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.forgedMessage))
    }

    private enum Alteration: CaseIterable {
        case marks, checkpoint, signature, approver, approverSignedByOther, otherDevice, otherCircle, otherAuthor, founding, recoveryKit
    }

    @Test("An answer is believed only as the approver has signed it", arguments: JoinCipher.allCases)
    func alteredAnswers(kind: JoinCipher) throws {
        for alteration in Alteration.allCases {
            var bench = try JoinBench(kind)
            try bench.compare()
            try bench.confirmJoiner()
            try bench.confirm()
            try bench.runEngine()
            let entry = try #require(bench.messages(4).first)
            guard case .answer(let answer) = entry.message else { return }
            guard case .request(let request)? = bench.messages(2).first?.message else { return }
            bench.objects[entry.name] = nil
            try bench.put(.answer(try altered(answer, alteration, request, bench)))
            try bench.wake(.joiner)
            switch alteration {
            case .marks, .checkpoint, .signature, .approver, .approverSignedByOther, .otherAuthor:
                #expect(bench.request.state == .ended(.forgedMessage), "\(alteration)")
            case .otherDevice: #expect(bench.request.state == .ended(.answeredAnother), "\(alteration)")
            case .otherCircle, .founding, .recoveryKit: #expect(bench.request.state == .ended(.invalidAnswer), "\(alteration)")
            }
            bench.objects[entry.name] = nil
        }
    }

    private func altered(
        _ answer: JoinMessage.Answer, _ alteration: Alteration, _ request: JoinMessage.Request, _ bench: JoinBench
    ) throws -> JoinMessage.Answer {
        let cipher = bench.cipher
        let stranger = try cipher.makeDeviceKeys()
        func answering(
            by keys: any CircleDeviceKeys, founding: [UInt8]? = nil, admission: [UInt8]? = nil
        ) throws -> JoinMessage.Answer {
            var result = JoinMessage.Answer(
                approver: keys.publicKeys, founding: founding ?? answer.founding, admission: admission ?? answer.admission,
                marks: answer.marks, checkpoint: answer.checkpoint)
            result.signature = try keys.sign(JoinMessage.signedMessage(result, to: request, cipher: cipher))
            return result
        }
        func admission(
            _ device: DevicePublicKeys, by keys: any CircleDeviceKeys, circle: CircleID? = nil, code: [UInt8]? = nil
        ) throws -> [UInt8] {
            let role = code == nil ? DeviceRole.owner : .recoveryKit
            return try Statement(
                .admit(.init(device: DeviceID(of: device, role: role, cipher: cipher), keys: device, role: role, circleCode: code)),
                circle: circle ?? bench.membership.circle, author: DeviceID(of: keys.publicKeys, role: .owner, cipher: cipher),
                heads: [.none],
                keys: keys, cipher: cipher
            ).encoded
        }
        func changed(marks: [LogMark]? = nil, checkpoint: CheckpointHash?, approver: DevicePublicKeys? = nil) -> JoinMessage.Answer {
            .init(
                approver: approver ?? answer.approver, founding: answer.founding, admission: answer.admission,
                marks: marks ?? answer.marks, checkpoint: checkpoint, signature: answer.signature)
        }
        let joiner = bench.joinerKeys.publicKeys
        switch alteration {
        case .marks:
            let mark = LogMark(
                log: LogID(Identifier128(high: 1, low: 1)), device: bench.joiner, number: 1, previous: .none, hash: .none,
                signature: answer.signature)
            return changed(marks: [mark], checkpoint: answer.checkpoint)
        case .checkpoint: return changed(checkpoint: nil)
        case .signature:
            var result = answer
            result.signature[0] ^= 1
            return result
        case .approver: return changed(checkpoint: answer.checkpoint, approver: stranger.publicKeys)
        case .approverSignedByOther: return try answering(by: stranger, admission: admission(joiner, by: stranger))
        case .otherDevice: return try answering(by: bench.keys, admission: admission(stranger.publicKeys, by: bench.keys))
        case .otherCircle:
            let circle = CircleID(Identifier128(high: 1, low: 1))
            return try answering(by: bench.keys, admission: admission(joiner, by: bench.keys, circle: circle))
        case .otherAuthor:
            var result = try answering(by: bench.keys, admission: admission(joiner, by: stranger))
            result.signature = answer.signature
            return result
        case .founding:
            let founding = try Statement(
                .found(.init(nonce: [UInt8](repeating: 0, count: 32), keys: bench.keys.publicKeys)), circle: nil,
                author: bench.membership.device, heads: [], keys: bench.keys, cipher: cipher)
            return try answering(by: bench.keys, founding: founding.encoded)
        case .recoveryKit:
            let code = [UInt8](repeating: 0, count: 32)
            return try answering(by: bench.keys, admission: admission(joiner, by: bench.keys, code: code))
        }
    }

    // Interruptions

    @Test("An approver that is interrupted before the confirmation leaves nothing behind, and its code is of no use", arguments: [0, 1, 2])
    func approverInterrupted(progress: Int) throws {
        var bench = try JoinBench()
        try bench.wake(.approver)
        if progress > 0 { try bench.wake(.joiner) }
        if progress > 1 { try bench.wake(.approver) }
        // From here on there is only the engine, which another process may run.
        try bench.runEngine()
        #expect(!bench.names.isEmpty, "the process may still be at work")
        bench.now += 600
        try bench.runEngine()
        #expect(bench.names.isEmpty)
        if progress > 0 {
            try bench.wake(.joiner)
            #expect(bench.request.state == .ended(.expired))
        }
        bench.now += 3_600
        try bench.runEngine()
        #expect(bench.ledger.state.settings[.joining] == nil)
    }

    @Test("An approver that is interrupted after the confirmation is not needed: its engine publishes the answer, and later removes it")
    func approverInterruptedAfterConfirmation() throws {
        var bench = try JoinBench()
        try bench.compare()
        try bench.confirm()
        bench.engine = SyncEngine(cipher: bench.cipher, keys: bench.keys, membership: bench.membership)
        try bench.runEngine()
        #expect(bench.messages(4).count == 1)
        var late = bench
        try bench.confirmJoiner()
        try bench.wake(.joiner)
        #expect(bench.joined != nil)
        // A device that does not come for its answer within an hour has to be admitted again.
        late.objects = bench.objects
        try late.put([1], kind: 4)
        late.now += 3_601
        try late.runEngine()
        #expect(late.names.isEmpty)
    }

    @Test("A transaction that fails changes nothing: the person's confirmation can be repeated")
    func rolledBack() throws {
        var bench = try JoinBench()
        try bench.compare()
        let (state, invitation) = (bench.ledger.state, bench.invitation)
        try bench.confirm()
        bench.ledger.state = state
        bench.invitation = invitation
        bench.engine = SyncEngine(cipher: bench.cipher, keys: bench.keys, membership: bench.membership)
        try bench.confirm()
        try bench.runEngine()
        try bench.confirmJoiner()
        try bench.wake(.joiner)
        #expect(bench.joined != nil)
    }

    @Test("A device that is interrupted can use the code again only if it has not asked yet", arguments: [false, true])
    func joinerInterrupted(hasAsked: Bool) throws {
        var bench = try JoinBench()
        if !hasAsked { try bench.wake(.joiner) }
        try bench.wake(.approver)
        if hasAsked { try bench.wake(.joiner) }
        try bench.restartJoiner()
        try bench.compare()
        if hasAsked {
            #expect(bench.request.state == .ended(.codeUsed))
        } else if case .asking(let candidate) = bench.invitation.state {
            #expect(bench.request.state == .asking(candidate.number))
        } else {
            Issue.record("the second attempt does not arrive")
        }
    }

    @Test("Objects that the storage loses are created again while the invitation lasts")
    func lostObjects() throws {
        var bench = try JoinBench()
        for side in [JoinBench.Side.approver, .approver, .joiner, .joiner, .approver, .approver, .joiner] {
            try bench.wake(side)
            if let name = bench.names.first { bench.objects[name] = nil }
        }
        for _ in 0..<3 { for side in JoinBench.Side.allCases { try bench.wake(side) } }
        guard case .asking(let candidate) = bench.invitation.state else {
            Issue.record("the approver shows no number")
            return
        }
        #expect(bench.request.state == .asking(candidate.number))
    }

    @Test("Two invitations at once do not disturb each other, and each is cleaned up")
    func twoInvitations() throws {
        var bench = try JoinBench()
        let code = try bench.cipher.makeInvitationCode()
        var other = try Invitation(
            code: code, nonce: try bench.cipher.randomBytes(32), membership: bench.membership, cipher: bench.cipher, now: bench.now,
            in: bench.ledger)
        for case .create(let name, let bytes) in try other.step(.wake, now: bench.now, in: bench.ledger) { bench.objects[name] = bytes }
        try bench.compare()
        for case .remove(let name) in try other.refuse(now: bench.now, in: bench.ledger) { bench.objects[name] = nil }
        try bench.runEngine()
        #expect(bench.messages(1).count == 1 && bench.names.count == 3)
        try bench.confirm()
        try bench.runEngine()
        try bench.confirmJoiner()
        try bench.wake(.joiner)
        #expect(bench.joined != nil && bench.messages(4).count == 1)
        for _ in 0..<2 {
            bench.now += 4_000
            try bench.runEngine()
        }
        bench.now += 4_000
        try bench.runEngine()
        #expect(bench.ledger.state.settings[.joining] == nil)
    }

    @Test("The ledger has no code and no nonce")
    func ledger() throws {
        let bench = try JoinBench()
        let bytes = try #require(bench.ledger.state.settings[.joining])
        let invitation = try bench.cipher.invitationID(of: bench.code)
        #expect(bytes.count == 26 && Array(bytes[1..<17]) == invitation.bytes)
    }

    @Test("A damaged record of invitations is reported", arguments: [[1, 2], [2], [1] + [UInt8](repeating: 9, count: 25)] as [[UInt8]])
    func damagedRecord(bytes: [UInt8]) throws {
        let ledger = MemoryLedger()
        ledger.set(.joining, to: bytes)
        let failure = #expect(throws: KeychainFailure.self) { try InvitationRecords.isCleaningDue(now: 0, in: ledger) }
        #expect(failure?.cause == (bytes == [2] ? .newerVersion : .damaged))
    }
}
