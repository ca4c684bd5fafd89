// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Valet

/// An item of `valet list`.
struct ListedItem {
    let key: String
    let accessibility: AccessibilityOption
    let created: Date?
    let modified: Date?
    /// The size of the secret; nil if it cannot be read.
    let byteCount: Int?
}

/// The output formats of `valet list`.
///
/// Items are sorted by the bytes of their keys.
enum ItemListing {
    static func lines(_ keys: [String]) -> String {
        keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { $0 + "\n" }.joined()
    }

    static func table(_ items: [ListedItem]) -> String {
        let header = ["KEY", "ACCESSIBILITY", "MODIFIED", "SIZE"]
        let rows = sorted(items).map { item in
            [
                escapingUnprintable(item.key), item.accessibility.rawValue, item.modified.map(localTime) ?? "-",
                item.byteCount.map { "\($0)" } ?? "unreadable",
            ]
        }
        return aligned([header] + rows)
    }

    /// Returns the rows as lines with columns of equal width.
    static func aligned(_ rows: [[String]]) -> String {
        let widths = (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            // The last column is not padded.
            let cells = zip(row.dropLast(), widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            return (cells + row.suffix(1)).joined(separator: "  ") + "\n"
        }.joined()
    }

    static func json(_ items: [ListedItem]) throws -> Data {
        if items.isEmpty { return Data("[]\n".utf8) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return try encoder.encode(sorted(items).map(JSONItem.init)) + Data("\n".utf8)
    }

    private struct JSONItem: Encodable {
        let key: String
        let accessibility: String
        let created: Date?
        let modified: Date?
        let size: Int?

        init(_ item: ListedItem) {
            key = item.key
            accessibility = item.accessibility.rawValue
            created = item.created
            modified = item.modified
            size = item.byteCount
        }
    }

    private static func sorted(_ items: [ListedItem]) -> [ListedItem] {
        items.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    /// Says that items have accounts that are not text.
    static func unnamedItems(_ count: Int) -> String {
        count == 1
            ? "1 item has an account that is not text, so no key finds it"
            : "\(count) items have accounts that are not text, so no key finds them"
    }

    /// Escapes what is not text, as in a Swift literal, so that a key cannot move the cursor or change colors.
    static func escapingUnprintable(_ key: String) -> String {
        key.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse:
                scalar.escaped(asASCII: true)
            default: String(scalar)
            }
        }.joined()
    }

    static func localTime(_ date: Date) -> String {
        let style = Date.VerbatimFormatStyle(
            format:
                "\(year: .defaultDigits)-\(month: .twoDigits)-\(day: .twoDigits) \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits)",
            locale: Locale(identifier: "en_US_POSIX"), timeZone: .current, calendar: Calendar(identifier: .gregorian)
        )
        return date.formatted(style)
    }
}

extension CompletionKind {
    /// The keys of the default valet.
    static var keys: CompletionKind {
        .custom { _, _, _ in
            // An error message would disturb the command line, so a failure completes nothing.
            let keys = (try? storedKeys()) ?? []
            return CompletionShell.requesting == .bash ? keys.map(quotedForBash) : keys
        }
    }

    /// The keys in order.
    ///
    /// Keys that contain a line break or another unprintable character are omitted, because each candidate is a line, and so are those that
    /// the shell would expand.
    private static func storedKeys() throws -> [String] {
        let selected = try ValetOptions.parse([]).resolve()
        let valet = try selected.requireListable()
        let keys = try CommandSession(selected.entitlements).perform { try valet.allKeys(userPrompt: "") }
        let isSafe = CompletionShell.requesting == .bash ? isQuotedByBash : { _ in true }
        return keys.filter { ItemListing.escapingUnprintable($0) == $0 && isSafe($0) }.sorted()
    }

    /// Whether Bash quotes the characters of a key that it inserts.
    ///
    /// It leaves the start of an expansion as it is: a key could run a command, or name another key.
    private static func isQuotedByBash(_ key: String) -> Bool {
        !key.hasPrefix("~") && !key.contains { "$`\\!".contains($0) }
    }

    /// Quotes a key, because Bash expands candidates, including command substitutions.
    private static func quotedForBash(_ key: String) -> String {
        "'" + key.replacing("'", with: "'\\''") + "'"
    }
}
