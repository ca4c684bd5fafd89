// SPDX-License-Identifier: Apache-2.0
import Keybag
import KeychainCore
import SyncCore
import SyncSimulation

/// A cipher under which joining is tested.
enum JoinCipher: CaseIterable {
    case production, simulated

    var cipher: any CircleCipher { self == .production ? CircleCryptography() : FakeCipher(seed: 1) }
}

/// An approver and a device that joins, over one storage that a test may alter.
struct JoinBench {
    enum Side: CaseIterable { case approver, joiner }

    let cipher: any CircleCipher
    let code: SharedSecretBytes
    let keys: any CircleDeviceKeys
    let founderKeys: any CircleDeviceKeys
    let membership: Membership
    /// The approver's disk and agent.
    let ledger = MemoryLedger()
    var engine: SyncEngine
    var invitation: Invitation
    private(set) var joinerKeys: any CircleDeviceKeys
    var request: JoinRequest
    var objects: [String: [UInt8]] = [:]
    /// The names that the storage does not show to a side, and those that it shows without their last byte.
    var hidden: [Side: Set<String>] = [:]
    var torn: Set<String> = []
    var now: Double = 700_000_000
    private var random = SeededGenerator(1)
    let checkpoint = ObjectHash(prefix: Identifier128(high: 1, low: 2), suffix: Identifier128(high: 3, low: 4))

    /// `isFounder`: whether the approver has founded the circle; otherwise another device has, and has admitted the approver.
    init(_ kind: JoinCipher = .simulated, isFounder: Bool = true) throws {
        cipher = kind.cipher
        code = try cipher.makeInvitationCode()
        keys = try cipher.makeDeviceKeys()
        founderKeys = isFounder ? keys : try cipher.makeDeviceKeys()
        let founder = DeviceID(of: founderKeys.publicKeys, role: .owner, cipher: cipher)
        let approver = DeviceID(of: keys.publicKeys, role: .owner, cipher: cipher)
        let founding = try Statement(
            .found(.init(nonce: try cipher.randomBytes(32), keys: founderKeys.publicKeys)), circle: nil, author: founder, heads: [],
            keys: founderKeys, cipher: cipher)
        var statements = [founding]
        if !isFounder {
            statements.append(
                try Statement(
                    .admit(.init(device: approver, keys: keys.publicKeys, role: .owner, circleCode: nil)), circle: founding.circle,
                    author: founder, heads: [founding.hash], keys: founderKeys, cipher: cipher))
        }
        for statement in statements { ledger.insert(StoredStatement(hash: statement.hash, bytes: statement.encoded)) }
        membership = Membership(circle: founding.circle, device: approver)
        engine = SyncEngine(cipher: cipher, keys: keys, membership: membership)
        invitation = try Invitation(
            code: code, nonce: try cipher.randomBytes(32), membership: membership, cipher: cipher, now: now, in: ledger)
        joinerKeys = try cipher.makeDeviceKeys()
        request = try Self.request(code, joinerKeys, membership.circle, cipher, now: now)
    }

    private static func request(
        _ code: SharedSecretBytes, _ keys: any CircleDeviceKeys, _ circle: CircleID, _ cipher: any CircleCipher, now: Double
    ) throws -> JoinRequest {
        guard let name = DeviceName("eagle-5") else { throw FormatError.malformed }
        return try JoinRequest(
            code: code, circle: circle, keys: keys.publicKeys, deviceName: name, nonce: try cipher.randomBytes(32), cipher: cipher,
            now: now)
    }

    /// Starts the program of the device that joins again: it has new keys, and knows nothing.
    mutating func restartJoiner(with code: SharedSecretBytes? = nil) throws {
        joinerKeys = try cipher.makeDeviceKeys()
        request = try Self.request(code ?? self.code, joinerKeys, membership.circle, cipher, now: now)
    }

    var joiner: DeviceID { DeviceID(of: joinerKeys.publicKeys, role: .writer, cipher: cipher) }

    // Events

    mutating func wake(_ side: Side) throws { try perform(try step(side, .wake), of: side) }

    private mutating func step(_ side: Side, _ event: SyncEvent) throws -> [SyncEffect] {
        switch side {
        case .approver: try invitation.step(event, now: now, in: ledger)
        case .joiner: try request.step(event, now: now)
        }
    }

