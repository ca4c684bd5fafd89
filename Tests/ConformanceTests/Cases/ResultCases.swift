// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("What calls deliver, cases of the specification", .inMemoryKeychain)
struct ResultCases {
    @Test(
        "Case 16: a password has no reference: asking for one delivers nothing and is no mistake",
        arguments: [Item.Kind.generic, .internet])
    func returnRef(kind: Item.Kind) {
        let item = kind.item.with(kSecReturnRef, true)
        let added = add(item)
        #expect(added.status == errSecSuccess)
        #expect(added.result == nil)
        let found = find(item)
        #expect(found.status == errSecSuccess)
        #expect(found.result == nil)
        #expect(delete(item) == errSecSuccess)
    }

    @Test(
        "Case 17: certificates, keys and identities are not stored yet, and every call says so",
        arguments: Verb.allCases, [kSecClassCertificate, kSecClassKey, kSecClassIdentity])
    func otherClasses(verb: Verb, itemClass: CFString) {
        #expect(verb.status([kSecClass: itemClass, kSecAttrLabel: "label"]) == errSecUnimplemented)
    }

    @Test("Case 17: what an add delivers depends on the return keys")
    func addResults() throws {
        #expect(add(Item.generic("none")).result == nil)
        let reference = try #require(add(Item.generic("reference").with(kSecReturnPersistentRef, true)).data)
        #expect(reference.count == 20)
        #expect(add(Item.generic("ref").with(kSecReturnRef, true)).result == nil)
        #expect(add(Item.generic("data").with(kSecReturnData, true)).data == Item.secret)
        let attributes = try #require(add(Item.generic("attributes").with(kSecReturnAttributes, true)).attributes)
        #expect(!attributes.keys.contains { $0.hasPrefix("v_") })
        let all = try #require(
            add(
                Item.generic("all").with([
                    kSecReturnAttributes: true, kSecReturnData: true, kSecReturnRef: true, kSecReturnPersistentRef: true,
                ])
            ).attributes)
        #expect(all[kSecClass] as? String == kSecClassGenericPassword as String)
        #expect(all[kSecValueData] as? Data == Item.secret)
        #expect((all[kSecValuePersistentRef] as? Data)?.count == 20)
    }

    @Test("Case 18: an attribute of another class is no attribute of this one")
    func attributeOfAnotherClass() {
        #expect(add(Item.generic().with(kSecAttrServer, "example.com")).status == errSecNoSuchAttr)
        #expect(delete(Item.genericQuery().with(kSecAttrServer, "example.com")) == errSecNoSuchAttr)
        #expect(add(Item.internet().with(kSecAttrService, "service")).status == errSecNoSuchAttr)
        #expect(delete(Item.internetQuery().with(kSecAttrService, "service")) == errSecNoSuchAttr)
    }

    @Test("Case 22: all items with data and persistent reference are dictionaries with both")
    func dataAndReference() throws {
        let reference = try #require(add(Item.generic().with(kSecReturnPersistentRef, true)).data)
        let query = Item.genericQuery().with([
            kSecMatchLimit: kSecMatchLimitAll, kSecReturnData: true, kSecReturnPersistentRef: true,
        ])
        let found = try #require(find(query).attributesArray)
        #expect(found.count == 1)
        #expect(found.first?[kSecValueData] as? Data == Item.secret)
        #expect(found.first?[kSecValuePersistentRef] as? Data == reference)
    }

    @Test("Case 23: all items with data alone, or persistent reference alone, are an array of data")
    func dataOrReference() throws {
        let reference = try #require(add(Item.generic().with(kSecReturnPersistentRef, true)).data)
        let all = Item.genericQuery().with(kSecMatchLimit, kSecMatchLimitAll)
        #expect(find(all.with(kSecReturnData, true)).dataArray == [Item.secret])
        #expect(find(all.with(kSecReturnPersistentRef, true)).dataArray == [reference])
    }

    @Test("Case 24: an item without a secret has attributes and no data, asked for both")
    func attributesOfItemWithoutSecret() throws {
        add(Item.genericQuery())
        let query = Item.genericQuery().with([
            kSecMatchLimit: kSecMatchLimitAll, kSecReturnData: true, kSecReturnAttributes: true,
        ])
        let found = try #require(find(query).attributesArray)
        #expect(found.count == 1)
        #expect(found.first?.keys.contains(kSecValueData) == false)
        #expect(found.first?[kSecAttrService] as? String == "service")
        #expect(found.first?[kSecAttrAccount] as? String == "account")
    }

    @Test("Case 25: the data of an item without a secret is nothing, and nothing in an array")
    func dataOfItemWithoutSecret() {
        add(Item.genericQuery())
        let one = find(Item.genericQuery().with([kSecReturnData: true, kSecMatchLimit: kSecMatchLimitOne]))
        #expect(one.status == errSecSuccess)
        #expect(one.result == nil)
        let all = find(Item.genericQuery().with([kSecReturnData: true, kSecMatchLimit: kSecMatchLimitAll]))
        #expect(all.status == errSecSuccess)
        #expect(all.array?.isEmpty == true)
    }

    @Test("Case 26: an item without a secret can be added and deleted")
    func withoutSecret() {
        #expect(add(Item.genericQuery()).status == errSecSuccess)
        #expect(delete(Item.genericQuery()) == errSecSuccess)
    }

    @Test("Case 85: a limit is a number, one or all")
    func limits() {
        for account in ["first", "second", "third"] { add(Item.generic(account)) }
        let query: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecReturnData: true]
        #expect(find(query.with(kSecMatchLimit, 2)).dataArray?.count == 2)
        #expect(find(query.with(kSecMatchLimit, 0)).status == errSecItemNotFound)
        #expect(find(query.with(kSecMatchLimit, "bogus")).status == errSecParam)
    }
}
