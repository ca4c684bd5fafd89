// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

/// A limit, and the number of results from three items.
private struct Limit: CustomTestStringConvertible, Sendable {
    let value: any Sendable
    let outcome: Outcome

    enum Outcome: Sendable {
        case one
        case array(count: Int)
        case status(OSStatus)
    }

    init(_ value: any Sendable, _ outcome: Outcome) {
        self.value = value
        self.outcome = outcome
    }

    var testDescription: String { "\(value) as \(type(of: value))" }
}

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Sections 5.1, 5.4 to 5.7: searches", .keychain)
struct SearchTests {
    @Test(
        "A limit of one returns one item, and every other limit an array",
        arguments: [
            Limit(kSecMatchLimitOne as String, .one), Limit(1, .one), Limit(NSNumber(value: 1), .one), Limit(UInt8(1), .one),
            Limit(kSecMatchLimitAll as String, .array(count: 3)), Limit(-1, .array(count: 3)), Limit(2, .array(count: 2)),
            Limit(3, .array(count: 3)), Limit(4, .array(count: 3)), Limit(Int.max, .array(count: 3)), Limit(0, .status(errSecItemNotFound)),
            Limit(-2, .status(errSecParam)), Limit(Int.min, .status(errSecParam)), Limit("bogus", .status(errSecParam)),
            Limit("2", .status(errSecParam)), Limit("", .status(errSecParam)), Limit(true, .status(errSecParam)),
            Limit(1.5, .status(errSecParam)), Limit(Data(), .status(errSecParam)), Limit(NSNull(), .status(errSecParam)),
            Limit([1], .status(errSecParam)),
        ])
    private func limit(limit: Limit) {
        for account in ["first", "second", "third"] { add(Item.generic(account)) }
        let answer = find([kSecClass: kSecClassGenericPassword, kSecReturnData: true, kSecMatchLimit: limit.value])
        switch limit.outcome {
        case .one:
            #expect(answer.status == errSecSuccess)
            #expect(answer.data == Item.secret)
        case .array(let count):
            #expect(answer.status == errSecSuccess)
            #expect(answer.dataArray == Array(repeating: Item.secret, count: count))
        case .status(let status):
            #expect(answer.status == status)
            #expect(answer.result == nil)
        }
    }

    @Test("Without a limit one item is returned")
    func noLimit() {
        add(Item.generic("first"))
        add(Item.generic("second"))
        #expect(find([kSecClass: kSecClassGenericPassword, kSecReturnData: true]).data == Item.secret)
    }

    @Test("Items are returned in the order in which they were added, which an update preserves")
    func order() throws {
        let accounts = ["c", "a", "d", "b"]
        for account in accounts { add(Item.generic(account)) }
        #expect(update(Item.genericQuery("c"), [kSecAttrLabel: "label", kSecValueData: Data()]) == errSecSuccess)
        let found = find([kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll])
        #expect(try #require(found.attributesArray).map { $0[kSecAttrAccount] as? String } == accounts)
    }

    @Test("The limit counts the items that pass every filter")
    func limitAfterFilters() {
        add(Item.internet(server: "other.org"))
        add(Item.internet(server: "www.example.com"))
        let query: ItemDictionary = [kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: "example.com"]
        let found = attributes(of: query.with(kSecMatchLimit, kSecMatchLimitOne))
        #expect(found?[kSecAttrServer] as? String == "www.example.com")
    }

    @Test("A host that is not text is rejected", arguments: [5, true, Data("example.com".utf8)] as [any Sendable])
    func badHost(host: any Sendable) {
        add(Item.internet())
        #expect(find(Item.internetQuery().with(kSecMatchHostOrSubdomainOfHost, host)).status == errSecParam)
    }

    @Test("A server that is data has no host to compare")
    func serverAsData() {
        add(Item.internet().with(kSecAttrServer, Data("example.com".utf8)))
        let query: ItemDictionary = [kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: "example.com"]
        #expect(find(query).status == errSecItemNotFound)
    }

