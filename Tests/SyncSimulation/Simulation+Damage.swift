// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// A disk that loses rows, conflict copies, and records of changes. None of that is a deletion.
///
/// Only disks in memory lose anything.
extension Simulation {
    /// Damages the disk of one device; the circle has what it loses.
    ///
    /// A write that was not sent is lost with its row, so only the rows of published versions are damaged.
    mutating func damage(_ index: Int) {
        guard damaged == nil || damaged == index, let ledger = devices[index].disk as? MemoryLedger else { return }
        damaged = index
        switch random.below(5) {
        case 0...2:
            guard let (item, row) = damageableRow(ledger) else { return }
            if random.chance(0.5) {
                ledger.state.rows[item]?.isDamaged = true
                counters.count(.damagedRow)
            } else {
                ledger.state.rows[item] = nil
                counters.count(.absentRow)
            }
            if options.isTraced { note("device \(index) loses \(row.revision.hexadecimal)") }
        case 3:
            guard let copy = random.element(of: ledger.state.copies.keys.filter { isRestorable($0) }.sorted()) else { return }
            ledger.state.copies[copy] = nil
            counters.count(.lostCopy)
            if options.isTraced { note("device \(index) loses the copy \(copy.id.hexadecimal)") }
        default: loseRecords(index, ledger)
        }
        // An agent looks at all rows once a day, and when it starts.
        if random.chance(0.5) { devices[index].start(cipher: cipher, limits: limits) }
    }

    /// Whether the storage has the batch of a version.
    func isStored(_ version: VersionReference) -> Bool { version.origin.map { storedBatches.contains($0) } ?? false }

    var storedBatches: Set<Origin> {
        Set(storage.names.compactMap { name in if case .batch(_, let origin) = ObjectName(name) { origin } else { nil } })
    }

    /// Whether the circle can restore a version that this device loses: a storage that loses objects must not have lost it before.
    private func isRestorable(_ version: VersionReference) -> Bool {
        version.origin != nil && (!(faults.losesObjects || faults.rollsBack) || isStored(version))
    }

    /// Returns a row that shows a published version, and that no program has changed since.
    private mutating func damageableRow(_ ledger: MemoryLedger) -> (ItemID, MemoryLedger.Row)? {
        let items = ledger.state.rows.keys.filter { item in
            guard ledger.state.changes[item] == nil, let shown = ledger.liveVersion(shownBy: item) else { return false }
            return isRestorable(shown.reference) && shown.reference.id == ledger.state.rows[item]?.revision
        }
        guard let item = random.element(of: items.sorted { $0.isOrdered(before: $1) }), let row = ledger.state.rows[item] else {
            return nil
        }
        return (item, row)
    }

    /// Loses the records of changes, as a damaged page of their table does.
    private mutating func loseRecords(_ index: Int, _ ledger: MemoryLedger) {
        let deleted = ledger.state.changes.filter { $0.value == .deleted }.keys.compactMap { ledger.liveVersion(shownBy: $0) }
        guard !ledger.state.changes.isEmpty, deleted.allSatisfy({ $0.reference.origin != nil }) else { return }
        for version in deleted { oracle.noteLostRecord(of: index, deletionOf: version.reference) }
        ledger.state.changes = [:]
        ledger.state.lacksRecords = true
        counters.count(.lostRecords)
        if options.isTraced { note("device \(index) loses its records of changes") }
    }
}
