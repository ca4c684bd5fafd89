// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

/// Return keys, and the keys of the resulting dictionary apart from the attributes.
private struct Flags: CustomTestStringConvertible, Sendable {
    let keys: [CFString]
    let extra: Set<String>

    init(_ keys: [CFString], adds extra: [CFString]) {
        self.keys = keys
        self.extra = Set(extra.map { $0 as String })
    }

    var testDescription: String { keys.map { $0 as String }.joined(separator: " ") }
    var dictionary: ItemDictionary { Dictionary(uniqueKeysWithValues: keys.map { ($0, true) }) }
}

extension Item.Kind {
    /// The attributes that make up the primary key and that every item has.
    fileprivate var keyAttributes: Set<String> {
        let keys: [CFString] =
            switch self {
            case .generic: [kSecAttrAccount, kSecAttrService]
            case .internet:
                [
                    kSecAttrAccount, kSecAttrServer, kSecAttrSecurityDomain, kSecAttrProtocol, kSecAttrAuthenticationType, kSecAttrPort,
                    kSecAttrPath,
                ]
            }
        return Set(keys.map { $0 as String })
    }
}

private func names(_ keys: CFString...) -> Set<String> { Set(keys.map { $0 as String }) }

private func names(of dictionary: ItemDictionary?) -> Set<String> { Set((dictionary ?? [:]).keys.map { $0 as String }) }

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Sections 4.3, 5.2 and 5.3: results", .keychain)
struct ResultTests {
    private static let withAttributes = [
        Flags([kSecReturnAttributes], adds: []),
        Flags([kSecReturnAttributes, kSecReturnData], adds: [kSecValueData]),
        Flags([kSecReturnAttributes, kSecReturnPersistentRef], adds: [kSecValuePersistentRef]),
        Flags([kSecReturnAttributes, kSecReturnRef], adds: [kSecClass]),
        Flags([kSecReturnAttributes, kSecReturnData, kSecReturnPersistentRef], adds: [kSecValueData, kSecValuePersistentRef]),
        Flags(
            [kSecReturnAttributes, kSecReturnData, kSecReturnRef, kSecReturnPersistentRef],
            adds: [kSecClass, kSecValueData, kSecValuePersistentRef]),
    ]

    private static let common = names(
        kSecAttrAccessGroup, kSecAttrCreationDate, kSecAttrModificationDate, kSecAttrAccessible, kSecAttrSynchronizable, PrivateKey.sha1)

    // MARK: Adding

    @Test("An add returns the attributes that every item has, and those supplied", arguments: Item.Kind.allCases, withAttributes)
    private func addedAttributes(kind: Item.Kind, flags: Flags) throws {
        let item = kind.item.with([kSecAttrLabel: "label", kSecAttrType: 7]).with(flags.dictionary)
        let delivered = try #require(add(item).attributes)
        let expected = Self.common.union(kind.keyAttributes).union(names(kSecAttrLabel, kSecAttrType)).union(flags.extra)
        #expect(names(of: delivered) == expected)
    }

    @Test("An add returns the access control if one was supplied")
    func addedAccessControl() throws {
        let control = try accessControl(kSecAttrAccessibleAlways, [])
        let delivered = add(Item.generic().with([kSecAttrAccessControl: control, kSecReturnAttributes: true])).attributes
        #expect(delivered?[kSecAttrAccessControl] as? SecAccessControl == control)
        #expect(delivered?[kSecAttrAccessible] as? String == kSecAttrAccessibleAlways as String)
    }

    @Test("Adding an item with or without a secret returns data or empty data", arguments: [true, false])
    func addedData(hasSecret: Bool) {
        let item = hasSecret ? Item.generic() : Item.genericQuery()
        #expect(add(item.with(kSecReturnData, true)).data == (hasSecret ? Item.secret : Data()))
    }

    @Test("Adding with data and persistent reference requested returns a dictionary of both")
    func addedDataAndReference() throws {
        let delivered = try #require(add(Item.generic().with([kSecReturnData: true, kSecReturnPersistentRef: true])).attributes)
        #expect(names(of: delivered) == names(kSecValueData, kSecValuePersistentRef))
        #expect(delivered[kSecValueData] as? Data == Item.secret)
        #expect((delivered[kSecValuePersistentRef] as? Data)?.count == 20)
    }

    // MARK: Searching

    @Test("A search returns the attributes that every item has, and those supplied", arguments: Item.Kind.allCases, withAttributes)
    private func foundAttributes(kind: Item.Kind, flags: Flags) throws {
        add(kind.item.with([kSecAttrLabel: "label", kSecAttrType: 7]))
        let expected = Self.common.union(kind.keyAttributes).union(flags.extra)
            .union(names(kSecAttrLabel, kSecAttrType, PrivateKey.tombstone, PrivateKey.user, kSecAttrAccessControl))
        let one = find(kind.query.with(flags.dictionary))
        #expect(names(of: one.attributes) == expected)
        let all = find(kind.query.with(flags.dictionary).with(kSecMatchLimit, kSecMatchLimitAll))
        #expect(all.attributesArray?.count == 1)
        #expect(names(of: all.attributesArray?.first) == expected)
    }

