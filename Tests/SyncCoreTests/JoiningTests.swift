// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

@Suite("Joining a circle")
struct JoiningTests {
    private func candidate(_ bench: JoinBench) -> Invitation.Candidate? {
        switch bench.invitation.state {
        case .asking(let candidate), .admitting(let candidate), .answered(let candidate): candidate
        case .waiting, .ended: nil
        }
    }

    @Test(
        "A device joins with a code, and reads what the circle has, also if the approver is not the founder",
        arguments: JoinCipher.allCases, [true, false])
    func goodWay(kind: JoinCipher, isFounder: Bool) throws {
        var bench = try JoinBench(kind, isFounder: isFounder)
        let content = SimulatedContent(name: 1, accessibility: .afterFirstUnlock, date: 5, value: 7)
        let row = Identifier128(high: 1, low: 1)
        bench.ledger.state.rows[row] = .init(content: content, revision: SyncVersionID(row))
        bench.ledger.state.changes[row] = .written
        try bench.runEngine()
        #expect(bench.ledger.state.settings[.joining] != nil)

        try bench.compare()
        let asking = try #require(candidate(bench))
        #expect(bench.request.state == .asking(asking.number))
        #expect(asking.name.text == "eagle-5" && asking.request.keys == bench.joinerKeys.publicKeys)
        try bench.confirm(.writer)
        try bench.runEngine()
        try bench.wake(.joiner)
        #expect(bench.joined == nil, "the person at the device has not confirmed yet")
        try bench.confirmJoiner()

        let joined = try #require(bench.joined)
        #expect(joined.membership == Membership(circle: bench.membership.circle, device: bench.joiner))
        #expect(joined.role == .writer && joined.checkpoint == bench.checkpoint)
        let marks = bench.ledger.logs().flatMap { bench.ledger.marks(of: $0) }
        #expect(joined.marks == marks && !marks.isEmpty)
        #expect(bench.names == bench.messages(4).map(\.name), "the others have served their purpose")

        let ledger = MemoryLedger()
        try joined.store(name: try #require(DeviceName("eagle-5")), now: bench.now, in: ledger)
        #expect(ledger.setting(.ownName) == Array("eagle-5".utf8))
        var engine = SyncEngine(cipher: bench.cipher, keys: bench.joinerKeys, membership: joined.membership)
        var random = SeededGenerator(2)
        for _ in 0..<3 {
            try JoinBench.run(&engine, .wake, ledger, &bench.objects, bench.now, &random)
            try bench.runEngine()
        }
        #expect(engine.roster?.members[bench.joiner]?.role == .writer)
        #expect(ledger.state.rows.values.map(\.content.value) == [7])
    }

    @Test("The answer may come before the person at the joining device confirms, or after", arguments: [true, false])
    func orderOfConfirmations(isEarly: Bool) throws {
        var bench = try JoinBench()
        try bench.compare()
        if !isEarly { try bench.confirmJoiner() }
        try bench.wake(.joiner)
        #expect(bench.joined == nil)
        try bench.confirm()
        try bench.runEngine()
        if isEarly { try bench.wake(.joiner) }
        #expect(bench.joined == nil)
        if isEarly { try bench.confirmJoiner() } else { try bench.wake(.joiner) }
        #expect(bench.joined != nil)
    }

    @Test("With a wrong code nothing is found, and nothing is written", arguments: JoinCipher.allCases)
    func wrongCode(kind: JoinCipher) throws {
        var bench = try JoinBench(kind)
        try bench.wake(.approver)
        let before = bench.objects
        try bench.restartJoiner(with: try bench.cipher.makeInvitationCode())
        try bench.wake(.joiner)
        #expect(bench.request.state == .looking)
        bench.now += 600
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.nothingFound) && bench.objects == before)
    }

    @Test("A code is for one request: a second device that uses it is told so, and does not disturb the first one")
    func codeUsedTwice() throws {
        var bench = try JoinBench()
        try bench.compare()
        let first = bench.request
        let device = DeviceID(of: bench.joinerKeys.publicKeys, role: .owner, cipher: bench.cipher)
        try bench.restartJoiner()
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.codeUsed))
        bench.request = first
        try bench.confirmJoiner()
        try bench.confirm()
        try bench.runEngine()
        try bench.wake(.joiner)
        #expect(bench.joined?.membership.device == device)
    }

    @Test("After ten minutes an invitation ends on both sides, and its messages are removed", arguments: [0, 1, 2])
    func expired(progress: Int) throws {
        var bench = try JoinBench()
        try bench.wake(.approver)
        if progress > 0 { try bench.wake(.joiner) }
        if progress > 1 { try bench.wake(.approver) }
        bench.now += 599
        try bench.wake(.approver)
        #expect(!bench.names.isEmpty)
        bench.now += 1
        try bench.wake(.approver)
        #expect(bench.invitation.state == .ended(.expired))
        #expect(try bench.invitation.confirm(.owner, now: bench.now, in: bench.ledger).command == nil)
        if progress > 0 {
            try bench.wake(.joiner)
            #expect(bench.request.state == .ended(.expired))
        }
        #expect(bench.names == bench.messages(5).map(\.name))
        bench.now += 3_600
        try bench.runEngine()
        #expect(bench.names.isEmpty)
    }

    @Test(
        "If one person refuses, the other device learns of it at once, whether it has seen the request or not",
        arguments: JoinBench.Side.allCases)
    func refused(by side: JoinBench.Side) throws {
        var bench = try JoinBench()
        try bench.wake(.approver)
        try bench.wake(.joiner)
        var early = bench
        try bench.wake(.approver)
        try bench.wake(.joiner)
        switch side {
        case .approver:
            try bench.perform(try bench.invitation.refuse(now: bench.now, in: bench.ledger), of: .approver)
            try bench.wake(.joiner)
            #expect(bench.request.state == .ended(.withdrawn))
            try early.perform(try early.invitation.refuse(now: early.now, in: early.ledger), of: .approver)
            try early.wake(.joiner)
            #expect(early.request.state == .ended(.withdrawn))
        case .joiner:
            try bench.perform(try bench.request.refuse(now: bench.now), of: .joiner)
            try bench.wake(.approver)
            #expect(bench.invitation.state == .ended(.withdrawn))
            try early.perform(try early.request.refuse(now: early.now), of: .joiner)
            try early.wake(.approver)
            #expect(early.invitation.state == .ended(.withdrawn))
        }
        #expect(bench.messages(1).isEmpty && bench.messages(3).isEmpty)
    }

    @Test("A code that was used, or whose invitation has ended, is known as used at once", arguments: [true, false])
    func usedCode(isJoined: Bool) throws {
        var bench = try JoinBench()
        try bench.compare()
        if isJoined {
            try bench.confirm()
            try bench.runEngine()
            try bench.confirmJoiner()
            try bench.wake(.joiner)
            #expect(bench.joined != nil)
        } else {
            try bench.perform(try bench.invitation.refuse(now: bench.now, in: bench.ledger), of: .approver)
        }
        try bench.runEngine()
        try bench.restartJoiner()
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.codeUsed))
        bench.now += 3_601
        try bench.runEngine()
        #expect(bench.names.isEmpty)
    }

    @Test("A clock that is set back prolongs an invitation by no more than that", arguments: [10.0, 100_000_000])
    func clock(jump: Double) throws {
        var bench = try JoinBench()
        for _ in 0..<6 {
            try bench.wake(.approver)
            bench.now += 101
            try bench.wake(.approver)
            bench.now -= jump
        }
        #expect(bench.invitation.state == .ended(.expired))
    }

    @Test("A second request ends the invitation, whether it comes with the first one or later", arguments: [true, false])
    func secondRequest(isTogether: Bool) throws {
        var bench = try JoinBench()
        try bench.wake(.approver)
        try bench.wake(.joiner)
        if !isTogether { try bench.wake(.approver) }
        try bench.put(.request(try bench.strangersRequest()))
        try bench.wake(.approver)
        #expect(bench.invitation.state == .ended(.secondRequest))
        #expect(bench.messages(3).isEmpty)
        #expect(try bench.invitation.confirm(.owner, now: bench.now, in: bench.ledger).command == nil)
        // The device that waits learns of it, because the offer is gone.
        for _ in 0..<3 {
            try bench.wake(.joiner)
            bench.now += 20
        }
        #expect(bench.request.state == .ended(.withdrawn))
    }

    @Test("Of a stranger that answers first, the device that waits learns by the reveal", arguments: JoinCipher.allCases)
    func strangerFirst(kind: JoinCipher) throws {
        var bench = try JoinBench(kind)
        try bench.wake(.approver)
        try bench.wake(.joiner)
        let own = try #require(bench.messages(2).first)
        bench.hidden[.approver] = [own.name]
        try bench.put(.request(try bench.strangersRequest()))
        try bench.wake(.approver)
        #expect(candidate(bench)?.name.text == "lone-starr")
        try bench.wake(.joiner)
        #expect(bench.request.state == .ended(.answeredAnother))
        // The approver's person sees no number on the other device.
        try bench.perform(try bench.invitation.refuse(now: bench.now, in: bench.ledger), of: .approver)
        #expect(bench.invitation.state == .ended(.refused) && bench.names == bench.messages(5).map(\.name))
    }

    @Test("One request that is repeated, copied, or sealed again is one request")
    func replayedRequest() throws {
        var bench = try JoinBench()
        try bench.compare()
        let request = try #require(bench.messages(2).first)
        let before = bench.invitation.state
        try bench.put(request.message)
        bench.objects["j/" + String(repeating: "0", count: 32) + "/" + String(repeating: "0", count: 64)] = bench.objects[request.name]
        try bench.wake(.approver)
        #expect(bench.invitation.state == before)
    }

    @Test("Requests that cannot be admitted are not answered, and no name reaches a terminal that could move its cursor")
    func invalidRequests() throws {
        var bench = try JoinBench()
        try bench.wake(.approver)
        for name in ["\u{1B}[2J", "a\nb", "", " a", "a  b", "\u{202E}a", "\u{200B}", String(repeating: "a", count: 65)] {
            try bench.put(.request(try bench.strangersRequest(name: Array(name.utf8))))
        }
        try bench.put(.request(try bench.strangersRequest(name: [0xFF])))
        let zeros = [UInt8](repeating: 0, count: 32)
        let keys = try #require(DevicePublicKeys(signing: zeros, whenUnlockedBox: zeros, afterFirstUnlockBox: zeros))
        let offer = try #require(bench.offer())
        for keys in [keys, bench.keys.publicKeys] {
            try bench.put(
                .request(
                    .init(offer: bench.cipher.hash(JoinMessage.offer(offer).encoded), keys: keys, nonce: zeros, deviceName: [65])))
        }
        try bench.wake(.approver)
        #expect(bench.invitation.state == .waiting)
        #expect(bench.messages(3).isEmpty)
        #expect(DeviceName("Dark Helmet’s Ærøskøbing 日本") != nil)
    }

    @Test("Torn messages are read again, and foreign files are left alone")
    func tornAndForeign() throws {
        var bench = try JoinBench()
        let junk = ObjectName.joinMessage(try bench.cipher.invitationID(of: bench.code), .none).text
        bench.objects[junk] = [1, 2, 3]
        bench.objects["j/desktop.ini"] = []
        for round in 0..<10 {
            bench.torn = round.isMultiple(of: 2) ? Set(bench.names) : []
            for side in JoinBench.Side.allCases { try bench.wake(side) }
        }
        #expect(candidate(bench) != nil)
        try bench.confirmJoiner()
        try bench.confirm()
        try bench.runEngine()
        bench.torn = Set(bench.names)
        try bench.wake(.joiner)
        #expect(bench.joined == nil)
        bench.torn = []
        try bench.wake(.joiner)
        #expect(bench.joined != nil && Set(bench.names) == Set(["j/desktop.ini"] + bench.messages(4).map(\.name)))
    }

    @Test("A message of a newer version ends the attempt with advice to update", arguments: [1, 2, 3, 4] as [UInt8])
    func newerVersion(kind: UInt8) throws {
        var bench = try JoinBench()
        if kind > 1 { try bench.wake(.approver) }
        if kind > 2 { try bench.wake(.joiner) }
        if kind > 3 {
            try bench.wake(.approver)
            try bench.wake(.joiner)
            try bench.confirmJoiner()
        }
        try bench.put([2, 1, 1], kind: kind)
        let side: JoinBench.Side = kind == 2 ? .approver : .joiner
        try bench.wake(side)
        if side == .approver {
            #expect(bench.invitation.state == .ended(.newerFormat))
        } else {
            #expect(bench.request.state == .ended(.newerFormat))
        }
    }

    @Test("An object that is sealed under another code is foreign")
    func otherCode() throws {
        var bench = try JoinBench()
        let other = try bench.cipher.makeInvitationCode()
        for kind in JoinMessage.kinds { try bench.put([2], kind: kind, code: other) }
        try bench.compare()
        let asking = try #require(candidate(bench))
        #expect(bench.request.state == .asking(asking.number))
    }
}
