// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// A device that joins a circle while the storage delays, tears, swaps, and forges messages: it has the code.
///
/// Two people compare the numbers, and say yes only if they are equal.
package struct JoinSimulation {
    package struct Report {
        package var failures: [String] = []
        /// Whether both devices have shown a number.
        package var areNumbersShown = false
        package var isSwapped = false
        package var isJoined = false
    }

    private enum Side { case approver, joiner }

    /// What a storage that has the code does.
    private enum Attack: CaseIterable {
        case forgeOffer, forgeRequest, forgeReveal, forgeAnswer, remove, replay
    }

    private var random: SeededGenerator
    private let cipher: FakeCipher
    private let numberCount: UInt64?
    private let code: SharedSecretBytes
    private let attacks: [Attack]
    private var now: Double = 700_000_000

    private let approverKeys: FakeDeviceKeys
    private let joinerKeys: FakeDeviceKeys
    private let attackerKeys = FakeDeviceKeys(seed: [3])
    private let ledger = MemoryLedger()
    private let founding: Statement
    private var engine: SyncEngine
    private var invitation: Invitation
    private var request: JoinRequest
    private let checkpoint = FakeCipher.hash([4])

    /// The objects that each side can see, and those that it has made.
    private var shown: [Side: [String: [UInt8]]] = [.approver: [:], .joiner: [:]]
    private var made: [Side: [String: [UInt8]]] = [.approver: [:], .joiner: [:]]
    private var passesMessages = true
    private var attackerNonce: [UInt8] = []
    private var performed: Set<Attack> = []
    private var forgedOffer: JoinMessage.Offer?
    private var report = Report()

    /// Runs one schedule.
    ///
    /// With a small `numberCount` an attacker can search for a number, so that a fault shows after few schedules.
    package static func run(seed: UInt64, numberCount: UInt64? = nil) -> Report {
        do throws(KeychainFailure) {
            var simulation = try JoinSimulation(seed: seed, numberCount: numberCount)
            return try simulation.run()
        } catch {
            return Report(failures: ["a step failed: \(error.reason)"])
        }
    }

    private init(seed: UInt64, numberCount: UInt64?) throws(KeychainFailure) {
        random = SeededGenerator(seed)
        cipher = FakeCipher(seed: seed, numberCount: numberCount)
        self.numberCount = numberCount
        code = try cipher.makeInvitationCode()
        approverKeys = FakeDeviceKeys(seed: [1])
        joinerKeys = FakeDeviceKeys(seed: [2])
        let approver = DeviceID(of: approverKeys.publicKeys, role: .owner, cipher: cipher)
        founding = try Statement(
            .found(.init(nonce: try cipher.randomBytes(32), keys: approverKeys.publicKeys)), circle: nil, author: approver, heads: [],
            keys: approverKeys, cipher: cipher)
        ledger.insert(StoredStatement(hash: founding.hash, bytes: founding.encoded))
        let membership = Membership(circle: founding.circle, device: approver)
        engine = SyncEngine(cipher: cipher, keys: approverKeys, membership: membership)
        invitation = try Invitation(
            code: code, nonce: try cipher.randomBytes(32), membership: membership, cipher: cipher, now: now, in: ledger)
        guard let name = DeviceName("eagle-5") else { throw KeychainFailure(.internal, "not a name") }
        request = try JoinRequest(
            code: code, circle: founding.circle, keys: joinerKeys.publicKeys, deviceName: name, nonce: try cipher.randomBytes(32),
            cipher: cipher, now: now)
        attackerNonce = try cipher.randomBytes(32)
        var generator = SeededGenerator(seed &+ 1)
        switch seed % 4 {
        case 0:
            // The storage is honest, and only slow.
            attacks = []
        case 1:
            // It stands between two devices that never see each other's messages.
            attacks = [.forgeOffer, .forgeRequest, .forgeReveal]
            passesMessages = false
        default: attacks = Attack.allCases.filter { _ in generator.chance(0.6) }
        }
    }

    private mutating func run() throws(KeychainFailure) -> Report {
        for _ in 0..<80 where !isOver {
            now += Double(random.below(3))
            switch random.below(8) {
            case 0, 1: try wake(.approver)
            case 2, 3: try wake(.joiner)
            case 4 where passesMessages: deliver(from: .approver, to: .joiner)
            case 5 where passesMessages: deliver(from: .joiner, to: .approver)
            case 6: try comparePeople()
            default: if let attack = random.element(of: attacks) { try perform(attack) }
            }
        }
        if attacks.isEmpty, !isOver { try finish() }
        judge()
        return report
    }

    private var isOver: Bool {
        switch request.state {
        case .joined, .ended: true
        case .looking, .requested, .asking, .confirmed: false
        }
    }

    /// An honest storage shows everything some day.
    private mutating func finish() throws(KeychainFailure) {
        for _ in 0..<8 where !isOver {
            for side in [Side.approver, .joiner] {
                for name in made[.approver, default: [:]].keys { shown[.joiner]?[name] = made[.approver]?[name] }
                for name in made[.joiner, default: [:]].keys { shown[.approver]?[name] = made[.joiner]?[name] }
                try wake(side)
            }
            try comparePeople()
        }
    }

    // The devices

    private mutating func wake(_ side: Side) throws(KeychainFailure) {
        var waiting: [SyncEffect] = try step(side, .wake)
        while let effect = waiting.popLast() {
            switch effect {
            case .list: waiting += try step(side, .listed(.joinMessages, shown[side, default: [:]].keys.sorted()))
            case .read(let name, _):
                var bytes = shown[side]?[name]
                if random.chance(0.1) { bytes = bytes.map { Array($0.dropLast(1 + random.below($0.count - 1))) } }
                waiting += try step(side, .read(name, bytes))
            case .create(let name, let bytes):
                made[side]?[name] = bytes
                shown[side]?[name] = bytes
                waiting += try step(side, random.chance(0.1) ? .failed(name) : .created(name))
            case .remove(let name): shown[side]?[name] = nil
            case .wake, .writeCheckpoint, .alarm: break
            }
        }
    }

    private mutating func step(_ side: Side, _ event: SyncEvent) throws(KeychainFailure) -> [SyncEffect] {
        switch side {
        case .approver: try invitation.step(event, now: now, in: ledger)
        case .joiner: try request.step(event, now: now)
        }
    }

    private mutating func deliver(from: Side, to: Side) {
        guard let (name, bytes) = random.element(of: made[from, default: [:]].sorted { $0.key < $1.key }) else { return }
        shown[to]?[name] = bytes
    }

    // The people

    private mutating func comparePeople() throws(KeychainFailure) {
        guard case .asking(let candidate) = invitation.state, case .asking(let number) = request.state else { return }
        report.areNumbersShown = true
        report.isSwapped = candidate.request != joinerRequest || candidate.request.offer != approverOffer.map(hash)
        guard candidate.number == number else {
            // Sometimes the storage goes on while they look.
            if random.chance(0.5) { _ = try request.refuse(now: now) }
            return
        }
        if report.isSwapped { report.failures.append("both numbers are equal, and a message was swapped") }
        guard let command = try invitation.confirm(.owner, now: now, in: ledger).command else { return }
        var effects = try engine.step(
            .command(command), now: now, entropy: &random, in: SyncTransaction(ledger: ledger, items: ledger))
        try invitation.answer(keys: approverKeys, checkpoint: checkpoint, now: now, in: ledger)
        effects += ledger.state.outgoing.map { .create($0.name, $0.bytes) }
        for case .create(let name, let bytes) in effects where name.hasPrefix("j/") {
            made[.approver]?[name] = bytes
            shown[.approver]?[name] = bytes
        }
        for effect in try request.confirm(now: now) {
            if case .create(let name, let bytes) = effect { made[.joiner]?[name] = bytes }
        }
    }

    private mutating func judge() {
        if case .joined(let circle) = request.state {
            report.isJoined = true
            if circle.membership.circle != founding.circle { report.failures.append("the device has joined another circle") }
            if circle.checkpoint != checkpoint { report.failures.append("the device believes a checkpoint that the approver did not name") }
        }
        if attacks.isEmpty, !report.isJoined { report.failures.append("the device has not joined: \(request.state)") }
    }

    // The storage

    private func message(of side: Side, kind: UInt8) -> JoinMessage? {
        for (_, bytes) in made[side, default: [:]].sorted(by: { $0.key < $1.key }) {
            if let content = try? cipher.openJoinMessage(bytes, kind: kind, code: code) { return try? JoinMessage(kind: kind, content) }
        }
        return nil
    }

    private var approverOffer: JoinMessage.Offer? {
        if case .offer(let offer)? = message(of: .approver, kind: 1) { offer } else { nil }
    }

    private var joinerRequest: JoinMessage.Request? {
        if case .request(let request)? = message(of: .joiner, kind: 2) { request } else { nil }
    }

    private func hash(_ offer: JoinMessage.Offer) -> ObjectHash { cipher.hash(JoinMessage.offer(offer).encoded) }

    private mutating func show(_ message: JoinMessage, to side: Side) throws(KeychainFailure) {
        let bytes = try cipher.sealJoinMessage(message.encoded, kind: message.kind, code: code)
        let name = ObjectName.joinMessage(try cipher.invitationID(of: code), cipher.hash(bytes)).text
        shown[side]?[name] = bytes
    }

    private mutating func perform(_ attack: Attack) throws(KeychainFailure) {
        switch attack {
        case .forgeOffer:
            guard performed.insert(attack).inserted else { return }
            let approver = random.chance(0.5) ? attackerKeys.publicKeys : approverKeys.publicKeys
            let offer = JoinMessage.Offer(
                circle: founding.circle, approver: DeviceID(of: approver, role: .owner, cipher: cipher),
                commitment: cipher.hash(attackerNonce))
            forgedOffer = offer
            for (name, _) in shown[.joiner, default: [:]] where random.chance(0.8) { shown[.joiner]?[name] = nil }
            try show(.offer(offer), to: .joiner)
        case .forgeRequest: try forgeRequest()
        case .forgeReveal: try forgeReveal()
        case .forgeAnswer: try forgeAnswer()
        case .remove:
            let side: Side = random.chance(0.5) ? .approver : .joiner
            if let name = random.element(of: shown[side, default: [:]].keys.sorted()) { shown[side]?[name] = nil }
        case .replay:
            for side in [Side.approver, .joiner] {
                if let object = random.element(of: made[side, default: [:]].sorted { $0.key < $1.key }) {
                    shown[side]?[object.key] = object.value
                }
            }
        }
    }

    /// Asks the approver with the attacker's keys, and with a number that the other device shows, if the approver has revealed its nonce.
    private mutating func forgeRequest() throws(KeychainFailure) {
        // A second request is of use only once the attacker knows both numbers.
        guard let offer = approverOffer, !performed.contains(.forgeRequest) || isAsking && random.chance(0.3) else { return }
        performed.insert(.forgeRequest)
        func forged(_ nonce: [UInt8]) -> JoinMessage.Request {
            JoinMessage.Request(offer: hash(offer), keys: attackerKeys.publicKeys, nonce: nonce, deviceName: Array("eagle-5".utf8))
        }
        var chosen = forged(try cipher.randomBytes(32))
        if case .asking(let number) = request.state, case .reveal(let nonce, _)? = message(of: .approver, kind: 3) {
            for _ in 0..<searchLength {
                chosen = forged(try cipher.randomBytes(32))
                if JoinMessage.number(offer: offer, request: chosen, nonce: nonce, cipher: cipher) == number.value { break }
            }
        }
        try show(.request(chosen), to: .approver)
    }

    /// Reveals the nonce of the forged offer, or one with the number that the approver shows.
    private mutating func forgeReveal() throws(KeychainFailure) {
        // Storage can wait until the approver shows its number.
        guard let joinerRequest, performed.insert(.forgeReveal).inserted else { return }
        var nonce = attackerNonce
        if let forgedOffer, case .asking(let candidate) = invitation.state, random.chance(0.5) {
            for _ in 0..<searchLength {
                nonce = try cipher.randomBytes(32)
                let number = JoinMessage.number(offer: forgedOffer, request: joinerRequest, nonce: nonce, cipher: cipher)
                if number == candidate.number.value { break }
            }
        }
        try show(.reveal(nonce: nonce, request: cipher.hash(JoinMessage.request(joinerRequest).encoded)), to: .joiner)
    }

    /// Alters the approver's answer, which anyone with the code can open.
    private mutating func forgeAnswer() throws(KeychainFailure) {
        guard case .answer(let answer)? = message(of: .approver, kind: 4), let joinerRequest else { return }
        let keys = random.chance(0.5) ? attackerKeys.publicKeys : answer.approver
        var forged = JoinMessage.Answer(
            approver: keys, founding: answer.founding, admission: answer.admission, marks: [], checkpoint: nil, signature: answer.signature)
        if random.chance(0.5) {
            forged.signature = try attackerKeys.sign(JoinMessage.signedMessage(forged, to: joinerRequest, cipher: cipher))
        }
        try show(.answer(forged), to: .joiner)
    }

    /// Whether the joining device shows a number.
    private var isAsking: Bool { if case .asking = request.state { true } else { false } }

    /// A search for one of very many numbers would find none.
    private var searchLength: Int { numberCount.map { Int(clamping: $0) * 3 } ?? 1 }
}
