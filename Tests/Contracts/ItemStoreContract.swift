// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import KeychainTestSupport

/// A rule that every `ItemStore` follows, with a check.
///
/// Run all of `ItemStoreContract.rules`, each on a fresh, empty store whose keybag is `ItemStoreContract.keybag`.
package struct ItemStoreContract: Sendable, CustomStringConvertible {
    /// The rule, in one sentence.
    package let description: String
    let check: @Sendable (any ItemStore, inout ContractFindings) throws(KeychainFailure) -> Void

    init(
        _ description: String, _ check: @escaping @Sendable (any ItemStore, inout ContractFindings) throws(KeychainFailure) -> Void
    ) {
        self.description = description
        self.check = check
    }

    /// The keybag that a store under test is created with.
    package static let keybag = StoredKeybag(generation: 7, copies: [[1, 2, 3], [1, 2, 3]])

    /// All rules; each needs a fresh store.
    package static let rules = searchRules + writeRules + transactionRules + keyRules + recordingRules

    /// Returns a sentence for each violation of the rule by `store`; empty if it follows the rule.
    package func violations(of store: any ItemStore) -> [String] {
        ContractFindings.violations { findings throws(KeychainFailure) in try check(store, &findings) }
    }
}

// MARK: Shorthand for the checks

extension ItemStore {
    func rows(_ query: RowQuery = RowQuery(), includingSecrets: Bool = true) throws(KeychainFailure) -> [SealedRow] {
        try read { reading throws(KeychainFailure) in try reading.rows(query, includingSecrets: includingSecrets) }
    }

    /// Runs a write with the generation of the contract's keybag.
    func change(_ body: (any ItemWriting) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        guard case .written = try write(ifKeybagGeneration: ItemStoreContract.keybag.generation, body) else {
            throw KeychainFailure(.notAvailable, "the store refuses a write with the generation of its own keybag")
        }
    }

    func insert(_ rows: [SealedRow]) throws(KeychainFailure) {
        try change { writing throws(KeychainFailure) in
            for row in rows { try writing.insert(row) }
        }
    }
}

extension ItemReading {
    package func rows(_ query: RowQuery = RowQuery(), includingSecrets: Bool = true) throws(KeychainFailure) -> [SealedRow] {
        var rows: [SealedRow] = []
        try forEachRow(matching: query, includingSecrets: includingSecrets) { row in
            rows.append(row)
            return .proceed
        }
        return rows
    }
}

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
            findings.expect(try store.rows().map(\.unnumbered) == rows && quarantined.isEmpty, "a failed write changed something")
            for row in rows { findings.expect(try store.rows(.key(of: row)).count == 1, "a row is no longer found by its key") }
            let byLabel = try store.rows(RowQuery(attributeDigests: [AttributeDigest(.label, SampleRows.digest(5))]))
            findings.expect(byLabel.count == 3, "a row is no longer found by its attribute")
        },
        ItemStoreContract("A write for another generation of the keybag is refused without running its body") {
            store, findings throws(KeychainFailure) in
            for generation in [ItemStoreContract.keybag.generation - 1, ItemStoreContract.keybag.generation + 1] {
                var hasRun = false
                let outcome = try store.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
                    hasRun = true
                    try writing.insert(SampleRows.row(account: 1))
                }
                if case .written = outcome { findings.expect(false, "a write for keybag \(generation) was accepted") }
                findings.expect(!hasRun, "the body of a write for keybag \(generation) was run")
            }
            findings.expect(try store.rows().isEmpty, "a refused write changed something")
        },
        ItemStoreContract("A write sees its own changes; others see them after the commit") { store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1)
            try store.change { writing throws(KeychainFailure) in
                try writing.insert(row)
                findings.expect(try writing.rows(.key(of: row)).count == 1, "the write does not see its own row")
                findings.expect(try writing.itemCount() == 1, "the write does not count its own row")
                findings.expect(try store.rows(.key(of: row)).isEmpty, "a concurrent read sees a row before the commit")
            }
            findings.expect(try store.rows(.key(of: row)).count == 1, "a later read does not see a committed row")
        },
        ItemStoreContract("A read sees one snapshot, from its first query to its end") { store, findings throws(KeychainFailure) in
            let present = SampleRows.row(account: 1)
            try store.insert([present])
            var nextAccount: UInt64 = 100
            let queries: [(String, RowQuery)] = [
                ("a key that exists", .key(of: present)), ("a key that does not exist", .key(of: SampleRows.row(account: 99))),
                ("an identifier", RowQuery(id: present.header.reference.id)), ("a service", RowQuery(serviceDigest: SampleRows.digest(1))),
                ("everything", RowQuery()),
            ]
            for (name, query) in queries {
                try store.read { reading throws(KeychainFailure) in
                    let before = try reading.rows(query).count
                    let all = try store.rows().count
                    nextAccount += 1
                    try store.insert([SampleRows.row(account: nextAccount)])
                    findings.expect(try reading.rows().count == all, "after a query for \(name), the read sees a later row")
                    findings.expect(try reading.itemCount() == all, "after a query for \(name), the read counts a later row")
                    findings.expect(
                        try reading.rows(query).count == before, "a second query for \(name) in the same read sees another state")
                }
                findings.expect(
                    try store.rows(.key(of: SampleRows.row(account: nextAccount))).count == 1, "a later read does not see the new row")
            }
        },
        ItemStoreContract("A write returns the result of its body") { store, findings throws(KeychainFailure) in
            let outcome = try store.write(ifKeybagGeneration: keybag.generation) { _ in "result" }
            guard case .written("result") = outcome else { return findings.expect(false, "the result of the body is lost") }
        },
    ]
}

/// Rows for tests of stores: well formed, with random bytes in place of ciphertext.
package enum SampleRows {
    /// Returns a digest that is determined by a small number.
    package static func digest(_ number: UInt64) -> IndexDigest { Identifier128(high: 0xD16E_0000 + number, low: ~number) }

    /// Returns a new row with a random identifier, revision, and sealed bytes.
    package static func row(
        service: UInt64 = 1, account: UInt64, remaining: UInt64 = 1, group: UInt64 = 1, itemClass: ItemClass = .genericPassword,
        accessibility: ItemAccessibility = .whenUnlocked, isSynchronizable: Bool = false, isTombstone: Bool = false,
        generation: UInt32 = 3, attributes: [AttributeDigest] = [], constraints: [UInt8]? = nil, secretByteCount: Int = 40
    ) -> SealedRow {
        SealedRow(
            header: RowHeader(
                reference: PersistentReference(itemClass: itemClass, id: .random()), accessibility: accessibility,
                classKeyGeneration: generation, revision: .random(), isSynchronizable: isSynchronizable, isTombstone: isTombstone,
                serviceDigest: digest(service), accountDigest: digest(account), remainingKeyDigest: digest(remaining),
                accessGroupDigest: digest(group), attributeDigests: attributes, constraints: constraints),
            wrappedItemKey: bytes(40), sealedAttributes: bytes(120), sealedSecret: bytes(secretByteCount), tag: bytes(32))
    }

    private static func bytes(_ count: Int) -> [UInt8] {
        // One random number and its sequence, because each random number of the system is a system call.
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        var bytes: [UInt8] = []
        while bytes.count < count { bytes.append(littleEndian: generator.next()) }
        return Array(bytes.prefix(count))
    }
}
#endif
