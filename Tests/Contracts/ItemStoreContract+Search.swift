// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension ItemStoreContract {
    static let searchRules = [
        ItemStoreContract("A row is read exactly as it was inserted") { store, findings throws(KeychainFailure) in
            let rows = [
                SampleRows.row(account: 1),
                SampleRows.row(
                    account: 2, itemClass: .internetPassword, accessibility: .whenPasscodeSetThisDeviceOnly, isSynchronizable: true,
                    isTombstone: true,
                    attributes: [AttributeDigest(.label, SampleRows.digest(5)), AttributeDigest(.creator, SampleRows.digest(6))],
                    constraints: [9, 8, 7], secretByteCount: 0),
                SampleRows.row(account: 3, constraints: [], secretByteCount: 100_000),
            ]
            try store.insert(rows)
            let found = try store.rows()
            findings.expect(found.map(\.unnumbered) == rows, "the rows differ from what was inserted")
            findings.expect(found.allSatisfy { $0.number != nil }, "a stored row has no number")
        },
        ItemStoreContract("A query finds exactly the rows that meet all its conditions") {
            store, findings throws(KeychainFailure) in
            try store.insert(population)
            for (position, query) in queries.enumerated() {
                let found = try store.rows(query).map(\.unnumbered)
                let expected = population.filter { meets($0.header, query) }
                findings.expect(found == expected, "query \(position): \(found.count) rows instead of \(expected.count), or another order")
            }
        },
        ItemStoreContract("Every query returns rows in the order of insertion") { store, findings throws(KeychainFailure) in
            try store.insert(population.reversed())
            for (position, query) in queries.enumerated() {
                let numbers = try store.rows(query).compactMap(\.number)
                findings.expect(numbers == numbers.sorted(), "query \(position): rows out of order")
            }
        },
        ItemStoreContract("A search by a key says whether another condition excluded a row with this key") {
            store, findings throws(KeychainFailure) in
            try store.insert(population)
            try store.read { reading throws(KeychainFailure) in
                for (position, query) in (queries + population.map { RowQuery(itemClass: .key, id: $0.header.reference.id) }).enumerated() {
                    let isExcluded = try reading.forEachRow(matching: query, includingSecrets: false) { _ in .proceed }
                    let key = query.searchKey
                    let expected = key.map { key in population.contains { meets($0.header, key) && !meets($0.header, query) } } ?? false
                    findings.expect(isExcluded == expected, "query \(position): \(isExcluded) instead of \(expected)")
                }
            }
        },
        ItemStoreContract("A search without secrets returns everything else") { store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))])
            try store.insert([row])
            var expected = row
            expected.sealedSecret = []
            for query in [RowQuery(), RowQuery(id: row.header.reference.id), .key(of: row), .leadingKey(of: row)] {
                let found = try store.rows(query, includingSecrets: false).map(\.unnumbered)
                findings.expect(found == [expected], "the row without its secret differs in more than the secret")
            }
        },
        ItemStoreContract("A search ends when its closure returns `.stop`") { store, findings throws(KeychainFailure) in
            try store.insert((1...5).map { SampleRows.row(account: 1, remaining: $0) })
            for query in [RowQuery(), RowQuery(serviceDigest: SampleRows.digest(1)), .leadingKey(of: SampleRows.row(account: 1))] {
                var count = 0
                try store.read { reading throws(KeychainFailure) in
                    _ = try reading.forEachRow(matching: query, includingSecrets: false) { _ in
                        count += 1
                        return count == 2 ? .stop : .proceed
                    }
                }
                findings.expect(count == 2, "\(count) rows were passed to the closure instead of 2")
            }
        },
        ItemStoreContract("An error thrown by the closure ends the search and is rethrown") { store, findings throws(KeychainFailure) in
            try store.insert([SampleRows.row(account: 1)])
            findings.expectFailure(.decode, "a failing search") { () throws(KeychainFailure) in
                try store.read { reading throws(KeychainFailure) in
                    _ = try reading.forEachRow(matching: RowQuery(), includingSecrets: false) { _ throws(KeychainFailure) in
                        throw KeychainFailure(.decode, "thrown by the closure")
                    }
                }
            }
            findings.expect(try store.rows().count == 1, "the store is not usable after a failed search")
        },
        ItemStoreContract("A nested search sees the same rows") { store, findings throws(KeychainFailure) in
            try store.insert(population)
            var outer = 0
            var inner = 0
            try store.read { reading throws(KeychainFailure) in
                for query in [RowQuery(serviceDigest: SampleRows.digest(1)), .key(of: population[0])] {
                    try reading.forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
                        outer += 1
                        inner += try reading.rows(.key(of: row)).count
                        return .proceed
                    }
                }
            }
            findings.expect(outer > 2 && outer == inner, "the nested searches found \(inner) of \(outer) rows")
        },
        ItemStoreContract("The item count excludes tombstones") { store, findings throws(KeychainFailure) in
            try store.insert([
                SampleRows.row(account: 1), SampleRows.row(account: 2, isTombstone: true), SampleRows.row(account: 3),
            ])
            let count = try store.read { reading throws(KeychainFailure) in try reading.itemCount() }
            findings.expect(count == 2, "the item count is \(count) instead of 2")
        },
        ItemStoreContract("An empty store has its keybag, no rows, and no quarantined rows") { store, findings throws(KeychainFailure) in
            try store.read { reading throws(KeychainFailure) in
                let count = try reading.rows().count + reading.itemCount() + reading.quarantinedRows().count
                findings.expect(count == 0, "there are rows in an empty store")
                let keybag = try reading.keybag()
                findings.expect(
                    keybag.generation == ItemStoreContract.keybag.generation && keybag.copies == ItemStoreContract.keybag.copies,
                    "the keybag is not the one that the store was created with")
            }
        },
    ]

    /// Rows that differ in every searchable field.
    private static let population: [SealedRow] = (0..<48).map { number in
        let number = UInt64(number)
        var attributes: [AttributeDigest] = []
        if number % 2 == 0 { attributes.append(AttributeDigest(.label, SampleRows.digest(number % 6))) }
        if number % 3 == 0 { attributes.append(AttributeDigest(.creator, SampleRows.digest(number % 4))) }
        return SampleRows.row(
            service: number % 3, account: number % 5, remaining: number, group: number % 4,
            itemClass: number % 7 == 0 ? .internetPassword : .genericPassword,
            accessibility: number % 5 == 0 ? .afterFirstUnlock : .whenUnlocked, isSynchronizable: number % 4 == 0,
            isTombstone: number % 8 == 0, attributes: attributes)
    }

    private static let queries: [RowQuery] = {
        let label = AttributeDigest(.label, SampleRows.digest(2))
        let creator = AttributeDigest(.creator, SampleRows.digest(0))
        var queries: [RowQuery] = []
        for itemClass in [nil, ItemClass.genericPassword, .internetPassword, .key] {
            for service in [nil, SampleRows.digest(1)] {
                for account in [nil, SampleRows.digest(2), SampleRows.digest(99)] {
                    for attributes in [[], [label], [creator, label]] {
                        queries.append(
                            RowQuery(
                                itemClass: itemClass, serviceDigest: service, accountDigest: account, attributeDigests: attributes))
                    }
                }
            }
        }
        queries += population.prefix(9).flatMap { row in
            [
                RowQuery(id: row.header.reference.id), .key(of: row), .leadingKey(of: row),
                RowQuery(itemClass: .internetPassword, id: row.header.reference.id),
            ]
        }
        for flag in [true, false] {
            queries += [
                RowQuery(isSynchronizable: flag), RowQuery(isTombstone: flag),
                RowQuery(serviceDigest: SampleRows.digest(0), isSynchronizable: flag, isTombstone: !flag),
            ]
        }
        queries += [
            RowQuery(accessGroupDigests: []), RowQuery(accessGroupDigests: [SampleRows.digest(1)]),
            RowQuery(itemClass: .genericPassword, accessGroupDigests: [SampleRows.digest(1), SampleRows.digest(3)]),
            RowQuery(serviceDigest: SampleRows.digest(1), remainingKeyDigest: SampleRows.digest(4)),
            RowQuery(remainingKeyDigest: SampleRows.digest(4)),
            RowQuery(accountDigest: SampleRows.digest(1), remainingKeyDigest: SampleRows.digest(6)),
            RowQuery(accessibility: .afterFirstUnlock), RowQuery(accessibility: .always),
            RowQuery(id: .random()),
        ]
        return queries
    }()

    /// The reference implementation of a query.
    private static func meets(_ header: RowHeader, _ query: RowQuery) -> Bool {
        let conditions = [
            query.itemClass.map { $0 == header.reference.itemClass }, query.id.map { $0 == header.reference.id },
            query.serviceDigest.map { $0 == header.serviceDigest }, query.accountDigest.map { $0 == header.accountDigest },
            query.remainingKeyDigest.map { $0 == header.remainingKeyDigest },
            query.accessGroupDigests.map { $0.contains(header.accessGroupDigest) },
            query.accessibility.map { $0 == header.accessibility },
            query.isSynchronizable.map { $0 == header.isSynchronizable }, query.isTombstone.map { $0 == header.isTombstone },
        ]
        return conditions.allSatisfy { $0 ?? true } && query.attributeDigests.allSatisfy(header.attributeDigests.contains)
    }
}

extension SealedRow {
    /// The row without the number that the store gave it.
    var unnumbered: SealedRow {
        var row = self
        row.number = nil
        return row
    }
}

extension RowQuery {
    static func key(of row: SealedRow) -> RowQuery {
        RowQuery(
            serviceDigest: row.header.serviceDigest, accountDigest: row.header.accountDigest,
            remainingKeyDigest: row.header.remainingKeyDigest)
    }

    static func leadingKey(of row: SealedRow) -> RowQuery {
        RowQuery(serviceDigest: row.header.serviceDigest, accountDigest: row.header.accountDigest)
    }
}
#endif
