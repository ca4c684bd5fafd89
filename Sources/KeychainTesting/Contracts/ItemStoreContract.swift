// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// One rule that every `ItemStore` keeps, with the check that shows it.
///
/// Run all of `ItemStoreContract.rules`, each on a fresh, empty store whose keybag is `ItemStoreContract.keybag`.
package struct ItemStoreContract: Sendable, CustomStringConvertible {
    /// The rule, in words.
    package let description: String
    let check: @Sendable (any ItemStore, inout Findings) throws(KeychainFailure) -> Void

    init(
        _ description: String, _ check: @escaping @Sendable (any ItemStore, inout Findings) throws(KeychainFailure) -> Void
    ) {
        self.description = description
        self.check = check
    }

    /// The keybag that a store under test was made with.
    package static let keybag = StoredKeybag(generation: 7, copies: [[1, 2, 3], [1, 2, 3]])

    package static let rules = searchRules + writeRules + transactionRules + keyRules

    /// What the store does against the rule, a line each; empty when it keeps it.
    package func violations(of store: any ItemStore) -> [String] {
        var findings = Findings()
        do throws(KeychainFailure) {
            try check(store, &findings)
        } catch {
            findings.lines.append("unexpected failure: \(error)")
        }
        return findings.lines
    }

    /// Collects what was found.
    struct Findings {
        fileprivate(set) var lines: [String] = []

        mutating func expect(_ isKept: Bool, _ violation: @autoclosure () -> String) {
            if !isKept { lines.append(violation()) }
        }

        /// Expects `body` to fail with `status`.
        mutating func expectFailure(
            _ status: KeychainStatus, _ what: String, _ body: () throws(KeychainFailure) -> Void
        ) {
            do throws(KeychainFailure) {
                try body()
                lines.append("\(what) succeeded")
            } catch {
                if error.status != status { lines.append("\(what) failed with \(error.status.rawValue), not \(status.rawValue)") }
            }
        }
    }
}

// MARK: Shorthand for the checks

extension ItemStore {
    func rows(_ query: RowQuery = RowQuery(), includingSecrets: Bool = true) throws(KeychainFailure) -> [SealedRow] {
        try read { reading throws(KeychainFailure) in try reading.rows(query, includingSecrets: includingSecrets) }
    }

    /// A write under the contract's keybag.
    func change(_ body: (any ItemWriting) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        guard case .written = try write(ifKeybagGeneration: ItemStoreContract.keybag.generation, body) else {
            throw KeychainFailure(.notAvailable, "the store takes its own keybag for another one")
        }
    }

    func insert(_ rows: [SealedRow]) throws(KeychainFailure) {
        try change { writing throws(KeychainFailure) in
            for row in rows { try writing.insert(row) }
        }
    }
}

extension ItemReading {
    func rows(_ query: RowQuery = RowQuery(), includingSecrets: Bool = true) throws(KeychainFailure) -> [SealedRow] {
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

/// Rows for tests of stores: well formed, and sealed by nobody.
package enum SampleRows {
    /// An identifier that stands for a small number, so that a test can say which digest is which.
    package static func digest(_ number: UInt64) -> IndexDigest { Identifier128(high: 0xD16E_0000 + number, low: ~number) }

    /// A row like no other: equal arguments give different identifiers, revisions and sealed bytes.
    package static func row(
        service: UInt64 = 1, account: UInt64, remaining: UInt64 = 1, group: UInt64 = 1, itemClass: ItemClass = .genericPassword,
        accessibility: Accessibility = .whenUnlocked, isSynchronizable: Bool = false, isTombstone: Bool = false,
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
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
#endif
