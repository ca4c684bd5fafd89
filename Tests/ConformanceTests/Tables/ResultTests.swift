// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

/// Return keys, and which keys the delivered dictionary has beside the attributes.
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

@Suite("Sections 4.3, 5.2 and 5.3: what is delivered", .inMemoryKeychain)
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

    @Test("An add delivers the attributes that every item has, and those supplied", arguments: Item.Kind.allCases, withAttributes)
    private func addedAttributes(kind: Item.Kind, flags: Flags) throws {
        let item = kind.item.with([kSecAttrLabel: "label", kSecAttrType: 7]).with(flags.dictionary)
        let delivered = try #require(add(item).attributes)
        let expected = Self.common.union(kind.keyAttributes).union(names(kSecAttrLabel, kSecAttrType)).union(flags.extra)
        #expect(names(of: delivered) == expected)
    }

    @Test("An add delivers the access control if one was supplied")
    func addedAccessControl() throws {
        let control = try accessControl(kSecAttrAccessibleAlways, [])
        let delivered = add(Item.generic().with([kSecAttrAccessControl: control, kSecReturnAttributes: true])).attributes
        #expect(delivered?[kSecAttrAccessControl] as? SecAccessControl == control)
        #expect(delivered?[kSecAttrAccessible] as? String == kSecAttrAccessibleAlways as String)
    }

    @Test("An add of a secret or none delivers data or empty data", arguments: [true, false])
    func addedData(hasSecret: Bool) {
        let item = hasSecret ? Item.generic() : Item.genericQuery()
        #expect(add(item.with(kSecReturnData, true)).data == (hasSecret ? Item.secret : Data()))
    }

    @Test("An add that asks for data and persistent reference delivers a dictionary of the two")
    func addedDataAndReference() throws {
        let delivered = try #require(add(Item.generic().with([kSecReturnData: true, kSecReturnPersistentRef: true])).attributes)
        #expect(names(of: delivered) == names(kSecValueData, kSecValuePersistentRef))
        #expect(delivered[kSecValueData] as? Data == Item.secret)
        #expect((delivered[kSecValuePersistentRef] as? Data)?.count == 20)
    }

    // MARK: Searching

    @Test("A search delivers the attributes that every found item has, and those supplied", arguments: Item.Kind.allCases, withAttributes)
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

    @Test("The access control of an item that was given none says its accessibility")
    func accessControlOfPlainItem() throws {
        add(Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock))
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecAttrAccessControl] is SecAccessControl)
    }

    @Test("A search for data and persistent reference delivers both, and says which item it is")
    func foundDataAndReference() throws {
        add(Item.generic())
        let found = try #require(find(Item.genericQuery().with([kSecReturnData: true, kSecReturnPersistentRef: true])).attributes)
        #expect(found[kSecValueData] as? Data == Item.secret)
        #expect((found[kSecValuePersistentRef] as? Data)?.count == 20)
        #expect(found[kSecAttrAccount] as? String == "account")
    }

    @Test("A search for data alone delivers data, for a persistent reference alone that", arguments: Item.Kind.allCases)
    func foundDataAlone(kind: Item.Kind) {
        let reference = add(kind.item.with(kSecReturnPersistentRef, true)).data
        #expect(find(kind.query.with(kSecReturnData, true)).data == Item.secret)
        #expect(find(kind.query.with(kSecReturnPersistentRef, true)).data == reference)
    }

    @Test("A search for many items that asks for nothing delivers an empty array")
    func foundNothingAsked() {
        add(Item.generic())
        for limit in [kSecMatchLimitAll as Any, 2] {
            let answer = find(Item.genericQuery().with(kSecMatchLimit, limit))
            #expect(answer.status == errSecSuccess)
            #expect(answer.array?.isEmpty == true)
        }
    }

    @Test("An item without a secret has no data key, asked for data and attributes")
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

    @Test("A call that fails delivers nothing")
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
