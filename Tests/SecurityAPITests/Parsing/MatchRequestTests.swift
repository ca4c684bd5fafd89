// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("The dictionary of SecItemCopyMatching")
struct MatchRequestTests {
    private func request(_ dictionary: [String: Any]) throws -> MatchRequest {
        try MatchRequest(try ItemDictionary(dictionary))
    }

    @Test("Without a limit there is one item; local items alone are searched, and secrets stay sealed")
    func defaults() throws {
        let request = try request(genericPassword())
        #expect(request.limit == 1)
        #expect(request.query.twin == .local)
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

    @Test("Nothing else is a limit")
    func badLimit() {
        for value in ["bogus", "", "2", -2, Int.min, true, 1.5, Double.nan, UInt64.max, Data(), NSNull(), Date()] as [Any] {
            #expect(Verb.copyMatching.status(genericPassword([kSecMatchLimit: value])) == errSecParam)
        }
        #expect(Verb.copyMatching.status(genericPassword([kSecMatchLimit: 0])) == errSecItemNotFound)
    }

    @Test("Attributes are filters, the accessibility too")
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

    @Test("The access control and the secret are no filters")
    func noFilters() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        let query = try request(genericPassword([kSecAttrAccessControl: object, kSecValueData: Data([1])])).query
        #expect(query.attributes.isEmpty)
    }

    @Test("Which twin is searched is said by the synchronizable attribute")
    func twins() throws {
        #expect(try request(genericPassword([kSecAttrSynchronizable: true])).query.twin == .synchronizable)
        #expect(try request(genericPassword([kSecAttrSynchronizable: false])).query.twin == .local)
        #expect(try request(genericPassword([kSecAttrSynchronizable: kSecAttrSynchronizableAny])).query.twin == .either)
        #expect(try request(genericPassword([kSecAttrSynchronizable: NSString(string: kSecAttrSynchronizableAny)])).query.twin == .either)
    }

    @Test("Tombstones are found only when asked for")
    func tombstones() throws {
        #expect(try request(genericPassword(["tomb": true])).query.tombstones == .only)
        #expect(try request(genericPassword(["tomb": 0])).query.tombstones == .hidden)
    }

    @Test("Secrets are opened only for kSecReturnData")
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

    @Test("Policies and issuers are for certificates only", arguments: [kSecMatchPolicy, kSecMatchIssuers])
    func certificates(key: String) {
        #expect(Verb.copyMatching.status(genericPassword([key: NSObject()])) == errSecUnimplemented)
        #expect(Verb.copyMatching.status(internetPassword([key: NSObject()])) == errSecUnimplemented)
    }

    @Test(
        "Other match keys are accepted and without effect",
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
