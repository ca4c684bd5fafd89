// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

// MARK: - Integrity of a store's file

extension StoreSession {
    /// Returns the damaged pages and the damage of the -wal file; if there is none, the findings of SQLite's integrity check and of the attribute
    /// index; and last the problems of the keybag.
    ///
    /// A check that damage prevents is reported as incomplete, and the other checks still run.
    func integrityProblems() throws(KeychainFailure) -> [StructuralProblem] {
        try beginReadTransaction()
        // The first read begins the transaction.
        _ = try singleInteger(.formatVersion)
        var problems = try connection.damagedPages().map { StructuralProblem.damagedPage($0, content: contentOfPage($0)) }
        if let walDamage = try connection.walDamage() { problems.append(.damagedLog(walDamage.description)) }
        // With a damaged page the other checks would only report its consequences.
        if problems.isEmpty {
            try check(.sqlite, into: &problems) { () throws(KeychainFailure) in
                let found = try sqliteFindings()
                return found == ["ok"] ? [] : found.map { .sqlite($0) }
            }
        }
        // Rows of a table whose pages are damaged may have no end.
        if problems.isEmpty {
            try check(.searchIndex, into: &problems) { () throws(KeychainFailure) in try searchEntryProblems() }
        }
        try check(.keybag, into: &problems) { () throws(KeychainFailure) in
            let copies = try keybag().copies
            return copies.count == 2 && copies.first == copies.last ? [] : [.keybagCopiesDiffer]
        }
        return problems
    }

    /// Returns the findings of SQLite's integrity check.
    ///
    /// The first one lists everything about the structure of the pages, for example a page that is used twice. If there is such a finding, the
    /// check ends there: it would read rows next, and a table of such pages may have no end.
    private func sqliteFindings() throws(KeychainFailure) -> [String] {
        let statement = try connection.prepare("PRAGMA integrity_check(100)")
        defer { statement.reset() }
        var findings: [String] = []
        while try statement.step() {
            findings.append(statement.text(at: 0))
            if findings[0].hasPrefix("*** in database") { break }
        }
        return findings
    }

    func hasDamagedPages() throws(KeychainFailure) -> Bool {
        try beginReadTransaction()
        // The first read begins the transaction.
        _ = try singleInteger(.formatVersion)
        return try !connection.damagedPages(limit: 1).isEmpty
    }

    /// The table or index whose root page this is; nil for other pages.
    private func contentOfPage(_ page: Int64) -> String? {
        if page == 1 { return "the list of tables" }
        var name: String?
        // Best effort: the schema itself may be damaged.
        try? connection.query("SELECT name FROM sqlite_schema WHERE rootpage = \(page)") { name = $0.text(at: 0) }
        return name
    }

    private func check(
        _ part: StructuralProblem.Part, into problems: inout [StructuralProblem],
        _ findProblems: () throws(KeychainFailure) -> [StructuralProblem]
    ) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            problems += try findProblems()
        } catch {
            guard error.isDamage else { throw error }
            problems.append(.incomplete(part, error))
        }
    }

    /// Returns the rows that a search by attribute would miss.
    private func searchEntryProblems() throws(KeychainFailure) -> [StructuralProblem] {
        let entry = try connection.prepare("SELECT 1 FROM item_attributes WHERE attribute = ?1 AND digest = ?2 AND item = ?3")
        var problems: [StructuralProblem] = []
        try connection.query("SELECT number, attribute_digests FROM items") { row throws(KeychainFailure) in
            guard let digests = row.attributeDigests(at: 1) else {
                problems.append(.unreadableDigests(row: row.rowNumber))
                return
            }
            for digest in digests {
                entry.bind(Int64(digest.attribute.rawValue), at: 1)
                entry.bind(digest.digest, at: 2)
                entry.bind(row.rowNumber, at: 3)
                defer { entry.reset() }
                guard try !entry.step() else { continue }
                problems.append(.missingFromIndex(row: row.rowNumber))
                return
            }
        }
        return problems
    }
}

/// The damage of a store's files that checksums detect.
package struct FileDamage: Sendable, Equatable {
    /// The numbers of damaged pages of the database.
    package var pages: [Int64] = []
    package var wal: WALDamage?

    /// A description for people on one line; nil if nothing is damaged.
    package var description: String? {
        var parts: [String] = []
        if !pages.isEmpty { parts.append("damaged pages of the file: \(pages.map(String.init).joined(separator: ", "))") }
        if let wal { parts.append(wal.description) }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }
}

/// Damage in a -wal file that makes durable changes after it unreachable.
package struct WALDamage: Sendable, Equatable {
    /// The number of durable changes after the damage.
    package let unreachableChangeCount: Int
    /// The offset where damage begins.
    let soundByteCount: Int64

    var description: String {
        let changes = unreachableChangeCount == 1 ? "1 change" : "\(unreachableChangeCount) changes"
        return "the -wal file is damaged, and \(changes) after the damage cannot be reached"
    }
}
