// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Section 4.2: what can be added", .inMemoryKeychain(accessGroups: ["group1", "group2", "com.apple.apsd"]))
struct AddTests {
    @Test("A class is all that an item needs; the primary key is then empty")
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

    @Test("An empty secret is a secret, and read back as such")
    func emptySecret() {
        #expect(add(Item.generic().with(kSecValueData, Data())).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == Data())
    }

    @Test("A secret comes back byte for byte, whatever its size", arguments: [1, 19, 20, 21, 32 * 1024 + 1, 1024 * 1024])
    func secretSizes(byteCount: Int) {
        let value = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        #expect(add(Item.generic().with(kSecValueData, value)).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == value)
    }

    @Test("An item of more than 64 MiB is refused", arguments: [kSecValueData, kSecAttrGeneric])
    func tooLarge(key: CFString) {
        let value = Data(count: 64 << 20)
        #expect(add(Item.generic().with(key, value)).status == errSecParam)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("The keychain sets the dates, whatever the caller says")
    func dates() throws {
        let long = Date(timeIntervalSinceReferenceDate: 0)
        #expect(add(Item.generic().with([kSecAttrCreationDate: long, kSecAttrModificationDate: long])).status == errSecSuccess)
        let found = try #require(attributes(of: Item.genericQuery()))
        let created = try #require(found[kSecAttrCreationDate] as? Date)
        #expect(abs(created.timeIntervalSinceNow) < 24 * 60 * 60)
        #expect(found[kSecAttrModificationDate] as? Date == created)
    }

    @Test("The keychain computes sha1, whatever the caller says")
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

    @Test("A local item and a synchronizable one with the same key live side by side")
    func twins() {
        #expect(add(Item.generic().with(kSecAttrSynchronizable, false)).status == errSecSuccess)
        #expect(add(Item.generic().with(kSecAttrSynchronizable, true)).status == errSecSuccess)
        #expect(count(of: Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == 2)
    }

    @Test("Two access groups hold the same key each for itself")
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
        "An item for this device only cannot be synchronizable",
        arguments: [
            kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            kSecAttrAccessibleAlwaysThisDeviceOnly, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly,
        ])
    func deviceOnly(accessibility: CFString) {
        let item = Item.generic().with([kSecAttrAccessible: accessibility, kSecAttrSynchronizable: true])
        #expect(add(item).status == errSecParam)
    }

    @Test("An item that needs a passcode cannot be added while none is set")
    func noPasscode() {
        let item = Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
        #expect(add(item).status == errSecAuthFailed)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        add(Item.generic())
        let change: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly]
        #expect(update(Item.genericQuery(), change) == errSecAuthFailed)
    }

    @Test(
        "What is for searches only is refused, and nothing is stored",
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

    @Test("A persistent reference of the older form, or of a token, is refused")
    func otherReferences() {
        let legacy = Data("genp".utf8) + Data([0, 0, 0, 0, 0, 0, 0, 1])
        #expect(add(Item.generic().with(kSecValuePersistentRef, legacy)).status == errSecParam)
        #expect(add(Item.generic().with(kSecValuePersistentRef, Data("tkpr".utf8) + Data([0x30, 0]))).status == errSecParam)
    }

    @Test("The result pointer may be left out, whatever is asked for")
    func noResultPointer() {
        let all: ItemDictionary = [kSecReturnData: true, kSecReturnAttributes: true, kSecReturnPersistentRef: true]
        #expect(SecItemAdd(Item.generic().with(all) as CFDictionary, nil) == errSecSuccess)
        #expect(SecItemCopyMatching(Item.genericQuery().with(all) as CFDictionary, nil) == errSecSuccess)
    }
}
