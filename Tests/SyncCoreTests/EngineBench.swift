// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation

/// A circle of engines over one storage, which shows everything at once unless a test hides it.
struct EngineBench {
    let cipher = FakeCipher(seed: 1)
    private(set) var random = SeededGenerator(1)
    var machines: [Machine] = []
    /// The objects in the storage, of which a test may remove some.
    var objects: [String: [UInt8]] = [:]
    /// The names of the objects that the storage does not show to a device.
    var hidden: [Int: Set<String>] = [:]
    var now: Double = 700_000_000
    let limits: SyncLimits
    /// What a program does once a checkpoint is due.
    var beforeCheckpoint: ((inout EngineBench) -> Void)?
    /// The number of groups of pieces after which an agent ends; nil if it goes on.
    var pieceGroupLimit: Int?

    struct AgentEnded: Error {}

    /// A machine with its disk and its agent.
    struct Machine {
        let keys: FakeDeviceKeys
        let role: DeviceRole
        let id: DeviceID
        let ledger = MemoryLedger()
        var engine: SyncEngine?
        var alarms: Set<SyncAlarm> = []

        init(keys: FakeDeviceKeys, role: DeviceRole, cipher: FakeCipher) {
            self.keys = keys
            self.role = role
            id = DeviceID(of: keys.publicKeys, role: role, cipher: cipher)
        }
    }

    /// Founds a circle of devices with these roles; the first one is the founder.
    init(_ roles: [DeviceRole] = [.owner, .owner], limits: SyncLimits = SyncLimits()) throws {
        self.limits = limits
        let keys = roles.indices.map { FakeDeviceKeys(seed: [UInt8($0)]) }
        let ids = zip(keys, roles).map { [cipher] in DeviceID(of: $0.publicKeys, role: $1, cipher: cipher) }
        var statements = [
            try Statement(
                .found(.init(nonce: [UInt8](repeating: 0, count: 32), keys: keys[0].publicKeys)), circle: nil, author: ids[0], heads: [],
                keys: keys[0], cipher: cipher)
        ]
        for device in roles.indices.dropFirst() {
            statements.append(
                try Statement(
                    .admit(.init(device: ids[device], keys: keys[device].publicKeys, role: roles[device], circleCode: nil)),
                    circle: statements[0].circle, author: ids[0], heads: [statements[device - 1].hash], keys: keys[0], cipher: cipher))
        }
        for device in roles.indices {
            let machine = Machine(keys: keys[device], role: roles[device], cipher: cipher)
            for statement in statements { machine.ledger.insert(StoredStatement(hash: statement.hash, bytes: statement.encoded)) }
            machines.append(machine)
            start(device, in: statements[0].circle)
        }
    }

    /// Starts the agent of a device, which continues from its ledger.
    mutating func start(_ device: Int, in circle: CircleID? = nil) {
        guard let circle = circle ?? machines[device].engine?.membership.circle else { return }
        let membership = Membership(circle: circle, device: machines[device].id)
        machines[device].engine = SyncEngine(cipher: cipher, keys: machines[device].keys, membership: membership, limits: limits)
    }

    /// Adds a machine with the keys of another one: an identity that several machines share.
    mutating func addMachine(sharing device: Int) -> Int {
        add(Machine(keys: machines[device].keys, role: machines[device].role, cipher: cipher), knowingStatementsOf: device)
    }

    /// Lets an owner admit a new device, which starts with the statements of that owner.
    mutating func admit(by owner: Int) throws -> Int {
        let keys = FakeDeviceKeys(seed: [UInt8(machines.count)])
        try run(owner, .command(.admit(keys.publicKeys, .owner)))
        return add(Machine(keys: keys, role: .owner, cipher: cipher), knowingStatementsOf: owner)
    }

    /// Adds a machine, which starts with the statements of another one.
    mutating func add(_ machine: Machine, knowingStatementsOf device: Int) -> Int {
        for statement in machines[device].ledger.statements() { machine.ledger.insert(statement) }
        machines.append(machine)
        start(machines.count - 1, in: machines[device].engine?.membership.circle)
        return machines.count - 1
    }

    /// Handles an event without performing its effects.
    @discardableResult
    mutating func step(_ device: Int, _ event: SyncEvent) throws -> [SyncEffect] {
        let ledger = machines[device].ledger
        let effects = try machines[device].engine?.step(
            event, now: now, entropy: &random, in: SyncTransaction(ledger: ledger, items: ledger))
        for case .alarm(let alarm) in effects ?? [] { machines[device].alarms.insert(alarm) }
        return effects ?? []
    }

