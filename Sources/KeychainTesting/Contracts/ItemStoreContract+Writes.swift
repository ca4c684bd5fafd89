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
#endif
