// SPDX-License-Identifier: Apache-2.0
import Foundation
import FoundationXML

/// The entries of a database in the XML that `keepassxc-cli` imports and exports.
///
/// An entry has the same identifier in all texts, so that databases with different versions of it can be merged.
struct KeePassXML {
    let itemCount: Int
    /// The changes, one entry after the other.
    var changeCount = 0

    /// Earlier than everything that is done to the database later.
    private static let start = Date(timeIntervalSinceNow: -30 * 86_400)

    init(itemCount: Int) { self.itemCount = itemCount }

    var text: String {
        let entries = (0..<itemCount).map { index in
            let versionCount = (changeCount + itemCount - 1 - index) / itemCount
            // The application keeps ten versions besides the present one.
            let history = (max(0, versionCount - 10)..<versionCount).map { version(index, $0, history: "") }.joined()
            return version(index, versionCount, history: "<History>\(history)</History>")
        }
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?><KeePassFile><Meta/><Root><Group><UUID>\(identifier(itemCount))</UUID>"
            + "<Name>Root</Name>\n\(entries.joined(separator: "\n"))</Group></Root></KeePassFile>\n"
    }

    /// The values are part of this source, so they are not secret.
    private func version(_ index: Int, _ number: Int, history: String) -> String {
        let value = SyncSecret.value(number == 0 ? "initial-\(index)" : "missed-\((number - 1) * itemCount + index)")
        let created = Self.start.formatted(.iso8601)
        let changed = Self.start.addingTimeInterval(Double(number) * 60).formatted(.iso8601)
        return "<Entry><UUID>\(identifier(index))</UUID><Times><CreationTime>\(created)</CreationTime>"
            + "<LastModificationTime>\(changed)</LastModificationTime><LocationChanged>\(created)</LocationChanged></Times>"
            + "<String><Key>Title</Key><Value>\(FilledValet.key(index))</Value></String>"
            + "<String><Key>Password</Key><Value ProtectInMemory=\"True\">\(value)</Value></String>\(history)</Entry>"
    }

    private func identifier(_ number: Int) -> String {
        var bytes = Data(repeating: 7, count: 16)
        for position in 0..<4 { bytes[position] = UInt8(truncatingIfNeeded: number >> (8 * position)) }
        return bytes.base64EncodedString()
    }

    /// Returns the passwords of all versions of an entry in an export.
    static func passwords(ofEntry title: String, in export: Data) throws -> [String] {
        let document = try XMLDocument(data: export)
        let path = "//Entry[String[Key='Title' and Value='\(title)']]/String[Key='Password']/Value"
        return try document.nodes(forXPath: path).compactMap(\.stringValue)
    }
}
