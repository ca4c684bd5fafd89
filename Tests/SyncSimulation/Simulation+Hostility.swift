// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// What hostile storage, readers, and strangers put into the storage. Nothing of it may ever be believed.
extension Simulation {
    mutating func attack() {
        guard let circle = devices[0].membership?.circle else { return }
        do {
            switch random.below(14) {
            case 0:
                // A reader, or a stranger who has the lane key, writes a batch.
                let reader = devices.first { $0.role == .reader }
                let stranger = try parts.keys(seed: [UInt8(truncatingIfNeeded: random.next()), 1])
                let keys = reader?.keys ?? stranger
                try forgeBatch(keys, DeviceID(of: keys.publicKeys, role: reader?.role ?? .owner, cipher: cipher), circle)
            case 1:
                // An old statement, or a batch, under another name.
                if let name = random.element(of: storage.names), let bytes = storage.objects[name] {
                    let other = ObjectHash(
                        prefix: Identifier128(high: random.next(), low: random.next()),
                        suffix: Identifier128(high: random.next(), low: random.next()))
                    place("m/" + other.hexadecimal, bytes)
                    counters.count(.replayedUnderAnotherName)
                }
            case 2:
                // A stranger admits itself.
                let keys = try parts.keys(seed: [UInt8(truncatingIfNeeded: random.next()), 2])
                let statement = try Statement(
                    .admit(
                        .init(
                            device: DeviceID(of: keys.publicKeys, role: .owner, cipher: cipher), keys: keys.publicKeys, role: .owner,
                            circleCode: nil)),
                    circle: circle, author: devices[0].id, heads: devices[0].engine?.roster?.heads ?? [], keys: keys, cipher: cipher)
                place("m/" + statement.hash.hexadecimal, statement.encoded)
                forgedDevices.insert(DeviceID(of: keys.publicKeys, role: .owner, cipher: cipher))
                counters.count(.forgedAdmission)
            case 3:
                // An altered object under its own name.
                if let name = random.element(of: storage.names), var bytes = storage.objects[name], !bytes.isEmpty {
                    bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
                    if let index = random.element(of: Array(devices.indices)) {
                        step(index, .read(name, bytes))
                        counters.count(.alteredObject)
                    }
                }
            case 4:
                // A member's program writes a date that is not a number.
                if let member = random.element(of: remaining.filter { devices[$0].role.mayWrite && !devices[$0].mayBeVoid }) {
                    try forgeBatch(devices[member].keys, devices[member].id, circle, date: .nan)
                    counters.count(.batchWithAnInvalidDate)
                }
            case 5, 6: avenge()
            case 7: try misreport(circle)
            case 8: try forgeMark(circle)
            case 9: try floodWithMarks(circle)
            case 10: try forgeCheckpoint(circle)
            case 11: try writeFlawedCheckpoint(circle)
            case 12: try forgeStatement(circle)
            default: try forgeLaneKey(circle)
            }
        } catch {
            oracle.fail("an attack cannot be made: \(error)")
        }
    }

    /// A removed device, from which the storage hides its removal, removes the device that has removed it.
    private mutating func avenge() {
        // A machine that is restored from a snapshot may forget the removal.
        guard !faults.restores, !faults.clones, remaining.count > 3,
            let thief = devices.indices.first(where: { devices[$0].isRemoved && !devices[$0].isAvenged && devices[$0].sponsor == nil }),
            let target = devices[thief].remover, !devices[target].isRemoved,
            let roster = devices[thief].engine?.roster, roster.members[devices[thief].id]?.role == .owner,
            roster.members[devices[target].id] != nil, roster.members[devices[target].id]?.isRecoveryKit == false
        else { return }
        devices[thief].isAvenged = true
        devices[target].isRemoved = true
        // The storage may lose the statement before any other device has read it.
        if faults.losesObjects || faults.rollsBack { devices[target].remover = thief }
        if options.isTraced { note("device \(target) is removed by \(thief), which it has removed") }
        noteDoubtfulAdmissions()
        step(thief, .command(.remove(devices[target].id)))
        for effect in devices[thief].effects {
            if case .create(let name, _) = effect, name.hasPrefix("m/") { perform(effect, of: thief, hasFaults: false) }
        }
        counters.count(.mutualRemoval)
    }

