// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Lane keys: opening them, making them, and giving them to other devices.
extension EngineStep {
    /// Returns a lane key, if this device has it or a newer key that wraps it.
    mutating func laneKey(_ id: LaneKeyID) throws(KeychainFailure) -> SharedSecretBytes? {
        if let key = engine.memory.laneKeys[id] { return key }
        for record in roster.laneKeys(named: id) { try openKeys(record.lane) }
        return engine.memory.laneKeys[id]
    }

    /// Opens all keys of a lane that this device can open, once for each set of statements: those in boxes, then those wrapped under them.
    ///
    /// Each box and each wrapped key is tried once. Keys wrap all older ones, so the number of ways from one to another grows exponentially.
    private mutating func openKeys(_ lane: Lane) throws(KeychainFailure) {
        guard try items.isAvailable(lane), engine.memory.openedLanes.insert(lane).inserted else { return }
        var waiting: [LaneKeyRecord] = []
        for record in roster.laneKeys where record.lane == lane {
            for box in record.boxes where engine.memory.laneKeys[record.key] == nil && box.device == device {
                let binding = LaneKeyBox.Binding(circle: circle, lane: lane, key: record.key, device: device)
                engine.memory.laneKeys[record.key] = try valid(record) { () throws(KeychainFailure) in
                    try engine.keys.openBox(box.bytes, binding: binding)
                }
            }
            if engine.memory.laneKeys[record.key] != nil { waiting.append(record) }
        }
        while let newer = waiting.popLast() {
            guard let key = engine.memory.laneKeys[newer.key] else { continue }
            for wrapped in newer.olderKeys where engine.memory.laneKeys[wrapped.key] == nil {
                guard let older = roster.laneKeys(named: wrapped.key).first(where: { $0.lane == lane }),
                    let opened = try valid(older, { () throws(KeychainFailure) in try cipher.unwrap(wrapped.bytes, under: key) })
                else { continue }
                engine.memory.laneKeys[wrapped.key] = opened
                waiting.append(older)
            }
        }
    }

    /// Returns the key if it is the one that its identifier names.
    private func valid(
        _ record: LaneKeyRecord, _ open: () throws(KeychainFailure) -> SharedSecretBytes
    ) throws(KeychainFailure) -> SharedSecretBytes? {
        do throws(KeychainFailure) {
            let key = try open()
            return try isNamed(by: record, key) || isPlanted(.keysWithoutCheck) ? key : nil
        } catch {
            guard error.status == .decode else { throw error }
            return nil
        }
    }

    private func isNamed(by record: LaneKeyRecord, _ key: SharedSecretBytes) throws(KeychainFailure) -> Bool {
        try cipher.laneKeyID(of: key, circle: circle, lane: record.lane) == record.key
    }

    /// Returns the key under which this device seals, the newest that the members have and no other device has.
    ///
    /// Makes one if there is none.
    mutating func sealingKey(_ lane: Lane) throws(KeychainFailure) -> (id: LaneKeyID, key: SharedSecretBytes)? {
        guard try items.isAvailable(lane), ownRole?.mayWrite == true else { return nil }
        if let found = try usableKey(lane) { return found }
        try rekey(lane)
        return try usableKey(lane)
    }

    private mutating func usableKey(_ lane: Lane) throws(KeychainFailure) -> (id: LaneKeyID, key: SharedSecretBytes)? {
        let trusted = isHalfOfShareUsed ? device : nil
        let candidates = roster.laneKeys.filter { $0.lane == lane && $0.isUsable(roster, trusting: trusted) }
        let newest = candidates.map(\.generation).max()
        for record in candidates where record.generation == newest {
            // The record may have the identifier of a key of the other lane.
            if let key = try laneKey(record.key), try isNamed(by: record, key) { return (record.key, key) }
        }
        return nil
    }

    /// Whether this device has made so many statements that the others are kept for removals, and for the keys that follow them.
    ///
    /// A member can bring about any number of statements: it gives keys to devices that are no members, boxes something else than a key, or dates
    /// statements back. Then this device goes on with the keys that it has stated itself since the last removal.
    private var isHalfOfShareUsed: Bool { (engine.memory.statementCounts[device] ?? 0) >= limits.statementsOfDevice / 2 }

