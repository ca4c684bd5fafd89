// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("Each attribute that only internet passwords have", .inMemoryKeychain)
struct InternetAttributeTests {
    private let check = AttributeCheck(InternetPassword()) { password in
        try password.tryReadFromSecureStore() as InternetPasswordSecureStorableResultType?
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

    @Test("An update without a path leaves an item with one alone")
    func updateWithoutPath() throws {
        try InternetPassword(path: "/a").createInSecureStore()
        try InternetPassword(secret: "54321").updateInSecureStore()
        try InternetPassword(secret: "6789").updateInSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 2)
        #expect(try InternetPassword(path: "/a").tryReadFromSecureStore()?.data?["secret"] as? String == "12345")
    }

    @Test("Without a path or a domain, an item that has none is read and deleted before one that has another")
    func exactFirst() throws {
        try InternetPassword(secret: "other path", path: "/a").createInSecureStore()
        try InternetPassword(secret: "other domain", securityDomain: "a").createInSecureStore()
        try InternetPassword(secret: "mine").updateInSecureStore()
        #expect(try InternetPassword().tryReadFromSecureStore()?.data?["secret"] as? String == "mine")
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 3)
        try InternetPassword().deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 2)
        #expect(try InternetPassword(path: "/a").tryReadFromSecureStore()?.data?["secret"] as? String == "other path")
        #expect(try InternetPassword(securityDomain: "a").tryReadFromSecureStore()?.data?["secret"] as? String == "other domain")
    }

    @Test("Without a path, a read finds an item of any, and a deletion takes those of all")
    func anyPath() throws {
        try InternetPassword(path: "/a").createInSecureStore()
        #expect(try InternetPassword().tryReadFromSecureStore()?.path == "/a")
        try InternetPassword(path: "/b").createInSecureStore()
        try InternetPassword().deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).isEmpty)
    }
}
