// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Statements: receiving them, making them, and publishing them again.
extension EngineStep {
    var roster: Roster { engine.memory.roster ?? Roster([], circle: circle) }
    var ownRole: DeviceRole? { roster.members[device]?.role }

    mutating func loadStatements() throws(KeychainFailure) {
        guard !engine.memory.areStatementsLoaded else { return }
        for entry in try ledger.statements() {
            let cipher = cipher
            let statement = try stored { () throws(FormatError) in try Statement(entry.bytes, cipher: cipher) }
            engine.memory.statements[statement.hash] = statement
        }
        engine.memory.areStatementsLoaded = true
        evaluateRoster()
    }

    private mutating func evaluateRoster() {
        let statements = engine.memory.statements.values.sorted { $0.hash < $1.hash }
        engine.memory.roster = Roster(statements, circle: circle)
        engine.memory.withoutKey = []
        engine.memory.rejected = []
        for hash in engine.memory.checkpoints.keys { engine.memory.checkpoints[hash]?.failureTime = nil }
        if roster.missing.isEmpty {
            engine.memory.missingSince = nil
        } else {
            engine.memory.missingSince = engine.memory.missingSince ?? now
        }
    }

    mutating func receiveStatement(_ hash: StatementHash, _ bytes: [UInt8], name: String) throws(KeychainFailure) {
        guard engine.memory.statements[hash] == nil else { return }
        guard engine.memory.statements.count < StatementGraph.largestCount else {
            engine.memory.rejected.insert(name)
            return
        }
        let statement: Statement
        do throws(FormatError) {
            statement = try Statement(bytes, cipher: cipher)
        } catch {
            engine.memory.rejected.insert(name)
            return
        }
        guard statement.hash == hash, statement.circle == circle || isPlanted(.statementsOfOtherCircles),
            let signer = signingKey(of: statement.author, statement),
            cipher.isValid(statement.signature, of: Statement.signedMessage(hash), by: signer) || isPlanted(.unsignedStatements)
        else {
            // The author's admission may come later.
            engine.memory.rejected.insert(name)
            return
        }
        try add(statement, bytes)
    }

    /// Returns the key of a statement's author, which a statement that is known introduces.
    private func signingKey(of author: DeviceID, _ statement: Statement) -> [UInt8]? {
        if case .found(let founding) = statement.body { return founding.keys.signing }
        for known in engine.memory.statements.values {
            switch known.body {
            case .found(let founding) where known.author == author: return founding.keys.signing
            case .admit(let admission) where admission.device == author: return admission.keys.signing
            default: continue
            }
        }
        return nil
    }

    private mutating func add(_ statement: Statement, _ bytes: [UInt8]) throws(KeychainFailure) {
        let before = roster
        try ledger.insert(StoredStatement(hash: statement.hash, bytes: bytes))
        engine.memory.statements[statement.hash] = statement
        evaluateRoster()
        try learnRemovals(before)
        try testifyAfterVoidAdmission(before)
    }

    /// Testifies for what this device had while it was a member by an admission that is void, once another owner's admission counts.
    private mutating func testifyAfterVoidAdmission(_ before: Roster) throws(KeychainFailure) {
        guard before.members[device] == nil, ownRole?.mayWrite == true, let bytes = try ledger.setting(.voidAdmission) else { return }
        let earlier = try stored { () throws(FormatError) in try StoredList.hashes(bytes) }
        try ledger.set(.voidAdmission, to: nil)
        try testify(earlier)
    }

    /// Lists the statements that this device counted, and also the present ones: an admission of this device that still counts may be among them.
    private mutating func testify(_ earlier: [StatementHash]) throws(KeychainFailure) {
        observe(.witnessed)
        try state(.witness, heads: Set(earlier + roster.heads).sorted().suffix(Statement.largestHeadCount))
    }

    /// Testifies for what this device had of a removed device when it learned of the removal.
    private mutating func learnRemovals(_ before: Roster) throws(KeychainFailure) {
        guard roster.removed != before.removed, !before.heads.isEmpty else { return }
        try dropUncoveredVersions()
        // An admission is void with its author's other statements if no other device knew of it.
        let isVoid = before.members[device] != nil && roster.members[device] == nil && !roster.removed.contains(device)
        if isVoid { try ledger.set(.voidAdmission, to: StoredList.encoded(before.heads)) }
        if roster.removed.contains(device) || isVoid {
            effects.append(.alarm(.removed))
            return
        }
        guard ownRole?.mayWrite == true, !before.counted.subtracting(roster.counted).isEmpty else { return }
        try testify(before.heads)
    }

