// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

extension Simulation {
    private enum Action: Int, CaseIterable {
        case write, effect, wake, spread, lock, snapshot, clone, clock, loseObject, membership, attack, rollback, damage
    }

    /// Does one random thing on one random device.
    mutating func act() {
        now += Double(random.below(120))
        if random.below(40) == 0 { now += Double(random.below(200_000)) }
        guard
            let index = random.element(
                of: devices.indices.filter { !devices[$0].isGone && !devices[$0].isAway && devices[$0].membership != nil })
        else { return }
        if devices[index].asksAboutDeletions, random.chance(0.3) { confirmDeletions(index) }
        var choice = random.below(faults.weights.reduce(0, +))
        var action = Action.effect
        for candidate in Action.allCases {
            choice -= faults.weights[candidate.rawValue]
            if choice < 0 {
                action = candidate
                break
            }
        }
        do {
            try perform(action, on: index)
        } catch {
            oracle.fail("device \(index): \(action) failed: \(error)")
        }
    }

    private mutating func perform(_ action: Action, on index: Int) throws {
        switch action {
        case .write: try write(index)
        case .effect: for _ in 0..<(1 + random.below(6)) { performEffect(index) }
        case .wake: step(index, .wake)
        case .spread: spread(index)
        case .lock: if faults.locks { toggleLock(index) }
        case .snapshot: if faults.restores { try snapshotOrRestore(index) }
        case .clone: if faults.clones { try clone(index) }
        case .clock: if faults.clocksLie { devices[index].clockOffset = Double(random.below(7) - 3) * 100_000_000 }
        case .loseObject: if faults.losesObjects { try loseObjects() }
        case .membership: try changeMembership(index)
        case .damage: if faults.damages { damage(index) }
        case .rollback: if faults.rollsBack { try rollBack() }
        case .attack: if faults.isHostile { attack() }
        }
    }

    private mutating func performEffect(_ index: Int) {
        guard !devices[index].effects.isEmpty else {
            if random.chance(0.3) { step(index, .wake) }
            return
        }
        // Effects run concurrently: any of them may finish first, and one may be repeated.
        let position = random.chance(0.7) ? 0 : random.below(devices[index].effects.count)
        let effect = devices[index].effects[position]
        if !random.chance(0.05) { devices[index].effects.remove(at: position) }
        perform(effect, of: index, hasFaults: true, crashes: faults.crashes && random.chance(0.05))
    }

    private mutating func spread(_ index: Int) {
        let seen = Set(storage.view(of: index))
        let isQuick = random.chance(0.5)
        var shown: [String] = []
        for name in storage.names where !seen.contains(name) && (isQuick || random.chance(0.5)) {
            if isHidden(name, from: index) { continue }
            storage.show(name, to: index)
            shown.append(name)
        }
        guard let shownBatch = shown.first(where: { $0.hasPrefix("b/") }), random.chance(0.2) else { return step(index, .wake) }
        // The hints name batches, of which some may be late, repeated, or not there yet. Those of other objects are late.
        counters.count(.hintedBatches)
        let hinted = shown.filter { $0.hasPrefix("b/") && random.chance(0.9) } + [random.chance(0.3) ? storage.names[0] : shownBatch]
        step(index, .appeared(hinted))
    }

    /// The storage helps a removed device by hiding its removal from it.
    private func isHidden(_ name: String, from index: Int) -> Bool { devices[index].isRemoved && name.hasPrefix("m/") }

    private mutating func toggleLock(_ index: Int) {
        let disk = devices[index].disk
        if disk.lockedLanes.isEmpty {
            disk.lockedLanes = random.chance(0.8) ? [.whenUnlocked] : Set(Lane.allCases)
            counters.count(.locked)
        } else {
            disk.lockedLanes = []
        }
        step(index, .itemsChanged)
    }

    private mutating func snapshotOrRestore(_ index: Int) throws {
        guard let snapshot = devices[index].snapshot, random.chance(0.6) else {
            devices[index].snapshot = SimulatedDevice.Snapshot(
                disk: try devices[index].disk.copied(), view: storage.view(of: index), writeCount: oracle.writeCount)
            if try hasUnsentChanges(index) { counters.count(.snapshotWithUnsentChanges) }
            return
        }
        counters.count(.snapshotRestored)
        if options.isTraced { note("device \(index): restored from its snapshot") }
        oracle.noteRollback(of: index, to: snapshot.writeCount)
        devices[index].disk = try snapshot.disk.copied()
        if random.chance(0.5) {
            storage.setView(snapshot.view, of: index)
            counters.count(.snapshotRestoredWithTheFolder)
        }
        devices[index].start(cipher: cipher, limits: limits)
    }

