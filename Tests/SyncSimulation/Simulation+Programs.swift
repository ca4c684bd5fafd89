// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// The programs that use the keychain of a device. They write between any two transactions of the agent.
extension Simulation {
    mutating func write(_ index: Int) throws(KeychainFailure) {
        if !devices[index].role.mayWrite { counters.count(.readerWrote) }
        let name = random.below(nameCount)
        switch random.below(23) {
        case 0..<12: try put(index, name)
        case 12..<16: try delete(index, name)
        case 16: try rename(index, name)
        case 17:
            try delete(index, name)
            try put(index, name)
            counters.count(.deletedAndAddedAgain)
        case 19:
            try rename(index, name)
            try put(index, name)
        case 18: if random.chance(0.2) { try putThisDeviceOnly(index) }
        case 20, 21: try keep(index, name)
        default:
            try put(index, name)
            try put(index, name)
        }
        if random.chance(0.3) { step(index, .itemsChanged) }
    }

    private func newRevision(_ random: inout SeededGenerator) -> SyncVersionID {
        SyncVersionID(Identifier128(high: random.next(), low: random.next()))
    }

    /// What the device knows of the items that a write concerns.
    private func known(_ index: Int, _ names: [Int], _ item: ItemID?) throws(KeychainFailure) -> Set<VersionReference> {
        let disk = devices[index].disk
        var itemNames: Set<ItemName> = []
        for name in names { itemNames.insert(try disk.itemName(of: name)) }
        return try disk.read { ledger throws(KeychainFailure) in
            if let item, let shown = try ledger.liveVersion(shownBy: item) { itemNames.insert(shown.name) }
            var known: Set<VersionReference> = []
            for name in itemNames { known.formUnion(try ledger.liveVersions(named: name).map(\.reference)) }
            return known
        }
    }

    /// The published versions that a write of an item must replace, because its program saw them, or because they would reappear.
    ///
    /// `name` is the item's new name; nil if it is deleted.
    private func seen(_ index: Int, _ item: ItemID?, _ name: Int?) throws(KeychainFailure) -> Set<VersionReference> {
        guard let item else { return [] }
        let disk = devices[index].disk
        let itemName = try name.map { name throws(KeychainFailure) in try disk.itemName(of: name) }
        return try disk.read { ledger throws(KeychainFailure) in
            guard let shown = try ledger.liveVersion(shownBy: item) else { return [] }
            var seen: Set = [shown.reference]
            if shown.name != itemName {
                seen.formUnion(try ledger.liveVersions(named: shown.name).filter { $0.item == nil }.map(\.reference))
            }
            return seen.filter { $0.origin != nil }
        }
    }

    private func isLocked(_ index: Int, _ accessibility: ItemAccessibility) -> Bool {
        Lane(accessibility).map { devices[index].disk.lockedLanes.contains($0) } ?? false
    }

    private mutating func noteWrite(_ write: Oracle.Write) {
        oracle.note(write)
        guard options.isTraced else { return }
        let kind = write.content.map { "writes \($0)" } ?? "deletes"
        note("device \(write.device) \(kind), \(write.revision.hexadecimal) over \(write.overwritten?.hexadecimal ?? "nothing")")
    }

    /// Writes an item, whose row is known, under its present name or another.
    private mutating func put(_ index: Int, _ content: SimulatedContent, over row: SimulatedRow?) throws(KeychainFailure) {
        let names = Set([content.name, row?.content.name ?? content.name]).sorted()
        let permitted = try known(index, names, row?.item)
        let seen = try seen(index, row?.item, content.name)
        if let row, row.content.name != content.name { try noteReturn(of: row, to: content.name, on: index) }
        let revision = try devices[index].disk.put(content, over: row, revision: newRevision(&random))
        noteWrite(
            Oracle.Write(
                device: index, name: content.name, revision: revision, isDeletion: false, permitted: permitted, seen: seen,
                overwritten: row?.revision, content: content))
    }

