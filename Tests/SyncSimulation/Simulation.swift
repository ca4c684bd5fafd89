// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Several devices over an untrusted storage, driven by one seed.
package struct Simulation {
    package let seed: UInt64
    package let options: Options
    package var random: SeededGenerator
    package var devices: [SimulatedDevice] = []
    package var storage: SimulatedStorage
    package var oracle = Oracle()
    package var counters = Counters()
    let parts: any SimulatedParts
    let cipher: any CircleCipher
    let schedules: Schedules
    let faults: FaultMenu
    let limits: SyncLimits
    var now: Double = 700_000_000
    let nameCount: Int
    private var trace: [String] = []
    /// What strangers put into the storage, and the devices that they made up.
    var hostileNames: Set<String> = []
    var forgedDevices: Set<DeviceID> = []
    /// Statements of other circles, and heads of readers' statements that never existed.
    var foreignStatements: Set<StatementHash> = []
    var missingHeads: Set<StatementHash> = []
    /// The objects that the storage has lost.
    var lostNames: Set<String> = []
    /// An earlier state of the storage.
    var storageSnapshot: [(name: String, bytes: [UInt8])] = []
    /// The recovery kit, until it is used.
    var recoveryKit: (any CircleDeviceKeys)?
    private(set) var founding: Statement?
    /// The heads that all devices of the beginning know first, and their number.
    private(set) var firstHeads: [StatementHash] = []
    private(set) var firstCount = 0
    /// The device whose disk is damaged.
    var damaged: Int?
    /// The batches that devices have sealed, by name.
    private var sealed: [String: SealedBatch] = [:]
    /// The names of all objects that devices have sealed.
    private var checkedNames: Set<String> = []

    package enum Schedules: Sendable {
        /// One in ten is of `rejoins`.
        case all
        /// Without anything about which a person has to know: no alarm is permitted, except for a statement that the storage does not show for an hour.
        case benign
        /// With removals of devices in most of them, and nothing that may make a device forget one.
        case removals
        /// With devices that leave the circle and enter it again.
        case rejoins
    }

    package struct Options: Sendable {
        package var schedules = Schedules.all
        package var deviceCount = 6
        package var eventCount = 400
        /// Whether the report describes each step.
        package var isTraced = false
        package var parts = PartsKind.simulated

        package init() {}
    }

    package struct Report: Sendable {
        package let seed: UInt64
        package let failures: [String]
        package let counters: Counters
        /// A hash of everything that the devices did.
        package let fingerprint: UInt64
        package let trace: [String]
    }

    package init(seed: UInt64, options: Options = Options()) {
        self.seed = seed
        self.options = options
        random = SeededGenerator(seed)
        let cipherSeed = random.next()
        parts = options.parts == .simulated ? FakeParts(seed: cipherSeed) : ProductionParts()
        cipher = parts.cipher
        var faults = FaultMenu(&random)
        schedules = options.schedules == .all && seed % 10 == 7 ? .rejoins : options.schedules
        faults.restrict(to: schedules)
        self.faults = faults
        nameCount = 1 + random.below(4)
        var limits = SyncLimits()
        limits.foldedRecords = random.element(of: [1, 2, 512]) ?? 512
        limits.versionsInBatch = random.element(of: [1, 2, 512]) ?? 512
        limits.pieceByteCount = random.element(of: [60, 200, 4_000]) ?? 4_000
        limits.uncoveredBatches = random.element(of: [4, 8, 16, 4_096]) ?? 16
        limits.uncoveredVersions = random.element(of: [8, 32, 256]) ?? 256
        limits.unconfirmedDeletions = faults.guardsDeletions ? 2 : 1_000
        limits.secondsBeforePurge = 3_600
        // Sizes that only large circles reach otherwise.
        oracle.splitsVersions = seed % 3 == 0
        if oracle.splitsVersions { limits.replacedVersions = 1 }
        if seed % 5 == 0 { limits.keysInStatement = 2 }
        if seed % 4 == 0 { (limits.batchesInStep, limits.pieceGroupByteCount) = (1, 0) }
        limits.checkedVersions = limits.versionsInBatch
        self.limits = limits
        storage = SimulatedStorage(deviceCount: options.deviceCount)
        let count = max(2, options.deviceCount - random.below(4))
        setUp(deviceCount: count)
    }

    /// Runs the events, lets everything come to rest, and checks the result.
    package mutating func run() -> Report {
        if options.isTraced { note("faults: \(faults), limits: \(limits)") }
        for event in 0..<options.eventCount {
            if faults.hasLongAbsence { beAway(event) }
            act()
            if !oracle.failures.isEmpty { break }
        }
        if oracle.failures.isEmpty { settleAndCheck() }
        var fingerprint: UInt64 = UInt64(oracle.published.count)
        for name in storage.names { fingerprint = SeededGenerator.mix(fingerprint ^ FakeCipher.hash(Array(name.utf8)).prefix.low) }
        return Report(seed: seed, failures: oracle.failures, counters: counters, fingerprint: fingerprint, trace: trace)
    }

    mutating func note(_ text: String) { trace.append(text) }

    // Setting up

    private mutating func setUp(deviceCount: Int) {
        do {
            for index in 0..<deviceCount {
                try addDevice(index, faults.hasReaders && index == deviceCount - 1 && index > 1 ? .reader : .owner)
            }
            let founder = devices[0]
            var nonce: [UInt8] = []
            for _ in 0..<4 { nonce.append(littleEndian: random.next()) }
            let founding = try Statement(
                .found(.init(nonce: nonce, keys: founder.keys.publicKeys)), circle: nil, author: founder.id, heads: [], keys: founder.keys,
                cipher: cipher)
            try join(0, founding.circle, [founding])
            var statements = [founding]
            // First, so that the admission of every other device lists it.
            if faults.usesRecoveryKit { statements.append(try admitRecoveryKit(founding.circle, founding.hash)) }
            for index in 1..<deviceCount {
                statements.append(
                    try Statement(
                        .admit(
                            .init(
                                device: devices[index].id, keys: devices[index].keys.publicKeys, role: devices[index].role,
                                circleCode: nil)),
                        circle: founding.circle, author: founder.id, heads: [statements[statements.count - 1].hash], keys: founder.keys,
                        cipher: cipher
                    ))
            }
            self.founding = founding
            firstHeads = statements.suffix(1).map(\.hash)
            firstCount = deviceCount
            for index in devices.indices { try join(index, founding.circle, statements) }
        } catch {
            oracle.fail("the circle cannot be founded: \(error)")
        }
    }

    private mutating func admitRecoveryKit(_ circle: CircleID, _ head: StatementHash) throws -> Statement {
        let kit = try cipher.makeRecoveryKit()
        let keys = try cipher.deviceKeys(ofRecoveryKit: kit)
        recoveryKit = keys
        return try Statement(
            .admit(
                .init(
                    device: DeviceID(of: keys.publicKeys, role: .recoveryKit, cipher: cipher), keys: keys.publicKeys, role: .recoveryKit,
                    circleCode: cipher.circleCode(circle, recoveryKit: kit))),
            circle: circle, author: devices[0].id, heads: [head], keys: devices[0].keys, cipher: cipher)
    }

    /// Adds the machine at which a person uses the recovery kit; returns its index.
    mutating func addKit(_ keys: any CircleDeviceKeys) throws -> Int {
        devices.append(try machine(devices.count, keys, .recoveryKit))
        storage.addView()
        return devices.count - 1
    }

    mutating func addDevice(_ index: Int, _ role: DeviceRole = .owner) throws {
        var seed: [UInt8] = []
        seed.append(littleEndian: random.next())
        devices.append(try machine(index, parts.keys(seed: seed), role))
        if index >= options.deviceCount { storage.addView() }
    }

    private func machine(_ index: Int, _ keys: any CircleDeviceKeys, _ role: DeviceRole) throws -> SimulatedDevice {
        var device = SimulatedDevice(
            index: index, keys: keys, id: DeviceID(of: keys.publicKeys, role: role, cipher: cipher), disk: try parts.makeDisk())
        device.role = role
        return device
    }

    /// Gives a device the membership and the statements that the answer to its request to join contains.
    mutating func join(_ index: Int, _ circle: CircleID, _ statements: [Statement]) throws {
        let membership = Membership(circle: circle, device: devices[index].id)
        devices[index].membership = membership
        try devices[index].disk.transaction(rollsBack: false) { transaction throws(KeychainFailure) in
            try transaction.ledger.set(.membership, to: membership.encoded)
            for statement in statements {
                try transaction.ledger.insert(StoredStatement(hash: statement.hash, bytes: statement.encoded))
            }
        }
        devices[index].start(cipher: cipher, limits: limits)
    }

    // Steps of engines

    /// Lets a device's engine handle an event.
    ///
    /// With `crashes`, the transaction is rolled back, or committed and its effects are lost.
    mutating func step(_ index: Int, _ event: SyncEvent, crashes: Bool = false) {
        guard devices[index].engine != nil else { return }
        let isRolledBack = crashes && random.chance(0.5)
        do throws(KeychainFailure) {
            try devices[index].disk.transaction(rollsBack: isRolledBack) { transaction throws(KeychainFailure) in
                try handle(event, index, crashes ? isRolledBack ? ", rolled back" : ", crash" : "", in: transaction)
            }
        } catch {
            // A device that learns of its removal in the same step cannot admit or remove another one.
            if case .command = event, error.status == .missingEntitlement { return }
            oracle.fail("device \(index): \(Self.description(of: event)) failed: \(error)")
        }
        guard crashes else { return }
        counters.count(isRolledBack ? .crashBeforeTheCommit : .crashAfterTheCommit)
        devices[index].start(cipher: cipher, limits: limits)
    }

    private mutating func handle(
        _ event: SyncEvent, _ index: Int, _ end: String, in transaction: SyncTransaction
    ) throws(KeychainFailure) {
        guard var engine = devices[index].engine else { return }
        let effects = try engine.step(event, now: now + devices[index].clockOffset, entropy: &random, in: transaction)
        if options.isTraced { note("\(Int(now)) device \(index): \(Self.description(of: event))\(end)") }
        for effect in effects {
            switch effect {
            case .alarm(let alarm): note(alarm, of: index)
            default:
                // An agent does not begin what it is doing already.
                if !devices[index].effects.contains(effect) { devices[index].effects.append(effect) }
            }
        }
        let observations = engine.takeObservations()
        // The step seals before it absorbs a checkpoint, so it may learn of a fork afterwards.
        let learnsOfForks = observations.contains(.finishedAbsorption)
        for name in try transaction.ledger.outgoingNames() where checkedNames.insert(name).inserted {
            guard let bytes = try transaction.ledger.outgoingBytes(name) else { continue }
            try noteSealed(OutgoingObject(name: name, bytes: bytes), index, &engine, in: transaction, learnsOfForks: learnsOfForks)
        }
        for observation in observations {
            counters.count(observation)
            if options.isTraced { note("  \(observation.rawValue)") }
        }
        devices[index].engine = engine
    }

    private mutating func note(_ alarm: SyncAlarm, of index: Int) {
        switch alarm {
        case .massDeletion: devices[index].asksAboutDeletions = true
        case .newerFormat: counters.count(.newerFormat)
        case .invalidBatch: counters.count(.invalidBatch)
        default: break
        }
        if options.isTraced, !devices[index].alarms.contains(alarm) { note("  raises \(alarm)") }
        devices[index].alarms.insert(alarm)
    }

    private static func description(of statement: Statement) -> String {
        let heads = statement.heads.map { String($0.hexadecimal.prefix(8)) }.sorted()
        let body =
            switch statement.body {
            case .found: "the circle"
            case .admit(let admission): "an admission of \(admission.device.hexadecimal.prefix(8))"
            case .remove(let removal): "a removal of \(removal.device.hexadecimal.prefix(8))"
            case .witness: "a testimony"
            case .rekey(let rekeying):
                """
                key \(rekeying.key.hexadecimal.prefix(8)) of lane \(rekeying.lane), generation \(rekeying.generation), \
                for \(rekeying.boxes.map { $0.device.hexadecimal.prefix(8) }), with \(rekeying.olderKeys.map { $0.key.hexadecimal.prefix(8) })
                """
            }
        return "\(body) in \(statement.hash.hexadecimal.prefix(8)), after \(heads)"
    }

    private static func description(of event: SyncEvent) -> String {
        switch event {
        case .listed(let folder, let names): "listed \(names.count) of \(folder)"
        case .appeared(let names): "a hint named \(names.count) batches"
        case .read(let name, let bytes): "read \(name), \(bytes?.count ?? -1) bytes"
        default: "\(event)"
        }
    }

    /// Performs an effect of a device, with the faults of the storage.
    mutating func perform(_ effect: SyncEffect, of index: Int, hasFaults: Bool, crashes: Bool = false) {
        switch effect {
        case .list(let folder):
            var names = storage.list(folder.rawValue, for: index)
            if hasFaults, faults.isStale {
                let omitted = random.below(4)
                if omitted > 0 { names = names.filter { _ in random.below(8) >= omitted } }
            }
            if hasFaults, faults.hasForeignFiles { names += ["b/desktop.ini", "m/.stversions", "c/" + String(repeating: "z", count: 64)] }
            if folder == .batches { devices[index].listedBatches = names }
            step(index, .listed(folder, names), crashes: crashes)
        case .read(let name, _):
            var bytes = storage.read(name, for: index)
            if hasFaults, faults.tears, random.chance(0.1), let whole = bytes {
                bytes = Array(whole.prefix(random.below(whole.count + 1)))
                counters.count(.tornRead)
            }
            if hasFaults, faults.hasOldPrograms, isNewer(name, for: index), bytes?.count ?? 0 > 4 { bytes?[4] = 2 }
            step(index, .read(name, bytes), crashes: crashes)
        case .create(let name, let bytes):
            if hasFaults, faults.isFull, random.chance(0.2) { return step(index, .failed(name), crashes: crashes) }
            create(name, bytes, by: index)
            if hasFaults, faults.isUnknown, random.chance(0.2) {
                counters.count(.unknownCreate)
                return step(index, .failed(name), crashes: crashes)
            }
            step(index, .created(name), crashes: crashes)
            guard hasFaults, ObjectName(name)?.folder == .checkpoints else { return }
            do {
                try removeAuthorOfCheckpoint(index)
            } catch {
                oracle.fail("the author of a checkpoint cannot be removed: \(error)")
            }
        case .remove(let name):
            if hasFaults, faults.losesRemovals, random.chance(0.3) { return }
            storage.remove(name)
            counters.count(.objectRemoved)
        case .writeCheckpoint: writeCheckpoint(index, isInterrupted: crashes)
        case .wake, .alarm: break
        }
    }

    /// Writes the checkpoint that is due; the agent may end meanwhile, and starts again.
    private mutating func writeCheckpoint(_ index: Int, isInterrupted: Bool) {
        guard let writer = devices[index].engine?.checkpointWriter else { return }
        let disk = devices[index].disk
        var remainingCount = isInterrupted ? random.below(4) : .max
        do throws(KeychainFailure) {
            let outcome = try disk.snapshot { ledger, items throws(KeychainFailure) in
                try writer.write(ledger, items) { objects throws(KeychainFailure) in
                    guard remainingCount > 0 else { return false }
                    remainingCount -= 1
                    try disk.transaction(rollsBack: false) { transaction throws(KeychainFailure) in
                        for object in objects { try transaction.ledger.insert(object) }
                    }
                    return true
                }
            }
            guard isInterrupted else { return step(index, .checkpoint(outcome)) }
            counters.count(.interruptedCheckpoint)
            if options.isTraced { note("device \(index) is interrupted while it writes a checkpoint") }
            devices[index].start(cipher: cipher, limits: limits)
        } catch {
            // A class was locked since the checkpoint was due.
            if error.status != .interactionNotAllowed { oracle.fail("device \(index) cannot write a checkpoint: \(error)") }
        }
    }

    /// Whether an object has a format that the program of a device does not know yet.
    private func isNewer(_ name: String, for index: Int) -> Bool {
        guard index % 2 == 1, FakeCipher.hash(Array(name.utf8)).prefix.low % 4 == 0 else { return false }
        if case .batch(let author, _) = ObjectName(name) { return author != devices[index].id }
        return true
    }

    /// Checks an object that a device sealed, and remembers what was known then.
    private mutating func noteSealed(
        _ object: OutgoingObject, _ index: Int, _ engine: inout SyncEngine, in transaction: SyncTransaction, learnsOfForks: Bool
    ) throws(KeychainFailure) {
        if !devices[index].role.mayWrite { oracle.fail("a reader writes an object") }
        do {
            switch ObjectName(object.name) {
            case .piece:
                let piece = try CheckpointPiece(object.bytes)
                let bytes = try parts.opened(piece.sealed, header: piece.header) { engine.openedKey(piece.laneKey, in: transaction) }
                guard let bytes else { return oracle.fail("a device sealed a piece under a key that it does not have") }
                oracle.checkPiece(piece.lane, try PieceContent(piece.kind, bytes))
            case .batch(_, let origin):
                let others = try transaction.ledger.readBatches(of: origin.log)
                if !learnsOfForks, others.contains(where: { $0.number == origin.number && $0.origin != origin }) {
                    oracle.fail("a device continues a log that it knows to be forked")
                }
                let frame = try BatchFrame(object.bytes)
                let header = frame.header
                let bytes = try parts.opened(frame.sealed, header: header.encoded) { engine.openedKey(header.laneKey, in: transaction) }
                guard let bytes else { return oracle.fail("a device sealed a batch under a key that it does not have") }
                let content = try BatchContent(bytes)
                if options.isTraced {
                    for version in content.versions {
                        let replaced = version.replaced.map { $0.id.hexadecimal.prefix(8) }
                        note(
                            "  seals \(version.id.hexadecimal.prefix(8)), \(version.content == nil ? "deleted, " : "")in place of \(replaced)"
                        )
                    }
                }
                let author = devices[index].id
                // A restored machine may forget that it knew, and the owner of a recovery kit begins with what the storage shows. A device that a
                // remaining one still takes for a member may read the batch, and say so.
                let readers = remaining.reduce(into: Set(remaining.map { devices[$0].id })) { readers, index in
                    readers.formUnion(devices[index].engine?.roster?.members.keys ?? [:].keys)
                }
                let isLate =
                    !faults.restores && !faults.clones && recoveryKit == nil
                    && devices.allSatisfy { !readers.contains($0.id) || $0.engine?.roster?.removed.contains(author) == true }
                let batch = SealedBatch(
                    header: header, origin: origin, versions: content.versions, knownRemoved: engine.roster?.removed ?? [],
                    isLate: isLate)
                sealed[object.name] = batch
                // A torn batch may stay so for longer than the device waits, and a lost one cannot be read.
                let listed = faults.tears ? [] : devices[index].listedBatches.filter { storage.objects[$0] != nil }
                guard !learnsOfForks else { return }
                try oracle.checkRepetitions(batch) { origin, key throws(KeychainFailure) in
                    try Self.isKnown(origin, of: author, key, listed, &engine, transaction)
                }
            case .statement where options.isTraced: note("  states \(Self.description(of: try Statement(object.bytes, cipher: cipher)))")
            default: break
            }
        } catch {
            oracle.fail("a device sealed an object that cannot be opened: \(error)")
        }
    }

    /// Whether a device has read a batch of its own, or would have to before it seals.
    private static func isKnown(
        _ origin: Origin, of author: DeviceID, _ key: LaneKeyID, _ listed: [String], _ engine: inout SyncEngine,
        _ transaction: SyncTransaction
    ) throws(KeychainFailure) -> Bool {
        if try transaction.ledger.isRead(origin) { return true }
        guard listed.contains(ObjectName.batch(device: author, origin: origin).text) else { return false }
        if origin.number > 1, try !transaction.ledger.isAnyRead(origin.number - 1, of: origin.log) { return false }
        return engine.openedKey(key, in: transaction) != nil
    }

    private mutating func create(_ name: String, _ bytes: [UInt8], by index: Int) {
        if name.utf8.first == UInt8(ascii: "b"), storage.objects[name] == nil, let batch = sealed[name] {
            let author = devices[index].id
            oracle.notePublished(batch, by: devices.indices.filter { devices[$0].id == author }, as: parts)
            if let former = devices[index].formerVersions, batch.versions.contains(where: { $0.content != nil && former[$0.id] != nil }) {
                oracle.fail("device \(index), which has entered the circle again, sends what it had before")
            }
            let isAlone = !faults.restores && !faults.clones && !faults.usesRecoveryKit
            if let log = devices[index].logs.updateValue(batch.header.log, forKey: batch.header.lane), log != batch.header.log, isAlone {
                oracle.fail("device \(index) leaves its log although no other machine has continued it")
            }
        }
        if name.utf8.first == UInt8(ascii: "p"), (try? devices[index].disk.isUnfinished(name)) != false {
            oracle.fail("device \(index) publishes a piece of a checkpoint that it has not completed")
        }
        if options.isTraced { note("  created \(name)") }
        storage.create(name, bytes, by: index)
    }

    /// The devices that a person still has and has not removed.
    var remaining: [Int] { devices.indices.filter { !devices[$0].isRemoved && !devices[$0].isGone && devices[$0].membership != nil } }
}

extension SimulatedDisk {
    /// Whether a piece of a checkpoint waits to be created, and no manifest does.
    fileprivate func isUnfinished(_ piece: String) throws(KeychainFailure) -> Bool {
        let names = try read { ledger throws(KeychainFailure) in try ledger.outgoingNames() }
        return names.contains(piece) && !names.contains { $0.utf8.first == UInt8(ascii: "c") }
    }
}
