// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 4.2: what can be added", .keychain(accessGroups: ["group1", "group2", "com.apple.apsd"]))
struct AddTests {
    @Test("An item needs only a class; its primary key is then empty")
    func classOnly() throws {
        #expect(add([kSecClass: kSecClassGenericPassword]).status == errSecSuccess)
        let generic = try #require(attributes(of: [kSecClass: kSecClassGenericPassword]))
        for key in [kSecAttrAccount, kSecAttrService] { #expect(generic[key] as? String == "") }

        #expect(add([kSecClass: kSecClassInternetPassword]).status == errSecSuccess)
        let internet = try #require(attributes(of: [kSecClass: kSecClassInternetPassword]))
        for key in [kSecAttrAccount, kSecAttrServer, kSecAttrSecurityDomain, kSecAttrAuthenticationType, kSecAttrPath] {
            #expect(internet[key] as? String == "")
        }
        for key in [kSecAttrPort, kSecAttrProtocol] { #expect(PlainValue(internet[key]) == .number(0)) }
    }

    @Test("An empty secret is stored and returned as empty data")
    func emptySecret() {
        #expect(add(Item.generic().with(kSecValueData, Data())).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == Data())
    }

    @Test("A secret is returned byte for byte, whatever its size", arguments: [1, 19, 20, 21, 32 * 1024 + 1, 1024 * 1024])
    func secretSizes(byteCount: Int) {
        let value = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        #expect(add(Item.generic().with(kSecValueData, value)).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == value)
    }

    @Test("An item of more than 64 MiB is rejected", arguments: [kSecValueData, kSecAttrGeneric])
    func tooLarge(key: CFString) {
        let value = Data(count: 64 << 20)
        #expect(add(Item.generic().with(key, value)).status == errSecParam)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("The keychain sets the dates and ignores those of the caller")
    func dates() throws {
        let long = Date(timeIntervalSinceReferenceDate: 0)
        #expect(add(Item.generic().with([kSecAttrCreationDate: long, kSecAttrModificationDate: long])).status == errSecSuccess)
        let found = try #require(attributes(of: Item.genericQuery()))
        let created = try #require(found[kSecAttrCreationDate] as? Date)
        #expect(abs(created.timeIntervalSinceNow) < 24 * 60 * 60)
        #expect(found[kSecAttrModificationDate] as? Date == created)
    }

    @Test("The keychain computes sha1 and ignores that of the caller")
    func sha1() throws {
        let given = Data(repeating: 1, count: 20)
        #expect(add(Item.generic().with(PrivateKey.sha1, given)).status == errSecSuccess)
        let found = try #require(attributes(of: Item.genericQuery())?[PrivateKey.sha1] as? Data)
        #expect(found != given)
    }

    @Test("An item added as 'synchronizable or not' is local")
    func synchronizableAny() throws {
        #expect(add(Item.generic().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)).status == errSecSuccess)
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(PlainValue(found[kSecAttrSynchronizable]) == .number(0))
    }

    @Test("A local item and a synchronizable one with the same key coexist")
    func twins() {
        #expect(add(Item.generic().with(kSecAttrSynchronizable, false)).status == errSecSuccess)
        #expect(add(Item.generic().with(kSecAttrSynchronizable, true)).status == errSecSuccess)
        #expect(count(of: Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == 2)
    }

    @Test("Two access groups can each contain an item with the same key")
    func twoGroups() {
        #expect(add(Item.generic().with(kSecAttrAccessGroup, "group1")).status == errSecSuccess)
        #expect(add(Item.generic().with(kSecAttrAccessGroup, "group2")).status == errSecSuccess)
        #expect(count(of: Item.genericQuery()) == 2)
    }

    @Test("An item is readable while unlocked, unless its access group has another default")
    func defaultAccessibility() throws {
        add(Item.generic())
        let plain = try #require(attributes(of: Item.genericQuery()))
        #expect(plain[kSecAttrAccessible] as? String == kSecAttrAccessibleWhenUnlocked as String)
        let group: ItemDictionary = [kSecAttrAccessGroup: "com.apple.apsd"]
        add(Item.generic().with(group))
        let push = try #require(attributes(of: Item.genericQuery().with(group)))
        #expect(push[kSecAttrAccessible] as? String == kSecAttrAccessibleAlwaysThisDeviceOnly as String)
    }

    @Test(
        "A synchronizable item for this device only is stored, and is found and deleted as synchronizable",
        arguments: [
            kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            kSecAttrAccessibleAlwaysThisDeviceOnly,
        ])
    func deviceOnly(accessibility: CFString) throws {
        let item = Item.generic().with([kSecAttrAccessible: accessibility, kSecAttrSynchronizable: true])
        let synchronizable = Item.genericQuery().with(kSecAttrSynchronizable, true)
        #expect(add(item).status == errSecSuccess)
        #expect(add(item).status == errSecDuplicateItem)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(secret(of: synchronizable) == Item.secret)
        let found = try #require(attributes(of: synchronizable))
        #expect(found[kSecAttrAccessible] as? String == accessibility as String)
        #expect(PlainValue(found[kSecAttrSynchronizable]) == .number(1))
        #expect(add(Item.generic()).status == errSecSuccess)
        #expect(delete(synchronizable) == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    @Test("An item that requires a passcode cannot be added while none is set")
    func noPasscode() {
        let item = Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
        #expect(add(item).status == errSecAuthFailed)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        add(Item.generic())
        let change: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly]
        #expect(update(Item.genericQuery(), change) == errSecAuthFailed)
    }

    @Test(
        "Keys that only searches accept are rejected, and nothing is stored",
        arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, kSecMatchItemList, kSecUseItemList, "m_Unknown" as CFString])
    func searchKeys(key: CFString) {
        #expect(add(Item.generic().with(key, 1)).status == errSecParam)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("A persistent reference among the attributes is ignored: a new item gets a new one")
    func persistentReference() throws {
        let given = Data("genp".utf8) + Data(repeating: 1, count: 16)
        let added = add(Item.generic().with([kSecValuePersistentRef: given, kSecReturnPersistentRef: true]))
        #expect(added.status == errSecSuccess)
        #expect(try #require(added.data) != given)
    }

    @Test("A persistent reference of the older form, or of a token, is rejected")
    func otherReferences() {
        let legacy = Data("genp".utf8) + Data([0, 0, 0, 0, 0, 0, 0, 1])
        #expect(add(Item.generic().with(kSecValuePersistentRef, legacy)).status == errSecParam)
        #expect(add(Item.generic().with(kSecValuePersistentRef, Data("tkpr".utf8) + Data([0x30, 0]))).status == errSecParam)
    }

    @Test("The result pointer may be nil with any return keys")
    func noResultPointer() {
        let all: ItemDictionary = [kSecReturnData: true, kSecReturnAttributes: true, kSecReturnPersistentRef: true]
        #expect(SecItemAdd(Item.generic().with(all) as CFDictionary, nil) == errSecSuccess)
        #expect(SecItemCopyMatching(Item.genericQuery().with(all) as CFDictionary, nil) == errSecSuccess)
    }
}

@Suite("Generic passwords, cases of the specification", .keychain)
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

    @Test("Case 11: an item with only a label can be added, and deleted by its label")
    func labelOnly() {
        let item: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrLabel: "label"]
        #expect(add(item).status == errSecSuccess)
        #expect(delete(item) == errSecSuccess)
    }

    @Test("Case 12: an access control of another type is rejected")
    func badAccessControl() {
        let item = Item.generic().with(kSecAttrAccessControl, "string")
        #expect(add(item).status == errSecParam)
        #expect(delete(item) == errSecParam)
    }

    @Test("Case 14: the keychain's own attribute clip is rejected in all dictionaries")
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
        "Case 15: a return key in the query of an update is rejected",
        arguments: [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnKeyInUpdate(key: CFString) {
        add(Item.generic())
        #expect(update(Item.genericQuery().with(key, true), [kSecAttrLabel: "label"]) == errSecParam)
        #expect(update(Item.genericQuery().with(key, false), [kSecAttrLabel: "label"]) == errSecSuccess)
        #expect(update(Item.genericQuery(), [kSecAttrLabel: "label"]) == errSecSuccess)
    }

    @Test("Case 46: a query for attributes does not return the secret")
    func attributesWithoutSecret() throws {
        add(Item.generic())
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecValueData] == nil)
    }

