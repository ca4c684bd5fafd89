// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension ItemStoreContract {
    static let writeRules = [
        ItemStoreContract("A second row with the same primary key is refused, and the write can continue") {
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
            findings.expect(found.first?.unnumbered == row && found.count == 2, "the refused insertion changed something")
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
            findings.expect(found.first?.unnumbered == new && found.first?.number == number, "the row was not replaced under its number")
            findings.expect(try store.rows(RowQuery(attributeDigests: [label(5)])).isEmpty, "found by its former attribute")
            for query in [RowQuery(attributeDigests: [label(6)]), RowQuery(attributeDigests: [comment]), .key(of: new)] {
                findings.expect(try store.rows(query).map(\.number) == [number], "not found by its new values after the first replacement")
            }
            let last = SampleRows.row(service: 2, account: 2, attributes: [AttributeDigest(.creator, SampleRows.digest(1))])
            try store.change { writing throws(KeychainFailure) in try writing.replace(number: number, with: last) }
            found = try store.rows()
            findings.expect(found.first?.unnumbered == last && found.count == 2, "the row was not replaced completely")
            for query in [.key(of: new), RowQuery(id: new.header.reference.id), RowQuery(attributeDigests: [comment])] {
                findings.expect(try store.rows(query).isEmpty, "found by its former key, identifier, or attribute")
            }
            for query in [.key(of: last), RowQuery(id: last.header.reference.id), RowQuery(attributeDigests: last.header.attributeDigests)]
            {
                findings.expect(try store.rows(query).map(\.number) == [number], "not found by its new values after the second replacement")
            }
        },
        ItemStoreContract("A replacement with another row's primary key is refused") { store, findings throws(KeychainFailure) in
            let rows = [SampleRows.row(account: 1), SampleRows.row(account: 2)]
            try store.insert(rows)
            let number = try store.rows().last?.number ?? 0
            findings.expectFailure(.duplicateItem, "a replacement with the other row's key") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.replace(number: number, with: SampleRows.row(account: 1))
                }
            }
            findings.expect(try store.rows().map(\.unnumbered) == rows, "the refused replacement changed the rows")
        },
        ItemStoreContract("A removed row is not found by any query") { store, findings throws(KeychainFailure) in
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
            findings.expect(try store.rows().count == 1, "another row was removed too")
            try store.insert([row])
            findings.expect(try store.rows(.key(of: row)).count == 1, "the row cannot be added again")
        },
        ItemStoreContract("Replacing or removing a row that does not exist is an internal error") {
            store, findings throws(KeychainFailure) in
            try store.insert([SampleRows.row(account: 1)])
            findings.expectFailure(.internal, "replacing a missing row") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.replace(number: 1_000, with: SampleRows.row(account: 2))
                }
            }
            findings.expectFailure(.internal, "removing a missing row") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in try writing.remove(number: 1_000) }
            }
        },
        ItemStoreContract("A search within a write may change each row that it visits") { store, findings throws(KeychainFailure) in
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
                        // Every third row is removed; the others move to the end of the index that the query uses.
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
                findings.expect(left == count - count / 3, "\(left) of \(count) rows remain")
            }
        },
        ItemStoreContract("The quarantine keeps rows unchanged, oldest first, and drops the oldest when it is full") {
            store, findings throws(KeychainFailure) in
            let rows = (1...3).map { SampleRows.row(account: $0, attributes: [AttributeDigest(.label, SampleRows.digest(5))]) }
            try store.insert(rows)
            try store.change { writing throws(KeychainFailure) in
                for row in try writing.rows().prefix(2) { try writing.quarantine(number: row.number ?? 0, at: 100.5) }
            }
            let quarantined = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
            findings.expect(
                quarantined.map(\.row.unnumbered) == Array(rows.prefix(2)), "the quarantined rows differ from the original rows")
            findings.expect(quarantined.allSatisfy { $0.seconds == 100.5 }, "the time of quarantine is wrong")
            findings.expect(
                try store.rows().map(\.unnumbered) == [rows[2]], "a quarantined row is still found, or the remaining row is not")
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
            findings.expect(full.first?.seconds == 0, "the quarantine did not drop its oldest row first")
            findings.expect(
                full.last?.seconds == Double(QuarantinedRow.capacity - 1), "the newest row is not the last one in the quarantine")
            try store.change { writing throws(KeychainFailure) in try writing.purgeQuarantine() }
            let purged = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
            findings.expect(purged.isEmpty, "the quarantine is not empty after a purge")
        },
    ]
}

