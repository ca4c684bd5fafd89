// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
/// A deliberate difference from Apple's keychain: damage is never reported as absence, and no unreadable item is lost.
@Suite("Damaged items, cases of the specification", .keychain)
struct DamageCases {
    /// Adds an item, damages its row, and returns its persistent reference.
    @discardableResult
    private func addDamaged(_ item: ItemDictionary, _ damage: Damage = .everything) throws -> Data {
        let reference = try #require(add(item.with(kSecReturnPersistentRef, true)).data)
        try StoredRows.damage(reference, damage)
        return reference
    }

    @Test("Case 48: a search for a damaged item alone reports damage, not absence, and changes nothing", arguments: Damage.allCases)
    func findDamaged(damage: Damage) throws {
        let reference = try addDamaged(Item.generic(), damage)
        let rows = try StoredRows.all()
        let generation = try StoredRows.keybagGeneration()
        let everything: ItemDictionary = [kSecReturnData: true, kSecReturnAttributes: true]
        #expect(find(Item.genericQuery().with(everything)).status == errSecDecode)
        #expect(find(everything.with(kSecValuePersistentRef, reference)).status == errSecDecode)
        #expect(try StoredRows.all() == rows)
        #expect(try StoredRows.keybagGeneration() == generation)
    }

    @Test(
        "Case 48: a search for the secret alone returns it if it is intact, even if the attributes are damaged", arguments: Damage.allCases)
    func findSecretOfDamaged(damage: Damage) throws {
        try addDamaged(Item.generic(), damage)
        let answer = find(Item.genericQuery().with(kSecReturnData, true))
        #expect(answer.status == (damage == .attributes ? errSecSuccess : errSecDecode))
        #expect(answer.data == (damage == .attributes ? Item.secret : nil))
    }

    @Test("A search that must not leave out unreadable items fails if one is damaged", arguments: Damage.allCases)
    func findAllReadable(damage: Damage) throws {
        let query: ItemDictionary = [
            kSecClass: kSecClassGenericPassword, kSecMatchLimit: kSecMatchLimitAll, kSecReturnAttributes: true, kSecReturnData: true,
        ]
        add(Item.generic("intact 1"))
        try addDamaged(Item.generic("damaged"), damage)
        add(Item.generic("intact 2"))
        #expect(find(query.with(kSecMatchFailsIfUnreadable, true)).status == errSecDecode)
        #expect(find(query.with(kSecMatchFailsIfUnreadable, false)).array?.count == 2)
        #expect(find(query.with([kSecMatchFailsIfUnreadable: true, kSecAttrService: "another"])).status == errSecItemNotFound)
        #expect(find(query.with(kSecMatchFailsIfUnreadable, "neither")).status == errSecParam)
        #expect(update(Item.genericQuery("intact 1").with(kSecMatchFailsIfUnreadable, true), [kSecAttrComment: "new"]) == errSecParam)
        #expect(delete(Item.genericQuery("intact 1").with(kSecMatchFailsIfUnreadable, true)) == errSecParam)
    }

    @Test("Case 48: deleting a damaged item sets it aside", arguments: Damage.allCases)
    func deleteDamaged(damage: Damage) throws {
        try addDamaged(Item.generic(), damage)
        let rows = try StoredRows.all()
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(try StoredRows.quarantined() == rows)
    }

    @Test("Case 49: an item can be added over a damaged one, which is set aside", arguments: Damage.allCases)
    func addOverDamaged(damage: Damage) throws {
        try addDamaged(Item.generic(), damage)
        let rows = try StoredRows.all()
        let new = Data("new".utf8)
        #expect(add(Item.generic().with(kSecValueData, new)).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == new)
        #expect(try StoredRows.quarantined() == rows)
        #expect(delete(Item.genericQuery()) == errSecSuccess)
    }

    @Test("Case 50: a damaged item for this device only that is replaced by a synchronizable one remains for this device only")
    func synchronizeDamaged() throws {
        let item = Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
        try addDamaged(item)
        let changes: ItemDictionary = [kSecAttrSynchronizable: true, kSecValueData: Data("new".utf8)]
        #expect(update(item.without(kSecValueData), changes) == errSecSuccess)
        let found = try #require(attributes(of: Item.genericQuery().with(kSecAttrSynchronizable, true)))
        #expect(found[kSecAttrAccessible] as? String == kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String)
    }

    @Test(
        "Case 50: an update that names the whole primary key and contains a secret replaces a damaged item", arguments: Item.Kind.allCases)
    func updateDamaged(kind: Item.Kind) throws {
        let item = kind == .generic ? Item.generic() : Item.internet().with([kSecAttrSecurityDomain: "realm", kSecAttrPath: "/"])
        let reference = try addDamaged(item)
        let rows = try StoredRows.all()
        let new = Data("new".utf8)
        #expect(update(item.without(kSecValueData), [kSecValueData: new]) == errSecSuccess)
        #expect(secret(of: item) == new)
        #expect(secret(of: [kSecValuePersistentRef: reference]) == new)
        #expect(try StoredRows.quarantined() == rows)
    }