    /// Boxes the newest key for the members that lack it, or makes a new one if a device that was removed has it.
    mutating func rekey(_ lane: Lane) throws(KeychainFailure) {
        let records = roster.laneKeys.filter { $0.lane == lane }
        for record in records.reversed() where record.isOfMembersOnly(roster, trusting: isHalfOfShareUsed ? device : nil) {
            guard let key = try laneKey(record.key), try isNamed(by: record, key) else { continue }
            let lacking = roster.members.keys.filter { !record.recipients.contains($0) }.sorted()
            guard !lacking.isEmpty else { break }
            guard record.excluded.isDisjoint(with: lacking) || isPlanted(.wrapsForRemoved) else { continue }
            observe(.boxedAgain)
            return try stateKey(record.key, key, lane, record.generation, for: lacking)
        }
        try makeKey(lane)
    }

    private mutating func makeKey(_ lane: Lane) throws(KeychainFailure) {
        observe(.rekeyed)
        let key = try cipher.makeLaneKey()
        let id = try cipher.laneKeyID(of: key, circle: circle, lane: lane)
        engine.memory.laneKeys[id] = key
        // The highest generation that counted statements have. One that does not count may be made up.
        let generation = (roster.laneKeys.filter { $0.lane == lane && !$0.recipients.isEmpty }.map(\.generation).max() ?? 0) + 1
        try stateKey(id, key, lane, generation, for: roster.members.keys.sorted())
    }

    /// Boxes a key for devices, in as many statements as that takes.
    ///
    /// The first one also wraps older keys.
    private mutating func stateKey(
        _ id: LaneKeyID, _ key: SharedSecretBytes, _ lane: Lane, _ generation: UInt64, for devices: [DeviceID]
    ) throws(KeychainFailure) {
        var olderKeys = try wrappedKeys(lane, under: (id, key))
        for part in devices.parts(ofCount: limits.keysInStatement) {
            var boxes: [Statement.Rekeying.Box] = []
            for device in part {
                guard let member = roster.members[device] else { continue }
                let binding = LaneKeyBox.Binding(circle: circle, lane: lane, key: id, device: device)
                boxes.append(.init(device: device, bytes: try cipher.sealBox(key, binding: binding, to: member.keys.box(for: lane))))
            }
            try state(.rekey(Statement.Rekeying(lane: lane, generation: generation, key: id, boxes: boxes, olderKeys: olderKeys)))
            olderKeys = []
        }
    }

    /// Wraps as many older keys as one statement can have, the newest ones.
    ///
    /// `boxMissingKeys` wraps the others.
    private mutating func wrappedKeys(
        _ lane: Lane, under newer: (id: LaneKeyID, key: SharedSecretBytes)
    ) throws(KeychainFailure) -> [Statement.Rekeying.WrappedKey] {
        var wrapped: [Statement.Rekeying.WrappedKey] = []
        // Also keys that lost a race: a device that is admitted later needs them for the batches sealed under them.
        for record in roster.laneKeys.reversed()
        where record.lane == lane && record.key != newer.id && record.mayBeWrapped(roster) {
            guard wrapped.count < limits.keysInStatement else { break }
            guard let older = try laneKey(record.key), try isNamed(by: record, older) else { continue }
            wrapped.append(.init(key: record.key, bytes: try cipher.wrap(older, under: newer.key)))
        }
        return wrapped
    }

    /// Boxes the present keys for members that lack them, and wraps under them the keys that lost a race.
    ///
    /// The author of a present key may not have known of the members and keys that others added at the same time.
    mutating func boxMissingKeys() throws(KeychainFailure) {
        guard hasWaitedForStatements, !isHalfOfShareUsed else { return }
        for lane in Lane.allCases where roster.laneKeys.contains(where: { $0.lane == lane }) {
            guard var (record, key) = try sealingRecord(lane) else { continue }
            let isNewNeeded = try isKeyWithheld(from: record) ? true : hasKeyToWrapLater(than: record)
            if isNewNeeded {
                try makeKey(lane)
                guard let made = try sealingRecord(lane) else { continue }
                (record, key) = made
            }
            var olderKeys: [Statement.Rekeying.WrappedKey] = []
            var known: Set<LaneKeyID>?
            for other in roster.laneKeys where other.lane == lane && other.key != record.key && other.mayBeWrapped(under: record, roster) {
                guard olderKeys.count < limits.keysInStatement else { break }
                guard try !isWrapped(other, in: record, under: key), let older = try laneKey(other.key), try isNamed(by: other, older)
                else { continue }
                // Who made the key could not open the other one if it knew of it. All statements are searched only for a key that is not wrapped.
                let keys = known ?? (isPlanted(.believesBoxes) ? [] : keysKnown(toAuthorsOf: record))
                known = keys
                guard keys.contains(other.key) || roster.members.keys.contains(where: { !other.recipients.contains($0) }) else { continue }
                olderKeys.append(.init(key: other.key, bytes: try cipher.wrap(older, under: key)))
            }
            guard !olderKeys.isEmpty else { continue }
            observe(.wrappedLostKey)
            try state(
                .rekey(Statement.Rekeying(lane: lane, generation: record.generation, key: record.key, boxes: [], olderKeys: olderKeys)))
        }
    }

