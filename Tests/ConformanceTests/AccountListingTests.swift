// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@Suite("Listing accounts answers what SecItemCopyMatching answers for all attributes", .inMemoryKeychain)
struct AccountListingTests {
    private static var query: ItemDictionary { [kSecClass: kSecClassGenericPassword, kSecAttrService: "service"] }

    /// The listing, after both ways were compared.
    private func listing(_ query: ItemDictionary = query) throws -> (status: OSStatus, accounts: [String]) {
        let found = find(query.with([kSecMatchLimit: kSecMatchLimitAll, kSecReturnAttributes: true]))
        let listing = AccountListing.accounts(matching: Dictionary(uniqueKeysWithValues: query.map { ($0.key as String, $0.value) }))
        #expect(listing.status == found.status)
        // Scalar by scalar: strings that are canonically equivalent are equal and not the same account.
        #expect(
            listing.accounts.map { Array($0.utf8) }
                == (found.attributesArray ?? []).compactMap { $0[kSecAttrAccount] as? String }.map { Array($0.utf8) })
        return listing
    }

    @Test("The accounts come oldest first, of every length and script, with canonically equivalent ones beside each other")
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

    @Test("An account that was given as data is listed as SecItemCopyMatching shows it")
    func dataAccount() throws {
        add(Item.generic().with(kSecAttrAccount, Data([0xFF, 0xFE])))
        _ = try listing()
    }

    @Test("Without items, none are found; and twins are found as the query says")
    func twins() throws {
        #expect(try listing().status == errSecItemNotFound)
        add(Item.generic("local"))
        add(Item.generic("cloud").with(kSecAttrSynchronizable, true))
        #expect(try listing().accounts == ["local"])
        #expect(try listing(Self.query.with(kSecAttrSynchronizable, true)).accounts == ["cloud"])
        #expect(try listing(Self.query.with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)).accounts == ["local", "cloud"])
    }

    @Test("Filters that need an item opened see all of its attributes")
    func sealedFilters() throws {
        add(Item.generic("a"))
        let found = try #require(attributes(of: Item.genericQuery("a")))
        let created = try #require(found[kSecAttrCreationDate])
        #expect(try listing(Self.query.with(kSecAttrCreationDate, created)).accounts == ["a"])
        #expect(try listing(Self.query.with(kSecAttrCreationDate, Date(timeIntervalSinceReferenceDate: 1))).status == errSecItemNotFound)
    }

    @Test("A locked item ends the listing as it ends a search", arguments: LockState.allCases)
    func locked(state: LockState) throws {
        add(Item.generic("always").with(kSecAttrAccessible, kSecAttrAccessibleAlways))
        add(Item.generic("unlocked"))
        try state.enter()
        _ = try listing()
    }

    @Test("Damaged items are left out beside sound ones, and alone are damaged, not absent", arguments: Damage.allCases)
    func damaged(damage: Damage) throws {
        let reference = try #require(add(Item.generic("damaged").with(kSecReturnPersistentRef, true)).data)
        try StoredRows.damage(reference, damage)
        let alone = try listing()
        #expect(alone.status == (damage == .secret ? errSecSuccess : errSecDecode))
        add(Item.generic("sound"))
        #expect(try listing().accounts == (damage == .secret ? ["damaged", "sound"] : ["sound"]))
    }

    @Test("A query that is not valid is refused alike")
    func invalidQueries() throws {
        #expect(try listing(Self.query.with(kSecAttrCreationDate, "no date")).status != errSecSuccess)
        #expect(try listing(Self.query.with(kSecClass, "no such class")).status == errSecNoSuchClass)
        #expect(try listing([kSecAttrService: "service"]).status != errSecSuccess)
        #expect(try listing(Self.query.with(kSecAttrAccessGroup, "group of others")).status == errSecMissingEntitlement)
    }
}
#endif