    private func hasUnsentChanges(_ index: Int) throws(KeychainFailure) -> Bool {
        try devices[index].disk.read { ledger throws(KeychainFailure) in
            for lane in Lane.allCases where try !ledger.pendingVersions(in: lane, limit: 1).isEmpty { return true }
            for kind in RecordedChange.Kind.allCases where try !ledger.recordedChanges(kind, limit: 1).isEmpty {
                return true
            }
            return false
        }
    }

    private mutating func clone(_ index: Int) throws {
        guard devices.count < options.deviceCount + 2, !devices[index].isRemoved else { return }
        storage.addView()
        devices.append(try SimulatedDevice(cloneOf: devices[index], index: devices.count))
        let clone = devices.count - 1
        storage.setView(storage.view(of: index), of: clone)
        oracle.noteClone(of: index, as: clone)
        devices[clone].start(cipher: cipher, limits: limits)
        counters.count(.cloned)
    }

    /// Loses objects that a device has read, for which its checkpoint makes up.
    private mutating func loseObjects() throws {
        let all = random.chance(0.3)
        for name in storage.names where all || random.chance(0.1) {
            guard try isHealable(name) else { continue }
            storage.remove(name)
            lostNames.insert(name)
            if options.isTraced { note("lost \(name)") }
            counters.count(.objectLost)
        }
    }

    /// Whether a remaining device other than its author has what the object contains, so that the circle can make up for it.
    private func isHealable(_ name: String, without absent: Int? = nil) throws(KeychainFailure) -> Bool {
        switch ObjectName(name) {
        case .statement(let hash): try isHeld(without: absent) { disk throws(KeychainFailure) in try disk.isStored(hash) }
        case .batch(_, let origin) where !hostileNames.contains(name):
            try isHeld(without: absent) { disk throws(KeychainFailure) in
                try disk.read { ledger throws(KeychainFailure) in try ledger.isRead(origin) }
            }
        default: false
        }
    }

    /// Whether a writer has something on a disk that is never rolled back to before now.
    private func isHeld(
        without absent: Int?, _ isOnDisk: (any SimulatedDisk) throws(KeychainFailure) -> Bool
    ) throws(KeychainFailure) -> Bool {
        for index in remaining where index != absent {
            let device = devices[index]
            let isKept = device.original == nil && device.snapshot == nil && index != damaged
            if isKept, device.role.mayWrite, try isOnDisk(device.disk) { return true }
        }
        return false
    }

    /// Whether a device may be removed without losing what the storage has lost and no other remaining device has.
    func isDispensable(_ victim: Int) throws(KeychainFailure) -> Bool {
        let present = Set(storage.names)
        for name in lostNames.subtracting(present).sorted() where try !isHealable(name, without: victim) { return false }
        return true
    }

    private mutating func changeMembership(_ index: Int) throws {
        guard devices[index].role.isOwner, !devices[index].isRemoved, devices[index].engine?.roster?.members[devices[index].id] != nil
        else {
            return
        }
        if schedules == .rejoins { return try rejoin(index) }
        if faults.removesDevices, random.chance(0.5), remaining.count > 2, let victim = try randomVictim(of: index),
            devices.filter({ $0.isRemoved }).count < removalLimit, try isDispensable(victim)
        {
            remove(victim, by: index)
        } else if recoveryKit != nil, random.chance(0.2) {
            try recover()
        } else if faults.admitsDevices, devices.count < options.deviceCount + 3 {
            let joiner = devices.count
            let isCredential = faults.hasReaders && !devices[index].disk.lockedLanes.contains(.afterFirstUnlock) && random.chance(0.5)
            try addDevice(joiner, isCredential ? .reader : .owner)
            devices[joiner].sponsor = index
            if options.isTraced { note("device \(joiner) is admitted by \(index)") }
            let other = random.chance(0.4) ? random.element(of: remaining.filter { canAdmit($0) && $0 != index && $0 != joiner }) : nil
            let statements = try admit(joiner, by: index)
            guard statements.contains(where: { Self.isAdmission($0, of: devices[joiner].id) }) else {
                // The owner has learned in the same step that it was removed.
                devices[joiner].isGone = true
                return
            }
            if isCredential { try publishStatements(of: index) }
            if let other {
                // Two owners have answered the same request.
                devices[joiner].secondSponsor = other
                step(other, .command(.admit(devices[joiner].keys.publicKeys, devices[joiner].role)))
                counters.count(.deviceAdmittedTwice)
            }
            guard let circle = devices[index].membership?.circle else { return }
            try join(joiner, circle, statements)
            noteDoubtfulAdmissions()
            counters.count(.deviceAdmitted)
        }
    }

