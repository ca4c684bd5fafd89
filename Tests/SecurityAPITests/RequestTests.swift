// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("The dictionary of SecItemAdd")
struct AddRequestTests {
    private func request(_ dictionary: [String: Any]) throws -> AddRequest {
        try AddRequest(try ParsedItemDictionary(dictionary))
    }

    @Test("Only the class is required")
    func classOnly() throws {
        let request = try request(genericPassword())
        #expect(request.itemClass == .genericPassword)
        #expect(request.attributes == ItemAttributes([.synchronizable: .number(0)]))
        #expect(request.secret == nil)
        #expect(request.accessControl == nil)
    }

    @Test("Attributes and the secret are passed on unchanged")
    func everything() throws {
        let request = try request(
            internetPassword([
                kSecAttrAccount: "a", kSecAttrServer: Data("s".utf8), kSecAttrPort: 80, kSecAttrProtocol: "http", kSecAttrLabel: "l",
                kSecAttrAccessGroup: "g", kSecValueData: Data([1]), kSecAttrIsInvisible: true,
            ]))
        #expect(
            request.attributes
                == ItemAttributes([
                    .account: .string("a"), .server: .data(Data("s".utf8)), .port: .number(80), .protocol: .string("http"),
                    .label: .string("l"), .accessGroup: .string("g"), .isInvisible: .number(1), .synchronizable: .number(0),
                ]))
        #expect(request.secret == Data([1]))
    }

    @Test("Attributes that the keychain sets itself are ignored, but must be well formed")
    func dates() throws {
        let request = try request(
            genericPassword([kSecAttrCreationDate: Date(), kSecAttrModificationDate: Date(), "sha1": Data(count: 20), "tomb": 0]))
        #expect(request.attributes == ItemAttributes([.synchronizable: .number(0)]))
        #expect(Verb.add.status(genericPassword([kSecAttrCreationDate: "today"])) == errSecParam)
    }

    @Test("A tombstone cannot be added")
    func tombstone() {
        #expect(Verb.add.status(genericPassword(["tomb": true])) == errSecParam)
    }

    @Test("An item is synchronizable only if the value is true; 'any' means local")
    func synchronizable() throws {
        #expect(try request(genericPassword([kSecAttrSynchronizable: true])).attributes.flag(.synchronizable) == true)
        #expect(try request(genericPassword([kSecAttrSynchronizable: "1"])).attributes.flag(.synchronizable) == true)
        #expect(try request(genericPassword([kSecAttrSynchronizable: 0])).attributes.flag(.synchronizable) == false)
        #expect(
            try request(genericPassword([kSecAttrSynchronizable: kSecAttrSynchronizableAny])).attributes.flag(.synchronizable) == false)
    }

    @Test("An item of every class can be synchronizable, but not one with access control", arguments: ItemAccessibility.allCases)
    func synchronizableClasses(accessibility: ItemAccessibility) throws {
        let dictionary = genericPassword([kSecAttrSynchronizable: true, kSecAttrAccessible: accessibility.rawValue])
        let request = try request(dictionary)
        #expect(request.attributes.flag(.synchronizable) == true)
        #expect(request.accessControl == AccessControl(accessibility))
        let object = try makeAccessControl(accessibility.rawValue, [])
        #expect(Verb.add.status(genericPassword([kSecAttrSynchronizable: true, kSecAttrAccessControl: object])) == errSecParam)
    }

    @Test("The protection is the accessibility or the access control")
    func protection() throws {
        #expect(
            try request(genericPassword([kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock])).accessControl
                == AccessControl(.afterFirstUnlock))
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        #expect(try request(genericPassword([kSecAttrAccessControl: object])).accessControl == object.accessControl)
        #expect(try request(genericPassword([kSecAttrAccessControl: object])).attributes[.accessible] == nil)
    }

    @Test("Adding an item rejects match keys", arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, kSecMatchPolicy, "m_Unknown"])
    func matchKeys(key: String) {
        #expect(Verb.add.status(genericPassword([key: kSecMatchLimitOne])) == errSecParam)
    }

    @Test("A list of items is not accepted")
    func itemList() {
        #expect(Verb.add.status(genericPassword([kSecUseItemList: [NSObject()]])) == errSecParam)
    }
}

