// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Coming to rest: the storage shows everything, all devices are unlocked, and the faults end.
extension Simulation {
    package mutating func settleAndCheck() {
        do {
            try settle()
        } catch {
            oracle.fail("the devices cannot be checked: \(error)")
        }
    }

    private mutating func settle() throws {
        for index in devices.indices where !devices[index].isGone {
            devices[index].disk.lockedLanes = []
            devices[index].clockOffset = 0
            devices[index].isAway = false
            // An agent that continues to run must come to rest too, whatever it has begun.
            if random.chance(0.5) { devices[index].start(cipher: cipher, limits: limits) }
        }
        var quietRounds = 0
        // Each useless checkpoint takes two rounds to be given up, and two more to be given up again.
        let roundLimit = 120
        for round in 0..<roundLimit {
            let before = try changeCount()
            for index in remaining { runToRest(index) }
            quietRounds = try changeCount() == before ? quietRounds + 1 : 0
            if quietRounds > 0 { now += 100_000 }
            // A checkpoint that is of no use is given up in the second round without progress.
            let abandonedCount = remaining.map { devices[$0].engine?.abandonedCheckpointCount ?? 0 }.max() ?? 0
            if quietRounds >= 3 + 2 * abandonedCount { break }
            if round == roundLimit - 1 { oracle.fail("the devices do not come to rest") }
            if !oracle.failures.isEmpty { return }
        }
        try check()
    }

    private func changeCount() throws(KeychainFailure) -> Int {
        var count = storage.changeCount
        for index in remaining { count += try devices[index].disk.progress() + (devices[index].engine?.abandonedCheckpointCount ?? 0) }
        return count
    }

    /// Shows a device everything, and performs its effects without faults until none is left.
    mutating func runToRest(_ index: Int) {
        storage.showAll(to: index)
        performEffects(of: index)
    }

    /// Wakes a device and performs its effects without faults until none is left.
    mutating func performEffects(of index: Int) {
        step(index, .itemsChanged)
        step(index, .wake)
        var count = 0
        while !devices[index].effects.isEmpty {
            // The storage answers in any order.
            let effect = devices[index].effects.remove(at: random.chance(0.7) ? 0 : random.below(devices[index].effects.count))
            if case .wake(let time) = effect, time <= now { step(index, .wake) }
            perform(effect, of: index, hasFaults: false)
            if devices[index].asksAboutDeletions { confirmDeletions(index) }
            count += 1
            if count > 20_000 { return oracle.fail("device \(index) never stops working") }
        }
    }

    private mutating func check() throws {
        try dropVoidAdmissions()
        let removedIDs = Set(devices.filter(\.isRemoved).map(\.id))
        var states: [Int: RestingState] = [:]
        for index in remaining { states[index] = try devices[index].disk.restingState() }
        let lost = lostForAll(states)
        // Devices that show a lost version nevertheless: a row that is damaged for good, or a reader's.
        var showsLost: Set<Int> = []
        for index in remaining {
            guard let state = states[index] else { continue }
            let isShown = state.rows.contains { row in lost.contains { $0.id == row.revision } }
            if isShown || (!devices[index].role.mayWrite && !state.live.isDisjoint(with: lost)) { showsLost.insert(index) }
            states[index]?.live.subtract(lost)
        }
        // Of removed devices, the batches that a remaining writer has read count. A reader cannot report what it has read.
        let readByRemaining = remaining.filter { devices[$0].role.mayWrite }.reduce(into: Set<Origin>()) {
            $0.formUnion(states[$1]?.read ?? [])
        }
        // A batch that the storage has lost, and of which its author knows nothing any more, does not count if all others that had read it are removed.
        let isAnyForgotten = faults.restores && (faults.losesObjects || faults.rollsBack)
        let known = isAnyForgotten ? states.values.reduce(into: storedBatches) { $0.formUnion($1.read) } : []
        let expected = oracle.expected { origin, author in
            readByRemaining.contains(origin) || (!removedIDs.contains(author) && (!isAnyForgotten || known.contains(origin)))
        }.filter { !lost.contains($0.key) }
        for index in remaining {
            guard var state = states[index] else { continue }
            if let problem = state.problem { oracle.fail("the disk of device \(index) is damaged: \(problem)") }
            let isExpected = { (origin: Origin, author: DeviceID) in readByRemaining.contains(origin) || !removedIDs.contains(author) }
            if waitsForCheckpoint(index, state, isExpected) { continue }
            var own = expected
            if devices[index].formerVersions != nil { checkFormer(index, &state, own, isExpected) }
            if !devices[index].role.mayWrite {
                let read = state.read.union(readByRemaining)
                own = oracle.expected { origin, author in
                    read.contains(origin) || (!removedIDs.contains(author) && (!isAnyForgotten || known.contains(origin)))
                }.filter { !lost.contains($0.key) }
            }
            checkLedger(index, state, own)
            // What a program of a reader has overwritten may have been in a batch that no other device had read, of a device that was removed.
            let isGone = !devices[index].role.mayWrite && devices[index].engine?.lostContents.allSatisfy { isStored($0) } == false
            if !isGone, !showsLost.contains(index) { checkRows(index, state, own) }
            if !devices[index].role.mayWrite { checkUnshared(index, state) }
        }
        for index in remaining where devices[index].engine?.roster?.members.keys.contains(where: { forgedDevices.contains($0) }) == true {
            oracle.fail("a stranger became a member")
        }
        try checkStatements()
        try checkCredentials()
        try checkMembers()
        oracle.checkReplacements(expected) { devices[$0].isRemoved || devices[$0].isGone || !devices[$0].role.mayWrite }
        oracle.checkAcknowledgedWrites { devices[$0].isRemoved || devices[$0].isGone || !devices[$0].role.mayWrite }
        try checkRemovals(readByRemaining)
        checkAlarms()
    }

