// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

/// An attribute, and two values that differ.
private struct Difference: CustomTestStringConvertible, Sendable {
    let kind: Item.Kind
    let key: CFString
    let first: any Sendable
    let second: any Sendable

    init(_ kind: Item.Kind, _ key: CFString, _ first: any Sendable = "first", _ second: any Sendable = "second") {
        self.kind = kind
        self.key = key
        self.first = first
        self.second = second
    }

    var testDescription: String { "\(kind) \(key)" }
    var items: (ItemDictionary, ItemDictionary) { (kind.item.with(key, first), kind.item.with(key, second)) }
}

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 3.2: primary keys", .keychain(accessGroups: ["first", "second"]))
struct PrimaryKeyTests {
    private static let inKey =
        Item.Kind.allCases.flatMap { kind in
            [
                Difference(kind, kSecAttrAccount), Difference(kind, kSecAttrAccessGroup), Difference(kind, kSecAttrSyncViewHint),
                Difference(kind, kSecAttrSynchronizable, true, false),
                Difference(kind, PrivateKey.user, Data(repeating: 1, count: 16), Data(repeating: 2, count: 16)),
            ]
        } + [
            Difference(.generic, kSecAttrService),
            Difference(.internet, kSecAttrSecurityDomain), Difference(.internet, kSecAttrServer),
            Difference(.internet, kSecAttrProtocol, kSecAttrProtocolHTTP as String, kSecAttrProtocolHTTPS as String),
            Difference(
                .internet, kSecAttrAuthenticationType, kSecAttrAuthenticationTypeHTTPBasic as String,
                kSecAttrAuthenticationTypeHTTPDigest as String),
            Difference(.internet, kSecAttrPort, 80, 81), Difference(.internet, kSecAttrPath, "/first", "/second"),
        ]

    private static let notInKey =
        Item.Kind.allCases.flatMap { kind in
            [
                Difference(kind, kSecAttrLabel), Difference(kind, kSecAttrDescription), Difference(kind, kSecAttrComment),
                Difference(kind, PrivateKey.alias), Difference(kind, PrivateKey.protected),
                Difference(kind, kSecAttrType, 1, 2), Difference(kind, kSecAttrCreator, 1, 2),
                Difference(kind, PrivateKey.scriptCode, 1, 2),
                Difference(kind, kSecAttrIsInvisible, true, false), Difference(kind, kSecAttrIsNegative, true, false),
                Difference(kind, PrivateKey.hasCustomIcon, true, false),
                Difference(kind, kSecAttrAccessible, kSecAttrAccessibleWhenUnlocked as String, kSecAttrAccessibleAlways as String),
                Difference(kind, kSecAttrCreationDate, Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 2)),
                Difference(kind, kSecAttrModificationDate, Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 2)),
                Difference(kind, kSecValueData, Data("first".utf8), Data("second".utf8)),
            ]
        } + [Difference(.generic, kSecAttrGeneric)]

    @Test("Two items that differ only in an attribute of the primary key can coexist", arguments: inKey)
    private func different(difference: Difference) {
        let (first, second) = difference.items
        #expect(add(first).status == errSecSuccess)
        #expect(add(second).status == errSecSuccess)
        #expect(add(first).status == errSecDuplicateItem)
        #expect(add(second).status == errSecDuplicateItem)
        #expect(delete(first) == errSecSuccess)
        #expect(find(first).status == errSecItemNotFound)
        #expect(find(second).status == errSecSuccess)
    }

    @Test("An update that would give two items the same primary key is rejected", arguments: inKey.filter { $0.key != PrivateKey.user })
    private func updateToDuplicate(difference: Difference) {
        let (first, second) = difference.items
        add(first)
        add(second)
        #expect(update(first, [difference.key: difference.second]) == errSecDuplicateItem)
        #expect(find(first).status == errSecSuccess)
    }

    @Test("Two items that differ only in other attributes are duplicates", arguments: notInKey)
    private func same(difference: Difference) {
        let (first, second) = difference.items
        #expect(add(first).status == errSecSuccess)
        #expect(add(second).status == errSecDuplicateItem)
    }

    @Test("A generic and an internet password never collide")
    func classes() {
        #expect(add([kSecClass: kSecClassGenericPassword, kSecAttrAccount: "account"]).status == errSecSuccess)
        #expect(add([kSecClass: kSecClassInternetPassword, kSecAttrAccount: "account"]).status == errSecSuccess)
    }
}

@Suite("Section 3.3: values that the keychain derives", .keychain)
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
