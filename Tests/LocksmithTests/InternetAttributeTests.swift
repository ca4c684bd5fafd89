// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

private let groups = ["first", "second"]

@Suite("Each attribute of an internet password", .inMemoryKeychain(accessGroups: groups))
struct InternetAttributeTests {
    private let check = AttributeCheck(itemClass: kSecClassInternetPassword, password: InternetPassword()) { password in
        try password.tryReadFromSecureStore() as InternetPasswordSecureStorableResultType?
    }

    @Test func account() throws {
        try check(kSecAttrAccount, "a", "b", tellsApart: true, set: { $0.account = $1 }, get: { $0.account })
    }

    @Test func authenticationType() throws {
        try check(
            kSecAttrAuthenticationType, .httpDigest, .default, tellsApart: true, set: { $0.authenticationType = $1 },
            get: { $0.authenticationType }, stored: { ($0 as? String).flatMap(LocksmithInternetAuthenticationType.init) })
    }

    @Test func internetProtocol() throws {
        try check(
            kSecAttrProtocol, .imaps, .ssh, tellsApart: true, set: { $0.internetProtocol = $1 }, get: { $0.internetProtocol },
            stored: { ($0 as? String).flatMap(LocksmithInternetProtocol.init) })
    }

    @Test func port() throws {
        try check(kSecAttrPort, 80, 0, tellsApart: true, set: { $0.port = $1 }, get: { $0.port })
    }

    @Test func server() throws {
        try check(kSecAttrServer, "a", "b", tellsApart: true, set: { $0.server = $1 }, get: { $0.server })
    }

    @Test func path() throws {
        try check(kSecAttrPath, "/a", "/b", tellsApart: true, set: { $0.path = $1 }, get: { $0.path })
    }

    @Test func securityDomain() throws {
        try check(kSecAttrSecurityDomain, "a", "b", tellsApart: true, set: { $0.securityDomain = $1 }, get: { $0.securityDomain })
    }

    @Test func accessible() throws {
        try check(
            kSecAttrAccessible, .always, .whenUnlocked, set: { $0.accessible = $1 }, get: { $0.accessible },
            stored: { ($0 as? String).flatMap(LocksmithAccessibleOption.init) })
    }

    @Test func accessGroup() throws {
        try check(
            kSecAttrAccessGroup, groups[0], groups[1], tellsApart: true, set: { $0.accessGroup = $1 }, get: { $0.accessGroup })
    }

    @Test func comment() throws {
        try check(kSecAttrComment, "a", "b", set: { $0.comment = $1 }, get: { $0.comment })
    }

    @Test func creator() throws {
        try check(kSecAttrCreator, 1, 2, set: { $0.creator = $1 }, get: { $0.creator })
    }

    @Test func description() throws {
        try check(kSecAttrDescription, "a", "b", set: { $0.description = $1 }, get: { $0.description })
    }

    @Test func isInvisible() throws {
        try check(kSecAttrIsInvisible, true, false, set: { $0.isInvisible = $1 }, get: { $0.isInvisible })
    }

    @Test func isNegative() throws {
        try check(kSecAttrIsNegative, true, false, set: { $0.isNegative = $1 }, get: { $0.isNegative })
    }

    @Test func type() throws {
        try check(kSecAttrType, 1, 2, set: { $0.type = $1 }, get: { $0.type })
    }

    @Test("An update without a path leaves an item with one alone")
    func updateWithoutPath() throws {
        try InternetPassword(path: "/a").createInSecureStore()
        try InternetPassword(secret: "54321").updateInSecureStore()
        try InternetPassword(secret: "6789").updateInSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 2)
        #expect(try InternetPassword(path: "/a").tryReadFromSecureStore()?.data?["secret"] as? String == "12345")
    }
}