    /// Makes, stores, and publishes a statement.
    @discardableResult
    mutating func state(_ body: Statement.Body, heads: [StatementHash]? = nil) throws(KeychainFailure) -> Statement {
        if heads == nil { try joinHeads() }
        let statement = try Statement(
            body, circle: circle, author: device, heads: heads ?? roster.heads, keys: engine.keys, cipher: cipher)
        let bytes = statement.encoded
        try ledger.insert(OutgoingObject(name: ObjectName.statement(statement.hash).text, bytes: bytes))
        try add(statement, bytes)
        return statement
    }

    /// Makes statements that list the heads, until one statement can list all that are left.
    private mutating func joinHeads() throws(KeychainFailure) {
        while roster.heads.count > Statement.largestHeadCount {
            let count = roster.heads.count
            try state(.witness, heads: Array(roster.heads.prefix(Statement.largestHeadCount)))
            guard roster.heads.count < count else {
                throw KeychainFailure(.internal, "a statement of this device does not count", subject: .store)
            }
        }
    }

    /// Creates statements that the storage lacks.
    mutating func restoreStatements() throws(KeychainFailure) {
        // Any number of machines may share the identity of a reader, because a reader writes nothing.
        guard ownRole?.mayWrite == true || isPlanted(.readersRestoreStatements), engine.memory.listedFolders.contains(.statements)
        else { return }
        for (hash, statement) in engine.memory.statements.sorted(by: { $0.key < $1.key })
        where !engine.memory.listedStatements.contains(hash) && roster.counted.contains(hash) {
            try ledger.insert(OutgoingObject(name: ObjectName.statement(hash).text, bytes: statement.encoded))
        }
    }

    // Lane keys

    /// Returns a lane key, if this device has it or a newer key that wraps it.
    mutating func laneKey(_ id: LaneKeyID) throws(KeychainFailure) -> SharedSecretBytes? {
        var tried: Set<LaneKeyID> = []
        return try laneKey(id, &tried)
    }

    /// Tries each key once: keys wrap all older ones, so the number of ways from one to another grows exponentially.
    private mutating func laneKey(_ id: LaneKeyID, _ tried: inout Set<LaneKeyID>) throws(KeychainFailure) -> SharedSecretBytes? {
        if let key = engine.memory.laneKeys[id] { return key }
        tried.insert(id)
        for record in roster.laneKeys where record.key == id {
            if let key = try laneKey(record, &tried) { return key }
        }
        return nil
    }

    private mutating func laneKey(_ record: LaneKeyRecord, _ tried: inout Set<LaneKeyID>) throws(KeychainFailure) -> SharedSecretBytes? {
        guard try items.isAvailable(record.lane) else { return nil }
        let id = record.key
        var key: SharedSecretBytes?
        for box in record.boxes where key == nil && box.device == device {
            key = try valid(record) { () throws(KeychainFailure) in
                try engine.keys.openBox(
                    box.bytes, binding: LaneKeyBox.Binding(circle: circle, lane: record.lane, key: id, device: device))
            }
        }
        if key == nil {
            for newer in roster.laneKeys where key == nil && newer.lane == record.lane && !tried.contains(newer.key) {
                for wrapped in newer.olderKeys where key == nil && wrapped.key == id {
                    guard let newerKey = try laneKey(newer.key, &tried) else { continue }
                    key = try valid(record) { () throws(KeychainFailure) in try cipher.unwrap(wrapped.bytes, under: newerKey) }
                }
            }
        }
        engine.memory.laneKeys[id] = key
        return key
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
        let candidates = roster.laneKeys.filter { $0.lane == lane && $0.isUsable(roster) }
        guard let highest = candidates.last?.generation else { return nil }
        for record in candidates where record.generation == highest {
            // The record may have the identifier of a key of the other lane.
            if let key = try laneKey(record.key), try isNamed(by: record, key) { return (record.key, key) }
        }
        return nil
    }

    /// Boxes the newest key for the members that lack it, or makes a new one if a device that was removed has it.
    mutating func rekey(_ lane: Lane) throws(KeychainFailure) {
        let records = roster.laneKeys.filter { $0.lane == lane }
        for record in records.reversed() where record.isOfMembersOnly(roster) {
            guard let key = try laneKey(record.key), try isNamed(by: record, key) else { continue }
            let lacking = roster.members.keys.filter { !record.recipients.contains($0) }.sorted()
            guard !lacking.isEmpty else { break }
            guard record.excluded.isDisjoint(with: lacking) || isPlanted(.wrapsForRemoved) else { continue }
            observe(.boxedAgain)
            let holders = record.holders.union(lacking)
            try state(.rekey(try rekeying(lane, record.generation, record.key, key, for: lacking, holders: holders)))
            return
        }
        observe(.rekeyed)
        let key = try cipher.makeLaneKey()
        let id = try cipher.laneKeyID(of: key, circle: circle, lane: lane)
        engine.memory.laneKeys[id] = key
        // The highest generation that counted statements have. One that does not count may be made up.
        let generation = (records.filter { !$0.recipients.isEmpty }.map(\.generation).max() ?? 0) + 1
        let members = roster.members.keys.sorted()
        try state(.rekey(try rekeying(lane, generation, id, key, for: members, holders: Set(members))))
    }