    private mutating func sealingRecord(_ lane: Lane) throws(KeychainFailure) -> (LaneKeyRecord, SharedSecretBytes)? {
        guard let (id, key) = try sealingKey(lane), let record = roster.laneKeys(named: id).first(where: { $0.lane == lane }) else {
            return nil
        }
        return (record, key)
    }

    /// Whether a member has boxed something else for this device than a key, and no author of the newest key can tell.
    ///
    /// Then this device makes a key that does not wrap the other one, so that a device which has both wraps it.
    private mutating func isKeyWithheld(from newest: LaneKeyRecord) throws(KeychainFailure) -> Bool {
        guard !isPlanted(.believesBoxes) else { return false }
        var known: Set<LaneKeyID>?
        for record in roster.laneKeys where record.lane == newest.lane && record.recipients.contains(device) {
            if let key = try laneKey(record.key), try isNamed(by: record, key) { continue }
            // A device with both keys seals under the newer one, and may take either for it if they are equally new.
            guard record.generation < newest.generation else { return true }
            let keys = known ?? keysKnown(toAuthorsOf: newest)
            guard keys.contains(record.key) else { return true }
            known = keys
        }
        return false
    }

    /// Whether this device has a key that may be wrapped under a new one only, because authors of the newest one had not seen a removal that is void.
    ///
    /// The author of such a key was admitted by a device that turned out to be no member, had seen another one like that removed, and was admitted again.
    /// What it has sealed before cannot be read by a device that joined elsewhere. This device makes one new key for it: another member can state any
    /// key again as if it had not seen the removal.
    private mutating func hasKeyToWrapLater(than newest: LaneKeyRecord) throws(KeychainFailure) -> Bool {
        for record in roster.laneKeys
        where record.lane == newest.lane && record.key != newest.key && !record.mayBeWrapped(under: newest, roster)
            && record.excludesNoMember(of: roster) && record.excluded.isSubset(of: roster.seenRemoved)
        {
            let isMade = roster.laneKeys.contains {
                $0.lane == record.lane && $0.isStated(by: device, knowing: record.excluded) && $0.key != record.key
            }
            if !isMade, let key = try laneKey(record.key), try isNamed(by: record, key) { return true }
        }
        return false
    }

    /// The lane keys that the authors of counted statements about a key knew, and wrapped under it if they had them.
    private func keysKnown(toAuthorsOf record: LaneKeyRecord) -> Set<LaneKeyID> {
        var keys: Set<LaneKeyID> = []
        var seen: Set<StatementHash> = []
        var waiting = engine.memory.statements.values.filter { statement in
            guard roster.counted.contains(statement.hash), case .rekey(let rekeying) = statement.body else { return false }
            return rekeying.key == record.key && rekeying.lane == record.lane
        }
        while let statement = waiting.popLast() {
            for head in statement.heads where seen.insert(head).inserted {
                guard let earlier = engine.memory.statements[head] else { continue }
                waiting.append(earlier)
                if case .rekey(let known) = earlier.body { keys.insert(known.key) }
            }
        }
        return keys
    }

    /// Returns whether a key can be opened with another one.
    private func isWrapped(
        _ older: LaneKeyRecord, in record: LaneKeyRecord, under key: SharedSecretBytes
    ) throws(KeychainFailure) -> Bool {
        for wrapped in record.olderKeys where wrapped.key == older.key {
            if try valid(older, { () throws(KeychainFailure) in try cipher.unwrap(wrapped.bytes, under: key) }) != nil { return true }
        }
        return false
    }
}