    /// A member's program reports a batch that another device has not written, so that this device takes itself for a clone.
    private mutating func misreport(_ circle: CircleID) throws {
        let writers = remaining.filter { devices[$0].role.mayWrite && !devices[$0].mayBeVoid }
        guard let liar = random.element(of: writers), let name = random.element(of: storage.names),
            case .batch(let victim, let origin) = ObjectName(name), victim != devices[liar].id
        else { return }
        let hash = ObjectHash(prefix: Identifier128(high: random.next(), low: random.next()), suffix: Identifier128(high: 0, low: 0))
        let mark = LogMark(
            log: origin.log, device: victim, number: origin.number + 1 + UInt64(random.below(3)), previous: hash, hash: hash,
            signature: [UInt8](repeating: 1, count: LogMark.signatureByteCount))
        try forgeBatch(devices[liar].keys, devices[liar].id, circle, marks: [mark])
        counters.count(.forgedMark)
    }

    /// A member's program reports very many marks: of devices that do not exist, and of logs of its own that do not.
    private mutating func floodWithMarks(_ circle: CircleID) throws {
        let writers = remaining.filter { devices[$0].role.mayWrite && !devices[$0].mayBeVoid }
        guard let liar = random.element(of: writers) else { return }
        var marks: [LogMark] = []
        for _ in 0..<(random.chance(0.1) ? 500 : 20) {
            let log = LogID(Identifier128(high: random.next(), low: random.next()))
            let hash = ObjectHash(prefix: Identifier128(high: random.next(), low: random.next()), suffix: Identifier128(high: 0, low: 0))
            let isOwn = random.chance(0.5)
            let device = isOwn ? devices[liar].id : DeviceID(log.value)
            let number = random.chance(0.1) ? UInt64.max : 1 + random.next() % 4
            let message = BatchFrame.signedMessage(circle: circle, log: log, number: number, previous: hash, hash: hash)
            marks.append(
                LogMark(
                    log: log, device: device, number: number, previous: hash, hash: hash,
                    signature: isOwn ? try devices[liar].keys.sign(message) : [UInt8](repeating: 1, count: LogMark.signatureByteCount)))
        }
        try forgeBatch(devices[liar].keys, devices[liar].id, circle, marks: marks)
        counters.count(.floodOfMarks)
    }

    mutating func place(_ name: String, _ bytes: [UInt8]) {
        for index in devices.indices { storage.create(name, bytes, by: index) }
        hostileNames.insert(name)
    }

    /// Seals a batch with a lane key that some device can open: with a version, or with marks alone.
    private mutating func forgeBatch(
        _ keys: any CircleDeviceKeys, _ author: DeviceID, _ circle: CircleID, date: Double? = nil, marks: [LogMark] = []
    ) throws {
        guard let (id, key) = try knownLaneKey() else { return }
        let log = LogID(Identifier128(high: random.next(), low: random.next()))
        let header = BatchFrame.Header(
            circle: circle, log: log, device: author, lane: .afterFirstUnlock, number: 1, previous: .none, laneKey: id)
        let content = SimulatedContent(name: 0, accessibility: .afterFirstUnlock, date: date ?? now, value: 666)
        let version = VersionRecord(
            id: SyncVersionID(Identifier128(high: random.next(), low: random.next())), replaced: [], content: parts.encoded(content))
        let sealed = try cipher.seal(
            BatchContent(notes: BatchNotes(seconds: now, marks: marks), versions: marks.isEmpty ? [version] : []).encoded,
            header: header.encoded, under: key)
        let hash = cipher.hash(BatchFrame.unsignedBytes(header, sealed))
        let signature = try keys.sign(
            BatchFrame.signedMessage(circle: circle, log: log, number: 1, previous: .none, hash: hash))
        let name = ObjectName.batch(device: author, origin: Origin(log: log, number: 1, hash: hash.prefix)).text
        place(name, BatchFrame(header: header, sealed: sealed, signature: signature).encoded)
        counters.count(.forgedBatch)
    }

    /// A removed device continues its log, and a colluding stranger names the batch.
    private mutating func forgeMark(_ circle: CircleID) throws {
        guard let thief = removedDeviceKnownToAll else { return }
        try forgeBatch(thief.keys, thief.id, circle)
        counters.count(.batchOfARemovedDevice)
    }

    func knownLaneKey(_ lane: Lane = .afterFirstUnlock) throws(KeychainFailure) -> (LaneKeyID, SharedSecretBytes)? {
        for device in devices where !device.isRemoved {
            guard var engine = device.engine,
                let record = engine.roster?.laneKeys.last(where: { $0.lane == lane && $0.recipients.count > 1 })
            else {
                continue
            }
            var key: SharedSecretBytes?
            try device.disk.transaction(rollsBack: false) { key = engine.openedKey(record.key, in: $0) }
            if let key { return (record.key, key) }
        }
        return nil
    }
}
