// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Altered clear columns", .blocking)
struct AlteredColumnTests {
    /// An alteration of a column that is not encrypted, and a query that the row then no longer matches.
    struct Alteration: Sendable, CustomTestStringConvertible {
        let column: String
        let value: String
        let query: ItemQuery

        init(_ column: String, _ value: String, _ more: ItemAttributes = ItemAttributes()) {
            self.column = column
            self.value = value
            var attributes = AlteredColumnTests.attributes
            for entry in more.entries { attributes[entry.attribute] = entry.value }
            query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
        }

        var testDescription: String { column }
    }

    static let attributes = ItemAttributes([.account: .string("Skroob"), .service: .string("luggage")])

    static let alterations = [
        Alteration("class", "2"),
        Alteration("is_tombstone", "1"),
        Alteration("is_synchronizable", "1"),
        Alteration("accessibility", "7", ItemAttributes([.accessible: .string(ItemAccessibility.whenUnlocked.rawValue)])),
        Alteration("access_group_digest", "randomblob(16)"),
        Alteration("attribute_digests", "x''", ItemAttributes([.label: .string("combination")])),
    ]

    private func withItem(_ body: (_ home: String, LocalKeychain) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = directory + "/home"
            let keychain = LocalKeychain(home: home)
            var attributes = Self.attributes
            attributes[.label] = .string("combination")
            _ = try keychain.add(AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data("12345".utf8)))
            try body(home, keychain)
        }
    }

    @Test("The item is damaged, not missing, for reading, updating, and deleting", arguments: alterations)
    func damaged(_ alteration: Alteration) throws {
        try withItem { home, keychain in
            #expect(try keychain.copyMatching(MatchRequest(query: alteration.query)).count == 1)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET \(alteration.column) = \(alteration.value)")
            for includesSecrets in [false, true] {
                #expect(throws: KeychainFailure(.decode, "")) {
                    _ = try keychain.copyMatching(MatchRequest(query: alteration.query, includesSecrets: includesSecrets))
                }
            }
            #expect(throws: KeychainFailure(.decode, "")) {
                try keychain.update(UpdateRequest(query: alteration.query, changes: ItemAttributes([.comment: .string("new")])))
            }
            #expect(throws: KeychainFailure(.decode, "")) { try keychain.delete(DeleteRequest(query: alteration.query)) }
            #expect(try RawDatabase(home + "/keychain.db").integer("SELECT count(*) FROM items") == 1)
        }
    }

    @Test("Adding the item again sets the altered row aside", arguments: alterations)
    func addedAgain(_ alteration: Alteration) throws {
        try withItem { home, keychain in
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET \(alteration.column) = \(alteration.value)")
            _ = try keychain.add(AddRequest(itemClass: .genericPassword, attributes: Self.attributes, secret: Data("new".utf8)))
            #expect(try keychain.report().store?.quarantinedCount == 1)
            let query = ItemQuery(itemClass: .genericPassword, attributes: Self.attributes)
            let items = try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true))
            #expect(items.map(\.secret) == [Data("new".utf8)])
        }
    }

    @Test("An intact row that another condition of the query excludes is not the item")
    func excluded() throws {
        try withItem { _, keychain in
            for more: (Attribute, AttributeValue) in [
                (.accessible, .string(ItemAccessibility.always.rawValue)), (.label, .string("another")),
            ] {
                var attributes = Self.attributes
                attributes[more.0] = more.1
                let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
                #expect(throws: KeychainFailure(.itemNotFound, "")) { _ = try keychain.copyMatching(MatchRequest(query: query)) }
                #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychain.delete(DeleteRequest(query: query)) }
            }
        }
    }
}