    /// Checks that each alarm has a reason among the faults of this schedule.
    private mutating func checkAlarms() {
        for index in devices.indices {
            for alarm in devices[index].alarms where !hasReason(alarm) {
                oracle.fail("device \(index) raises a false alarm: \(alarm)")
            }
        }
    }

    private func hasReason(_ alarm: SyncAlarm) -> Bool {
        switch alarm {
        case .removed, .admissionVoid: faults.removesDevices || faults.usesRecoveryKit || faults.isHostile
        case .newerFormat: faults.hasOldPrograms || faults.isHostile
        case .invalidBatch: faults.isHostile
        // The storage shows an object after any time.
        case .missingStatement: true
        case .massDeletion: faults.guardsDeletions
        case .itemLeftAlone: faults.hasOldPrograms
        case .itemTooLarge: false
        case .unsentWriteLost: faults.damages || faults.restores
        }
    }

    /// The versions that only one device had when its disk lost their contents.
    ///
    /// The author of the batch had removed it, because it was in a checkpoint of its own, and was removed before another device read that.
    private func lostForAll(_ states: [Int: RestingState]) -> Set<VersionReference> {
        var lost: Set<VersionReference> = []
        for index in remaining {
            for version in devices[index].engine?.lostContents ?? [] where !isStored(version) {
                let isKept = states.contains { other, state in
                    other != index && devices[other].role.mayWrite && state.live.contains(version)
                }
                if !isKept { lost.insert(version) }
            }
        }
        return lost
    }

    /// Checks that exactly the remaining devices are members, and that all devices agree.
    ///
    /// A removal whose author was removed too is void if no other device knew of it, so whom it removed may be a member. So may a removal be whose
    /// author was admitted by a removed device, or by the one that it removes, also if another device has admitted the author too and it stays a member.
    private mutating func checkMembers() throws {
        // A machine that is restored from a snapshot may have forgotten a removal or an admission that it had not sent.
        guard !faults.restores, !faults.clones else { return }
        let kit = recoveryKit.map { DeviceID(of: $0.publicKeys, role: .recoveryKit, cipher: cipher) }
        let expected = Set(remaining.map { devices[$0].id })
        let doubtful = Set(
            devices.filter {
                $0.isRemoved && ($0.isRemovalInDoubt || $0.remover.map { devices[$0].isRemoved || mayRestOnVoidAdmission($0) } == true)
            }.map(\.id))
        let found = remaining.map { index in Set(devices[index].engine?.roster?.members.keys.filter { $0 != kit } ?? []) }
        let reference = remaining.firstIndex { devices[$0].role.mayWrite } ?? 0
        for (index, members) in zip(remaining, found) {
            if try members != found[reference] && keptMembers(of: index).filter({ $0 != kit }) != found[reference] {
                if options.isTraced {
                    for (index, members) in zip(remaining, found) {
                        note("device \(index) has the members \(devices.indices.filter { members.contains(devices[$0].id) })")
                    }
                }
                oracle.fail("device \(index) has other members than device \(remaining[reference])")
            }
            let extra = members.subtracting(expected)
            // A removed device may not have published a statement on which its removals rest; then these do not count.
            let known = extra.isSubset(of: doubtful) ? [] : try removedByCompleteStatements(of: index)
            if !expected.isSubset(of: members) || !extra.subtracting(doubtful).isDisjoint(with: known) {
                if options.isTraced {
                    let numbers = devices.indices.filter { members.contains(devices[$0].id) }
                    note("device \(index) has the members \(numbers); \(remaining) remain")
                }
                oracle.fail("device \(index) has \(members.count) members instead of \(expected.count)")
            }
            if !extra.isEmpty { counters.count(.voidRemoval) }
        }
    }