@Suite("The dictionary of SecItemCopyMatching")
struct MatchRequestTests {
    private func request(_ dictionary: [String: Any]) throws -> MatchRequest {
        try MatchRequest(try ParsedItemDictionary(dictionary))
    }

    @Test("By default one item is returned, only local items are searched, and secrets are not decrypted")
    func defaults() throws {
        let request = try request(genericPassword())
        #expect(request.limit == 1)
        #expect(request.query.synchronizability == .local)
        #expect(request.query.tombstones == .hidden)
        #expect(request.query.attributes.isEmpty)
        #expect(!request.includesSecrets)
    }

    @Test(
        "The limit is one, all or a number",
        arguments: [
            (kSecMatchLimitOne, 1), (1, 1), (NSNumber(value: 1), 1), (kSecMatchLimitAll, nil), (-1, nil), (NSNumber(value: -1), nil),
            (2, 2),
            (1000, 1000), (UInt8(7), 7), (2.0, 2), (AnyHashable(kSecMatchLimitAll), nil), (Int64.max, Int.max),
        ].map { (Unchecked(any: $0 as Any), $1) } as [(Unchecked, Int?)])
    func limit(value: Unchecked, limit: Int?) throws {
        #expect(try request(genericPassword([kSecMatchLimit: value.any])).limit == limit)
    }

    @Test("Every other limit is rejected")
    func badLimit() {
        for value in ["bogus", "", "2", -2, Int.min, true, 1.5, Double.nan, UInt64.max, Data(), NSNull(), Date()] as [Any] {
            #expect(Verb.copyMatching.status(genericPassword([kSecMatchLimit: value])) == errSecParam)
        }
        #expect(Verb.copyMatching.status(genericPassword([kSecMatchLimit: 0])) == errSecItemNotFound)
    }

    @Test("Attributes are filters, including the accessibility")
    func filters() throws {
        let query = try request(
            genericPassword([
                kSecAttrAccount: "a", kSecAttrAccessible: kSecAttrAccessibleAlways, kSecAttrAccessGroup: "g",
                kSecAttrModificationDate: Date(timeIntervalSinceReferenceDate: 5), "sha1": Data(count: 20), "musr": NSNull(),
            ])
        ).query
        #expect(
            query.attributes
                == ItemAttributes([
                    .account: .string("a"), .accessible: .string("dk"), .accessGroup: .string("g"), .modificationDate: .date(5),
                    .sha1: .data(Data(count: 20)), .multiUser: .data(Data()),
                ]))
    }

    @Test("The access control and the secret are not filters")
    func noFilters() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        let query = try request(genericPassword([kSecAttrAccessControl: object, kSecValueData: Data([1])])).query
        #expect(query.attributes.isEmpty)
    }

    @Test("The synchronizable attribute selects local items, synchronizable ones, or both")
    func twins() throws {
        #expect(try request(genericPassword([kSecAttrSynchronizable: true])).query.synchronizability == .synchronizable)
        #expect(try request(genericPassword([kSecAttrSynchronizable: false])).query.synchronizability == .local)
        #expect(try request(genericPassword([kSecAttrSynchronizable: kSecAttrSynchronizableAny])).query.synchronizability == .either)
        let any = genericPassword([kSecAttrSynchronizable: NSString(string: kSecAttrSynchronizableAny)])
        #expect(try request(any).query.synchronizability == .either)
    }

    @Test("Tombstones are found only on request")
    func tombstones() throws {
        #expect(try request(genericPassword(["tomb": true])).query.tombstones == .only)
        #expect(try request(genericPassword(["tomb": 0])).query.tombstones == .hidden)
    }

    @Test("Secrets are decrypted only for kSecReturnData")
    func secrets() throws {
        #expect(try request(genericPassword([kSecReturnData: true])).includesSecrets)
        #expect(try !request(genericPassword([kSecReturnAttributes: true, kSecReturnPersistentRef: true])).includesSecrets)
        #expect(try !request(genericPassword([kSecReturnData: false])).includesSecrets)
    }

    @Test("A host is matched for internet passwords only, and is a string")
    func host() throws {
        #expect(
            try request(internetPassword([kSecMatchHostOrSubdomainOfHost: "example.com"])).query.hostOrSubdomain == "example.com")
        #expect(Verb.copyMatching.status(genericPassword([kSecMatchHostOrSubdomainOfHost: "example.com"])) == errSecUnimplemented)
        for value in [Data(), 1, NSNull()] as [Any] {
            #expect(Verb.copyMatching.status(internetPassword([kSecMatchHostOrSubdomainOfHost: value])) == errSecParam)
        }
    }

    @Test("Policies and issuers apply only to certificates", arguments: [kSecMatchPolicy, kSecMatchIssuers])
    func certificates(key: String) {
        #expect(Verb.copyMatching.status(genericPassword([key: NSObject()])) == errSecUnimplemented)
        #expect(Verb.copyMatching.status(internetPassword([key: NSObject()])) == errSecUnimplemented)
    }

    @Test(
        "Other match keys are accepted and have no effect",
        arguments: [
            kSecMatchItemList, kSecMatchSearchList, kSecMatchCaseInsensitive, kSecMatchSubjectContains, kSecMatchTrustedOnly,
            kSecMatchValidOnDate, kSecMatchEmailAddressIfPresent, "m_Unknown",
        ])
    func otherMatchKeys(key: String) {
        #expect(Verb.copyMatching.status(genericPassword([key: NSNull()])) == errSecSuccess)
    }

    @Test("A list of items is not accepted")
    func itemList() {
        #expect(Verb.copyMatching.status(genericPassword([kSecUseItemList: [NSObject()]])) == errSecParam)
    }
}

