// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Section 3.3: values that the keychain derives", .inMemoryKeychain)
struct DerivedValueTests {
    private func sha1() throws -> Data {
        try #require(attributes(of: Item.genericQuery())?[PrivateKey.sha1] as? Data)
    }

    private func reference(_ query: ItemDictionary) throws -> Data {
        try #require(find(query.with(kSecReturnPersistentRef, true)).data)
    }

    @Test("The sha1 of an item has 20 bytes and changes with every update")
    func sha1Changes() throws {
        add(Item.generic())
        var seen: Set<Data> = [try sha1()]
        for change in [[kSecAttrLabel: "label"], [kSecAttrLabel: "label"], [kSecValueData: Data()]] as [ItemDictionary] {
            #expect(update(Item.genericQuery(), change) == errSecSuccess)
            #expect(seen.insert(try sha1()).inserted)
        }
        #expect(seen.allSatisfy { $0.count == 20 })
    }

    @Test("A persistent reference survives every update, even one of the primary key")
    func referenceSurvivesUpdates() throws {
        add(Item.generic())
        let before = try reference(Item.genericQuery())
        #expect(update(Item.genericQuery(), [kSecValueData: Data(), kSecAttrLabel: "label"]) == errSecSuccess)
        #expect(update(Item.genericQuery(), [kSecAttrAccount: "moved", kSecAttrService: "elsewhere"]) == errSecSuccess)
        #expect(try reference(Item.genericQuery("moved", service: "elsewhere")) == before)
    }

    @Test("An item deleted and added again has a new persistent reference")
    func referenceOfItemAddedAgain() throws {
        add(Item.generic())
        let before = try reference(Item.genericQuery())
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        add(Item.generic())
        #expect(try reference(Item.genericQuery()) != before)
    }
}
