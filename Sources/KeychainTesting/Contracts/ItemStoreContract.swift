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
#endif
