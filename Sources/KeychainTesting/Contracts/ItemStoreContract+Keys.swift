// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension ItemStoreContract {
    static let keyRules = [
        ItemStoreContract("A keybag takes the place of the one before it, with the rows of the same write") {
            store, findings throws(KeychainFailure) in
            let next = keybag.generation + 2
            try store.change { writing throws(KeychainFailure) in
                try writing.replaceKeybag([9, 9], generation: next)
                try writing.insert(SampleRows.row(account: 1))
                let seen = try writing.keybag()
                findings.expect(seen.generation == next && seen.copies == [[9, 9], [9, 9]], "the writer does not see its keybag")
            }
            let stored = try store.read { reading throws(KeychainFailure) in try reading.keybag() }
            findings.expect(stored.generation == next && stored.copies == [[9, 9], [9, 9]], "the keybag is another one")
            findings.expect(try store.rows().count == 1, "the row of the same write is missing")
            if case .written = try store.write(ifKeybagGeneration: keybag.generation, { _ in }) {
                findings.expect(false, "a write for the old keybag was accepted")
            }
            if case .keybagChanged = try store.write(ifKeybagGeneration: next, { _ in }) {
                findings.expect(false, "a write for the new keybag was refused")
            }
        },
        ItemStoreContract("A keybag is replaced only by one of a higher generation") { store, findings throws(KeychainFailure) in
            for generation in [0, keybag.generation - 1, keybag.generation] {
                findings.expectFailure(.internal, "replacing it by generation \(generation)") { () throws(KeychainFailure) in
                    try store.change { writing throws(KeychainFailure) in try writing.replaceKeybag([9], generation: generation) }
                }
            }
            let stored = try store.read { reading throws(KeychainFailure) in try reading.keybag() }
            findings.expect(stored.generation == keybag.generation && stored.copies == keybag.copies, "the keybag changed all the same")
        },
        ItemStoreContract("A write that fails leaves the keybag as it was") { store, findings throws(KeychainFailure) in
            findings.expectFailure(.decode, "a failing write") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.replaceKeybag([9], generation: keybag.generation + 1)
                    throw KeychainFailure(.decode, "by the writer")
                }
            }
            let stored = try store.read { reading throws(KeychainFailure) in try reading.keybag() }
            findings.expect(stored.generation == keybag.generation && stored.copies == keybag.copies, "the keybag changed all the same")
            try store.insert([SampleRows.row(account: 1)])
        },
        ItemStoreContract("Each lock is counted, whatever the keybag is") { store, findings throws(KeychainFailure) in
            func stored() throws(KeychainFailure) -> LockEpoch {
                try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            }
            var expected = try stored()
            for extent in [LockExtent.whenUnlocked, .everything, .whenUnlocked, .whenUnlocked] {
                try store.advanceLockEpoch(extent)
                expected = expected.advanced(by: extent)
                findings.expect(try stored() == expected, "the count of locks is wrong")
            }
            try store.change { writing throws(KeychainFailure) in
                try writing.replaceKeybag([9], generation: keybag.generation + 1)
                findings.expect(try writing.lockEpoch() == expected, "a writer sees another count of locks")
            }
            try store.advanceLockEpoch(.everything)
            findings.expect(try stored() == expected.advanced(by: .everything), "a new keybag loses the count of locks")
        },
        ItemStoreContract("Rows under passcode keys of older generations are counted and handed over from any number on") {
            store, findings throws(KeychainFailure) in
            let rows = generations
            try store.insert(rows)
            let old = rows.filter { $0.header.accessibility.isPasscodeProtected && $0.header.classKeyGeneration < 3 }
            try store.read { reading throws(KeychainFailure) in
                findings.expect(try reading.rowCount(underPasscodeKeysBelow: 3) == old.count, "the count of old rows is wrong")
                findings.expect(try reading.rowCount(underPasscodeKeysBelow: 1) == 0, "there is nothing below the first generation")
                findings.expect(try reading.rows(underPasscodeKeysBelow: 3, after: 0).map(\.unnumbered) == old, "the old rows are others")
                findings.expect(try reading.rows(underPasscodeKeysBelow: 1, after: 0).isEmpty, "rows below the first generation")
                let numbers = try reading.rows(underPasscodeKeysBelow: 3, after: 0).compactMap(\.number)
                for (position, number) in numbers.enumerated() {
                    let following = try reading.rows(underPasscodeKeysBelow: 3, after: number).compactMap(\.number)
                    findings.expect(following == Array(numbers.dropFirst(position + 1)), "after \(number) come other rows")
                }
            }
        },
        ItemStoreContract("A batch may rewrap each row it is given, and the next one goes on behind it") {
            store, findings throws(KeychainFailure) in
            let rows = generations
            try store.insert(rows)
            let oldCount = try store.read { reading throws(KeychainFailure) in try reading.rowCount(underPasscodeKeysBelow: 3) }
            var last: Int64 = 0
            var total = 0
            var batches = 0
            repeat {
                let before = total
                try store.change { writing throws(KeychainFailure) in
                    try writing.forEachRow(underPasscodeKeysBelow: 3, after: last) { row throws(KeychainFailure) in
                        last = row.number ?? 0
                        total += 1
                        // Every third stays, as one that cannot be read does.
                        if total % 3 != 0 {
                            var rewrapped = row
                            rewrapped.header.classKeyGeneration = 3
                            rewrapped.header.revision = .random()
                            try writing.replace(number: last, with: rewrapped)
                        }
                        return total - before == 2 ? .stop : .proceed
                    }
                }
                batches += 1
                if total == before { break }
            } while batches < 100
            findings.expect(total == oldCount, "\(total) rows were handed over instead of \(oldCount)")
            let left = try store.read { reading throws(KeychainFailure) in try reading.rowCount(underPasscodeKeysBelow: 3) }
            findings.expect(left == oldCount / 3, "\(left) old rows are left instead of \(oldCount / 3)")
            findings.expect(try store.rows().map(\.header.reference) == rows.map(\.header.reference), "rows got lost, or out of order")
        },
        ItemStoreContract("The class keys in use are those of all rows and of the quarantine") { store, findings throws(KeychainFailure) in
            func inUse() throws(KeychainFailure) -> Set<ClassKeyID> {
                try store.read { reading throws(KeychainFailure) in try reading.classKeysInUse() }
            }
            findings.expect(try inUse().isEmpty, "an empty store uses class keys")
            let rows = generations
            try store.insert(rows)
            let expected = Set(rows.map { ClassKeyID($0.header.accessibility, generation: $0.header.classKeyGeneration) })
            findings.expect(try inUse() == expected, "the class keys of the rows are others")
            try store.change { writing throws(KeychainFailure) in
                for row in try writing.rows() { try writing.quarantine(number: row.number ?? 0, at: 1) }
            }
            findings.expect(try inUse() == expected, "the class keys of the quarantine are others")
            try store.change { writing throws(KeychainFailure) in try writing.purgeQuarantine() }
            findings.expect(try inUse().isEmpty, "class keys are in use after the last row is gone")
        },
    ]

    /// A row of each class in each of three generations, and a tombstone of each generation.
    private static var generations: [SealedRow] {
        var rows: [SealedRow] = []
        var account: UInt64 = 0
        for generation: UInt32 in [2, 1, 3] {
            for accessibility in Accessibility.allCases {
                account += 1
                rows.append(SampleRows.row(account: account, accessibility: accessibility, generation: generation))
            }
            account += 1
            rows.append(SampleRows.row(account: account, isTombstone: true, generation: generation))
        }
        return rows
    }
}

extension ItemReading {
    fileprivate func rows(underPasscodeKeysBelow generation: UInt32, after number: Int64) throws(KeychainFailure) -> [SealedRow] {
        var rows: [SealedRow] = []
        try forEachRow(underPasscodeKeysBelow: generation, after: number) { row in
            rows.append(row)
            return .proceed
        }
        return rows
    }
}
#endif