    /// The devices in those removals of which a device has everything that they list.
    private func removedByCompleteStatements(of index: Int) throws -> Set<DeviceID> {
        Set(
            try completeStatements(of: index).compactMap { statement in
                if case .remove(let removal) = statement.body { removal.device } else { nil }
            })
    }

    /// The members by those statements of a device that are in the storage, or that a remaining writer has.
    ///
    /// A reader may have read another one before the storage went back to an earlier state, and restores none. Those who had it may be removed.
    private func keptMembers(of index: Int) throws -> Set<DeviceID> {
        guard let circle = devices[index].membership?.circle else { return [] }
        let kept = try completeStatements(of: index).filter { statement throws(KeychainFailure) in
            if storage.objects[ObjectName.statement(statement.hash).text] != nil { return true }
            for other in remaining where devices[other].role.mayWrite {
                if try devices[other].disk.isStored(statement.hash) { return true }
            }
            return false
        }
        return Set(Roster(kept, circle: circle).members.keys)
    }

    /// Whether a device has an admission of itself with everything that this lists.
    private func isAdmissionComplete(_ index: Int) throws -> Bool {
        let id = devices[index].id
        return try completeStatements(of: index).contains { Self.isAdmission($0, of: id) }
    }

    /// The statements of a device that it has with all that they list.
    private func completeStatements(of index: Int) throws -> [Statement] {
        let cipher = cipher
        let stored = try devices[index].disk.read { ledger throws(KeychainFailure) in try ledger.statements() }
        let statements = Dictionary(uniqueKeysWithValues: try stored.map { ($0.hash, try Statement($0.bytes, cipher: cipher)) })
        return statements.values.filter { statement in
            var waiting = statement.heads
            var found: Set<StatementHash> = []
            while let hash = waiting.popLast() {
                if found.insert(hash).inserted { waiting += statements[hash]?.heads ?? [] }
            }
            return found.allSatisfy { statements[$0] != nil }
        }
    }

    /// Checks that no device keeps a statement of another circle, and that none waits for a statement that only a reader names.
    private mutating func checkStatements() throws {
        for index in remaining {
            for hash in foreignStatements where try devices[index].disk.isStored(hash) {
                oracle.fail("device \(index) keeps a statement of another circle")
            }
            if devices[index].engine?.roster?.missing.isDisjoint(with: missingHeads) == false {
                oracle.fail("device \(index) waits for a statement that only a reader names")
            }
        }
    }

    /// Checks that every device knows the names and dates of the credentials of members, as far as it has the keys of the notes.
    private mutating func checkCredentials() throws {
        let cipher = cipher
        for index in remaining {
            guard var engine = devices[index].engine, let roster = engine.roster else { continue }
            var (known, unknown) = (0, 0)
            try devices[index].disk.transaction(rollsBack: true) { transaction throws(KeychainFailure) in
                let notes = try DeviceNotes(in: transaction.ledger)
                for stored in try transaction.ledger.statements() {
                    guard let statement = try? Statement(stored.bytes, cipher: cipher), roster.counted.contains(statement.hash),
                        case .admit(let admission) = statement.body, let note = admission.note, roster.members[admission.device] != nil
                    else { continue }
                    let entry = notes[admission.device]
                    if entry?.name == Self.credentialNote.name, entry?.expiration == Self.credentialNote.expiration {
                        known += 1
                    } else if engine.openedKey(note.laneKey, in: transaction) != nil {
                        unknown += 1
                    }
                }
            }
            for _ in 0..<known { counters.count(.credentialKnown) }
            if unknown > 0 { oracle.fail("device \(index) does not know the name of a credential") }
        }
    }