    @Test("Case 47: a deletion may contain kSecReturnData")
    func deleteWithReturnData() {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(kSecReturnData, true)) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("Case 53: adding an item with another accessibility is a duplicate, and changes nothing")
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

@Suite("Internet passwords, cases of the specification", .keychain)
struct InternetPasswordCases {
    @Test("Case 1: the same internet password twice is a duplicate")
    func addTwice() {
        #expect(add(Item.internet()).status == errSecSuccess)
        #expect(add(Item.internet()).status == errSecDuplicateItem)
    }

    @Test("Case 2: a query without return keys reports that the item exists, and returns nothing")
    func existence() {
        add(Item.internet())
        let answer = find(Item.internetQuery())
        #expect(answer.status == errSecSuccess)
        #expect(answer.result == nil)
    }

    @Test("Case 3: the attributes of an item are a query for it, with sha1 and without", arguments: [true, false])
    func attributesAsQuery(keepsSHA1: Bool) throws {
        add(Item.internet())
        var query = try #require(attributes(of: Item.internetQuery().with(kSecMatchLimit, kSecMatchLimitOne)))
        if !keepsSHA1 { query = query.without(PrivateKey.sha1) }
        let answer = find(query.with([kSecClass: kSecClassInternetPassword, kSecReturnData: true]))
        #expect(answer.status == errSecSuccess)
        #expect(answer.data == Item.secret)
    }

