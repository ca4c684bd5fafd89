// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

// MARK: - Integrity of a store's file

extension StoreSession {
    /// Returns one line for each damaged page.
    ///
    /// If there is none, one line for each finding of SQLite's integrity check and of the check of
    /// the attribute index. Then a line if the copies of the keybag differ.
    ///
    /// A check that damage prevents is reported as a problem, and the other checks still run.
    func integrityProblems() throws(KeychainFailure) -> [String] {
        try beginReadTransaction()
        // The first read begins the transaction.
        _ = try singleInteger(.formatVersion)
        var problems = try connection.damagedPages().map { page in "page \(page) of the file is damaged\(contentOfPage(page))" }
        if let walDamage = try connection.walDamage() { problems.append(walDamage.description) }
        // With a damaged page the other checks would only report its consequences.
        if problems.isEmpty {
            try note("SQLite's own check", in: &problems) { () throws(KeychainFailure) in
                var found: [String] = []
                try connection.query("PRAGMA integrity_check(100)") { found.append($0.text(at: 0)) }
                return found == ["ok"] ? [] : found
            }
            try note("the search index of the attributes", in: &problems) { () throws(KeychainFailure) in try searchEntryProblems() }
        }
        try note("the keybag", in: &problems) { () throws(KeychainFailure) in
            let copies = try keybag().copies
            return copies.count == 2 && copies.first == copies.last ? [] : [SQLiteItemStore.differingKeybagCopies]
        }
        return problems
    }

    func hasDamagedPages() throws(KeychainFailure) -> Bool {
        try beginReadTransaction()
        // The first read begins the transaction.
        _ = try singleInteger(.formatVersion)
        return try !connection.damagedPages().isEmpty
    }

    /// Returns the name, in parentheses, of the table or index whose root is the page.
    private func contentOfPage(_ page: Int64) -> String {
        if page == 1 { return " (the list of tables)" }
        var name: String?
        // Best effort: the name only makes the message clearer.
        try? connection.query("SELECT name FROM sqlite_schema WHERE rootpage = \(page)") { name = $0.text(at: 0) }
        return name.map { " (\($0))" } ?? ""
    }

    private func note(
        _ subject: String, in problems: inout [String], _ look: () throws(KeychainFailure) -> [String]
    ) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            problems += try look()
        } catch {
            guard error.isDamage else { throw error }
            problems.append("\(subject): the check is incomplete: \(error.reason)")
        }
    }

    /// Returns one line for each row that a search by attribute would miss.
    private func searchEntryProblems() throws(KeychainFailure) -> [String] {
        let entry = try connection.prepare("SELECT 1 FROM item_attributes WHERE attribute = ?1 AND digest = ?2 AND item = ?3")
        var problems: [String] = []
        try connection.query("SELECT number, attribute_digests FROM items") { row throws(KeychainFailure) in
            guard let digests = row.attributeDigests(at: 1) else {
                problems.append("row \(row.rowNumber): its search digests cannot be read")
                return
            }
            for digest in digests {
                entry.bind(Int64(digest.attribute.rawValue), at: 1)
                entry.bind(digest.digest, at: 2)
                entry.bind(row.rowNumber, at: 3)
                defer { entry.reset() }
                guard try !entry.step() else { continue }
                problems.append("row \(row.rowNumber) is missing from the search index of its attributes")
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
