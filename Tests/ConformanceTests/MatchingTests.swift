// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

private let composed = "caf\u{e9}"
private let decomposed = "cafe\u{301}"

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 2.2: how values are compared", .keychain)
struct MatchingTests {
    @Test(
        "Values are compared whole and byte by byte: prefix, case and Unicode normalization matter",
        arguments: [kSecAttrAccount, kSecAttrService, kSecAttrLabel, kSecAttrGeneric],
        [
            ("value", "valu"), ("value", "value "), ("value", "Value"), ("value", "val*"), ("value", "%"), ("value", ""),
            (composed, decomposed), (decomposed, composed), ("a\u{0}b", "a"),
        ])
    func exact(key: CFString, values: (stored: String, asked: String)) {
        add(Item.generic().with(key, values.stored))
        #expect(find(Item.genericQuery().with(key, values.stored)).status == errSecSuccess)
        #expect(find(Item.genericQuery().with(key, values.asked)).status == errSecItemNotFound)
    }

    @Test(
        "Two items may differ only in Unicode normalization, and each is found by its own form",
        arguments: [kSecAttrAccount, kSecAttrServer, kSecAttrSecurityDomain, kSecAttrPath, kSecAttrSyncViewHint])
    func unicodeForms(key: CFString) {
        let first = Item.internet().with(key, composed)
        let second = Item.internet().with(key, decomposed)
        #expect(add(first.with(kSecAttrLabel, "composed")).status == errSecSuccess)
        #expect(add(second.with(kSecAttrLabel, "decomposed")).status == errSecSuccess)
        #expect(attributes(of: first)?[kSecAttrLabel] as? String == "composed")
        #expect(attributes(of: second)?[kSecAttrLabel] as? String == "decomposed")
    }

    @Test("Access groups in different Unicode normalization forms are different", .keychain(accessGroups: [composed]))
    func unicodeFormOfGroup() {
        #expect(add(Item.generic().with(kSecAttrAccessGroup, decomposed)).status == errSecMissingEntitlement)
        #expect(add(Item.generic().with(kSecAttrAccessGroup, composed)).status == errSecSuccess)
        #expect(find(Item.genericQuery().with(kSecAttrAccessGroup, decomposed)).status == errSecMissingEntitlement)
    }

    @Test("A host is compared byte by byte too")
    func unicodeFormOfHost() {
        add(Item.internet(server: "www.\(composed)"))
        #expect(find([kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: composed]).status == errSecSuccess)
        #expect(find([kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: decomposed]).status == errSecItemNotFound)
    }

    @Test(
        "Text and data with the same bytes find each other",
        arguments: [kSecAttrAccount, kSecAttrService, kSecAttrLabel, kSecAttrGeneric, kSecAttrComment], ["value", "", composed])
    func textAndData(key: CFString, value: String) {
        let bytes = Data(value.utf8)
        add(Item.generic().with(key, value))
        #expect(find(Item.genericQuery().with(key, bytes)).status == errSecSuccess)
        #expect(delete(Item.genericQuery().with(key, bytes)) == errSecSuccess)
        add(Item.generic().with(key, bytes))
        #expect(find(Item.genericQuery().with(key, value)).status == errSecSuccess)
    }

    @Test("A number in a blob attribute is compared as four bytes, the lowest first")
    func numberAsBytes() {
        add(Item.generic().with(kSecAttrAccount, 0x6162_6364))
        #expect(find(Item.genericQuery("dcba")).status == errSecSuccess)
        #expect(find(Item.genericQuery("abcd")).status == errSecItemNotFound)
        #expect(find(Item.genericQuery().with(kSecAttrAccount, Data("dcba".utf8))).status == errSecSuccess)
        #expect(find(Item.genericQuery("\(0x6162_6364)")).status == errSecItemNotFound)
    }