@Suite("The dictionaries of SecItemUpdate")
struct UpdateRequestTests {
    private func request(_ query: [String: Any], _ changes: [String: Any]) throws -> UpdateRequest {
        let dictionary = try ParsedItemDictionary(query)
        return try UpdateRequest(dictionary, changes: try ParsedUpdateDictionary(changes, of: dictionary.itemClass))
    }

    private func request(_ changes: [String: Any]) throws -> UpdateRequest {
        try request(genericPassword(), changes)
    }

    private func status(_ query: [String: Any], _ changes: [String: Any]) -> OSStatus {
        Verb.update.call(query, changes: changes).0
    }

    private func status(_ changes: [String: Any]) -> OSStatus {
        status(genericPassword(), changes)
    }

    @Test("Attributes and the secret can be changed")
    func changes() throws {
        let request = try request([
            kSecAttrAccount: "a", kSecAttrAccessGroup: "g", kSecAttrSynchronizable: true, kSecValueData: Data([1]),
            kSecAttrCreationDate: Date(timeIntervalSinceReferenceDate: 5),
        ])
        #expect(
            request.changes
                == ItemAttributes([
                    .account: .string("a"), .accessGroup: .string("g"), .synchronizable: .number(1), .creationDate: .date(5),
                ]))
        #expect(request.secret == Data([1]))
        #expect(request.accessControl == nil)
    }

    @Test("Without changes, an update changes only the modification date")
    func empty() throws {
        let request = try request([:])
        #expect(request.changes.isEmpty)
        #expect(request.secret == nil)
    }

    @Test("An empty secret is not the same as a missing one")
    func emptySecret() throws {
        #expect(try request([kSecValueData: Data()]).secret == Data())
    }

    @Test("The protection can be changed by accessibility or access control")
    func protection() throws {
        let ofClass = try request([kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock])
        #expect(ofClass.accessibility == .afterFirstUnlock)
        #expect(ofClass.accessControl == nil)
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        let ofObject = try request([kSecAttrAccessControl: object])
        #expect(ofObject.accessControl == object.accessControl)
        #expect(ofObject.accessibility == nil)
        #expect(
            status([kSecAttrAccessControl: object, kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]) == errSecParam)
        #expect(status([kSecAttrAccessControl: object, kSecAttrSynchronizable: true]) == errSecParam)
        let both = try self.request([kSecAttrAccessible: kSecAttrAccessibleAlwaysThisDeviceOnly, kSecAttrSynchronizable: true])
        #expect(both.accessibility == .alwaysThisDeviceOnly)
        #expect(both.changes.flag(.synchronizable) == true)
    }

    @Test("Attributes that the keychain sets itself are ignored")
    func ignored() throws {
        let request = try request([
            kSecAttrModificationDate: Date(), "sha1": Data(count: 20), "musr": "whatever", kSecUseDataProtectionKeychain: true,
            kSecAttrSynchronizable: kSecAttrSynchronizableAny,
        ])
        #expect(request.changes.isEmpty)
    }

    @Test(
        "Keys that are not attributes cannot be changed",
        arguments: [
            kSecClass, kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef, kSecMatchLimit, "m_Unknown",
            kSecValueRef,
            kSecValuePersistentRef, kSecUseAuthenticationUI, kSecUseOperationPrompt, kSecUseAuthenticationContext, "u_CredRef", "u_Tomb",
            kSecAttrServer, "subj", "persistref", "xxxxx", "f_Callback", "",
        ])
    func noAttribute(key: String) {
        #expect(status([key: "a"]) == errSecNoSuchAttr)
    }

    @Test("Attributes reserved for the keychain are errSecParam", arguments: ["tomb", "clip", "ggrp"])
    func internalAttributes(key: String) {
        #expect(status([key: 1]) == errSecParam)
    }

    @Test("Types and values are checked as in all dictionaries")
    func badValues() {
        for value in ["a", 1, NSNull(), [UInt8(1)]] as [Any] { #expect(status([kSecValueData: value]) == errSecParam) }
        #expect(status([kSecAttrAccount: true]) == errSecParam)
        #expect(status([kSecAttrAccessible: "never"]) == errSecParam)
        #expect(status([kSecAttrAccessControl: "a"]) == errSecParam)
        #expect(status([kSecAttrModificationDate: "today"]) == errSecParam)
    }

    @Test("An unknown name is reported before a wrong type, whatever the order", arguments: 0..<10)
    func order(round: Int) {
        #expect(status([kSecAttrAccount: true, "subj": 1, kSecValueData: "a"]) == errSecNoSuchAttr)
    }

    @Test("The query must not contain match keys or a limit", arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, "m_Unknown"])
    func matchKeys(key: String) {
        #expect(status(genericPassword([key: kSecMatchLimitOne]), [:]) == errSecParam)
    }

    @Test(
        "The query must not contain return keys",
        arguments: [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnKeys(key: String) {
        #expect(status(genericPassword([key: true]), [:]) == errSecParam)
        #expect(status(genericPassword([key: false]), [:]) == errSecSuccess)
    }

    @Test("The query determines whether a tombstone is left")
    func tombstones() throws {
        #expect(try request(genericPassword(["u_Tomb": true]), [:]).leavesTombstone == true)
        #expect(try request(genericPassword(["u_Tomb": "0"]), [:]).leavesTombstone == false)
        #expect(try request(genericPassword(), [:]).leavesTombstone == nil)
        #expect(status(genericPassword(["u_Tomb": Data()]), [:]) == errSecParam)
    }

    @Test("Mistakes in the query are reported before mistakes in the changes")
    func queryFirst() {
        #expect(status(["class": "none"], ["subj": 1]) == errSecNoSuchClass)
        #expect(status(genericPassword([kSecAttrAccount: true]), ["subj": 1]) == errSecParam)
    }
}

@Suite("The dictionary of SecItemDelete")
struct DeleteRequestTests {
    private func request(_ dictionary: [String: Any]) throws -> DeleteRequest {
        try DeleteRequest(try ParsedItemDictionary(dictionary))
    }

    @Test("The query is parsed as for a search")
    func query() throws {
        let request = try request(genericPassword([kSecAttrAccount: "a", kSecAttrSynchronizable: kSecAttrSynchronizableAny]))
        #expect(request.query.attributes == ItemAttributes([.account: .string("a")]))
        #expect(request.query.synchronizability == .either)
        #expect(try self.request(genericPassword()).query.synchronizability == .local)
    }

    @Test("A limit and all other match keys are rejected", arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, "m_Unknown"])
    func matchKeys(key: String) {
        #expect(Verb.delete.status(genericPassword([key: kSecMatchLimitAll])) == errSecParam)
    }

    @Test("Return keys and the secret are ignored")
    func ignored() throws {
        let request = try request(genericPassword([kSecReturnData: true, kSecReturnRef: true, kSecValueData: Data([1])]))
        #expect(request.query.attributes.isEmpty)
    }

    @Test("The query determines whether a tombstone is left")
    func tombstones() throws {
        #expect(try request(genericPassword(["u_Tomb": false])).leavesTombstone == false)
        #expect(try request(genericPassword(["u_Tomb": 1])).leavesTombstone == true)
        #expect(try request(genericPassword()).leavesTombstone == nil)
    }
}
