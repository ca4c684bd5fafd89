// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

/// What a store records of programs' changes while synchronization is on.
extension ItemStoreContract {
    static let recordingRules = [
        recordingRule("Without synchronization there is no ledger, and nothing is recorded") { store, findings throws(KeychainFailure) in
            try store.stopSynchronizing()
            findings.expect(try !store.isSynchronizing(), "synchronization is on")
            findings.expectFailure(.notAvailable, "reading the ledger") { () throws(KeychainFailure) in
                try store.readLedger { _ in }
            }
            findings.expectFailure(.notAvailable, "writing the ledger") { () throws(KeychainFailure) in
                _ = try store.writeLedger(ifKeybagGeneration: keybag.generation) { _ in }
            }
            try store.insert([shared(1)])
            try store.startSynchronizing()
            findings.expect(try store.isSynchronizing(), "synchronization is off")
            findings.expect(try store.records().isEmpty, "a write before the start is recorded")
            findings.expect(try store.rows().count == 1, "the start changed the items")
        },
        recordingRule("An inserted row is recorded as written if it synchronizes") { store, findings throws(KeychainFailure) in
            for (kind, row, isRecorded) in population {
                try store.insert([row])
                let expected: [ItemID: RecordedChange.Kind] = isRecorded ? [row.header.reference.id: .written] : [:]
                findings.expect(try store.takeRecords() == expected, "inserting \(kind)")
            }
        },
        recordingRule("A replaced row is recorded by what it was and what it becomes") { store, findings throws(KeychainFailure) in
            for (oldKind, old, wasShared) in population {
                for (newKind, model, isShared) in population {
                    var new = model
                    new.header.reference = old.header.reference
                    new.header.revision = .random()
                    try store.insert([old])
                    try store.eraseRecords()
                    let number = try store.rows().last?.number ?? 0
                    try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: new) }
                    let expected: RecordedChange.Kind? = isShared ? .written : wasShared ? .deleted : nil
                    findings.expect(
                        try store.takeRecords() == (expected.map { [old.header.reference.id: $0] } ?? [:]),
                        "\(oldKind) replaced by \(newKind)")
                    try store.change { writing throws(KeychainFailure) in try writing.remove(number: number) }
                    try store.eraseRecords()
                }
            }
        },
        recordingRule("A row that keeps its revision was only resealed, which is not recorded") { store, findings throws(KeychainFailure) in
            for (kind, old, _) in population {
                try store.insert([old])
                try store.eraseRecords()
                let number = try store.rows().last?.number ?? 0
                var resealed = old
                resealed.header.classKeyGeneration += 1
                resealed.wrappedItemKey.reverse()
                resealed.tag.reverse()
                try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: resealed) }
                findings.expect(try store.takeRecords().isEmpty, "resealing \(kind)")
            }
        },
        recordingRule("A replacement by another item is a deletion and a write") { store, findings throws(KeychainFailure) in
            let (old, new) = (shared(1), shared(1))
            try store.insert([old])
            try store.eraseRecords()
            let number = try store.rows().first?.number ?? 0
            try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: new) }
            findings.expect(
                try store.records() == [old.header.reference.id: .deleted, new.header.reference.id: .written], "the records are wrong")
        },
        recordingRule("A removed or quarantined row is recorded as deleted if it synchronized") { store, findings throws(KeychainFailure) in
            for quarantines in [false, true] {
                for (kind, row, isRecorded) in population {
                    try store.insert([row])
                    try store.eraseRecords()
                    try store.removeLast(quarantines: quarantines)
                    let expected: [ItemID: RecordedChange.Kind] = isRecorded ? [row.header.reference.id: .deleted] : [:]
                    findings.expect(try store.takeRecords() == expected, "\(quarantines ? "quarantining" : "removing") \(kind)")
                }
            }
        },
        recordingRule("The last change of an item is recorded, and whether it was deleted before") {
            store, findings throws(KeychainFailure) in
            let row = shared(1)
            let id = row.header.reference.id
            try store.insert([row])
            try store.removeLast(quarantines: true)
            findings.expect(try store.records() == [id: .deleted], "written, then quarantined")
            // An item that is added over a damaged one, or over a tombstone, takes up its identifier.
            var again = shared(1)
            again.header.reference = row.header.reference
            try store.insert([again])
            findings.expect(try store.records() == [id: .rewritten], "written again")
            again.header.revision = .random()
            let number = try store.rows().last?.number ?? 0
            try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: again) }
            findings.expect(try store.records() == [id: .rewritten], "and changed")
            try store.removeLast(quarantines: false)
            let other = shared(1)
            try store.insert([other])
            findings.expect(try store.records() == [id: .deleted, other.header.reference.id: .written], "another item of the same name")
        },
        recordingRule("A write that fails leaves no record") { store, findings throws(KeychainFailure) in
            try store.insert([shared(1)])
            try store.eraseRecords()
            findings.expectFailure(.decode, "a failing write") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.insert(shared(2))
                    try writing.remove(number: try writing.rows().first?.number ?? 0)
                    throw KeychainFailure(.decode, "thrown by the body")
                }
            }
            findings.expect(try store.records().isEmpty, "a record remains")
            try store.change { writing throws(KeychainFailure) in
                findings.expectFailure(.duplicateItem, "a second row with the key") { () throws(KeychainFailure) in
                    try writing.insert(shared(1))
                }
            }
            findings.expect(try store.records().isEmpty, "a refused insertion is recorded")
        },
        recordingRule("Synchronization does not record its own changes") { store, findings throws(KeychainFailure) in
            let row = shared(1)
            try store.changeLedger { writing throws(KeychainFailure) in
                try writing.insert(row)
                try writing.insert(shared(2))
                let numbers = try writing.rows().compactMap(\.number)
                try writing.replace(number: numbers[0], with: shared(1))
                try writing.remove(number: numbers[1])
                try writing.quarantine(number: numbers[0], at: 1)
                try writing.insert(shared(3))
            }
            findings.expect(try store.records().isEmpty, "something is recorded")
            findings.expect(try store.rows().count == 1, "the rows were not written")
            let next = shared(4)
            try store.insert([next])
            findings.expect(try store.records() == [next.header.reference.id: .written], "a later write by a program is not recorded")
        },
        recordingRule("Records are listed by kind in ascending order, and erased one by one") { store, findings throws(KeychainFailure) in
            let rows = (1...20).map { shared($0) }
            try store.insert(rows)
            try store.change { writing throws(KeychainFailure) in
                for row in try writing.rows().prefix(5) { try writing.remove(number: row.number ?? 0) }
            }
            let written = rows.dropFirst(5).map(\.header.reference.id).sorted { $0.isOrdered(before: $1) }
            try store.changeLedger { writing throws(KeychainFailure) in
                findings.expect(try writing.recordedChanges(.deleted, limit: 100).count == 5, "deletions are missing")
                let first = try writing.recordedChanges(.written, limit: 7)
                findings.expect(first == written.prefix(7).map { RecordedChange(item: $0, kind: .written) }, "the first writes are wrong")
                for change in first { try writing.eraseRecordedChange(change.item) }
                let rest = try writing.recordedChanges(.written, limit: 100).map(\.item)
                findings.expect(rest == Array(written.dropFirst(7)), "the rest is wrong")
            }
            findings.expect(try store.records().count == 13, "an erased record is back, or another one is gone")
            findings.expect(
                try store.readLedger { reading throws(KeychainFailure) in try reading.recordedChangeCount() } == 13, "the count is wrong")
        },
        recordingRule("A stop removes ledger and records, and leaves the items") { store, findings throws(KeychainFailure) in
            try store.insert([shared(1)])
            try store.changeLedger { writing throws(KeychainFailure) in
                try writing.set(.membership, to: [1])
                try writing.insertCopy(
                    shared(1), of: VersionReference(id: SyncVersionID(.random()), origin: nil), at: 1)
            }
            try store.startSynchronizing()
            findings.expect(try store.records().count == 1, "a second start changed the ledger")
            for _ in 0..<2 { try store.stopSynchronizing() }
            findings.expect(try store.rows().count == 1, "the items changed")
            try store.startSynchronizing()
            try store.readLedger { reading throws(KeychainFailure) in
                findings.expect(try reading.setting(.membership) == nil, "a setting remains")
                findings.expect(try reading.classKeysInUse().count == 1, "a conflict copy remains")
            }
            findings.expect(try store.records().isEmpty, "a record remains")
        },
    ]

    /// A rule that begins with synchronization on.
    private static func recordingRule(
        _ description: String, _ check: @escaping @Sendable (any SyncStore, inout ContractFindings) throws(KeychainFailure) -> Void
    ) -> ItemStoreContract {
        ItemStoreContract(description) { store, findings throws(KeychainFailure) in
            guard let store = store as? any SyncStore else { return findings.expect(false, "the store cannot synchronize") }
            try store.startSynchronizing()
            try check(store, &findings)
        }
    }

    private static func shared(_ account: UInt64) -> SealedRow { SampleRows.row(account: account, isSynchronizable: true) }

    /// A row of each kind, and whether its changes are recorded.
    private static var population: [(kind: String, row: SealedRow, isRecorded: Bool)] {
        var account: UInt64 = 100
        return ItemAccessibility.allCases.flatMap { accessibility in
            [(false, false), (true, false), (true, true), (false, true)].map { isSynchronizable, isTombstone in
                account += 1
                let row = SampleRows.row(
                    account: account, accessibility: accessibility, isSynchronizable: isSynchronizable, isTombstone: isTombstone)
                let mayLeave = [.whenUnlocked, .afterFirstUnlock, .always].contains(accessibility)
                return (
                    "\(accessibility), synchronizable: \(isSynchronizable), tombstone: \(isTombstone)", row,
                    isSynchronizable && !isTombstone && mayLeave
                )
            }
        }
    }
}

