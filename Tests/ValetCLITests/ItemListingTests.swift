// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import ValetCLI

@Suite("Listing items")
struct ItemListingTests {
    private static func item(_ key: String, byteCount: Int? = 5) -> ListedItem {
        ListedItem(
            key: key, accessibility: .whenUnlocked, created: Date(timeIntervalSince1970: 0), modified: Date(timeIntervalSince1970: 60),
            byteCount: byteCount)
    }

    @Test("Lines are sorted by bytes")
    func lines() {
        #expect(ItemListing.lines(["b", "a", "B", "é"]) == "B\na\nb\né\n")
        #expect(ItemListing.lines([]) == "")
    }

    @Test("What could move the cursor or hide text is shown escaped", arguments: ["\u{1B}[2J", "a\nb", "\u{202E}", "\u{7F}", "\u{9B}"])
    func escapes(_ key: String) {
        let shown = ItemListing.printable(key)
        #expect(shown.unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) })
        #expect(shown.contains("\\"))
        #expect(!ItemListing.table([Self.item(key)]).contains(key))
    }

    @Test("Text in any script is shown as it is", arguments: ["key", "clé", "鍵", "🔑", "a b"])
    func text(_ key: String) {
        #expect(ItemListing.printable(key) == key)
    }

    @Test("What cannot be measured is said, never guessed")
    func unreadable() throws {
        #expect(ItemListing.table([Self.item("a", byteCount: nil)]).contains("unreadable"))
        let json = String(decoding: try ItemListing.json([Self.item("a", byteCount: nil)]), as: UTF8.self)
        #expect(!json.contains("size"))
    }

    @Test("JSON keeps every key, whatever is in it")
    func json() throws {
        let data = try ItemListing.json([Self.item("a\n\"b\\\u{1B}"), Self.item("a/b")])
        let objects = try #require(try JSONSerialization.jsonObject(with: data) as? [[String: Any]])
        #expect(objects.map { $0["key"] as? String } == ["a\n\"b\\\u{1B}", "a/b"])
        #expect(objects[0]["modified"] as? String == "1970-01-01T00:01:00Z")
        #expect(objects[0]["size"] as? Int == 5)
    }
}
