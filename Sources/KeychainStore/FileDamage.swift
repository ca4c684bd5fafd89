// SPDX-License-Identifier: Apache-2.0

/// What in a store's files is not what was written, as far as checksums tell.
package struct FileDamage: Sendable, Equatable {
    /// The numbers of damaged pages of the database.
    package var pages: [Int64] = []
    /// How many changes in the -wal file cannot be reached, because it is damaged before them.
    package var changeCountBehindLogDamage = 0

    /// A line for people, without an end; nil where nothing is damaged.
    package var description: String? {
        var parts: [String] = []
        if !pages.isEmpty { parts.append("damaged pages of the file: \(pages.map(String.init).joined(separator: ", "))") }
        if let logDamage { parts.append(logDamage) }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// What is to be said about the -wal file.
    var logDamage: String? {
        guard changeCountBehindLogDamage > 0 else { return nil }
        let changes = changeCountBehindLogDamage == 1 ? "1 change" : "\(changeCountBehindLogDamage) changes"
        return "the -wal file is damaged, and \(changes) behind the damage cannot be reached"
    }
}