    mutating func perform(_ effects: [SyncEffect], of side: Side) throws {
        var waiting = effects
        while let effect = waiting.popLast() {
            switch effect {
            case .list(let folder):
                let names = objects.keys.filter { $0.hasPrefix(folder.rawValue) && hidden[side]?.contains($0) != true }
                waiting += try step(side, .listed(folder, names.sorted() + ["j/desktop.ini", "j"]))
            case .read(let name, let limit):
                let bytes = objects[name].map { Array((torn.contains(name) ? $0.dropLast() : $0[...]).prefix(limit)) }
                waiting += try step(side, .read(name, bytes))
            case .create(let name, let bytes):
                objects[name] = objects[name] ?? bytes
                waiting += try step(side, .created(name))
            case .remove(let name): objects[name] = nil
            case .wake, .writeCheckpoint, .alarm: break
            }
        }
    }

    /// Runs the engine of the approver, which also cleans up, until nothing is left to do.
    mutating func runEngine(_ event: SyncEvent = .wake) throws { try Self.run(&engine, event, ledger, &objects, now, &random) }

    /// Runs an engine on its ledger.
    static func run(
        _ engine: inout SyncEngine, _ event: SyncEvent, _ ledger: MemoryLedger, _ objects: inout [String: [UInt8]], _ now: Double,
        _ random: inout SeededGenerator
    ) throws {
        var events = [event]
        while let event = events.popLast() {
            let effects = try engine.step(event, now: now, entropy: &random, in: SyncTransaction(ledger: ledger, items: ledger))
            for effect in effects {
                switch effect {
                case .list(let folder):
                    events.insert(.listed(folder, objects.keys.filter { $0.hasPrefix(folder.rawValue) }.sorted()), at: 0)
                case .read(let name, _): events.insert(.read(name, objects[name]), at: 0)
                case .create(let name, let bytes):
                    objects[name] = objects[name] ?? bytes
                    events.insert(.created(name), at: 0)
                case .remove(let name): objects[name] = nil
                case .wake, .writeCheckpoint, .alarm: break
                }
            }
        }
    }

    // What people do

    /// Lets the two sides exchange messages until both show a number.
    mutating func compare() throws {
        try wake(.approver)
        try wake(.joiner)
        try wake(.approver)
        try wake(.joiner)
    }

    /// The approver's person confirms: the device is admitted, and the answer is in the ledger.
    mutating func confirm(_ role: DeviceRole = .owner) throws {
        guard let command = try invitation.confirm(role, now: now, in: ledger).command else { return }
        _ = try engine.step(.command(command), now: now, entropy: &random, in: SyncTransaction(ledger: ledger, items: ledger))
        try invitation.answer(keys: keys, checkpoint: checkpoint, now: now, in: ledger)
    }

    /// The person at the device that joins confirms.
    mutating func confirmJoiner() throws { try perform(try request.confirm(now: now), of: .joiner) }

    var joined: JoinedCircle? { if case .joined(let circle) = request.state { circle } else { nil } }

    // What a program with the code does

    /// The names of the invitation's objects.
    var names: [String] { objects.keys.filter { $0.hasPrefix("j/") }.sorted() }

    func message(_ name: String) -> JoinMessage? {
        for kind in JoinMessage.kinds {
            if let content = try? cipher.openJoinMessage(objects[name] ?? [], kind: kind, code: code) {
                return try? JoinMessage(kind: kind, content)
            }
        }
        return nil
    }

    func messages(_ kind: UInt8) -> [(name: String, message: JoinMessage)] {
        names.compactMap { name in message(name).map { (name, $0) } }.filter { $0.message.kind == kind }
    }

    func offer() -> JoinMessage.Offer? { if case .offer(let offer)? = messages(1).first?.message { offer } else { nil } }

    /// Shows a side none of the messages that are there now.
    mutating func hideAll(from side: Side) { hidden[side] = hidden[side, default: []].union(names) }

    /// Puts a message into the storage.
    mutating func put(_ message: JoinMessage) throws { try put(message.encoded, kind: message.kind) }

    mutating func put(_ content: [UInt8], kind: UInt8, code: SharedSecretBytes? = nil) throws {
        let bytes = try cipher.sealJoinMessage(content, kind: kind, code: code ?? self.code)
        objects[ObjectName.joinMessage(try cipher.invitationID(of: self.code), cipher.hash(bytes)).text] = bytes
    }

    /// Returns a request of another device that has the code.
    func strangersRequest(name: [UInt8] = Array("lone-starr".utf8), offer: ObjectHash? = nil) throws -> JoinMessage.Request {
        let hash = self.offer().map { cipher.hash(JoinMessage.offer($0).encoded) }
        return JoinMessage.Request(
            offer: offer ?? hash ?? .none, keys: try cipher.makeDeviceKeys().publicKeys, nonce: try cipher.randomBytes(32),
            deviceName: name)
    }
}