    /// More removals would leave too few devices for other faults.
    private var removalLimit: Int { schedules == .removals ? 5 : 2 }

    mutating func remove(_ victim: Int, by index: Int) {
        let machines = devices.indices.filter { devices[$0].id == devices[victim].id }
        for machine in machines { (devices[machine].isRemoved, devices[machine].remover) = (true, index) }
        // What the removal lists may show no other admission of its author.
        let isInDoubt = isInDoubt(index)
        for machine in machines { devices[machine].isRemovalInDoubt = isInDoubt }
        noteDoubtfulAdmissions()
        step(index, .command(.remove(devices[victim].id)))
        guard devices[index].engine?.roster?.removed.contains(devices[victim].id) == true else {
            // The owner has learned in the same step that it is no member any more.
            for machine in machines { (devices[machine].isRemoved, devices[machine].remover) = (false, nil) }
            return
        }
        counters.count(.deviceRemoved)
        if options.isTraced { note("device \(victim) is removed by \(index)") }
    }

    /// Lets an owner remove a device that has published a checkpoint, and is lost with changes that it has not sent.
    ///
    /// The owner has read less than the others, and the storage shows it the checkpoint before the batches that this covers.
    mutating func removeAuthorOfCheckpoint(_ author: Int) throws {
        // Where devices enter the circle again, the author may be the only one that has kept its keys.
        guard schedules != .rejoins, faults.removesDevices, remaining.count > 2, remaining.contains(author),
            devices.filter({ $0.isRemoved }).count < removalLimit, try hasUnsentChanges(author), try isDispensable(author),
            random.chance(0.8)
        else { return }
        let owners = remaining.filter { canAdmit($0) && isListed(author, by: $0) && devices[$0].id != devices[author].id }
        let progress = try owners.map { (owner: $0, count: try devices[$0].disk.progress()) }
        guard let owner = progress.min(by: { $0.count < $1.count })?.owner else { return }
        for name in storage.names where !name.hasPrefix("b/") { storage.show(name, to: owner) }
        devices[owner].clockOffset = 0
        performEffects(of: owner)
        guard isListed(author, by: owner) else { return }
        counters.count(.authorOfCheckpointRemoved)
        remove(author, by: owner)
    }

    /// A device that the person at another one removes, often one with changes that it has not sent: they are lost with it.
    private mutating func randomVictim(of index: Int) throws -> Int? {
        let others = remaining.filter { isListed($0, by: index) && devices[$0].id != devices[index].id }
        guard random.chance(0.5) else { return random.element(of: others) }
        return random.element(of: try others.filter { try hasUnsentChanges($0) }) ?? random.element(of: others)
    }

    /// Whether a device is in the list of members that a person sees on another one.
    private func isListed(_ device: Int, by other: Int) -> Bool {
        devices[other].engine?.roster?.members[devices[device].id] != nil
    }

    private func canAdmit(_ index: Int) -> Bool {
        devices[index].role.isOwner && !devices[index].mayBeVoid && devices[index].engine?.roster?.members[devices[index].id] != nil
    }

    /// A person whose devices are lost begins again with the storage and the recovery kit.
    ///
    /// The kit removes all other devices and admits a new one.
    private mutating func recover() throws {
        guard let keys = recoveryKit, let founding else { return }
        recoveryKit = nil
        let kit = try addKit(keys)
        try join(kit, founding.circle, [founding])
        runToRest(kit)
        guard let members = devices[kit].engine?.roster?.members, members[devices[kit].id] != nil else {
            // The storage does not show the kit's admission.
            devices[kit].isGone = true
            recoveryKit = keys
            return
        }
        for index in devices.indices where index != kit && members[devices[index].id] != nil {
            devices[index].isRemoved = true
            devices[index].remover = kit
        }
        // Its admission counts only if a device has it that the kit did not remove.
        for index in devices.indices where index != kit && members[devices[index].id] == nil { devices[index].mayBeVoid = true }
        let joiner = devices.count
        try addDevice(joiner)
        devices[joiner].sponsor = kit
        for member in members.keys.sorted() where member != devices[kit].id { step(kit, .command(.remove(member))) }
        try join(joiner, founding.circle, admit(joiner, by: kit))
        if options.isTraced { note("device \(kit) is the recovery kit, and admits \(joiner)") }
        noteDoubtfulAdmissions()
        counters.count(.recoveredWithTheKit)
    }

