// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension ItemStoreContract {
    static let writeRules = [
        ItemStoreContract("A second row with the same primary key is refused, and the write may go on") {
            store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))])
            try store.insert([row])
            try store.change { writing throws(KeychainFailure) in
                findings.expectFailure(.duplicateItem, "a second row with the key") { () throws(KeychainFailure) in
                    try writing.insert(SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(6))]))
                }
                try writing.insert(SampleRows.row(account: 2))
            }
            let found = try store.rows()
            findings.expect(found.first?.unnumbered == row && found.count == 2, "the refused row left something behind")
            let bySecondLabel = try store.rows(RowQuery(attributeDigests: [AttributeDigest(.label, SampleRows.digest(6))]))
            findings.expect(bySecondLabel.isEmpty, "the refused row can be found by its attribute")
        },
        ItemStoreContract("A second row with the same identifier is refused") { store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1)
            try store.insert([row])
            var other = SampleRows.row(account: 2)
            other.header.reference = row.header.reference
            findings.expectFailure(.duplicateItem, "a second row with the identifier") { () throws(KeychainFailure) in
                try store.insert([other])
            }
        },
        ItemStoreContract("A replaced row keeps its number and is found by its new values only") {
            store, findings throws(KeychainFailure) in
            let label = { AttributeDigest(.label, SampleRows.digest($0)) }
            let comment = AttributeDigest(.comment, SampleRows.digest(7))
            let old = SampleRows.row(account: 1, attributes: [comment, label(5)])
            try store.insert([old, SampleRows.row(account: 9)])
            let number = try store.rows().first?.number ?? 0
            // The key stays, one attribute stays, one changes; then everything changes.
            var new = SampleRows.row(account: 1, attributes: [comment, label(6)], secretByteCount: 9_000)
            new.header.reference = old.header.reference
            try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: new) }
            var found = try store.rows()
            findings.expect(found.first?.unnumbered == new && found.first?.number == number, "the row was not replaced in its place")
            findings.expect(try store.rows(RowQuery(attributeDigests: [label(5)])).isEmpty, "found by an attribute it had before")
            for query in [RowQuery(attributeDigests: [label(6)]), RowQuery(attributeDigests: [comment]), .key(of: new)] {
                findings.expect(try store.rows(query).map(\.number) == [number], "not found by its values after a first replacement")
            }
            let last = SampleRows.row(service: 2, account: 2, attributes: [AttributeDigest(.creator, SampleRows.digest(1))])
            try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: last) }
            found = try store.rows()
            findings.expect(found.first?.unnumbered == last && found.count == 2, "the row was not replaced wholly")
            for query in [.key(of: new), RowQuery(id: new.header.reference.id), RowQuery(attributeDigests: [comment])] {
                findings.expect(try store.rows(query).isEmpty, "found by the key, identifier or attribute it had before")
            }
            for query in [.key(of: last), RowQuery(id: last.header.reference.id), RowQuery(attributeDigests: last.header.attributeDigests)]
            {
                findings.expect(try store.rows(query).map(\.number) == [number], "not found by its values after a second replacement")
            }
        },
        ItemStoreContract("A row cannot take another row's primary key") { store, findings throws(KeychainFailure) in
            let rows = [SampleRows.row(account: 1), SampleRows.row(account: 2)]
            try store.insert(rows)
            let number = try store.rows().last?.number ?? 0
            findings.expectFailure(.duplicateItem, "taking the other row's key") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.replace(number: number, with: SampleRows.row(account: 1))
                }
            }
            findings.expect(try store.rows().map(\.unnumbered) == rows, "the rows changed all the same")
        },
        ItemStoreContract("A removed row is found by nothing") { store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))])
            try store.insert([row, SampleRows.row(account: 2)])
            let number = try store.rows(.key(of: row)).first?.number ?? 0
            try store.change { writing throws(KeychainFailure) in try writing.remove(number: number) }
            for query in [
                .key(of: row), RowQuery(id: row.header.reference.id), RowQuery(attributeDigests: row.header.attributeDigests),
                RowQuery(accountDigest: row.header.accountDigest),
            ] {
                findings.expect(try store.rows(query).isEmpty, "a removed row was found")
            }
            findings.expect(try store.rows().count == 1, "another row went with it")
            try store.insert([row])
            findings.expect(try store.rows(.key(of: row)).count == 1, "the row cannot be added again")
        },
        ItemStoreContract("A row that is not there can be neither replaced nor removed") { store, findings throws(KeychainFailure) in
            try store.insert([SampleRows.row(account: 1)])
            findings.expectFailure(.internal, "replacing no row") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.replace(number: 1_000, with: SampleRows.row(account: 2))
                }
            }
            findings.expectFailure(.internal, "removing no row") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in try writing.remove(number: 1_000) }
            }
        },
        ItemStoreContract("A search may change each row it is given") { store, findings throws(KeychainFailure) in
            let label = AttributeDigest(.label, SampleRows.digest(5))
            try store.insert((1...30).map { SampleRows.row(account: $0, attributes: [label]) })
            for query in [
                RowQuery(), RowQuery(itemClass: .genericPassword), RowQuery(serviceDigest: SampleRows.digest(1)),
                RowQuery(attributeDigests: [label]),
            ] {
                var count = 0
                try store.change { writing throws(KeychainFailure) in
                    try writing.forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
                        count += 1
                        let number = row.number ?? 0
                        // Every third goes; the others move to the far end of the index that led here.
                        if count % 3 == 0 {
                            try writing.remove(number: number)
                        } else {
                            var moved = row
                            moved.header.accountDigest = SampleRows.digest(1_000 + UInt64(number))
                            moved.header.revision = .random()
                            try writing.replace(number: number, with: moved)
                        }
                        return .proceed
                    }
                }
                let left = try store.rows(query).count
                findings.expect(left == count - count / 3, "\(left) rows are left of \(count)")
            }
        },
        ItemStoreContract("The quarantine takes rows as they are, oldest first, and keeps the newest") {
            store, findings throws(KeychainFailure) in
            let rows = (1...3).map { SampleRows.row(account: $0, attributes: [AttributeDigest(.label, SampleRows.digest(5))]) }
            try store.insert(rows)
            try store.change { writing throws(KeychainFailure) in
                for row in try writing.rows().prefix(2) { try writing.quarantine(number: row.number ?? 0, at: 100.5) }
            }
            let quarantined = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
            findings.expect(quarantined.map(\.row.unnumbered) == Array(rows.prefix(2)), "the quarantined rows are others")
            findings.expect(quarantined.allSatisfy { $0.seconds == 100.5 }, "the time of quarantine is wrong")
            findings.expect(try store.rows().map(\.unnumbered) == [rows[2]], "a quarantined row is still found, or another one is not")
            try store.insert([SampleRows.row(account: 1)])

            try store.change { writing throws(KeychainFailure) in
                for account in 0..<UInt64(QuarantinedRow.capacity) {
                    let row = SampleRows.row(service: 2, account: account)
                    try writing.insert(row)
                    let number = try writing.rows(.key(of: row)).first?.number ?? 0
                    try writing.quarantine(number: number, at: Double(account))
                }
            }
            let full = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
            findings.expect(full.count == QuarantinedRow.capacity, "the quarantine holds \(full.count) rows")
            findings.expect(full.first?.seconds == 0, "the quarantine did not let go of its oldest row first")
            findings.expect(
                full.last?.seconds == Double(QuarantinedRow.capacity - 1), "the quarantine did not keep its newest row, or not last")
            try store.change { writing throws(KeychainFailure) in try writing.purgeQuarantine() }
            let purged = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
            findings.expect(purged.isEmpty, "the quarantine is not empty after a purge")
        },
    ]
}

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
