// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension ItemStoreContract {
    static let transactionRules = [
        ItemStoreContract("A write that fails changes nothing") { store, findings throws(KeychainFailure) in
            let rows = (1...3).map { SampleRows.row(account: $0, attributes: [AttributeDigest(.label, SampleRows.digest(5))]) }
            try store.insert(rows)
            let numbers = try store.rows().compactMap(\.number)
            findings.expectFailure(.decode, "a failing write") { () throws(KeychainFailure) in
                try store.change { writing throws(KeychainFailure) in
                    try writing.insert(SampleRows.row(account: 9))
                    try writing.replace(number: numbers[0], with: SampleRows.row(account: 8))
                    try writing.remove(number: numbers[1])
                    try writing.quarantine(number: numbers[2], at: 1)
                    throw KeychainFailure(.decode, "by the writer")
                }
            }
            let quarantined = try store.read { reading throws(KeychainFailure) in try reading.quarantinedRows() }
            findings.expect(try store.rows().map(\.unnumbered) == rows && quarantined.isEmpty, "a failed write left something behind")
            for row in rows { findings.expect(try store.rows(.key(of: row)).count == 1, "a row is no longer found by its key") }
            let byLabel = try store.rows(RowQuery(attributeDigests: [AttributeDigest(.label, SampleRows.digest(5))]))
            findings.expect(byLabel.count == 3, "a row is no longer found by its attribute")
        },
        ItemStoreContract("A write for another keybag is not run") { store, findings throws(KeychainFailure) in
            for generation in [ItemStoreContract.keybag.generation - 1, ItemStoreContract.keybag.generation + 1] {
                var hasRun = false
                let outcome = try store.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
                    hasRun = true
                    try writing.insert(SampleRows.row(account: 1))
                }
                if case .written = outcome { findings.expect(false, "a write for keybag \(generation) was accepted") }
                findings.expect(!hasRun, "the body of a write for keybag \(generation) was run")
            }
            findings.expect(try store.rows().isEmpty, "a refused write left something behind")
        },
        ItemStoreContract("A write sees what it wrote, others see it afterwards") { store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1)
            try store.change { writing throws(KeychainFailure) in
                try writing.insert(row)
                findings.expect(try writing.rows(.key(of: row)).count == 1, "the writer does not see its row")
                findings.expect(try writing.itemCount() == 1, "the writer does not count its row")
                findings.expect(try store.rows(.key(of: row)).isEmpty, "others see a row before it is committed")
            }
            findings.expect(try store.rows(.key(of: row)).count == 1, "others do not see a committed row")
        },
        ItemStoreContract("A read sees one state from its first look to its end") { store, findings throws(KeychainFailure) in
            let present = SampleRows.row(account: 1)
            try store.insert([present])
            var nextAccount: UInt64 = 100
            let looks: [(String, RowQuery)] = [
                ("a key that is there", .key(of: present)), ("a key that is not there", .key(of: SampleRows.row(account: 99))),
                ("an identifier", RowQuery(id: present.header.reference.id)), ("a service", RowQuery(serviceDigest: SampleRows.digest(1))),
                ("everything", RowQuery()),
            ]
            for (name, query) in looks {
                try store.read { reading throws(KeychainFailure) in
                    let before = try reading.rows(query).count
                    let all = try store.rows().count
                    nextAccount += 1
                    try store.insert([SampleRows.row(account: nextAccount)])
                    findings.expect(try reading.rows().count == all, "after a look at \(name) the read sees a later row")
                    findings.expect(try reading.itemCount() == all, "after a look at \(name) the read counts a later row")
                    findings.expect(try reading.rows(query).count == before, "after a look at \(name) the same look sees another state")
                }
                findings.expect(
                    try store.rows(.key(of: SampleRows.row(account: nextAccount))).count == 1, "a later read does not see the new row")
            }
        },
        ItemStoreContract("A write hands its result out") { store, findings throws(KeychainFailure) in
            let outcome = try store.write(ifKeybagGeneration: keybag.generation) { _ in "result" }
            guard case .written("result") = outcome else { return findings.expect(false, "the result of the body is lost") }
        },
    ]
}
#endif
