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
        if let bytes = try ledger.setting(.waits) { engine.memory.waits = try stored { () throws(FormatError) in try Waits(bytes) } }
        engine.memory.areStatementsLoaded = true
        evaluateRoster()
    }

    private mutating func evaluateRoster() {
        let statements = engine.memory.statements.values.sorted { $0.hash < $1.hash }
        engine.memory.roster = Roster(statements, circle: circle)
        observe(.evaluatedStatements)
        engine.memory.hasCompleteAdmission = ownRole == nil && hasCompleteAdmission()
        engine.memory.openedLanes = []
        engine.memory.unreadableOwn = nil
        setNothingAside()
        for hash in engine.memory.checkpoints.keys { engine.memory.checkpoints[hash]?.isSetAside = false }
        findUnreadStatements()
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
    /// Each device has a share of its own, so none keeps another one's removal from being read. Another device may have read other statements of an
    /// author who makes more: what a member's statement rests on is read beyond the share, for at most as many shares as there are members. This, and
    /// what devices have stated that are no members, may take half of the room for all statements.
    private func isAcceptable(_ statement: Statement) -> Bool {
        let count = engine.memory.statementCounts[statement.author] ?? 0
        let isInShare = count < limits.statementsOfDevice
        let isNeeded = roster.dependents[statement.hash]?.contains { $0 != statement.author } ?? false
        let total = engine.memory.statements.count + engine.memory.receivedStatements.count
        let isMember = roster.members[statement.author] != nil
        guard statement.circle == circle || isPlanted(.statementsOfOtherCircles),
            isInShare || isNeeded && count / limits.statementsOfDevice < roster.members.count,
            total < (isInShare && isMember ? limits.statementsOfCircle : limits.statementsOfCircle / 2),
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
        try testifyForNewKits(before)
    }

    /// Testifies for a recovery kit that another device has admitted, so that the kit remains if that device is removed by a thief.
    private mutating func testifyForNewKits(_ before: Roster) throws(KeychainFailure) {
        guard ownRole?.mayWrite == true, ownRole != .recoveryKit else { return }
        let kits = roster.members.filter { $0.value.isRecoveryKit && before.members[$0.key] == nil }.keys
        guard !kits.isEmpty, before.members[device] != nil else { return }
        let isOwn = engine.memory.statements.values.contains { statement in
            guard statement.author == device, case .admit(let admission) = statement.body else { return false }
            return kits.contains(admission.device)
        }
        if !isOwn { try state(.witness) }
    }

    /// Testifies for what this device had while it was a member by an admission that is void, once another owner's admission counts.
    private mutating func testifyAfterVoidAdmission(_ before: Roster) throws(KeychainFailure) {
        guard before.members[device] == nil, let ownRole, let bytes = try ledger.setting(.voidAdmission) else { return }
        let earlier = try stored { () throws(FormatError) in try StoredList.hashes(bytes) }
        try ledger.set(.voidAdmission, to: nil)
        if ownRole.mayWrite { try testify(earlier) }
    }

    /// Raises an alarm in each round while the admission of this device is void.
    mutating func noteVoidAdmission() throws(KeychainFailure) {
        if try isAdmissionVoid() { effects.append(.alarm(.admissionVoid)) }
    }

    /// Returns whether this device was a member until a removal made its admission void, or learned of that removal together with its admission.
    private func isAdmissionVoid() throws(KeychainFailure) -> Bool {
        guard ownRole == nil, !roster.removed.contains(device) else { return false }
        return try ledger.setting(.voidAdmission) != nil || engine.memory.hasCompleteAdmission
    }

    /// Whether an admission of this device is here with all statements on which it rests: with fewer, it could not count yet.
    private func hasCompleteAdmission() -> Bool {
        let statements = engine.memory.statements
        var dependents: [StatementHash: [StatementHash]] = [:]
        for statement in statements.values { for head in statement.heads { dependents[head, default: []].append(statement.hash) } }
        var incomplete: Set<StatementHash> = []
        var waiting = dependents.filter { statements[$0.key] == nil }.flatMap(\.value)
        while let hash = waiting.popLast() {
            if incomplete.insert(hash).inserted { waiting += dependents[hash] ?? [] }
        }
        return statements.values.contains { statement in
            guard case .admit(let admission) = statement.body else { return false }
            return admission.device == device && !incomplete.contains(statement.hash)
        }
    }

    /// Lists the statements that this device counted, and an admission of this device that still counts.
    private mutating func testify(_ earlier: [StatementHash]) throws(KeychainFailure) {
        observe(.witnessed)
        let admission = ownAdmission
        for part in earlier.filter({ !admission.contains($0) }).parts(ofCount: Statement.largestHeadCount - 1) {
            try state(.witness, heads: (admission + part).sorted())
        }
    }

    /// A counted statement that makes this device a member; empty if it is none.
    private var ownAdmission: [StatementHash] {
        let admissions = engine.memory.statements.values.filter { statement in
            guard roster.counted.contains(statement.hash) else { return false }
            switch statement.body {
            case .found: return statement.author == device
            case .admit(let admission): return admission.device == device
            case .remove, .rekey, .witness: return false
            }
        }
        return Array(admissions.map(\.hash).sorted().prefix(1))
    }

    /// Testifies for what this device had of a removed device when it learned of the removal.
    private mutating func learnRemovals(_ before: Roster) throws(KeychainFailure) {
        guard roster.removed != before.removed, !before.heads.isEmpty else { return }
        try dropUncoveredVersions()
        // An admission is void with its author's other statements if no other device knew of it.
        let isVoid = before.members[device] != nil && roster.members[device] == nil && !roster.removed.contains(device)
        if isVoid { try ledger.set(.voidAdmission, to: StoredList.encoded(before.heads)) }
        if roster.removed.contains(device) { effects.append(.alarm(.removed)) }
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
    ///
    /// Each also lists an admission of this device: others can make any number of statements that do not know one.
    private mutating func joinHeads() throws(KeychainFailure) {
        while roster.heads.count > Statement.largestHeadCount - 1 {
            let count = roster.heads.count
            let admission = ownAdmission
            let heads = roster.heads.filter { !admission.contains($0) }.prefix(Statement.largestHeadCount - 1)
            try state(.witness, heads: (admission + heads).sorted())
            guard roster.heads.count < count else {
                throw KeychainFailure(.internal, "a statement of this device does not count", subject: .store)
            }
        }
    }

    /// Creates statements that the storage lacks.
    mutating func restoreStatements() throws(KeychainFailure) {
        guard try mayRestoreStatements() || isPlanted(.readersRestoreStatements), engine.memory.listedFolders.contains(.statements) else {
            return
        }
        for (hash, statement) in engine.memory.statements.sorted(by: { $0.key < $1.key })
        where !engine.memory.listedStatements.contains(hash) && roster.needed.contains(hash) {
            try ledger.insert(OutgoingObject(name: ObjectName.statement(hash).text, bytes: statement.encoded))
        }
    }

    /// Returns whether this device is a writer, or was one by an admission that turned out to be void.
    ///
    /// Otherwise, if the storage lost the removal before another device has read it, no other device could testify for the admission. A reader writes nothing,
    /// because any number of machines may share its identity.
    private func mayRestoreStatements() throws(KeychainFailure) -> Bool {
        if let ownRole { return ownRole.mayWrite }
        return roster.authors[device] != nil ? try isAdmissionVoid() : false
    }

    // Commands about devices

    func requireOwner() throws(KeychainFailure) {
        guard ownRole?.isOwner == true else { throw KeychainFailure(.missingEntitlement, "only an owner of the circle can admit a device") }
    }

    mutating func admit(
        _ publicKeys: DevicePublicKeys, _ role: DeviceRole, circleCode: [UInt8]? = nil, note: CredentialNote.Sealed? = nil
    ) throws(KeychainFailure) {
        try requireOwner()
        guard publicKeys.areUsable(cipher) else {
            throw KeychainFailure(.parameter, "the public keys of the device are not valid: no lane key can be sealed to them")
        }
        let subject = DeviceID(of: publicKeys, role: role, cipher: cipher)
        guard !roster.removed.contains(where: { $0 == subject || roster.publicKeys[$0] == publicKeys }) else {
            throw KeychainFailure(.parameter, "a removed device joins again with new keys")
        }
        guard !roster.members.contains(where: { $0.key != subject && $0.value.keys == publicKeys }) else {
            throw KeychainFailure(.parameter, "the device is a member in another role: remove it first, then it joins again with new keys")
        }
        try state(.admit(Statement.Admission(device: subject, keys: publicKeys, role: role, circleCode: circleCode, note: note)))
        for lane in Lane.allCases { _ = try sealingKey(lane) }
    }

    mutating func remove(_ subject: DeviceID) throws(KeychainFailure) {
        guard ownRole?.isOwner == true else {
            throw KeychainFailure(.missingEntitlement, "only an owner of the circle can remove a device")
        }
        guard roster.members[subject] != nil else { return }
        // What a reader wrote does not become usable because the reader is removed. The engine that performs a command may not have listed anything.
        let known = engine.memory.checkpoints.filter { hash, checkpoint in checkpoint.author == subject && isUsable(hash, checkpoint) }.keys
        let seen = roster.members[subject]?.role.mayWrite == true ? try seenCheckpoints().hashes(by: subject) : []
        let checkpoints = Set(seen).union(known).sorted().suffix(Statement.Removal.largestCheckpointCount)
        try state(.remove(Statement.Removal(device: subject, checkpoints: Array(checkpoints))))
        guard subject != device else { return }
        for lane in Lane.allCases { _ = try sealingKey(lane) }
    }
}
