// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// The programs that use the keychain of a device. They write between any two transactions of the agent.
extension Simulation {
    mutating func write(_ index: Int) {
        if !devices[index].role.mayWrite { counters.count(.readerWrote) }
        let name = random.below(nameCount)
        switch random.below(21) {
        case 0..<12: put(index, name)
        case 12..<16: delete(index, name)
        case 16: rename(index, name)
        case 17:
            delete(index, name)
            put(index, name)
            counters.count(.deletedAndAddedAgain)
        case 19:
            rename(index, name)
            put(index, name)
        case 18: if random.chance(0.2) { putThisDeviceOnly(index) }
        default:
            put(index, name)
            put(index, name)
        }
        if random.chance(0.3) { step(index, .itemsChanged) }
    }

    private func newRevision(_ random: inout SeededGenerator) -> SyncVersionID {
        SyncVersionID(Identifier128(high: random.next(), low: random.next()))
    }

    /// What the device knows of the items that a write concerns.
    private func known(_ index: Int, _ names: [Int], _ item: ItemID?) -> Set<VersionReference> {
        let ledger = devices[index].ledger
        var known: Set<VersionReference> = []
        var itemNames = Set(names.map { ItemName(Identifier128(high: 1, low: UInt64($0))) })
        if let item, let shown = ledger.liveVersion(shownBy: item) { itemNames.insert(shown.name) }
        for name in itemNames { known.formUnion(ledger.liveVersions(named: name).map(\.reference)) }
        return known
    }

    /// The published versions that a write of an item must replace, because its program saw them, or because they would reappear.
    private func seen(_ index: Int, _ item: ItemID, leaving isLeaving: (ItemName) -> Bool) -> Set<VersionReference> {
        let ledger = devices[index].ledger
        guard let shown = ledger.liveVersion(shownBy: item) else { return [] }
        var seen: Set = [shown.reference]
        if isLeaving(shown.name) { seen.formUnion(ledger.liveVersions(named: shown.name).filter { $0.item == nil }.map(\.reference)) }
        return seen.filter { $0.origin != nil }
    }

    private func isLocked(_ index: Int, _ accessibility: ItemAccessibility) -> Bool {
        Lane(accessibility).map { devices[index].ledger.state.lockedLanes.contains($0) } ?? false
    }

    private mutating func noteWrite(_ write: Oracle.Write) {
        oracle.note(write)
        guard options.isTraced else { return }
        let kind = write.content.map { "writes \($0)" } ?? "deletes"
        note("device \(write.device) \(kind), \(write.revision.hexadecimal) over \(write.overwritten?.hexadecimal ?? "nothing")")
    }

    private mutating func put(_ index: Int, _ name: Int) {
        let ledger = devices[index].ledger
        // Adding an item over a damaged row moves the row to the quarantine, which is recorded as a deletion.
        if devices[index].row(named: name)?.1.isDamaged == true { delete(index, name) }
        let existing = devices[index].row(named: name)
        let accessibility: ItemAccessibility =
            if let existing, random.chance(0.8) { existing.1.content.accessibility } else {
                random.element(of: [.whenUnlocked, .afterFirstUnlock, .always]) ?? .whenUnlocked
            }
        guard !isLocked(index, accessibility), !isLocked(index, existing?.1.content.accessibility ?? accessibility) else { return }
        let clock = faults.equalDates ? 1 : now + devices[index].clockOffset
        let content = SimulatedContent(
            name: name, accessibility: accessibility, date: max(clock, (existing?.1.content.date ?? -.infinity) + 1),
            value: random.chance(0.2) ? 7 : random.next())
        let item = existing?.0 ?? ledger.newItem()
        let revision = newRevision(&random)
        noteWrite(
            Oracle.Write(
                device: index, revision: revision, isDeletion: false, permitted: known(index, [name], item),
                seen: seen(index, item) { $0 != content.itemName }, overwritten: existing?.1.revision, content: content))
        ledger.state.rows[item] = MemoryLedger.Row(content: content, revision: revision)
        ledger.state.changes[item] = .written
    }

    private mutating func delete(_ index: Int, _ name: Int) {
        let ledger = devices[index].ledger
        guard let (item, row) = devices[index].row(named: name) else { return }
        noteWrite(
            Oracle.Write(
                device: index, revision: row.revision, isDeletion: true, permitted: known(index, [name], item),
                seen: seen(index, item) { _ in true }, overwritten: row.revision, content: nil))
        ledger.state.rows[item] = nil
        ledger.state.changes[item] = .deleted
    }

    private mutating func rename(_ index: Int, _ name: Int) {
        let ledger = devices[index].ledger
        let other = (name + 1) % nameCount
        guard other != name, let (item, row) = devices[index].row(named: name), devices[index].row(named: other) == nil,
            !row.isDamaged, !isLocked(index, row.content.accessibility)
        else { return }
        var content = row.content
        content.name = other
        content.date = max(now + devices[index].clockOffset, content.date + 1)
        let revision = newRevision(&random)
        noteWrite(
            Oracle.Write(
                device: index, revision: revision, isDeletion: false, permitted: known(index, [name, other], item),
                seen: seen(index, item) { $0 != content.itemName }, overwritten: row.revision, content: content))
        ledger.state.rows[item] = MemoryLedger.Row(content: content, revision: revision)
        ledger.state.changes[item] = .written
        counters.count(.renamed)
    }

    /// A row that is marked as synchronizable although its class must not leave the device.
    private mutating func putThisDeviceOnly(_ index: Int) {
        let ledger = devices[index].ledger
        guard devices[index].row(named: 900) == nil else { return }
        let content = SimulatedContent(name: 900, accessibility: .whenUnlockedThisDeviceOnly, date: now, value: random.next())
        let item = ledger.newItem()
        let revision = newRevision(&random)
        noteWrite(
            Oracle.Write(
                device: index, revision: revision, isDeletion: false, permitted: [], seen: [], overwritten: nil,
                content: content))
        ledger.state.rows[item] = MemoryLedger.Row(content: content, revision: revision)
        ledger.state.changes[item] = .written
        counters.count(.itemOfThisDeviceOnly)
    }
}
