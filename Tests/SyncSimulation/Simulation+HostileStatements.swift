// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Statements of strangers, readers, and altered programs of owners, and lane keys of members whose programs are altered.
extension Simulation {
    /// The hash of a statement that never existed.
    private mutating func missingHead() -> StatementHash {
        StatementHash(prefix: Identifier128(high: random.next(), low: random.next()), suffix: Identifier128(high: 0, low: 0))
    }

    /// An owner's program admits a stranger by a statement that rests on one that never existed.
    ///
    /// What it knew cannot be judged, so it does not count.
    private mutating func forgeIncompleteAdmission(of stranger: DeviceID, _ keys: DevicePublicKeys, _ circle: CircleID) throws {
        let owners = remaining.filter { devices[$0].role.isOwner && !devices[$0].mayBeVoid }
        guard let owner = random.element(of: owners), let heads = devices[owner].engine?.roster?.heads, !heads.isEmpty else { return }
        let body = Statement.Body.admit(.init(device: stranger, keys: keys, role: .owner, circleCode: nil))
        let statement = try Statement(
            body, circle: circle, author: devices[owner].id, heads: (heads.prefix(3) + [missingHead()]).sorted(), keys: devices[owner].keys,
            cipher: cipher)
        forgedDevices.insert(stranger)
        place("m/" + statement.hash.hexadecimal, statement.encoded)
        counters.count(.incompleteAdmission)
    }

    /// A stranger founds a circle of its own, a reader makes a statement that it may not make, or an owner one that is incomplete.
    mutating func forgeStatement(_ circle: CircleID) throws {
        let strangerKeys = try parts.keys(seed: [UInt8(truncatingIfNeeded: random.next()), 3])
        let stranger = DeviceID(of: strangerKeys.publicKeys, role: .owner, cipher: cipher)
        if random.chance(0.3) { return try forgeIncompleteAdmission(of: stranger, strangerKeys.publicKeys, circle) }
        guard let reader = devices.first(where: { $0.role == .reader && !$0.isRemoved }), random.chance(0.8) else {
            var nonce: [UInt8] = []
            for _ in 0..<4 { nonce.append(littleEndian: random.next()) }
            let founding = try Statement(
                .found(.init(nonce: nonce, keys: strangerKeys.publicKeys)), circle: nil, author: stranger, heads: [], keys: strangerKeys,
                cipher: cipher)
            place("m/" + founding.hash.hexadecimal, founding.encoded)
            foreignStatements.insert(founding.hash)
            counters.count(.statementOfAnotherCircle)
            return
        }
        var heads = reader.engine?.roster?.heads ?? []
        guard !heads.isEmpty else { return }
        let body: Statement.Body
        switch random.below(4) {
        case 0:
            body = .admit(.init(device: stranger, keys: strangerKeys.publicKeys, role: .owner, circleCode: nil))
            forgedDevices.insert(stranger)
        case 1: body = .remove(.init(device: devices[0].id, checkpoints: []))
        case 2: body = .witness
        default: body = .rekey(try rekeying(.afterFirstUnlock, 1, try cipher.makeLaneKey(), circle) { _ in true })
        }
        if random.chance(0.5) {
            heads = [missingHead()]
            missingHeads.formUnion(heads)
        }
        let statement = try Statement(
            body, circle: circle, author: reader.id, heads: heads, keys: reader.keys, cipher: cipher)
        place("m/" + statement.hash.hexadecimal, statement.encoded)
        counters.count(.statementOfAReader)
    }

