// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 6: updates", .keychain(accessGroups: ["group1", "group2"]))
struct UpdateTests {
    private let query = Item.genericQuery()
    private let change: ItemDictionary = [kSecAttrLabel: "label"]

    // MARK: The query

    @Test(
        "The query of an update must not contain a match key",
        arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, kSecMatchHostOrSubdomainOfHost, kSecMatchPolicy, "m_Unknown" as CFString])
    func matchKeys(key: CFString) {
        add(Item.internet())
        #expect(update(Item.internetQuery().with(key, kSecMatchLimitOne), change) == errSecParam)
    }

    @Test("Every item that matches is updated")
    func manyItems() throws {
        for account in ["first", "second"] { add(Item.generic(account)) }
        add(Item.generic("third", service: "other"))
        #expect(update([kSecClass: kSecClassGenericPassword, kSecAttrService: "service"], change) == errSecSuccess)
        #expect(count(of: [kSecClass: kSecClassGenericPassword, kSecAttrLabel: "label"]) == 2)
    }

    @Test("Updating without a match reports \"not found\"")
    func noItem() {
        #expect(update(query, change) == errSecItemNotFound)
    }

    // MARK: The changes

    @Test("An item cannot be moved to a token")
    func token() {
        add(Item.generic())
        #expect(update(query, [kSecAttrTokenID: kSecAttrTokenIDSecureEnclave]) == errSecUnimplemented)
        #expect(secret(of: query) == Item.secret)
    }

    @Test(
        "An update rejects every key that is not an attribute of the item",
        arguments: [
            (kSecClass, kSecClassGenericPassword as String, errSecNoSuchAttr), (kSecReturnData, true, errSecNoSuchAttr),
            (kSecReturnAttributes, false, errSecNoSuchAttr), (kSecMatchLimit, 1, errSecNoSuchAttr),
            (kSecUseOperationPrompt, "Please", errSecNoSuchAttr), (kSecUseAuthenticationUI, "u_AuthUIF", errSecNoSuchAttr),
            (PrivateKey.credentialReference, Data(), errSecNoSuchAttr), (kSecUseAuthenticationContext, "x", errSecNoSuchAttr),
            (kSecValueRef, "x", errSecNoSuchAttr), (kSecValuePersistentRef, Data(), errSecNoSuchAttr),
            ("abcd" as CFString, "x", errSecNoSuchAttr), ("unknown" as CFString, "x", errSecNoSuchAttr),
            (kSecAttrServer, "example.com", errSecNoSuchAttr),
            (PrivateKey.sharingGroup, "group", errSecParam), (PrivateKey.appClipItem, 1, errSecParam),
            (PrivateKey.tombstone, 1, errSecParam),
        ] as [(CFString, any Sendable, OSStatus)])
    func refusedKeys(key: CFString, value: any Sendable, status: OSStatus) {
        add(Item.generic())
        #expect(update(query, [key: value]) == status)
        #expect(update(query, change.with(key, value)) == status)
        #expect(find(query.with(change)).status == errSecItemNotFound)
    }

    @Test(
        "An update checks the type of each value",
        arguments: [
            (kSecValueData, "text"), (kSecValueData, NSNull()), (kSecValueData, 1), (kSecAttrLabel, true), (kSecAttrType, Data()),
            (kSecAttrAccessible, "bogus"), (kSecAttrAccessControl, "string"), (kSecAttrSynchronizable, Data()),
            (kSecAttrCreationDate, "2020"), (kSecAttrAccessGroup, 5),
        ] as [(CFString, any Sendable)])
    func badValues(key: CFString, value: any Sendable) throws {
        add(Item.generic())
        let before = try #require(attributes(of: query))
        #expect(update(query, [key: value]) == errSecParam)
        #expect(before.isEqual(to: attributes(of: query)))
    }

    @Test(
        "Every attribute of the class can be changed without changing the secret",
        arguments: [
            (kSecAttrLabel, .text("new")), (kSecAttrComment, .text("new")), (kSecAttrDescription, .data(Data([1]))),
            (kSecAttrGeneric, .data(Data([2]))), (kSecAttrType, .number(5)), (kSecAttrCreator, .number(6)),
            (kSecAttrIsInvisible, .number(1)),
            (kSecAttrIsNegative, .number(1)), (kSecAttrAccount, .text("new")), (kSecAttrService, .text("new")),
            (kSecAttrAccessGroup, .text("group2")), (kSecAttrAccessible, .text("ck")),
        ] as [(CFString, PlainValue)])
    func changeAttribute(key: CFString, value: PlainValue) throws {
        add(Item.generic())
        #expect(update(query, [key: value.value]) == errSecSuccess)
        let found = try #require(attributes(of: [kSecClass: kSecClassGenericPassword, key: value.value]))
        #expect(PlainValue(found[key]) == value)
        #expect(secret(of: [kSecClass: kSecClassGenericPassword]) == Item.secret)
        #expect(count(of: [kSecClass: kSecClassGenericPassword]) == 1)
    }

    @Test("A new secret changes no attribute except modification date and sha1")
    func changeSecret() throws {
        add(Item.generic().with(change))
        let before = try #require(attributes(of: query))
        #expect(update(query, [kSecValueData: Data("new".utf8)]) == errSecSuccess)
        let after = try #require(attributes(of: query))
        let derived = [kSecAttrModificationDate, PrivateKey.sha1]
        #expect(before.filter { !derived.contains($0.key) }.isEqual(to: after.filter { !derived.contains($0.key) }))
        #expect(secret(of: query) == Data("new".utf8))
    }

    @Test("The creation date can be set; modification date, sha1 and user are ignored")
    func derivedAttributes() throws {
        add(Item.generic())
        let date = Date(timeIntervalSinceReferenceDate: 1000)
        #expect(update(query, [kSecAttrCreationDate: date]) == errSecSuccess)
        #expect(attributes(of: query)?[kSecAttrCreationDate] as? Date == date)
        let ignored: ItemDictionary = [
            kSecAttrModificationDate: date, PrivateKey.sha1: Data(count: 20), PrivateKey.user: Data(repeating: 1, count: 16),
            kSecUseDataProtectionKeychain: true,
        ]
        #expect(update(query, ignored) == errSecSuccess)
        let found = try #require(attributes(of: query))
        #expect(found[kSecAttrModificationDate] as? Date != date)
        #expect(PlainValue(found[PrivateKey.sha1]) != .data(Data(count: 20)))
        #expect(PlainValue(found[PrivateKey.user]) == .data(Data()))
    }

    @Test("'Synchronizable or not' as a change has no effect", arguments: [true, false])
    func synchronizableAny(isSynchronizable: Bool) {
        let query = query.with(kSecAttrSynchronizable, isSynchronizable)
        add(Item.generic().with(kSecAttrSynchronizable, isSynchronizable))
        #expect(update(query, [kSecAttrSynchronizable: kSecAttrSynchronizableAny]) == errSecSuccess)
        #expect(find(query).status == errSecSuccess)
    }

    @Test("An item for this device only can become synchronizable, and the other way round")
    func deviceOnly() throws {
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        let deviceOnly: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleWhenUnlockedThisDeviceOnly]
        add(Item.generic("device").with(deviceOnly))
        #expect(update(Item.genericQuery("device"), synchronizable) == errSecSuccess)
        add(Item.generic("synchronizable").with(synchronizable))
        #expect(update(Item.genericQuery("synchronizable").with(synchronizable), deviceOnly) == errSecSuccess)
        add(Item.generic("both"))
        #expect(update(Item.genericQuery("both"), deviceOnly.with(synchronizable)) == errSecSuccess)
        #expect(tombstones == 0)
        for account in ["device", "synchronizable", "both"] {
            #expect(find(Item.genericQuery(account)).status == errSecItemNotFound)
            let query = Item.genericQuery(account).with(synchronizable)
            #expect(secret(of: query) == Item.secret)
            let found = try #require(attributes(of: query))
            #expect(found[kSecAttrAccessible] as? String == kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String)
        }
        #expect(update(Item.genericQuery("both").with(synchronizable), [kSecAttrSynchronizable: false]) == errSecSuccess)
        #expect(secret(of: Item.genericQuery("both")) == Item.secret)
    }

    @Test("An update without changes succeeds, with a later modification date")
    func noChanges() throws {
        add(Item.generic())
        let before = try #require(attributes(of: query)?[kSecAttrModificationDate] as? Date)
        #expect(update(query, [:]) == errSecSuccess)
        #expect(try #require(attributes(of: query)?[kSecAttrModificationDate] as? Date) > before)
    }

    // MARK: Atomicity

    @Test("An update that would merge several items changes none")
    func severalToOne() throws {
        let all: ItemDictionary = [kSecClass: kSecClassGenericPassword]
        for account in ["first", "second", "third"] { add(Item.generic(account)) }
        let before = find(all.with([kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll])).attributesArray
        #expect(update(all, [kSecAttrAccount: "same", kSecAttrLabel: "label"]) == errSecDuplicateItem)
        let after = find(all.with([kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll])).attributesArray
        #expect(try #require(before) as NSArray == (try #require(after)) as NSArray)
    }

    @Test("An update to an item's own primary key succeeds")
    func toItself() {
        add(Item.generic())
        #expect(update(query, [kSecAttrAccount: "account", kSecValueData: Data("new".utf8)]) == errSecSuccess)
        #expect(secret(of: query) == Data("new".utf8))
    }

    // MARK: Synchronizable items

    private var tombstones: Int {
        count(of: [
            kSecClass: kSecClassGenericPassword, kSecAttrSynchronizable: kSecAttrSynchronizableAny, PrivateKey.tombstone: true,
        ])
    }

    @Test("A synchronizable item that moves or becomes local leaves a tombstone; a local one that moves does not")
    func tombstone() {
        add(Item.generic("local"))
        #expect(update(Item.genericQuery("local"), [kSecAttrAccount: "moved"]) == errSecSuccess)
        #expect(tombstones == 0)
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        add(Item.generic().with(synchronizable))
        #expect(update(query.with(synchronizable), change) == errSecSuccess)
        #expect(tombstones == 0)
        #expect(update(query.with(synchronizable), [kSecAttrAccount: "elsewhere"]) == errSecSuccess)
        #expect(tombstones == 1)
        #expect(update(Item.genericQuery("elsewhere").with(synchronizable), [kSecAttrSynchronizable: false]) == errSecSuccess)
        #expect(tombstones == 2)
        #expect(secret(of: Item.genericQuery("elsewhere")) == Item.secret)
    }

    @Test("An item can move onto a tombstone")
    func ontoTombstone() {
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        add(Item.generic().with(synchronizable))
        #expect(delete(query.with(synchronizable)) == errSecSuccess)
        add(Item.generic("other").with(synchronizable))
        #expect(update(Item.genericQuery("other").with(synchronizable), [kSecAttrAccount: "account"]) == errSecSuccess)
        #expect(secret(of: query.with(synchronizable)) == Item.secret)
    }
}