    /// Performs an effect, and returns the effects of its result.
    mutating func perform(_ effect: SyncEffect, of device: Int) throws -> [SyncEffect] {
        switch effect {
        case .list(let folder):
            let names = objects.keys.filter { $0.utf8.first == folder.rawValue.utf8.first && isShown($0, to: device) }
            return try step(device, .listed(folder, names.sorted()))
        case .read(let name, _): return try step(device, .read(name, isShown(name, to: device) ? objects[name] : nil))
        case .create(let name, let bytes):
            objects[name] = objects[name] ?? bytes
            return try step(device, .created(name))
        case .remove(let name):
            objects[name] = nil
            return []
        case .writeCheckpoint: return try writeCheckpoint(device)
        case .wake, .alarm: return []
        }
    }

    private mutating func writeCheckpoint(_ device: Int) throws -> [SyncEffect] {
        let program = beforeCheckpoint
        program?(&self)
        guard let writer = machines[device].engine?.checkpointWriter else { return [] }
        let ledger = machines[device].ledger
        var groupCount = 0
        let outcome = try ledger.snapshot { snapshot, items throws(KeychainFailure) in
            try writer.write(snapshot, items) { objects in
                guard groupCount != pieceGroupLimit else { return false }
                groupCount += 1
                for object in objects { ledger.insert(object) }
                return true
            }
        }
        guard pieceGroupLimit == nil else { throw AgentEnded() }
        return try step(device, .checkpoint(outcome))
    }

    private func isShown(_ name: String, to device: Int) -> Bool { hidden[device]?.contains(name) != true }

    /// Wakes a device and performs its effects until none is left; returns all of them.
    @discardableResult
    mutating func run(_ device: Int, _ event: SyncEvent = .wake) throws -> [SyncEffect] {
        try perform(try step(device, event), of: device)
    }

    /// Performs effects, and those of their results, until none is left; returns all of them.
    mutating func perform(_ effects: [SyncEffect], of device: Int) throws -> [SyncEffect] {
        var waiting = effects
        var performed: [SyncEffect] = []
        while !waiting.isEmpty {
            let effect = waiting.removeFirst()
            performed.append(effect)
            waiting += try perform(effect, of: device)
        }
        return performed
    }

    /// Lets the devices exchange everything.
    mutating func exchange(_ devices: [Int]) throws {
        for _ in 0..<3 {
            for device in devices { try run(device) }
        }
    }

    // Programs

    /// Writes an item of this device, and records the change.
    func put(_ device: Int, _ name: Int, date: Double, value: UInt64, _ accessibility: ItemAccessibility = .afterFirstUnlock) {
        let ledger = machines[device].ledger
        let row = item(device, name) ?? Identifier128(high: UInt64(name), low: value)
        ledger.state.rows[row] = MemoryLedger.Row(
            content: SimulatedContent(name: name, accessibility: accessibility, date: date, value: value),
            revision: SyncVersionID(Identifier128(high: UInt64(device), low: value)))
        ledger.state.changes[row] = .written
    }

    func delete(_ device: Int, _ name: Int) {
        guard let row = item(device, name) else { return }
        machines[device].ledger.state.rows[row] = nil
        machines[device].ledger.state.changes[row] = .deleted
    }

    /// Loses the row of an item without a record, as a repair of the file does.
    func loseRow(_ device: Int, _ name: Int) {
        guard let row = item(device, name) else { return }
        machines[device].ledger.state.rows[row] = nil
    }

    /// Damages the row of an item, so that it cannot be sent.
    func damage(_ device: Int, _ name: Int) {
        guard let row = item(device, name) else { return }
        machines[device].ledger.state.rows[row]?.isDamaged = true
    }

    func lock(_ device: Int, _ lanes: Set<Lane>) { machines[device].ledger.state.lockedLanes = lanes }

    private func item(_ device: Int, _ name: Int) -> ItemID? {
        machines[device].ledger.state.rows.first { $0.value.content.name == name }?.key
    }

    /// The value that a program reads.
    func value(_ device: Int, _ name: Int) -> UInt64? {
        machines[device].ledger.state.rows.values.first { $0.content.name == name }?.content.value
    }

    func copyCount(_ device: Int) -> Int { machines[device].ledger.state.copies.count }
}