    /// Whether a batch is sealed under a key whose author had seen a member removed, a removal that turned out to be void.
    ///
    /// The member must not get the key, so a device that has joined elsewhere does not get it either, and reads what is in the batch with the next
    /// checkpoint.
    private func waitsForCheckpoint(_ index: Int, _ state: RestingState, _ isExpected: (Origin, DeviceID) -> Bool) -> Bool {
        guard let roster = devices[index].engine?.roster else { return false }
        let keys = roster.laneKeys.filter { key in key.excluded.contains { roster.members[$0] != nil } }.map(\.key)
        return oracle.batches.contains { origin, batch in
            keys.contains(batch.laneKey) && !state.read.contains(origin) && isExpected(origin, batch.author)
        }
    }

    /// Takes the devices whose admission turned out to be void for removed.
    private mutating func dropVoidAdmissions() throws {
        let others = remaining.filter { !devices[$0].mayBeVoid }
        for index in devices.indices where devices[index].mayBeVoid && !devices[index].isRemoved {
            let id = devices[index].id
            guard !others.contains(where: { devices[$0].engine?.roster?.members[id] != nil }) else { continue }
            devices[index].isRemoved = true
            counters.count(.voidAdmission)
            let isMember = devices[index].engine?.roster?.members[id] != nil
            let isTold = !devices[index].alarms.isDisjoint(with: [.admissionVoid, .removed])
            if !devices[index].isGone, !isMember, !isTold, try isAdmissionComplete(index) {
                oracle.fail("device \(index) does not warn that its admission is void")
            }
        }
    }

    /// Checks that a device which has entered the circle again still has everything with which it had left, and takes what the circle does not have out of
    /// its state.
    private mutating func checkFormer(
        _ index: Int, _ state: inout RestingState, _ expected: [VersionReference: SimulatedContent],
        _ isExpected: (Origin, DeviceID) -> Bool
    ) {
        for revision in devices[index].rowsAtExit where state.unshared[revision] == nil && !oracle.isOverwritten(revision, on: index) {
            if oracle.isKnown(revision, isExpected) { continue }
            oracle.fail("device \(index) has lost what only this device had when it left the circle")
            if options.isTraced { note("device \(index) has lost \(revision.hexadecimal)") }
        }
        for (id, version) in state.unshared {
            counters.count(.unsharedFormerVersion)
            guard let origin = devices[index].formerVersions?[id] else {
                oracle.fail("device \(index) does not send what a program wrote")
                continue
            }
            let others = expected.filter { $0.value.name == version.content?.name }
            if !others.isEmpty, state.read.contains(origin) { oracle.fail("device \(index) keeps what the circle has replaced") }
            state.live.remove(VersionReference(id: id, origin: nil))
            if version.isCopy { state.copyCount -= 1 }
        }
        let names = Set(state.rows.filter { state.unshared[$0.revision] != nil }.map(\.content.name))
        state.namesWithFormerVersion = names
        state.rows.removeAll { names.contains($0.content.name) }
        state.unshared = [:]
    }

    private mutating func checkLedger(_ index: Int, _ state: RestingState, _ expected: [VersionReference: SimulatedContent]) {
        let live = devices[index].role.mayWrite ? state.live : state.live.filter { $0.origin != nil }
        let missing = Set(expected.keys).subtracting(live)
        let extra = live.subtracting(expected.keys)
        if options.isTraced {
            for version in missing.sorted() { note("device \(index) lacks \(Self.description(of: version))") }
            for version in extra.sorted() { note("device \(index) has also \(Self.description(of: version))") }
            let missing = devices[index].engine?.roster?.missing ?? []
            if !missing.isEmpty { note("device \(index) misses \(missing.count) statements") }
            for version in state.awaited.sorted() { note("device \(index) awaits \(Self.description(of: version))") }
            for version in devices[index].engine?.lostContents.sorted() ?? [] {
                note("device \(index) lost the content of \(Self.description(of: version))")
            }
        }
        if !missing.isEmpty { oracle.fail("device \(index) lacks \(missing.count) live versions") }
        if !extra.isEmpty { oracle.fail("device \(index) has \(extra.count) versions that are replaced or unknown") }
        if state.pendingCount > 0, devices[index].role.mayWrite {
            oracle.fail("device \(index) has \(state.pendingCount) pending versions at rest")
        }
        if state.hasChanges { oracle.fail("device \(index) has unfolded changes at rest") }
        // A device that is restored from a snapshot, or has left, may have published a version that replaces one of a batch that it had not published.
        let mayLackBatches = faults.restores || schedules == .rejoins
        let awaited = state.awaited.filter { version in version.origin.map { oracle.isPublished($0) } ?? true || !mayLackBatches }
        if !awaited.isEmpty, devices.allSatisfy({ !$0.isRemoved }) { oracle.fail("device \(index) awaits versions at rest") }
    }

