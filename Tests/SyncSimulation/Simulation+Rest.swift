// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Coming to rest: the storage shows everything, all devices are unlocked, and the faults end.
extension Simulation {
    package mutating func settleAndCheck() {
        for index in devices.indices where !devices[index].isGone {
            devices[index].ledger.state.lockedLanes = []
            devices[index].clockOffset = 0
            devices[index].isAway = false
            // An agent that continues to run must come to rest too, whatever it has begun.
            if random.chance(0.5) { devices[index].start(cipher: cipher, limits: limits) }
        }
        var quietRounds = 0
        for round in 0..<60 {
            let before = changeCount
            for index in remaining { runToRest(index) }
            quietRounds = changeCount == before ? quietRounds + 1 : 0
            if quietRounds > 0 { now += 100_000 }
            if quietRounds == 3 { break }
            if round == 59 { oracle.fail("the devices do not come to rest") }
            if !oracle.failures.isEmpty { return }
        }
        check()
    }

    private var changeCount: Int {
        storage.changeCount
            + remaining.reduce(0) { $0 + devices[$1].ledger.state.read.count + devices[$1].ledger.state.statements.count }
    }

    /// Wakes a device and performs its effects without faults until none is left.
    mutating func runToRest(_ index: Int) {
        storage.showAll(to: index)
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

    private mutating func check() {
        dropVoidAdmissions()
        let removedIDs = Set(devices.filter(\.isRemoved).map(\.id))
        // Of removed devices, the batches that a remaining writer has read count. A reader cannot report what it has read.
        let readByRemaining = remaining.filter { devices[$0].role.mayWrite }.reduce(into: Set<Origin>()) {
            $0.formUnion(devices[$1].ledger.state.read)
        }
        let expected = oracle.expected { origin, author in !removedIDs.contains(author) || readByRemaining.contains(origin) }
        for index in remaining {
            var own = expected
            if !devices[index].role.mayWrite {
                let read = devices[index].ledger.state.read.union(readByRemaining)
                own = oracle.expected { origin, author in !removedIDs.contains(author) || read.contains(origin) }
            }
            checkLedger(index, own)
            checkRows(index, own)
        }
        for index in remaining where devices[index].engine?.roster?.members.keys.contains(where: { forgedDevices.contains($0) }) == true {
            oracle.fail("a stranger became a member")
        }
        checkMembers()
        oracle.checkReplacements(expected) { devices[$0].isRemoved || devices[$0].isGone || !devices[$0].role.mayWrite }
        oracle.checkAcknowledgedWrites { devices[$0].isRemoved || devices[$0].isGone || !devices[$0].role.mayWrite }
        for index in remaining where !devices[index].role.mayWrite { checkUnshared(index) }
        checkRemovals(readByRemaining)
    }

    /// Checks that exactly the remaining devices are members, and that all devices agree.
    ///
    /// A removal whose author was removed too is void if no other device knew of it, so whom it removed may be a member.
    private mutating func checkMembers() {
        // A machine that is restored from a snapshot may have forgotten a removal or an admission that it had not sent.
        guard !faults.restores, !faults.clones else { return }
        let kit = recoveryKit.map { DeviceID(of: $0.publicKeys, cipher: cipher) }
        let expected = Set(remaining.map { devices[$0].id })
        let doubtful = Set(devices.filter { $0.isRemoved && $0.remover.map { devices[$0].isRemoved } == true }.map(\.id))
        let found = remaining.map { index in Set(devices[index].engine?.roster?.members.keys.filter { $0 != kit } ?? []) }
        for (index, members) in zip(remaining, found) {
            if members != found[0] { oracle.fail("device \(index) has other members than device \(remaining[0])") }
            let extra = members.subtracting(expected)
            if !expected.isSubset(of: members) || !extra.isSubset(of: doubtful) {
                oracle.fail("device \(index) has \(members.count) members instead of \(expected.count)")
            }
            if !extra.isEmpty { counters.count(.voidRemoval) }
        }
    }

    /// Takes the devices whose admission turned out to be void for removed.
    private mutating func dropVoidAdmissions() {
        let others = remaining.filter { !devices[$0].mayBeVoid }
        for index in devices.indices where devices[index].mayBeVoid && !devices[index].isRemoved {
            let id = devices[index].id
            guard !others.contains(where: { devices[$0].engine?.roster?.members[id] != nil }) else { continue }
            devices[index].isRemoved = true
            counters.count(.voidAdmission)
        }
    }

    private mutating func checkLedger(_ index: Int, _ expected: [VersionReference: SimulatedContent]) {
        let state = devices[index].ledger.state
        let live = Set(devices[index].role.mayWrite ? Array(state.live.keys) : state.live.keys.filter { $0.origin != nil })
        let missing = Set(expected.keys).subtracting(live)
        let extra = live.subtracting(expected.keys)
        if options.isTraced {
            for version in missing.sorted() { note("device \(index) lacks \(Self.description(of: version))") }
            for version in extra.sorted() { note("device \(index) has also \(Self.description(of: version))") }
            let missing = devices[index].engine?.roster?.missing ?? []
            if !missing.isEmpty { note("device \(index) misses \(missing.count) statements") }
            for version in state.awaited.sorted() { note("device \(index) awaits \(Self.description(of: version))") }
        }
        if !missing.isEmpty { oracle.fail("device \(index) lacks \(missing.count) live versions") }
        if !extra.isEmpty { oracle.fail("device \(index) has \(extra.count) versions that are replaced or unknown") }
        if !state.pending.isEmpty, devices[index].role.mayWrite {
            oracle.fail("device \(index) has \(state.pending.count) pending versions at rest")
        }
        if !state.changes.isEmpty { oracle.fail("device \(index) has unfolded changes at rest") }
        // A device that is restored from a snapshot may have published a version that replaces one of a batch that it had not published yet.
        let awaited = state.awaited.filter { version in version.origin.map { oracle.isPublished($0) } ?? true || !faults.restores }
        if !awaited.isEmpty, devices.allSatisfy({ !$0.isRemoved }) { oracle.fail("device \(index) awaits versions at rest") }
    }

    private static func description(of version: VersionReference) -> String {
        let origin = version.origin.map { "log \($0.log.hexadecimal), batch \($0.number), \($0.hash.hexadecimal)" }
        return "version \(version.id.hexadecimal) of \(origin ?? "no batch")"
    }

    private mutating func checkRows(_ index: Int, _ expected: [VersionReference: SimulatedContent]) {
        let state = devices[index].ledger.state
        var visible: [Int: (VersionReference, SimulatedContent)] = [:]
        for (reference, content) in expected {
            if let other = visible[content.name], (other.1.date, other.0) > (content.date, reference) { continue }
            visible[content.name] = (reference, content)
        }
        let rows = state.rows.values.filter { row in
            guard row.isSynchronizable && !row.content.accessibility.isThisDeviceOnly else { return false }
            if row.isDamaged { oracle.fail("device \(index) has a damaged row at rest") }
            // A reader shows its own writes of items that the circle does not have.
            let isUnshared = state.live[VersionReference(id: row.revision, origin: nil)] != nil
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
        let found = state.copies.keys.count { $0.origin != nil || devices[index].role.mayWrite }
        if found != copies { oracle.fail("device \(index) has \(found) conflict copies instead of \(copies)") }
        if copies > 0 { counters.count(.conflictCopiesAtRest) }
    }

    /// Checks that a reader keeps what its programs wrote, each version in a row or in a copy.
    private mutating func checkUnshared(_ index: Int) {
        let ledger = devices[index].ledger
        var kept: [SyncVersionID: SimulatedContent] = [:]
        for version in ledger.state.live.values where version.reference.origin == nil {
            guard let content = try? ledger.content(of: version), let simulated = SimulatedContent(content) else {
                oracle.fail("device \(index) has an unshared version without content")
                continue
            }
            kept[version.reference.id] = simulated
        }
        if !kept.isEmpty { counters.count(.unsharedAtRest) }
        if ledger.state.copies.keys.count(where: { $0.origin == nil }) > kept.count {
            oracle.fail("device \(index) has copies that the ledger does not know")
        }
        oracle.checkUnshared(kept, of: index)
    }

    private mutating func checkRemovals(_ readByRemaining: Set<Origin>) {
        for (reference, version) in oracle.published where version.isLate {
            if let origin = reference.origin, readByRemaining.contains(origin),
                devices.contains(where: { $0.isRemoved && $0.id == version.author })
            {
                oracle.fail("a batch that a removed device sealed after all others had learned of the removal was read")
            }
        }
        for index in devices.indices where devices[index].isRemoved {
            guard var engine = devices[index].engine else { continue }
            let ledger = devices[index].ledger
            for other in remaining {
                for statement in devices[other].ledger.statements() { ledger.insert(statement) }
            }
            engine = SyncEngine(cipher: cipher, keys: devices[index].keys, membership: engine.membership, limits: limits)
            for (_, batch) in oracle.batches.sorted(by: { $0.key < $1.key }) where batch.knownRemoved.contains(devices[index].id) {
                if engine.openedKey(batch.laneKey, in: SyncTransaction(ledger: ledger, items: ledger)) != nil {
                    oracle.fail("a removed device opens a batch of a device that knew of the removal")
                    break
                }
            }
        }
    }
}
