// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import ServedKeychain
import Testing

@Suite("Listing accounts alone gives the same accounts as returning all attributes", .keychain)
struct AccountListingTests {
    private static var query: ItemDictionary { [kSecClass: kSecClassGenericPassword, kSecAttrService: "service"] }

    /// The result of a search for accounts alone, after a comparison with a search for all attributes.
    private func listing(_ query: ItemDictionary = query) throws -> (status: OSStatus, accounts: [String]) {
        let everything = find(query.with([kSecMatchLimit: kSecMatchLimitAll, kSecReturnAttributes: true]))
        let (status, listed) = PreparedQuery(query).copyAccounts([:])
        #expect(status == everything.status)
        let accounts = (listed ?? []).compactMap(\.self)
        // Byte by byte: strings that are canonically equivalent are equal, but they are different accounts.
        #expect(
            accounts.map { Array($0.utf8) }
                == (everything.attributesArray ?? []).compactMap(Self.text).map { Array($0.utf8) })
        return (status, accounts)
    }

    private static func text(ofAccountIn attributes: ItemDictionary) -> String? {
        attributes[kSecAttrAccount] as? String
            ?? (attributes[kSecAttrAccount] as? Data).flatMap { String(validating: $0, as: UTF8.self) }
    }

    @Test("Accounts of every length and script are listed oldest first, canonically equivalent ones separately")
    func accounts() throws {
        let accounts = ["b", "a", "", "caf\u{e9}", "cafe\u{301}", String(repeating: "ключ", count: 100), "with\0null"]
        for account in accounts { #expect(add(Item.generic(account)).status == errSecSuccess) }
        add(Item.generic("elsewhere", service: "another service"))
        let listed = try listing()
        #expect(listed.status == errSecSuccess)
        #expect(listed.accounts.map { Array($0.utf8) } == accounts.map { Array($0.utf8) })
    }

    @Test("An item without an account has the empty one")
    func noAccount() throws {
        add(Item.generic().without(kSecAttrAccount))
        #expect(try listing().accounts == [""])
    }

    @Test("An account stored as data is listed like any other")
    func dataAccount() throws {
        add(Item.generic().with(kSecAttrAccount, Data([0xFF, 0xFE])))
        add(Item.generic().with(kSecAttrAccount, Data("token".utf8)))
        #expect(try listing().accounts == ["token"])
    }

    @Test("Local and synchronizable items are listed as the query requests")
    func twins() throws {
        #expect(try listing().status == errSecItemNotFound)
        add(Item.generic("local"))
        add(Item.generic("cloud").with(kSecAttrSynchronizable, true))
        #expect(try listing().accounts == ["local"])
        #expect(try listing(Self.query.with(kSecAttrSynchronizable, true)).accounts == ["cloud"])
        #expect(try listing(Self.query.with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)).accounts == ["local", "cloud"])
    }

    @Test("Filters on encrypted attributes work although only the account is returned")
    func sealedFilters() throws {
        add(Item.generic("a"))
        let found = try #require(attributes(of: Item.genericQuery("a")))
        let created = try #require(found[kSecAttrCreationDate])
        #expect(try listing(Self.query.with(kSecAttrCreationDate, created)).accounts == ["a"])
        #expect(try listing(Self.query.with(kSecAttrCreationDate, Date(timeIntervalSinceReferenceDate: 1))).status == errSecItemNotFound)
    }

    @Test("A locked item fails the listing as it fails a search", arguments: LockState.allCases)
    func locked(state: LockState) throws {
        add(Item.generic("always").with(kSecAttrAccessible, kSecAttrAccessibleAlways))
        add(Item.generic("unlocked"))
        try state.enter()
        _ = try listing()
    }

    @Test("Damaged items are left out if others can be read, and otherwise reported as damaged", arguments: Damage.allCases)
    func damaged(damage: Damage) throws {
        let reference = try #require(add(Item.generic("damaged").with(kSecReturnPersistentRef, true)).data)
        try StoredRows.damage(reference, damage)
        let alone = try listing()
        #expect(alone.status == (damage == .secret ? errSecSuccess : errSecDecode))
        add(Item.generic("sound"))
        #expect(try listing().accounts == (damage == .secret ? ["damaged", "sound"] : ["sound"]))
    }

    @Test("An invalid query has the same status")
    func invalidQueries() throws {
        #expect(try listing(Self.query.with(kSecAttrCreationDate, "no date")).status != errSecSuccess)
        #expect(try listing(Self.query.with(kSecClass, "no such class")).status == errSecNoSuchClass)
        #expect(try listing([kSecAttrService: "service"]).status != errSecSuccess)
        #expect(try listing(Self.query.with(kSecAttrAccessGroup, "group of others")).status == errSecMissingEntitlement)
    }
}
#endif
