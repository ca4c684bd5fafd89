// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Generic passwords, cases of the specification", .inMemoryKeychain)
struct GenericPasswordCases {
    @Test("Case 6: the same account and service twice is a duplicate")
    func addTwice() {
        #expect(add(Item.generic()).status == errSecSuccess)
        #expect(add(Item.generic()).status == errSecDuplicateItem)
    }

    @Test("Case 7: two accounts of one service are two items")
    func twoAccounts() {
        #expect(add(Item.generic("first")).status == errSecSuccess)
        #expect(add(Item.generic("second")).status == errSecSuccess)
    }

    @Test("Case 8: an update can move an item to another account and service")
    func move() {
        add(Item.generic())
        let change: ItemDictionary = [kSecAttrAccount: "moved account", kSecAttrService: "moved service"]
        #expect(update(Item.genericQuery(), change) == errSecSuccess)
        #expect(update(Item.genericQuery(), change) == errSecItemNotFound)
        #expect(secret(of: Item.genericQuery("moved account", service: "moved service")) == Item.secret)
    }

    @Test("Case 10: an update takes data as the secret, and nothing else")
    func updateSecret() {
        add(Item.generic())
        let changed = Data("changed".utf8)
        #expect(update(Item.genericQuery(), [kSecValueData: changed]) == errSecSuccess)
        #expect(update(Item.genericQuery(), [kSecValueData: NSNull()]) == errSecParam)
        #expect(update(Item.genericQuery(), [kSecValueData: "text"]) == errSecParam)
        #expect(secret(of: Item.genericQuery()) == changed)
    }

    @Test("Case 11: an item with nothing but a label can be added, and deleted by it")
    func labelOnly() {
        let item: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrLabel: "label"]
        #expect(add(item).status == errSecSuccess)
        #expect(delete(item) == errSecSuccess)
    }

    @Test("Case 12: an access control that is no access control object is refused")
    func badAccessControl() {
        let item = Item.generic().with(kSecAttrAccessControl, "string")
        #expect(add(item).status == errSecParam)
        #expect(delete(item) == errSecParam)
    }

    @Test("Case 14: the keychain's own attribute clip is refused wherever it stands")
    func internalAttribute() {
        add(Item.generic())
        let query = Item.genericQuery()
        #expect(add(Item.generic("other").with(PrivateKey.appClipItem, 1)).status == errSecParam)
        #expect(find(query.with(PrivateKey.appClipItem, 1)).status == errSecParam)
        #expect(update(query.with(PrivateKey.appClipItem, 1), [kSecAttrLabel: "label"]) == errSecParam)
        #expect(update(query, [PrivateKey.appClipItem: 1]) == errSecParam)
        #expect(delete(query.with(PrivateKey.appClipItem, 1)) == errSecParam)
    }

    @Test(
        "Case 15: an update delivers nothing, so a return key in its query is refused",
        arguments: [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnKeyInUpdate(key: CFString) {
        add(Item.generic())
        #expect(update(Item.genericQuery().with(key, true), [kSecAttrLabel: "label"]) == errSecParam)
        #expect(update(Item.genericQuery().with(key, false), [kSecAttrLabel: "label"]) == errSecSuccess)
        #expect(update(Item.genericQuery(), [kSecAttrLabel: "label"]) == errSecSuccess)
    }

    @Test("Case 46: a query for attributes does not deliver the secret")
    func attributesWithoutSecret() throws {
        add(Item.generic())
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecValueData] == nil)
    }

    @Test("Case 47: a delete may ask for data, and deletes")
    func deleteWithReturnData() {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(kSecReturnData, true)) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("Case 53: another accessibility does not make another item, and the attempt leaves no trace")
    func otherAccessibility() throws {
        add(Item.generic())
        let before = try #require(attributes(of: Item.genericQuery()))
        let again = Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock)
        #expect(add(again).status == errSecDuplicateItem)
        #expect(before.isEqual(to: attributes(of: Item.genericQuery())))
        #expect(count(of: [kSecClass: kSecClassGenericPassword]) == 1)
    }

    @Test("Case 87: an account as text and one as data with the same bytes are the same account")
    func textAndData() {
        add(Item.generic("a"))
        #expect(add(Item.generic().with(kSecAttrAccount, Data("a".utf8))).status == errSecDuplicateItem)
    }
}