    @Test("Each attribute of a found item has its type")
    func types() throws {
        let generic = Data([0, 1, 2])
        add(
            Item.generic().with([
                kSecAttrLabel: "label", kSecAttrComment: "comment", kSecAttrDescription: "description", kSecAttrGeneric: generic,
                kSecAttrCreator: 5, kSecAttrType: 7, kSecAttrIsInvisible: true, kSecAttrIsNegative: false,
            ]))
        let found = try #require(attributes(of: Item.genericQuery()))
        let expected: [(CFString, PlainValue)] = [
            (kSecAttrAccount, .text("account")), (kSecAttrService, .text("service")), (kSecAttrLabel, .text("label")),
            (kSecAttrComment, .text("comment")), (kSecAttrDescription, .text("description")), (kSecAttrGeneric, .data(generic)),
            (kSecAttrCreator, .number(5)), (kSecAttrType, .number(7)), (kSecAttrIsInvisible, .number(1)), (kSecAttrIsNegative, .number(0)),
            (kSecAttrAccessible, .text(kSecAttrAccessibleWhenUnlocked as String)), (kSecAttrSynchronizable, .number(0)),
            (PrivateKey.tombstone, .number(0)), (PrivateKey.user, .data(Data())), (kSecAttrAccessGroup, .text("in-memory")),
        ]
        for (key, value) in expected { #expect(PlainValue(found[key]) == value, "\(key)") }
        #expect(found[kSecAttrCreationDate] is Date)
        #expect(found[kSecAttrModificationDate] is Date)
        #expect(PlainValue(found[PrivateKey.sha1]) != nil)
        #expect(found[kSecAttrIsInvisible] as? Bool == true)
    }

    @Test("The access control of an item added without one contains its accessibility")
    func accessControlOfPlainItem() throws {
        add(Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock))
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecAttrAccessControl] is SecAccessControl)
    }

    @Test("A search for data and persistent reference returns both, with the attributes of the item")
    func foundDataAndReference() throws {
        add(Item.generic())
        let found = try #require(find(Item.genericQuery().with([kSecReturnData: true, kSecReturnPersistentRef: true])).attributes)
        #expect(found[kSecValueData] as? Data == Item.secret)
        #expect((found[kSecValuePersistentRef] as? Data)?.count == 20)
        #expect(found[kSecAttrAccount] as? String == "account")
    }

    @Test("A search for data alone returns data, and one for a persistent reference alone returns that", arguments: Item.Kind.allCases)
    func foundDataAlone(kind: Item.Kind) {
        let reference = add(kind.item.with(kSecReturnPersistentRef, true)).data
        #expect(find(kind.query.with(kSecReturnData, true)).data == Item.secret)
        #expect(find(kind.query.with(kSecReturnPersistentRef, true)).data == reference)
    }

    @Test("A search for several items without return keys returns an empty array")
    func foundWithoutReturnKeys() {
        add(Item.generic())
        for limit in [kSecMatchLimitAll as Any, 2] {
            let answer = find(Item.genericQuery().with(kSecMatchLimit, limit))
            #expect(answer.status == errSecSuccess)
            #expect(answer.array?.isEmpty == true)
        }
    }

    @Test("A result with data and attributes has no data key if the item has no secret")
    func foundWithoutSecret() {
        add(Item.genericQuery())
        let found = find(Item.genericQuery().with([kSecReturnData: true, kSecReturnAttributes: true])).attributes
        #expect(found?[kSecAttrAccount] as? String == "account")
        #expect(found?.keys.contains(kSecValueData) == false)
    }

    @Test("Items without a secret are left out of an array of data")
    func arrayWithoutSecrets() {
        add(Item.generic("with"))
        add(Item.genericQuery("without"))
        let query: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecReturnData: true, kSecMatchLimit: kSecMatchLimitAll]
        #expect(find(query).dataArray == [Item.secret])
    }

    @Test("A call that fails returns nothing")
    func failure() {
        let answer = find(Item.genericQuery().with(kSecReturnData, true))
        #expect(answer.status == errSecItemNotFound)
        #expect(answer.result == nil)
        add(Item.generic())
        let again = add(Item.generic().with(kSecReturnData, true))
        #expect(again.status == errSecDuplicateItem)
        #expect(again.result == nil)
    }
}

@Suite("Results, cases of the specification", .keychain)
struct ResultCases {
    @Test(
        "Case 16: a password has no reference: requesting one returns nothing and is not an error",
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
        "Case 17: certificates, keys and identities are unimplemented in every call",
        arguments: Verb.allCases, [kSecClassCertificate, kSecClassKey, kSecClassIdentity])
    func otherClasses(verb: Verb, itemClass: CFString) {
        #expect(verb.status([kSecClass: itemClass, kSecAttrLabel: "label"]) == errSecUnimplemented)
    }

    @Test("Case 17: the result of an add depends on the return keys")
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

    @Test("Case 18: an attribute of another class is rejected")
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

    @Test("Case 24: a result with attributes and data has only attributes if the item has no secret")
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

    @Test("Case 25: a search for the data of an item without a secret returns nothing, or an empty array")
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