@Suite("Updates and deletions, cases of the specification", .keychain)
struct ChangeCases {
    @Test("Case 82: delete and update reject a limit")
    func limit() {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(kSecMatchLimit, kSecMatchLimitAll)) == errSecParam)
        #expect(update(Item.genericQuery().with(kSecMatchLimit, kSecMatchLimitOne), [kSecAttrLabel: "label"]) == errSecParam)
        #expect(find(Item.genericQuery()).status == errSecSuccess)
    }

    @Test("Case 83: an update changes attributes and the secret, and rejects other keys")
    func otherKeys() {
        add(Item.generic())
        #expect(update(Item.genericQuery(), [kSecClass: kSecClassGenericPassword]) == errSecNoSuchAttr)
        #expect(update(Item.genericQuery(), [kSecReturnData: true]) == errSecNoSuchAttr)
    }

    @Test("Case 86: every update sets a later modification date and ignores that of the call")
    func modificationDate() throws {
        add(Item.generic())
        var last = try #require(attributes(of: Item.genericQuery())?[kSecAttrModificationDate] as? Date)
        let changes: [ItemDictionary] = [
            [kSecAttrLabel: "label"], [kSecAttrLabel: "label"], [kSecValueData: Data()], [:],
            [kSecAttrModificationDate: Date(timeIntervalSinceReferenceDate: 0)],
            [kSecAttrModificationDate: Date.distantFuture, kSecAttrComment: "comment"],
        ]
        for change in changes {
            #expect(update(Item.genericQuery(), change) == errSecSuccess)
            let next = try #require(attributes(of: Item.genericQuery())?[kSecAttrModificationDate] as? Date)
            #expect(next > last)
            #expect(next < Date(timeIntervalSinceNow: 3600))
            last = next
        }
    }
}
