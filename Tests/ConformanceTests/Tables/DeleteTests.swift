// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Section 7: deletions", .inMemoryKeychain(accessGroups: ["group1", "group2"]))
struct DeleteTests {
    @Test("Every item that matches is deleted, in every group of the program")
    func manyItems() {
        add(Item.generic("first"))
        add(Item.generic("second"))
        add(Item.generic("third").with(kSecAttrAccessGroup, "group2"))
        add(Item.generic("other", service: "other"))
        #expect(delete([kSecClass: kSecClassGenericPassword, kSecAttrService: "service"]) == errSecSuccess)
        #expect(count(of: [kSecClass: kSecClassGenericPassword]) == 1)
        #expect(find(Item.genericQuery("other", service: "other")).status == errSecSuccess)
    }

    @Test("Nothing to delete is told, the second time too")
    func noItem() {
        #expect(delete(Item.genericQuery()) == errSecItemNotFound)
        add(Item.generic())
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(delete(Item.genericQuery()) == errSecItemNotFound)
    }

    @Test(
        "No match key may stand in a deletion",
        arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, kSecMatchHostOrSubdomainOfHost, kSecMatchPolicy, "m_Unknown" as CFString])
    func matchKeys(key: CFString) {
        add(Item.internet())
        #expect(delete(Item.internetQuery().with(key, kSecMatchLimitAll)) == errSecParam)
        #expect(find(Item.internetQuery()).status == errSecSuccess)
    }

    @Test(
        "Return keys in a deletion are accepted and without effect",
        arguments: [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnKeys(key: CFString) {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(key, true)) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("A deletion sees local items, or synchronizable ones, or both, as it is told")
    func twins() {
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        add(Item.generic())
        add(Item.generic().with(synchronizable))
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(find(Item.genericQuery().with(synchronizable)).status == errSecSuccess)
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == errSecSuccess)
        #expect(count(of: Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == 0)
    }

    @Test("A tombstone holds the primary key and the dates, and no secret")
    func tombstone() throws {
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        add(Item.generic().with(synchronizable).with([kSecAttrLabel: "label", kSecAttrComment: "comment"]))
        let before = try #require(attributes(of: Item.genericQuery().with(synchronizable)))
        #expect(delete(Item.genericQuery().with(synchronizable)) == errSecSuccess)
        let query = Item.genericQuery().with(synchronizable).with(PrivateKey.tombstone, true)
        let after = try #require(find(query.with([kSecReturnAttributes: true, kSecReturnData: true])).attributes)
        for key in [
            kSecAttrAccount, kSecAttrService, kSecAttrAccessGroup, kSecAttrSynchronizable, kSecAttrAccessible, kSecAttrCreationDate,
        ] {
            #expect((after[key] as? NSObject) == (before[key] as? NSObject), "\(key)")
        }
        for key in [kSecAttrLabel, kSecAttrComment, kSecValueData] { #expect(after[key] == nil, "\(key)") }
        #expect(PlainValue(after[PrivateKey.tombstone]) == .number(1))
        let deleted = try #require(after[kSecAttrModificationDate] as? Date)
        #expect(deleted > (try #require(before[kSecAttrModificationDate] as? Date)))
    }
}