extension ItemStoreContract {
    static let keyRules = [
        ItemStoreContract("A keybag replaces the previous one together with the rows of the same write") {
            store, findings throws(KeychainFailure) in
            let next = keybag.generation + 2
            try store.change { writing throws(KeychainFailure) in
                try writing.replaceKeybag([9, 9], generation: next)
                try writing.insert(SampleRows.row(account: 1))
                let seen = try writing.keybag()
                findings.expect(seen.generation == next && seen.copies == [[9, 9], [9, 9]], "the write does not see its own keybag")
            }
            let stored = try store.read { reading throws(KeychainFailure) in try reading.keybag() }
            findings.expect(stored.generation == next && stored.copies == [[9, 9], [9, 9]], "the stored keybag is not the new one")
            findings.expect(try store.rows().count == 1, "the row of the same write is missing")
            if case .written = try store.write(ifKeybagGeneration: keybag.generation, { _ in }) {
                findings.expect(false, "a write for the old keybag was accepted")
            }
            if case .keybagChanged = try store.write(ifKeybagGeneration: next, { _ in }) {
                findings.expect(false, "a write for the new keybag was refused")
            }
        },
        ItemStoreContract("A keybag is replaced only by one of a greater generation") { store, findings throws(KeychainFailure) in
            for generation in [0, keybag.generation - 1, keybag.generation] {
                findings.expectFailure(.internal, "a replacement with generation \(generation)") { () throws(KeychainFailure) in
                    try store.change { writing throws(KeychainFailure) in try writing.replaceKeybag([9], generation: generation) }
                }
            }
            let stored = try store.read { reading throws(KeychainFailure) in try reading.keybag() }
            findings.expect(stored.generation == keybag.generation && stored.copies == keybag.copies, "a failed write changed the keybag")
        },
        ItemStoreContract("A failed write does not change the keybag") { store, findings throws(KeychainFailure) in
            findings.expectFailure(.decode, "a failing write") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.replaceKeybag([9], generation: keybag.generation + 1)
                    throw KeychainFailure(.decode, "thrown by the body")
                }
            }
            let stored = try store.read { reading throws(KeychainFailure) in try reading.keybag() }
            findings.expect(stored.generation == keybag.generation && stored.copies == keybag.copies, "a failed write changed the keybag")
            try store.insert([SampleRows.row(account: 1)])
        },
        ItemStoreContract("Each lock advances the lock epoch, independently of the keybag") { store, findings throws(KeychainFailure) in
            func stored() throws(KeychainFailure) -> LockEpoch {
                try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
            }
            var expected = try stored()
            for extent in [LockExtent.whenUnlocked, .everything, .whenUnlocked, .whenUnlocked] {
                try store.advanceLockEpoch(extent)
                expected = expected.advanced(by: extent)
                findings.expect(try stored() == expected, "the lock epoch is wrong")
            }
            try store.change { writing throws(KeychainFailure) in
                try writing.replaceKeybag([9], generation: keybag.generation + 1)
                findings.expect(try writing.lockEpoch() == expected, "a write sees another lock epoch")
            }
            try store.advanceLockEpoch(.everything)
            findings.expect(try stored() == expected.advanced(by: .everything), "a new keybag resets the lock epoch")
        },
        ItemStoreContract("Rows under passcode keys of older generations are counted, and listed from any row number") {
            store, findings throws(KeychainFailure) in
            let rows = generations
            try store.insert(rows)
            let old = rows.filter { $0.header.accessibility.isPasscodeProtected && $0.header.classKeyGeneration < 3 }
            try store.read { reading throws(KeychainFailure) in
                findings.expect(try reading.rowCount(underPasscodeKeysBelow: 3) == old.count, "the count of old rows is wrong")
                findings.expect(try reading.rowCount(underPasscodeKeysBelow: 1) == 0, "rows below the first generation are counted")
                findings.expect(
                    try reading.rows(underPasscodeKeysBelow: 3, after: 0).map(\.unnumbered) == old, "the listed rows are not the old rows")
                findings.expect(try reading.rows(underPasscodeKeysBelow: 1, after: 0).isEmpty, "rows below the first generation are listed")
                let numbers = try reading.rows(underPasscodeKeysBelow: 3, after: 0).compactMap(\.number)
                for (position, number) in numbers.enumerated() {
                    let following = try reading.rows(underPasscodeKeysBelow: 3, after: number).compactMap(\.number)
                    findings.expect(following == Array(numbers.dropFirst(position + 1)), "the rows listed after number \(number) are wrong")
                }
            }
        },
        ItemStoreContract("A batch may rewrap each row, and the next batch continues after it") {
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
                        // Every third row keeps its old key, like a row that cannot be read.
                        if total % 3 != 0 {
                            var rewrapped = row
                            rewrapped.header.classKeyGeneration = 3
                            rewrapped.wrappedItemKey = Array(row.wrappedItemKey.reversed())
                            try writing.replace(number: last, with: rewrapped)
                        }
                        return total - before == 2 ? .stop : .proceed
                    }
                }
                batches += 1
                if total == before { break }
            } while batches < 100
            findings.expect(total == oldCount, "\(total) rows were listed instead of \(oldCount)")
            let left = try store.read { reading throws(KeychainFailure) in try reading.rowCount(underPasscodeKeysBelow: 3) }
            findings.expect(left == oldCount / 3, "\(left) old rows remain instead of \(oldCount / 3)")
            findings.expect(try store.rows().map(\.header.reference) == rows.map(\.header.reference), "rows were lost or reordered")
        },
        ItemStoreContract("The class keys in use are those of all rows and of all quarantined rows") {
            store, findings throws(KeychainFailure) in
            func inUse() throws(KeychainFailure) -> Set<ClassKeyID> {
                try store.read { reading throws(KeychainFailure) in try reading.classKeysInUse() }
            }
            findings.expect(try inUse().isEmpty, "an empty store uses class keys")
            let rows = generations
            try store.insert(rows)
            let expected = Set(rows.map { ClassKeyID($0.header.accessibility, generation: $0.header.classKeyGeneration) })
            findings.expect(try inUse() == expected, "the class keys are not those of the rows")
            try store.change { writing throws(KeychainFailure) in
                for row in try writing.rows() { try writing.quarantine(number: row.number ?? 0, at: 1) }
            }
            findings.expect(try inUse() == expected, "the class keys are not those of the quarantined rows")
            try store.change { writing throws(KeychainFailure) in try writing.purgeQuarantine() }
            findings.expect(try inUse().isEmpty, "class keys are in use after the last row was removed")
        },
    ]

    /// A row of each accessibility class in each of three generations, and a tombstone in each generation.
    private static var generations: [SealedRow] {
        var rows: [SealedRow] = []
        var account: UInt64 = 0
        for generation: UInt32 in [2, 1, 3] {
            for accessibility in ItemAccessibility.allCases {
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