    /// Switches a device off for the second half of the run, in which more than a year passes.
    mutating func beAway(_ event: Int) {
        switch event {
        case options.eventCount / 4:
            guard let index = random.element(of: remaining), remaining.count > 2 else { return }
            devices[index].isAway = true
        case options.eventCount / 2: now += 400 * 86_400
        case options.eventCount * 7 / 8:
            for index in devices.indices where devices[index].isAway {
                devices[index].isAway = false
                devices[index].start(cipher: cipher, limits: limits)
                counters.count(.cameBackAfterAYear)
            }
        default: break
        }
    }

    mutating func confirmDeletions(_ index: Int) {
        devices[index].asksAboutDeletions = false
        counters.count(.deletionsConfirmed)
        step(index, .command(.acceptDeletions))
        step(index, .wake)
    }

    /// Takes the storage back to an earlier state: new objects are lost, and removed ones are there again.
    private mutating func rollBack() throws {
        guard !storageSnapshot.isEmpty, random.chance(0.5) else {
            storageSnapshot = storage.snapshot
            return
        }
        counters.count(.storageRolledBack)
        let kept = Set(storageSnapshot.map(\.name))
        for name in storage.names where try !kept.contains(name) && isHealable(name) {
            storage.remove(name)
            lostNames.insert(name)
        }
        for (name, bytes) in storageSnapshot { storage.putBack(name, bytes) }
    }

    /// Notes the devices whose admission by a removed device no other remaining device knows.
    ///
    /// It counts only if one of them learns of it before it learns of the removal. Devices whose admissions are in doubt do not vouch for each
    /// other, nor for the devices that they admit: these know them by the doubtful admission only.
    mutating func noteDoubtfulAdmissions() {
        // A reader states nothing, and a witness that is restored from a snapshot forgets what it has seen.
        let witnesses =
            faults.restores || faults.clones
            ? [] : remaining.filter { devices[$0].role.mayWrite && !devices[$0].mayBeVoid && !isInDoubt($0) }
        for joiner in devices.indices where isInDoubt(joiner) && !devices[joiner].isRemoved {
            if !witnesses.contains(where: { isListed(joiner, by: $0) }) { devices[joiner].mayBeVoid = true }
        }
    }

    /// Whether a device was admitted by a removed one, or by one that was.
    private func isInDoubt(_ device: Int) -> Bool {
        guard let sponsor = devices[device].sponsor else { return false }
        return devices[sponsor].isRemoved || devices[sponsor].mayBeVoid || isInDoubt(sponsor)
    }

    /// Whether the removals by a device may rest on one of its two admissions only, whose author was removed since.
    func mayRestOnVoidAdmission(_ remover: Int) -> Bool {
        guard let first = devices[remover].sponsor, let second = devices[remover].secondSponsor else { return false }
        return [first, second].contains { devices[$0].isRemoved || devices[$0].mayBeVoid || isInDoubt($0) }
    }

    static func isAdmission(_ statement: Statement, of device: DeviceID) -> Bool {
        if case .admit(let admission) = statement.body { admission.device == device } else { false }
    }

    /// What every device has to know of a reader that was admitted by a credential.
    static let credentialNote = CredentialNote(
        // Never called: the name is valid.
        name: DeviceName("web") ?? { preconditionFailure("the name is valid") }(), expiration: 1_000_000_000)

    /// Creates what a device has stated: a credential is handed over only afterwards, because its reader could not make up for a lost statement.
    private mutating func publishStatements(of index: Int) throws(KeychainFailure) {
        let statements = try devices[index].disk.read { ledger throws(KeychainFailure) in
            var statements: [(String, [UInt8])] = []
            for name in try ledger.outgoingNames() where ObjectName(name)?.folder == .statements {
                if let bytes = try ledger.outgoingBytes(name) { statements.append((name, bytes)) }
            }
            return statements
        }
        for (name, bytes) in statements { storage.create(name, bytes, by: index) }
    }

    mutating func admit(_ joiner: Int, by index: Int) throws(KeychainFailure) -> [Statement] {
        let keys = devices[joiner].keys.publicKeys
        step(index, .command(devices[joiner].role == .reader ? .admitCredential(keys, Self.credentialNote) : .admit(keys, .owner)))
        let cipher = cipher
        let statements = try devices[index].disk.read { ledger throws(KeychainFailure) in try ledger.statements() }
        return statements.compactMap { try? Statement($0.bytes, cipher: cipher) }
    }
}