    @Test("A policy or an issuer applies only to certificates", arguments: Item.Kind.allCases, [kSecMatchPolicy, kSecMatchIssuers])
    func certificateKeys(kind: Item.Kind, key: CFString) {
        add(kind.item)
        #expect(find(kind.query.with(key, [String]())).status == errSecUnimplemented)
    }

    @Test(
        "Match keys for certificates have no effect on passwords",
        arguments: [kSecMatchTrustedOnly, kSecMatchValidOnDate, kSecMatchEmailAddressIfPresent])
    func ignoredCertificateKeys(key: CFString) {
        add(Item.generic())
        #expect(find(Item.genericQuery().with(key, NSNull())).status == errSecSuccess)
    }

    @Test("A search for tombstones finds no item, and one for items finds no tombstone")
    func tombstones() {
        add(Item.generic())
        #expect(find(Item.genericQuery().with(PrivateKey.tombstone, true)).status == errSecItemNotFound)
        #expect(find(Item.genericQuery().with(PrivateKey.tombstone, false)).status == errSecSuccess)
    }
}

@Suite("Section 5.5: searches by persistent reference", .keychain)
struct PersistentReferenceTests {
    private static let beside: [(CFString, any Sendable)] = [
        (kSecReturnAttributes, true), (kSecReturnPersistentRef, true), (kSecMatchLimit, kSecMatchLimitOne as String),
        (kSecMatchLimit, kSecMatchLimitAll as String), (kSecUseDataProtectionKeychain, true), (kSecUseOperationPrompt, "Please"),
        (kSecAttrSynchronizable, kSecAttrSynchronizableAny as String), (kSecClass, kSecClassGenericPassword as String),
    ]

    private func reference(ofAdding item: ItemDictionary) throws -> Data {
        try #require(add(item.with(kSecReturnPersistentRef, true)).data)
    }

    @Test("A reference can be combined with its class, return keys and options", arguments: beside)
    func allowed(key: CFString, value: any Sendable) throws {
        let query: ItemDictionary = [kSecValuePersistentRef: try reference(ofAdding: Item.generic())]
        #expect(find(query.with(key, value)).status == errSecSuccess)
    }

    @Test(
        "A search by reference allows no attributes, not even matching ones",
        arguments: [
            (kSecAttrAccount, "account"), (kSecAttrService, "service"), (kSecAttrLabel, "label"), (kSecAttrAccessGroup, "in-memory"),
            (kSecAttrSynchronizable, false), (kSecAttrSynchronizable, true), (kSecAttrAccessible, "ak"),
        ] as [(CFString, any Sendable)])
    func refused(key: CFString, value: any Sendable) throws {
        let query: ItemDictionary = [kSecValuePersistentRef: try reference(ofAdding: Item.generic())]
        #expect(find(query.with(key, value)).status == errSecParam)
    }

    @Test("A reference finds a synchronizable item without kSecAttrSynchronizable")
    func synchronizable() throws {
        let query: ItemDictionary = [kSecValuePersistentRef: try reference(ofAdding: Item.generic().with(kSecAttrSynchronizable, true))]
        #expect(secret(of: query) == Item.secret)
        #expect(update(query, [kSecAttrLabel: "label"]) == errSecSuccess)
        #expect(delete(query) == errSecSuccess)
    }

    @Test("A well-formed reference of no item finds nothing, in both forms", arguments: [Verb.find, .update, .delete], [16, 8])
    func unknown(verb: Verb, byteCount: Int) {
        add(Item.generic())
        let reference = Data("genp".utf8) + Data(repeating: 0, count: byteCount)
        #expect(verb.status([kSecValuePersistentRef: reference]) == errSecItemNotFound)
    }

    @Test("An update or a delete may name attributes beside a reference, and they are filters")
    func attributesInChanges() throws {
        let query: ItemDictionary = [kSecValuePersistentRef: try reference(ofAdding: Item.generic())]
        #expect(update(query.with(kSecAttrAccount, "other"), [kSecAttrLabel: "label"]) == errSecItemNotFound)
        #expect(update(query.with(kSecAttrAccount, "account"), [kSecAttrLabel: "label"]) == errSecSuccess)
        #expect(delete(query.with(kSecAttrAccount, "other")) == errSecItemNotFound)
        #expect(delete(query.with(kSecAttrAccount, "account")) == errSecSuccess)
    }