    /// Notes that an item gets its earlier name again before its device has folded the change, so that it did not leave the copies there.
    private mutating func noteReturn(of row: SimulatedRow, to name: Int, on index: Int) throws(KeychainFailure) {
        let disk = devices[index].disk
        let itemName = try disk.itemName(of: name)
        let shown = try disk.read { ledger throws(KeychainFailure) in try ledger.liveVersion(shownBy: row.item) }
        if let shown, shown.name == itemName { oracle.noteReturn(to: shown.reference, before: row.revision) }
    }

    private mutating func put(_ index: Int, _ name: Int) throws(KeychainFailure) {
        // Adding an item over a damaged row moves the row to the quarantine, which is recorded as a deletion.
        if try devices[index].disk.row(named: name)?.isDamaged == true { try delete(index, name) }
        let existing = try devices[index].disk.row(named: name)
        let accessibility: ItemAccessibility =
            if let existing, random.chance(0.8) { existing.content.accessibility } else {
                random.element(of: [.whenUnlocked, .afterFirstUnlock, .always]) ?? .whenUnlocked
            }
        guard !isLocked(index, accessibility), !isLocked(index, existing?.content.accessibility ?? accessibility) else { return }
        let clock = faults.equalDates ? 1 : now + devices[index].clockOffset
        let content = SimulatedContent(
            name: name, accessibility: accessibility, date: max(clock, (existing?.content.date ?? -.infinity) + 1),
            value: random.chance(0.2) ? 7 : random.next())
        try put(index, content, over: existing)
    }

    private mutating func delete(_ index: Int, _ name: Int) throws(KeychainFailure) {
        guard let row = try devices[index].disk.row(named: name) else { return }
        let permitted = try known(index, [name], row.item)
        let seen = try seen(index, row.item, nil)
        try devices[index].disk.delete(row)
        noteWrite(
            Oracle.Write(
                device: index, name: name, revision: row.revision, isDeletion: true, permitted: permitted, seen: seen,
                overwritten: row.revision, content: nil))
    }

    /// A person ends a conflict by keeping one of the versions.
    private mutating func keep(_ index: Int, _ name: Int) throws(KeychainFailure) {
        guard devices[index].disk.lockedLanes.isEmpty else { return }
        // What programs have written meanwhile is among the versions that the person sees.
        step(index, .itemsChanged)
        let disk = devices[index].disk
        let itemName = try disk.itemName(of: name)
        let live = try disk.read { ledger throws(KeychainFailure) in
            for kind in RecordedChange.Kind.allCases where try !ledger.recordedChanges(kind, limit: 1).isEmpty { return [LiveVersion]() }
            return try ledger.liveVersions(named: itemName)
        }
        let known = Set(live.map(\.reference))
        let shown = try disk.row(named: name)
        guard live.count > 1, let kept = random.element(of: live) else { return }
        step(index, .command(.keep(itemName, kept.reference)))
        guard let row = try disk.row(named: name), !known.contains(where: { $0.id == row.revision }) else { return }
        noteWrite(
            Oracle.Write(
                device: index, name: name, revision: row.revision, isDeletion: false, permitted: known,
                seen: known.filter { $0.origin != nil }, overwritten: shown?.revision, content: row.content))
        counters.count(.keptVersion)
    }

    private mutating func rename(_ index: Int, _ name: Int) throws(KeychainFailure) {
        let other = (name + 1) % nameCount
        guard other != name, let row = try devices[index].disk.row(named: name), try devices[index].disk.row(named: other) == nil,
            !row.isDamaged, !isLocked(index, row.content.accessibility)
        else { return }
        var content = row.content
        content.name = other
        content.date = max(now + devices[index].clockOffset, content.date + 1)
        try put(index, content, over: row)
        counters.count(.renamed)
    }

    /// A row that is marked as synchronizable although its class must not leave the device.
    private mutating func putThisDeviceOnly(_ index: Int) throws(KeychainFailure) {
        guard try devices[index].disk.row(named: 900) == nil else { return }
        let content = SimulatedContent(name: 900, accessibility: .whenUnlockedThisDeviceOnly, date: now, value: random.next())
        try put(index, content, over: nil)
        counters.count(.itemOfThisDeviceOnly)
    }
}