extension SyncStore {
    func changeLedger(_ body: (any SyncStoreWriting) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        guard case .written = try writeLedger(ifKeybagGeneration: ItemStoreContract.keybag.generation, body) else {
            throw KeychainFailure(.notAvailable, "the store refuses a write with the generation of its own keybag")
        }
    }

    /// Returns what is recorded of each item.
    func records() throws(KeychainFailure) -> [ItemID: RecordedChange.Kind] {
        try readLedger { reading throws(KeychainFailure) in
            var records: [ItemID: RecordedChange.Kind] = [:]
            for kind in RecordedChange.Kind.allCases {
                for change in try reading.recordedChanges(kind, limit: .max) { records[change.item] = kind }
            }
            return records
        }
    }

    func eraseRecords() throws(KeychainFailure) {
        let items = try records().keys
        try changeLedger { writing throws(KeychainFailure) in
            for item in items { try writing.eraseRecordedChange(item) }
        }
    }

    /// Returns the records, and erases them.
    fileprivate func takeRecords() throws(KeychainFailure) -> [ItemID: RecordedChange.Kind] {
        let records = try records()
        try eraseRecords()
        return records
    }

    fileprivate func removeLast(quarantines: Bool) throws(KeychainFailure) {
        try change { writing throws(KeychainFailure) in
            let number = try writing.rows().last?.number ?? 0
            if quarantines { try writing.quarantine(number: number, at: 1) } else { try writing.remove(number: number) }
        }
    }
}
#endif