    /// Boxes the present keys for members that lack them, and wraps under them the keys that lost a race.
    ///
    /// The author of a present key may not have known of the members and keys that others added at the same time.
    mutating func boxMissingKeys() throws(KeychainFailure) {
        guard hasWaitedForStatements else { return }
        for lane in Lane.allCases where roster.laneKeys.contains(where: { $0.lane == lane }) {
            guard let (id, key) = try sealingKey(lane),
                let record = roster.laneKeys.first(where: { $0.key == id && $0.lane == lane })
            else { continue }
            var olderKeys: [Statement.Rekeying.WrappedKey] = []
            for other in roster.laneKeys where other.lane == lane && other.key != id && other.mayBeGiven(to: record.holders) {
                // Who made the key could not open the other one if it knew of it: a member may have boxed something else for it.
                let isUnopened = record.knownKeys.contains(other.key) && !isPlanted(.believesBoxes)
                guard isUnopened || roster.members.keys.contains(where: { !other.recipients.contains($0) }),
                    try !isWrapped(other, in: record, under: key),
                    let older = try laneKey(other.key), try isNamed(by: other, older)
                else {
                    continue
                }
                olderKeys.append(.init(key: other.key, bytes: try cipher.wrap(older, under: key)))
            }
            guard !olderKeys.isEmpty else { continue }
            observe(.wrappedLostKey)
            try state(
                .rekey(Statement.Rekeying(lane: lane, generation: record.generation, key: id, boxes: [], olderKeys: olderKeys)))
        }
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

    private mutating func rekeying(
        _ lane: Lane, _ generation: UInt64, _ id: LaneKeyID, _ key: SharedSecretBytes, for devices: [DeviceID], holders: Set<DeviceID>
    ) throws(KeychainFailure) -> Statement.Rekeying {
        var boxes: [Statement.Rekeying.Box] = []
        for device in devices {
            guard let member = roster.members[device] else { continue }
            let binding = LaneKeyBox.Binding(circle: circle, lane: lane, key: id, device: device)
            boxes.append(.init(device: device, bytes: try cipher.sealBox(key, binding: binding, to: member.keys.box(for: lane))))
        }
        var olderKeys: [Statement.Rekeying.WrappedKey] = []
        // Also keys that lost a race: a device that is admitted later needs them for the batches sealed under them.
        for record in roster.laneKeys where record.lane == lane && record.key != id && record.mayBeGiven(to: holders) {
            guard let older = try laneKey(record.key), try isNamed(by: record, older) else { continue }
            olderKeys.append(.init(key: record.key, bytes: try cipher.wrap(older, under: key)))
        }
        return Statement.Rekeying(lane: lane, generation: generation, key: id, boxes: boxes, olderKeys: olderKeys)
    }

    // Commands about devices

    mutating func admit(_ publicKeys: DevicePublicKeys, _ role: DeviceRole, circleCode: [UInt8]? = nil) throws(KeychainFailure) {
        guard ownRole == .owner else { throw KeychainFailure(.missingEntitlement, "only an owner of the circle can admit a device") }
        let subject = DeviceID(of: publicKeys, cipher: cipher)
        guard !roster.removed.contains(subject) else {
            throw KeychainFailure(.parameter, "a removed device joins again with new keys")
        }
        try state(.admit(Statement.Admission(device: subject, keys: publicKeys, role: role, circleCode: circleCode)))
        for lane in Lane.allCases { _ = try sealingKey(lane) }
    }

    mutating func remove(_ subject: DeviceID) throws(KeychainFailure) {
        guard ownRole == .owner else { throw KeychainFailure(.missingEntitlement, "only an owner of the circle can remove a device") }
        guard roster.members[subject] != nil else { return }
        // What a reader wrote does not become usable because the reader is removed.
        let checkpoints = engine.memory.checkpoints.filter { hash, checkpoint in
            checkpoint.author == subject && isUsable(hash, checkpoint)
        }.keys.sorted().suffix(16)
        try state(.remove(Statement.Removal(device: subject, checkpoints: Array(checkpoints))))
        guard subject != device else { return }
        for lane in Lane.allCases { _ = try sealingKey(lane) }
    }
}
