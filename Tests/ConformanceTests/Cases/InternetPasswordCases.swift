// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Internet passwords, cases of the specification", .inMemoryKeychain)
struct InternetPasswordCases {
    @Test("Case 1: adding the same internet password twice is a duplicate")
    func addTwice() {
        #expect(add(Item.internet()).status == errSecSuccess)
        #expect(add(Item.internet()).status == errSecDuplicateItem)
    }

    @Test("Case 2: a query without return keys tells that the item exists, and delivers nothing")
    func existence() {
        add(Item.internet())
        let answer = find(Item.internetQuery())
        #expect(answer.status == errSecSuccess)
        #expect(answer.result == nil)
    }

    @Test("Case 3: the attributes of an item are a query for it, with sha1 and without", arguments: [true, false])
    func attributesAsQuery(keepsSHA1: Bool) throws {
        add(Item.internet())
        var query = try #require(attributes(of: Item.internetQuery().with(kSecMatchLimit, kSecMatchLimitOne)))
        if !keepsSHA1 { query = query.without(PrivateKey.sha1) }
        let answer = find(query.with([kSecClass: kSecClassInternetPassword, kSecReturnData: true]))
        #expect(answer.status == errSecSuccess)
        #expect(answer.data == Item.secret)
    }

    @Test("Case 4: an update that changes the server moves the item away from the old query")
    func move() {
        add(Item.internet(server: "old.example.com"))
        let old = Item.internetQuery(server: "old.example.com")
        #expect(update(old, [kSecAttrServer: "new.example.com"]) == errSecSuccess)
        #expect(update(old, [kSecAttrServer: "new.example.com"]) == errSecItemNotFound)
        #expect(delete(old) == errSecItemNotFound)
        #expect(secret(of: Item.internetQuery(server: "new.example.com")) == Item.secret)
    }

    @Test("Case 5: an item cannot be moved onto another one, and both stay")
    func moveOntoAnother() {
        add(Item.internet(server: "new.example.com"))
        add(Item.internet(server: "old.example.com"))
        let old = Item.internetQuery(server: "old.example.com")
        #expect(update(old, [kSecAttrServer: "new.example.com"]) == errSecDuplicateItem)
        #expect(delete(old) == errSecSuccess)
        #expect(delete(Item.internetQuery(server: "new.example.com")) == errSecSuccess)
    }

    @Test("Case 9: an empty string is accepted as a port, and kept")
    func emptyPort() throws {
        let item = Item.internet().with(kSecAttrPort, "")
        #expect(add(item).status == errSecSuccess)
        let found = try #require(attributes(of: item))
        #expect(found[kSecAttrPort] as? String == "")
    }

    @Test("Case 13: a server given as data comes back as data")
    func serverAsData() throws {
        let server = Data("example.com".utf8)
        add(Item.internet().with(kSecAttrServer, server))
        let found = try #require(attributes(of: [kSecClass: kSecClassInternetPassword]))
        #expect(PlainValue(found[kSecAttrServer]) == .data(server))
    }

    @Test(
        "Case 78: a host finds the items of its subdomains and its own, and no other's",
        arguments: [
            ("example.com", errSecSuccess), ("origin.example.com", errSecSuccess), ("foobar.com", errSecItemNotFound),
            ("ample.com", errSecItemNotFound), ("Example.com", errSecItemNotFound), ("www.origin.example.com", errSecItemNotFound),
        ])
    func hostOrSubdomain(host: String, status: OSStatus) {
        add(Item.internet(server: "origin.example.com"))
        #expect(find([kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: host]).status == status)
    }

    @Test("Case 78: the host filter belongs to internet passwords alone")
    func hostOfGenericPassword() {
        add(Item.generic())
        let query = Item.genericQuery().with(kSecMatchHostOrSubdomainOfHost, "example.com")
        #expect(find(query).status == errSecUnimplemented)
    }
}