    @Test("A reference of the older form allows no attributes in an update or a delete", arguments: [Verb.update, .delete])
    func legacyWithAttributes(verb: Verb) {
        let reference = Data("genp".utf8) + Data(repeating: 0, count: 8)
        #expect(verb.status([kSecValuePersistentRef: reference, kSecAttrAccount: "account"]) == errSecParam)
    }

    @Test("The reference of a deleted synchronizable item does not find its tombstone")
    func referenceOfTombstone() throws {
        let query: ItemDictionary = [kSecValuePersistentRef: try reference(ofAdding: Item.generic().with(kSecAttrSynchronizable, true))]
        #expect(delete(query) == errSecSuccess)
        #expect(find(query).status == errSecItemNotFound)
        #expect(delete(query) == errSecItemNotFound)
    }
}

@Suite("Persistent references, cases of the specification", .keychain)
struct PersistentReferenceCases {
    /// Adds an item and returns its persistent reference.
    private func reference(ofAdding item: ItemDictionary) throws -> Data {
        try #require(add(item.with(kSecReturnPersistentRef, true)).data)
    }

    @Test("Case 28: a reference alone, without a class, returns the same attributes as a query")
    func attributesByReference() throws {
        let reference = try reference(ofAdding: Item.internet())
        let byReference = try #require(attributes(of: [kSecValuePersistentRef: reference]))
        #expect(byReference.isEqual(to: attributes(of: Item.internetQuery())))
    }

    @Test("Case 29: the reference of a deleted item finds nothing, and an item added again has a new one")
    func deleted() throws {
        let old = try reference(ofAdding: Item.internet())
        #expect(delete(Item.internetQuery()) == errSecSuccess)
        #expect(find([kSecValuePersistentRef: old]).status == errSecItemNotFound)
        let new = try reference(ofAdding: Item.internet())
        #expect(new != old)
        #expect(secret(of: [kSecValuePersistentRef: new]) == Item.secret)
    }

    @Test("Case 30: an update through a reference moves that item, keeps the reference and touches no other")
    func updateByReference() throws {
        let first = try reference(ofAdding: Item.internet(server: "first.example.com"))
        let second = try reference(ofAdding: Item.internet(server: "second.example.com"))
        #expect(update([kSecValuePersistentRef: first], [kSecAttrServer: "new.example.com"]) == errSecSuccess)
        #expect(attributes(of: [kSecValuePersistentRef: first])?[kSecAttrServer] as? String == "new.example.com")
        #expect(attributes(of: [kSecValuePersistentRef: second])?[kSecAttrServer] as? String == "second.example.com")
    }

    @Test("Case 31: a delete by reference deletes that item alone, and may have a return key")
    func deleteByReference() throws {
        let first = try reference(ofAdding: Item.internet(server: "first.example.com"))
        let second = try reference(ofAdding: Item.internet(server: "second.example.com"))
        #expect(delete([kSecValuePersistentRef: first]) == errSecSuccess)
        #expect(find([kSecValuePersistentRef: first]).status == errSecItemNotFound)
        #expect(find([kSecValuePersistentRef: second]).status == errSecSuccess)
        #expect(delete([kSecValuePersistentRef: second, kSecReturnData: true]) == errSecSuccess)
    }

    @Test("Case 32: a reference has 20 bytes, begins with the class and is not among the attributes", arguments: Item.Kind.allCases)
    func shape(kind: Item.Kind) throws {
        let reference = try reference(ofAdding: kind.item)
        #expect(reference.count == 20)
        #expect(reference.prefix(4) == Data((kind.itemClass as String).utf8))
        let found = try #require(attributes(of: kind.query))
        #expect(found[kSecAttrPersistentReference] == nil)
        #expect(found[PrivateKey.uuid] == nil)
    }

    @Test("Case 34: a search by reference allows no attributes")
    func referenceWithAttribute() throws {
        let reference = try reference(ofAdding: Item.generic())
        #expect(find([kSecValuePersistentRef: reference, kSecAttrAccount: "account"]).status == errSecParam)
    }
}
