// SPDX-License-Identifier: Apache-2.0

/// What in a store's files is not what was written, as far as checksums tell.
package struct FileDamage: Sendable, Equatable {
    /// The numbers of damaged pages of the database.
    package var pages: [Int64] = []
    package var log: LogDamage?

    /// A line for people, without an end; nil where nothing is damaged.
    package var description: String? {
        var parts: [String] = []
        if !pages.isEmpty { parts.append("damaged pages of the file: \(pages.map(String.init).joined(separator: ", "))") }
        if let log { parts.append(log.description) }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }
}

/// Damage in a -wal file, with changes behind it that were durable.
package struct LogDamage: Sendable, Equatable {
    /// How many changes lie behind it.
    package let unreachableChangeCount: Int
    /// Up to here the file is what was written.
    let soundByteCount: Int64

    var description: String {
        let changes = unreachableChangeCount == 1 ? "1 change" : "\(unreachableChangeCount) changes"
        return "the -wal file is damaged, and \(changes) behind the damage cannot be reached"
    }
}