    /// A member's program makes a lane key that not every member gets, that a removed device gets, or that has the identifier of another.
    mutating func forgeLaneKey(_ circle: CircleID) throws {
        let writers = remaining.filter { devices[$0].role.mayWrite && !devices[$0].mayBeVoid }
        guard let author = random.element(of: writers), let roster = devices[author].engine?.roster, !roster.heads.isEmpty,
            roster.members[devices[author].id]?.role.mayWrite == true, let lane = random.element(of: Lane.allCases)
        else { return }
        let records = roster.laneKeys.filter { $0.lane == lane && !$0.recipients.isEmpty }
        var generation = (records.map(\.generation).max() ?? 0) + 1
        let key = try cipher.makeLaneKey()
        let own = devices[author].id
        let luckless = random.element(of: roster.members.keys.sorted())
        var heads = roster.heads
        let body: Statement.Rekeying
        let kind = random.below(6)
        switch kind {
        case 0:
            body = try rekeying(lane, generation, key, circle) { $0.id != luckless || $0.id == own }
            counters.count(.laneKeyWithoutAMember)
        case 1:
            // Some boxes contain another key than the statement says. A reader, which makes no statement, could not tell that it is cut off.
            let other = try cipher.makeLaneKey()
            var boxes = try rekeying(lane, generation, key, circle) { $0.id == own || $0.index % 2 == 0 || !$0.role.mayWrite }.boxes
            boxes += try rekeying(lane, generation, other, as: key, circle) { $0.id != own && $0.index % 2 == 1 && $0.role.mayWrite }.boxes
            let id = try cipher.laneKeyID(of: key, circle: circle, lane: lane)
            body = .init(lane: lane, generation: generation, key: id, boxes: boxes, olderKeys: [])
            counters.count(.laneKeyOfOthers)
        case 2:
            guard devices.contains(where: { $0.isRemoved }) else { return }
            body = try rekeying(lane, generation, key, circle) { _ in true }
            counters.count(.laneKeyForARemovedDevice)
        case 3:
            // The newest key claims to wrap all others.
            guard let newest = records.last else { return }
            var wrapped: [Statement.Rekeying.WrappedKey] = []
            for record in records.dropLast() { wrapped.append(.init(key: record.key, bytes: try cipher.randomBytes(40))) }
            guard !wrapped.isEmpty else { return }
            body = .init(lane: lane, generation: newest.generation, key: newest.key, boxes: [], olderKeys: wrapped)
            counters.count(.laneKeyWithUselessWraps)
        default:
            // The identifier of a key, perhaps of the other lane, with boxes that contain another one.
            // To announce a key again that a removed device has made, or without the removals before it, is to give away what members seal. A member
            // can do that without a statement.
            let isOfOtherLane = random.chance(0.7)
            let known = roster.laneKeys.filter { !$0.recipients.isEmpty && ($0.lane != lane) == isOfOtherLane }
            guard let record = random.element(of: known) else { return }
            if firstHeads.count > 0, author < firstCount, record.excluded.isEmpty, random.chance(0.8) {
                (heads, generation) = (firstHeads, 1)
            }
            let boxes = try rekeying(lane, generation, key, circle) { !$0.isRemoved && $0.role.mayWrite }.boxes
            body = .init(lane: lane, generation: generation, key: record.key, boxes: boxes, olderKeys: [])
            counters.count(.laneKeyWithAKnownIdentifier)
        }
        let statement = try Statement(.rekey(body), circle: circle, author: own, heads: heads, keys: devices[author].keys, cipher: cipher)
        place("m/" + statement.hash.hexadecimal, statement.encoded)
        if options.isTraced { note("device \(author) makes a false lane key of kind \(kind), \(body.key.hexadecimal)") }
    }

    /// Boxes a key, under its own identifier or that of another key, for the devices that fulfil a condition.
    private func rekeying(
        _ lane: Lane, _ generation: UInt64, _ key: SharedSecretBytes, as other: SharedSecretBytes? = nil, _ circle: CircleID,
        for isIncluded: (SimulatedDevice) -> Bool
    ) throws -> Statement.Rekeying {
        let id = try cipher.laneKeyID(of: other ?? key, circle: circle, lane: lane)
        var boxes: [Statement.Rekeying.Box] = []
        for device in devices where isIncluded(device) && device.membership != nil && !boxes.contains(where: { $0.device == device.id }) {
            let binding = LaneKeyBox.Binding(circle: circle, lane: lane, key: id, device: device.id)
            boxes.append(
                .init(device: device.id, bytes: try cipher.sealBox(key, binding: binding, to: device.keys.publicKeys.box(for: lane))))
        }
        return .init(lane: lane, generation: generation, key: id, boxes: boxes, olderKeys: [])
    }
}