    private static func description(of version: VersionReference) -> String {
        let origin = version.origin.map { "log \($0.log.hexadecimal), batch \($0.number), \($0.hash.hexadecimal)" }
        return "version \(version.id.hexadecimal) of \(origin ?? "no batch")"
    }

    private mutating func checkRows(_ index: Int, _ state: RestingState, _ expected: [VersionReference: SimulatedContent]) {
        var visible: [Int: (VersionReference, SimulatedContent)] = [:]
        for (reference, content) in expected {
            if let other = visible[content.name], (other.1.date, other.0) > (content.date, reference) { continue }
            visible[content.name] = (reference, content)
        }
        for name in state.namesWithFormerVersion { visible[name] = nil }
        let rows = state.rows.filter { row in
            if row.isDamaged { oracle.fail("device \(index) has a damaged row at rest") }
            // A reader shows its own writes of items that the circle does not have.
            let isUnshared = state.live.contains(VersionReference(id: row.revision, origin: nil))
            return devices[index].role.mayWrite || !isUnshared || visible[row.content.name] != nil
        }
        if rows.count != visible.count { oracle.fail("device \(index) shows \(rows.count) items instead of \(visible.count)") }
        for row in rows {
            guard let (reference, content) = visible[row.content.name] else { continue }
            guard row.content != content || row.revision != reference.id else { continue }
            oracle.fail("device \(index) shows the wrong version of an item")
            if options.isTraced {
                note("device \(index) shows \(row.revision.hexadecimal), not \(Self.description(of: reference))")
            }
        }
        let copies = expected.count - visible.count
        let found = state.copyCount - state.unshared.values.count { $0.isCopy }
        if found != copies { oracle.fail("device \(index) has \(found) conflict copies instead of \(copies)") }
        if copies > 0 { counters.count(.conflictCopiesAtRest) }
    }

    /// Checks that a reader keeps what its programs wrote, each version in a row or in a copy.
    private mutating func checkUnshared(_ index: Int, _ state: RestingState) {
        var kept: [SyncVersionID: SimulatedContent] = [:]
        for (id, version) in state.unshared {
            guard let content = version.content else {
                oracle.fail("device \(index) has an unshared version without content")
                continue
            }
            kept[id] = content
        }
        if !kept.isEmpty { counters.count(.unsharedAtRest) }
        oracle.checkUnshared(kept, of: index)
    }

    private mutating func checkRemovals(_ readByRemaining: Set<Origin>) throws {
        for (reference, version) in oracle.published where version.isLate {
            if let origin = reference.origin, readByRemaining.contains(origin),
                devices.contains(where: { $0.isRemoved && $0.id == version.author })
            {
                oracle.fail("a batch that a removed device sealed after all others had learned of the removal was read")
            }
        }
        for index in devices.indices where devices[index].isRemoved {
            // A removal is void if its author was removed too and no other device knew of it. Then the device is a member.
            let id = devices[index].id
            guard let membership = devices[index].membership,
                !remaining.contains(where: { devices[$0].engine?.roster?.members[id] != nil })
            else { continue }
            var engine = SyncEngine(cipher: cipher, keys: devices[index].keys, membership: membership, limits: limits)
            var statements: [StoredStatement] = []
            for other in remaining {
                statements += try devices[other].disk.read { ledger throws(KeychainFailure) in try ledger.statements() }
            }
            let keys = Set(oracle.batches.values.filter { $0.knownRemoved.contains(devices[index].id) }.map(\.laneKey))
            var isOpened = false
            try devices[index].disk.transaction(rollsBack: false) { transaction throws(KeychainFailure) in
                for statement in statements { try transaction.ledger.insert(statement) }
                let opened = keys.filter { engine.openedKey($0, in: transaction) != nil }
                isOpened = !opened.isEmpty
                if options.isTraced { note("device \(index), \(id.hexadecimal), opens \(opened.map(\.hexadecimal).sorted())") }
            }
            if isOpened { oracle.fail("a removed device opens a batch of a device that knew of the removal") }
        }
    }
}
