// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// What is wrong with a store's file.
extension StoreSession {
    /// A line for each damaged page, or where there is none what SQLite's own check finds and what SQLite cannot know; then the keybag.
    ///
    /// What keeps one of them from being looked at is reported, and keeps none of the others.
    func integrityProblems() throws(KeychainFailure) -> [String] {
        try beginReadTransaction()
        // The transaction begins with the first read.
        _ = try singleInteger(.formatVersion)
        var problems = try connection.damagedPages().map { page in "page \(page) of the file is damaged\(contentOfPage(page))" }
        if let walDamage = try connection.walDamage() { problems.append(walDamage.description) }
        // Behind a damaged page nothing can be compared with anything: more would only repeat that there is one.
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

    /// As it is now: another process may have upgraded the file since it was opened.
    func formatVersion() throws(KeychainFailure) -> Int64 { try singleInteger(.formatVersion) ?? 0 }

    func hasDamagedPages() throws(KeychainFailure) -> Bool {
        try beginReadTransaction()
        // The transaction begins with the first read.
        _ = try singleInteger(.formatVersion)
        return try !connection.damagedPages().isEmpty
    }

    /// Of a page with which a table or an index begins, which that is.
    private func contentOfPage(_ page: Int64) -> String {
        if page == 1 { return " (the list of tables)" }
        var name: String?
        // Only to say more.
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
            problems.append("\(subject): not looked at whole, for \(error.reason)")
        }
    }

    /// Rows that a search by attribute would miss.
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

/// What in a store's files is not what was written, as far as checksums tell.
package struct FileDamage: Sendable, Equatable {
    /// The numbers of damaged pages of the database.
    package var pages: [Int64] = []
    package var log: WALDamage?

    /// A line for people, without an end; nil where nothing is damaged.
    package var description: String? {
        var parts: [String] = []
        if !pages.isEmpty { parts.append("damaged pages of the file: \(pages.map(String.init).joined(separator: ", "))") }
        if let log { parts.append(log.description) }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }
}

/// Damage in a -wal file, with changes behind it that were durable.
package struct WALDamage: Sendable, Equatable {
    /// How many changes lie behind it.
    package let unreachableChangeCount: Int
    /// Up to here the file is what was written.
    let soundByteCount: Int64

    var description: String {
        let changes = unreachableChangeCount == 1 ? "1 change" : "\(unreachableChangeCount) changes"
        return "the -wal file is damaged, and \(changes) behind the damage cannot be reached"
    }
}
