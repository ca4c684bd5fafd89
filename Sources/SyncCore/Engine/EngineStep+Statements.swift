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
            engine.memory.statementCounts[statement.author, default: 0] += 1
        }
        engine.memory.areStatementsLoaded = true
        evaluateRoster()
    }

    private mutating func evaluateRoster() {
        let statements = engine.memory.statements.values.sorted { $0.hash < $1.hash }
        engine.memory.roster = Roster(statements, circle: circle)
        observe(.evaluatedStatements)
        engine.memory.openedLanes = []
        engine.memory.withoutKey = []
        engine.memory.rejected = []
        for hash in engine.memory.checkpoints.keys { engine.memory.checkpoints[hash]?.isSetAside = false }
        findUnreadStatements()
        if roster.missing.isEmpty {
            engine.memory.missingSince = nil
        } else {
            engine.memory.missingSince = engine.memory.missingSince ?? now
        }
    }

    mutating func receiveStatement(_ hash: StatementHash, _ bytes: [UInt8], name: String) throws(KeychainFailure) {
        guard engine.memory.statements[hash] == nil, engine.memory.receivedStatements[hash] == nil else { return }
        let cipher = cipher
        // Until the next evaluation, or the next listing: the author's admission may come later.
        guard let statement = parsed(by: nil, { () throws(FormatError) in try Statement(bytes, cipher: cipher) }), statement.hash == hash,
            isAcceptable(statement)
        else {
            engine.memory.rejected.insert(name)
            return
        }
        engine.memory.receivedStatements[hash] = statement
        engine.memory.statementCounts[statement.author, default: 0] += 1
    }

    /// Returns whether a received statement may count, and its author has not made too many.
    ///
    /// Each device has a share of its own, so none keeps another one's removal from being read.
    private func isAcceptable(_ statement: Statement) -> Bool {
        guard statement.circle == circle || isPlanted(.statementsOfOtherCircles),
            (engine.memory.statementCounts[statement.author] ?? 0) < limits.statementsOfDevice,
            engine.memory.statements.count + engine.memory.receivedStatements.count < StatementGraph.largestCount,
            let signer = signingKey(of: statement)
        else { return false }
        return cipher.isValid(statement.signature, of: Statement.signedMessage(statement.hash), by: signer)
            || isPlanted(.unsignedStatements)
    }

    /// Returns the key of a statement's author, which an owner has admitted as one that may make statements.
    private func signingKey(of statement: Statement) -> [UInt8]? {
        if case .found(let founding) = statement.body { return founding.keys.signing }
        return roster.authors[statement.author]?.signing
    }

    /// Takes over the statements that were received, in one transaction with what this device states about them.
    ///
    /// They are evaluated together once no other one is being read, because an evaluation takes time for each statement that is known.
    mutating func addReceivedStatements() throws(KeychainFailure) {
        guard isFolded || isPlanted(.foldAfterMerge), !engine.memory.receivedStatements.isEmpty else { return }
        let received = engine.memory.receivedStatements.sorted { $0.key < $1.key }.map(\.value)
        engine.memory.receivedStatements = [:]
        try add(received)
    }

    /// Whether a statement was asked for and has not come yet.
    var isReadingStatements: Bool { engine.memory.reading.contains { $0.utf8.first == UInt8(ascii: "m") } }

    private mutating func add(_ statements: [Statement]) throws(KeychainFailure) {
        let before = roster
        for statement in statements {
            try ledger.insert(StoredStatement(hash: statement.hash, bytes: statement.encoded))
            engine.memory.statements[statement.hash] = statement
        }
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
        try ledger.insert(OutgoingObject(name: ObjectName.statement(statement.hash).text, bytes: statement.encoded))
        engine.memory.statementCounts[device, default: 0] += 1
        try add([statement])
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
            return try stateKey(record.key, key, lane, record.generation, for: lacking, holders: record.holders.union(lacking))
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
        let members = roster.members.keys.sorted()
        try stateKey(id, key, lane, generation, for: members, holders: Set(members))
    }

    /// Boxes a key for devices, in as many statements as that takes.
    ///
    /// The first one also wraps older keys.
    private mutating func stateKey(
        _ id: LaneKeyID, _ key: SharedSecretBytes, _ lane: Lane, _ generation: UInt64, for devices: [DeviceID], holders: Set<DeviceID>
    ) throws(KeychainFailure) {
        var olderKeys = try wrappedKeys(lane, under: (id, key), holders: holders)
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
        _ lane: Lane, under newer: (id: LaneKeyID, key: SharedSecretBytes), holders: Set<DeviceID>
    ) throws(KeychainFailure) -> [Statement.Rekeying.WrappedKey] {
        var wrapped: [Statement.Rekeying.WrappedKey] = []
        // Also keys that lost a race: a device that is admitted later needs them for the batches sealed under them.
        for record in roster.laneKeys.reversed() where record.lane == lane && record.key != newer.id && record.mayBeGiven(to: holders) {
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
        // A member can bring about any number of such statements. Half of this device's share is for others, among them removals.
        guard hasWaitedForStatements, (engine.memory.statementCounts[device] ?? 0) < limits.statementsOfDevice / 2 else { return }
        for lane in Lane.allCases where roster.laneKeys.contains(where: { $0.lane == lane }) {
            if try isKeyWithheld(lane) { try makeKey(lane) }
            guard let (id, key) = try sealingKey(lane),
                let record = roster.laneKeys.first(where: { $0.key == id && $0.lane == lane })
            else { continue }
            var olderKeys: [Statement.Rekeying.WrappedKey] = []
            var known: Set<LaneKeyID>?
            for other in roster.laneKeys where other.lane == lane && other.key != id && other.mayBeGiven(to: record.holders) {
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
                .rekey(Statement.Rekeying(lane: lane, generation: record.generation, key: id, boxes: [], olderKeys: olderKeys)))
        }
    }

    /// Whether a member has boxed something else for this device than a key, and no other device can tell.
    ///
    /// Then this device makes a key that does not wrap the other one, so that a device which has both wraps it.
    private mutating func isKeyWithheld(_ lane: Lane) throws(KeychainFailure) -> Bool {
        guard !isPlanted(.believesBoxes), let (id, _) = try sealingKey(lane),
            let newest = roster.laneKeys.first(where: { $0.key == id && $0.lane == lane })
        else { return false }
        var known: Set<LaneKeyID>?
        for record in roster.laneKeys where record.lane == lane && record.recipients.contains(device) {
            if let key = try laneKey(record.key), try isNamed(by: record, key) { continue }
            let keys = known ?? keysKnown(toAuthorsOf: newest)
            guard keys.contains(record.key) else { return true }
            known = keys
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
        }.keys.sorted().suffix(Statement.Removal.largestCheckpointCount)
        try state(.remove(Statement.Removal(device: subject, checkpoints: Array(checkpoints))))
        guard subject != device else { return }
        for lane in Lane.allCases { _ = try sealingKey(lane) }
    }
}