    @Test(
        "Case 50: the replacement of a damaged item is protected at least like a new item and like the damaged row",
        arguments: [
            (ItemAccessibility.whenUnlocked, "ak"), (.afterFirstUnlock, "ak"), (.always, "ak"), (.whenUnlockedThisDeviceOnly, "aku"),
            (.afterFirstUnlockThisDeviceOnly, "aku"), (.alwaysThisDeviceOnly, "aku"),
        ])
    func protectionOfReplacement(claimed: ItemAccessibility, expected: String) throws {
        let reference = try #require(add(Item.generic().with(kSecReturnPersistentRef, true)).data)
        try StoredRows.change(reference) { row in
            row.header.accessibility = claimed
            row.sealedAttributes[0] ^= 1
        }
        #expect(update(Item.genericQuery(), [kSecValueData: Data("new".utf8)]) == errSecSuccess)
        #expect(attributes(of: Item.genericQuery())?[kSecAttrAccessible] as? String == expected)
    }

    @Test("Case 50: an update that does not name the whole item does not change a damaged one")
    func updateDamagedPartly() throws {
        try addDamaged(Item.generic())
        let rows = try StoredRows.all()
        let new: ItemDictionary = [kSecValueData: Data("new".utf8)]
        #expect(update(Item.genericQuery(), [kSecAttrLabel: "label"]) == errSecDecode)
        #expect(update(Item.genericQuery().without(kSecAttrAccount), new) == errSecDecode)
        #expect(update(Item.genericQuery().without(kSecAttrService), new) == errSecDecode)
        #expect(try StoredRows.all() == rows)
        #expect(try StoredRows.quarantined().isEmpty)
        #expect(delete(Item.genericQuery()) == errSecSuccess)
    }

    @Test("Case 50: an update with a condition that cannot be checked on a damaged item does not change it")
    func updateDamagedUnderCondition() throws {
        try addDamaged(Item.generic())
        let rows = try StoredRows.all()
        let query = Item.genericQuery().with(kSecAttrModificationDate, Date.now)
        #expect(update(query, [kSecValueData: Data("new".utf8)]) == errSecDecode)
        #expect(try StoredRows.all() == rows)
        #expect(try StoredRows.quarantined().isEmpty)
    }

    @Test("Case 50: an update of several items changes none if one of them is damaged")
    func updateOneOfManyDamaged() throws {
        add(Item.generic("first"))
        try addDamaged(Item.generic("second"))
        let rows = try StoredRows.all()
        #expect(update([kSecClass: kSecClassGenericPassword], [kSecAttrLabel: "label"]) == errSecDecode)
        #expect(try StoredRows.all() == rows)
    }

    @Test("Case 51: an item can be moved onto a damaged one, but not onto an intact one")
    func moveOntoDamaged() throws {
        add(Item.internet(port: 80))
        let second = try #require(add(Item.internet(port: 81).with(kSecReturnPersistentRef, true)).data)
        let third = try #require(add(Item.internet(port: 82).with(kSecReturnPersistentRef, true)).data)
        #expect(update(Item.internetQuery(port: 80), [kSecAttrPort: 81]) == errSecDuplicateItem)

        try StoredRows.damage(second)
        #expect(update(Item.internetQuery(port: 80), [kSecAttrPort: 81]) == errSecSuccess)
        #expect(secret(of: Item.internetQuery(port: 81)) == Item.secret)
        #expect(find(Item.internetQuery(port: 80)).status == errSecItemNotFound)
        #expect(try StoredRows.quarantined().count == 1)

        try StoredRows.damage(third)
        #expect(update(Item.internetQuery(port: 82), [kSecAttrPort: 83]) == errSecDecode)
        #expect(add(Item.internet(port: 82)).status == errSecSuccess)
        #expect(secret(of: Item.internetQuery(port: 82)) == Item.secret)
        #expect(try StoredRows.quarantined().count == 2)
    }

    @Test("Case 52: a search for all items skips damaged ones; if no readable item is left, it reports damage", arguments: Damage.allCases)
    func findAll(damage: Damage) throws {
        let query: ItemDictionary = [
            kSecClass: kSecClassGenericPassword, kSecMatchLimit: kSecMatchLimitAll, kSecReturnData: true, kSecReturnAttributes: true,
        ]
        try addDamaged(Item.generic("first"), damage)
        #expect(find(query).status == errSecDecode)
        add(Item.generic("second"))
        try addDamaged(Item.generic("third"), damage)
        let found = try #require(find(query).attributesArray)
        #expect(found.map { $0[kSecAttrAccount] as? String } == ["second"])
        #expect(try StoredRows.all().count == 3)
    }

    @Test("Case 54: a part of one row copied into another is damage, not a value")
    func swappedSecrets() throws {
        let first = try #require(add(Item.generic("first").with(kSecReturnPersistentRef, true)).data)
        let second = try #require(add(Item.generic("second").with(kSecReturnPersistentRef, true)).data)
        let rows = try StoredRows.all()
        try StoredRows.change(first) { $0.sealedSecret = rows[1].sealedSecret }
        try StoredRows.change(second) { row in
            row.wrappedItemKey = rows[0].wrappedItemKey
            row.sealedAttributes = rows[0].sealedAttributes
            row.sealedSecret = rows[0].sealedSecret
            row.tag = rows[0].tag
        }
        #expect(find(Item.genericQuery("first").with(kSecReturnData, true)).status == errSecDecode)
        #expect(find(Item.genericQuery("second").with(kSecReturnData, true)).status == errSecDecode)
    }

    @Test("Case 79: dates are sealed with the other attributes, so a bad date is damage")
    func damagedDates() throws {
        try addDamaged(Item.generic(), .attributes)
        let query = Item.genericQuery().with(kSecReturnAttributes, true)
        #expect(find(query).status == errSecDecode)
        #expect(find(query.with(kSecAttrModificationDate, Date.now)).status == errSecDecode)
    }
}
#endif