    @Test("Case 4: an update that changes the server moves the item away from the old query")
    func move() {
        add(Item.internet(server: "old.example.com"))
        let old = Item.internetQuery(server: "old.example.com")
        #expect(update(old, [kSecAttrServer: "new.example.com"]) == errSecSuccess)
        #expect(update(old, [kSecAttrServer: "new.example.com"]) == errSecItemNotFound)
        #expect(delete(old) == errSecItemNotFound)
        #expect(secret(of: Item.internetQuery(server: "new.example.com")) == Item.secret)
    }

    @Test("Case 5: an item cannot be moved onto another one, and both remain unchanged")
    func moveOntoAnother() {
        add(Item.internet(server: "new.example.com"))
        add(Item.internet(server: "old.example.com"))
        let old = Item.internetQuery(server: "old.example.com")
        #expect(update(old, [kSecAttrServer: "new.example.com"]) == errSecDuplicateItem)
        #expect(delete(old) == errSecSuccess)
        #expect(delete(Item.internetQuery(server: "new.example.com")) == errSecSuccess)
    }

    @Test("Case 9: an empty string is accepted as a port, and stored")
    func emptyPort() throws {
        let item = Item.internet().with(kSecAttrPort, "")
        #expect(add(item).status == errSecSuccess)
        let found = try #require(attributes(of: item))
        #expect(found[kSecAttrPort] as? String == "")
    }

    @Test("Case 13: a server stored as data is returned as data")
    func serverAsData() throws {
        let server = Data("example.com".utf8)
        add(Item.internet().with(kSecAttrServer, server))
        let found = try #require(attributes(of: [kSecClass: kSecClassInternetPassword]))
        #expect(PlainValue(found[kSecAttrServer]) == .data(server))
    }

    @Test(
        "Case 78: a host finds the items of its subdomains and its own, and no other's",
        arguments: [
            ("example.com", errSecSuccess), ("origin.example.com", errSecSuccess), ("foobar.com", errSecItemNotFound),
            ("ample.com", errSecItemNotFound), ("Example.com", errSecItemNotFound), ("www.origin.example.com", errSecItemNotFound),
        ])
    func hostOrSubdomain(host: String, status: OSStatus) {
        add(Item.internet(server: "origin.example.com"))
        #expect(find([kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: host]).status == status)
    }

    @Test("Case 78: the host filter applies only to internet passwords")
    func hostOfGenericPassword() {
        add(Item.generic())
        let query = Item.genericQuery().with(kSecMatchHostOrSubdomainOfHost, "example.com")
        #expect(find(query).status == errSecUnimplemented)
    }
}