    @Test("Text that is a whole number is that number in a number attribute")
    func numberInText() {
        add(Item.internet(port: 8080))
        #expect(find(Item.internetQuery().with(kSecAttrPort, "8080")).status == errSecSuccess)
        #expect(find(Item.internetQuery().with(kSecAttrPort, "8081")).status == errSecItemNotFound)
    }

    @Test("A part of the primary key that is absent is the same as an empty one", arguments: [kSecAttrAccount, kSecAttrService])
    func absentPartOfKey(key: CFString) {
        add(Item.generic().without(key))
        #expect(find(Item.genericQuery().with(key, "")).status == errSecSuccess)
        #expect(find(Item.genericQuery().with(key, Data())).status == errSecSuccess)
        #expect(add(Item.generic().with(key, "")).status == errSecDuplicateItem)
    }

    @Test("Another attribute that is absent is not the same as an empty one", arguments: [kSecAttrLabel, kSecAttrComment, kSecAttrGeneric])
    func absentAttribute(key: CFString) {
        add(Item.generic())
        #expect(find(Item.genericQuery().with(key, "")).status == errSecItemNotFound)
        #expect(update(Item.genericQuery(), [key: ""]) == errSecSuccess)
        #expect(find(Item.genericQuery().with(key, "")).status == errSecSuccess)
        #expect(find(Item.genericQuery().with(key, Data())).status == errSecSuccess)
    }

    @Test("All attributes of a query must match")
    func conjunction() {
        add(Item.generic().with([kSecAttrLabel: "label", kSecAttrComment: "comment"]))
        let query: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrLabel: "label"]
        #expect(find(query.with(kSecAttrComment, "comment")).status == errSecSuccess)
        #expect(find(query.with(kSecAttrComment, "other")).status == errSecItemNotFound)
        #expect(find(query.with(kSecAttrDescription, "description")).status == errSecItemNotFound)
    }

    @Test(
        "Dates and sha1 are filters like every other attribute",
        arguments: [kSecAttrCreationDate, kSecAttrModificationDate, PrivateKey.sha1])
    func sealedFilters(key: CFString) throws {
        add(Item.generic("first"))
        advanceClock()
        add(Item.generic("second").with(kSecAttrLabel, "label"))
        let value = try #require(attributes(of: Item.genericQuery("second"))?[key])
        let found = try #require(attributes(of: [kSecClass: kSecClassGenericPassword, key: value]))
        #expect(found[kSecAttrAccount] as? String == "second")
        let other: Any = key == PrivateKey.sha1 ? Data(count: 20) : Date(timeIntervalSinceReferenceDate: 0)
        #expect(find(Item.genericQuery("second").with(key, other)).status == errSecItemNotFound)
        #expect(delete(Item.genericQuery("second").with(key, other)) == errSecItemNotFound)
        #expect(update(Item.genericQuery("second").with(key, value), [kSecAttrComment: "changed"]) == errSecSuccess)
    }

    @Test("The accessibility is a filter")
    func accessibility() {
        add(Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock))
        #expect(find(Item.genericQuery().with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock)).status == errSecSuccess)
        #expect(find(Item.genericQuery().with(kSecAttrAccessible, kSecAttrAccessibleWhenUnlocked)).status == errSecItemNotFound)
    }

    @Test("An access control is validated, but is not a filter")
    func accessControlIsNoFilter() throws {
        add(Item.generic())
        let control = try accessControl(kSecAttrAccessibleAfterFirstUnlock, [])
        #expect(find(Item.genericQuery().with(kSecAttrAccessControl, control)).status == errSecSuccess)
        #expect(delete(Item.genericQuery().with(kSecAttrAccessControl, control)) == errSecSuccess)
    }

    @Test("The secret is not a filter")
    func secretIsNoFilter() {
        add(Item.generic())
        let query = Item.genericQuery().with(kSecValueData, Data("other".utf8))
        #expect(find(query).status == errSecSuccess)
        #expect(update(query, [kSecAttrLabel: "label"]) == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        #expect(delete(query) == errSecSuccess)
    }
}
