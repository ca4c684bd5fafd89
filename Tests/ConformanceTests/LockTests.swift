// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 8: protection classes and lock states", .keychain)
struct LockStateTests {
    private static let new = Data("new".utf8)

    private static let withPasscode: [LockState] = [.neverUnlocked, .locked, .unlocked]

    /// Adds an item of the class while unlocked, and changes the keychain to the state.
    private func prepare(_ itemClass: ProtectionClass, in state: LockState) throws {
        let keychain = try #require(InMemoryKeychain.current)
        if state != .noPasscode { try keychain.setPasscode("swordfish") }
        add(Item.generic().with(kSecAttrAccessible, itemClass.accessible))
        try state.enter()
    }

    private func expected(_ itemClass: ProtectionClass, _ state: LockState) -> OSStatus {
        itemClass.isAvailable(in: state) ? errSecSuccess : errSecInteractionNotAllowed
    }

    @Test(
        "Adding an item of each class succeeds or reports 'locked', depending on the lock state", arguments: ProtectionClass.allCases,
        withPasscode)
    func added(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let item = Item.generic("other").with(kSecAttrAccessible, itemClass.accessible)
        let status = add(item).status
        #expect(status == expected(itemClass, state))
        try LockState.unlocked.enter()
        #expect(find(Item.genericQuery("other")).status == (status == errSecSuccess ? errSecSuccess : errSecItemNotFound))
    }

    @Test(
        "A search for a secret of each class succeeds or reports 'locked', depending on the lock state",
        arguments: ProtectionClass.allCases, withPasscode)
    func findData(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let answer = find(Item.genericQuery().with(kSecReturnData, true))
        #expect(answer.status == expected(itemClass, state))
        #expect(answer.data == (itemClass.isAvailable(in: state) ? Item.secret : nil))
    }

    @Test(
        "A search for attributes of each class succeeds or reports 'locked', depending on the lock state",
        arguments: ProtectionClass.allCases, withPasscode)
    func findAttributes(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let answer = find(Item.genericQuery().with(kSecReturnAttributes, true))
        #expect(answer.status == expected(itemClass, state))
        #expect(answer.attributes?[kSecAttrAccessible] as? String == (itemClass.isAvailable(in: state) ? itemClass.rawValue : nil))
    }

    @Test("A search without return keys also fails while the item is locked", arguments: ProtectionClass.allCases, withPasscode)
    func findNothing(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        #expect(find(Item.genericQuery()).status == expected(itemClass, state))
        let reference = find(Item.genericQuery().with(kSecReturnPersistentRef, true))
        #expect(reference.status == expected(itemClass, state))
        #expect((reference.data == nil) == !itemClass.isAvailable(in: state))
    }

    @Test(
        "Updating an item of each class succeeds, or reports 'locked' and changes nothing, depending on the lock state",
        arguments: ProtectionClass.allCases, withPasscode)
    func updated(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let status = update(Item.genericQuery(), [kSecValueData: Self.new])
        #expect(status == expected(itemClass, state))
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery()) == (status == errSecSuccess ? Self.new : Item.secret))
    }

    @Test(
        "Items of every class can be deleted in every lock state: deleting needs no key", arguments: ProtectionClass.allCases, withPasscode)
    func deleted(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        try LockState.unlocked.enter()
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("Without a passcode, only the class that requires one is inaccessible", arguments: ProtectionClass.allCases)
    func noPasscode(itemClass: ProtectionClass) throws {
        let isAvailable = itemClass.isAvailable(in: .noPasscode)
        let added = add(Item.generic().with(kSecAttrAccessible, itemClass.accessible))
        #expect(added.status == (isAvailable ? errSecSuccess : errSecAuthFailed))
        #expect(secret(of: Item.genericQuery()) == (isAvailable ? Item.secret : nil))
    }

    @Test(
        "A passcode also protects items that were stored before it was set",
        arguments: ProtectionClass.allCases.filter { $0 != .akpu }, withPasscode)
    func storedBefore(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: .noPasscode)
        try #require(InMemoryKeychain.current).setPasscode("swordfish")
        try state.enter()
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == expected(itemClass, state))
    }

    @Test("A change made while locked is visible after the unlock", arguments: [LockState.neverUnlocked, .locked])
    func changedWhileLocked(state: LockState) throws {
        try prepare(.dk, in: state)
        #expect(update(Item.genericQuery(), [kSecValueData: Self.new]) == errSecSuccess)
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery()) == Self.new)
    }
}

@Suite("Statuses while some items are locked", .keychain)
struct LockedSearchTests {
    private let all: ItemDictionary = [
        kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll,
    ]

    /// Adds an item that is always accessible and then one that is locked.
    private func prepare() throws {
        add(Item.generic("open").with([kSecAttrAccessible: kSecAttrAccessibleAlways, kSecAttrLabel: "label"]))
        add(Item.generic("closed").with([kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked, kSecAttrLabel: "label"]))
        try LockState.locked.enter()
    }

    @Test("A search that matches no item reports 'not found' also while locked")
    func absence() throws {
        try prepare()
        #expect(find(Item.genericQuery("absent")).status == errSecItemNotFound)
        #expect(find([kSecClass: kSecClassInternetPassword]).status == errSecItemNotFound)
        #expect(find(Item.genericQuery("closed").with(kSecAttrLabel, "other")).status == errSecItemNotFound)
        #expect(update(Item.genericQuery("absent"), [kSecAttrLabel: "new"]) == errSecItemNotFound)
        #expect(delete(Item.genericQuery("absent")) == errSecItemNotFound)
    }

    @Test("A condition on an encrypted attribute cannot be decided while locked, so the status is 'locked' and not 'not found'")
    func undecided() throws {
        try prepare()
        let query = Item.genericQuery("closed").with(kSecAttrCreationDate, Date(timeIntervalSinceReferenceDate: 0))
        #expect(find(query).status == errSecInteractionNotAllowed)
        #expect(update(query, [kSecAttrLabel: "new"]) == errSecInteractionNotAllowed)
        #expect(delete(query) == errSecInteractionNotAllowed)
        try LockState.unlocked.enter()
        #expect(find(query).status == errSecItemNotFound)
    }

    @Test("A search for all items fails as a whole when one of them is locked")
    func allOfAMix() throws {
        try prepare()
        let answer = find(all)
        #expect(answer.status == errSecInteractionNotAllowed)
        #expect(answer.result == nil)
        #expect(find(all.with(kSecAttrAccessible, kSecAttrAccessibleAlways)).attributesArray?.count == 1)
        try LockState.unlocked.enter()
        #expect(find(all).attributesArray?.count == 2)
    }

    @Test("A search for one item ends at the first item that is readable or locked")
    func oneOfAMix() throws {
        try prepare()
        let query: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrLabel: "label"]
        #expect(attributes(of: query)?[kSecAttrAccount] as? String == "open")
        #expect(delete(Item.genericQuery("open")) == errSecSuccess)
        add(Item.generic("open").with([kSecAttrAccessible: kSecAttrAccessibleAlways, kSecAttrLabel: "label"]))
        #expect(find(query).status == errSecInteractionNotAllowed)
    }

    @Test("An update of several items changes none if one of them is locked")
    func updateOfAMix() throws {
        try prepare()
        #expect(update([kSecClass: kSecClassGenericPassword], [kSecAttrComment: "new"]) == errSecInteractionNotAllowed)
        #expect(attributes(of: Item.genericQuery("open"))?[kSecAttrComment] == nil)
    }

    @Test("An item cannot be moved into a class that is locked, nor out of one")
    func movedBetweenClasses() throws {
        try prepare()
        let into: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]
        #expect(update(Item.genericQuery("open"), into) == errSecInteractionNotAllowed)
        let outOf: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleAlways, kSecValueData: Data("new".utf8)]
        #expect(update(Item.genericQuery("closed"), outOf) == errSecInteractionNotAllowed)
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery("closed")) == Item.secret)
        #expect(attributes(of: Item.genericQuery("open"))?[kSecAttrAccessible] as? String == "dk")
    }

    @Test("No other item can take the primary key of a locked item")
    func primaryKeyOfLocked() throws {
        try prepare()
        let item = Item.generic("closed").with(kSecAttrAccessible, kSecAttrAccessibleAlways)
        #expect(add(item).status == errSecDuplicateItem)
        #expect(update(Item.genericQuery("open"), [kSecAttrAccount: "closed"]) == errSecDuplicateItem)
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery("closed")) == Item.secret)
    }

    @Test("Damage is reported also while locked, and a locked item is never reported as damaged")
    func damagedWhileLocked() throws {
        try prepare()
        try #require(InMemoryKeychain.current).damageItems(account: "closed")
        let replacement: ItemDictionary = [kSecValueData: Data("new".utf8)]
        #expect(find(Item.genericQuery("closed")).status == errSecInteractionNotAllowed)
        // The row's access control may be forged, and the call does not specify one.
        #expect(update(Item.genericQuery("closed"), replacement) == errSecDecode)
        #expect(delete(Item.genericQuery("closed")) == errSecSuccess)
        #expect(try StoredRows.quarantined().count == 1)
    }

    @Test("A synchronizable item that is deleted while locked leaves no tombstone, which could not be encrypted")
    func tombstoneWhileLocked() throws {
        add(Item.generic().with(kSecAttrSynchronizable, true))
        try LockState.locked.enter()
        let query = Item.genericQuery().with(kSecAttrSynchronizable, true)
        #expect(delete(query) == errSecSuccess)
        try LockState.unlocked.enter()
        #expect(find(query.with(PrivateKey.tombstone, true)).status == errSecItemNotFound)
        #expect(try StoredRows.all().isEmpty)
    }
}

@Suite("Locked items, cases of the specification", .keychain)
struct LockCases {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    @Test("Case 40: no item can be added to a locked keychain")
    func addWhileLocked() throws {
        try keychain().lock()
        #expect(add(Item.generic()).status == errSecInteractionNotAllowed)
        #expect(try StoredRows.all().isEmpty)
    }

    @Test("Case 41: adding an existing item reports \"locked\" while locked, and \"duplicate\" after the unlock")
    func addAgainWhileLocked() throws {
        add(Item.generic())
        try keychain().lock()
        #expect(add(Item.generic()).status == errSecInteractionNotAllowed)
        try keychain().unlock()
        #expect(add(Item.generic()).status == errSecDuplicateItem)
    }

    @Test("Case 42: the secret of a locked item is not returned")
    func findWhileLocked() throws {
        add(Item.generic())
        try keychain().lock()
        let answer = find(Item.genericQuery().with(kSecReturnData, true))
        #expect(answer.status == errSecInteractionNotAllowed)
        #expect(answer.result == nil)
    }

    @Test("Case 43: an item that was locked is found after the unlock, and deleted")
    func findAfterUnlock() throws {
        add(Item.generic())
        try keychain().lock()
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == errSecInteractionNotAllowed)
        try keychain().unlock()
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        #expect(delete(Item.genericQuery()) == errSecSuccess)
    }

    @Test("Case 44: the attributes of a locked item are not returned", arguments: [kSecMatchLimitOne, kSecMatchLimitAll])
    func attributesWhileLocked(limit: CFString) throws {
        add(Item.generic())
        try keychain().lock()
        let answer = find(Item.genericQuery().with([kSecReturnAttributes: true, kSecMatchLimit: limit]))
        #expect(answer.status == errSecInteractionNotAllowed)
        #expect(answer.result == nil)
    }

    @Test(
        "Case 45: before the first unlock only always accessible items are found; after it, locking leaves the afterFirstUnlock items accessible"
    )
    func firstUnlock() throws {
        add(Item.generic("first unlock").with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock))
        add(Item.generic("always").with(kSecAttrAccessible, kSecAttrAccessibleAlways))
        try keychain().restart()
        #expect(find(Item.genericQuery("first unlock")).status == errSecInteractionNotAllowed)
        #expect(secret(of: Item.genericQuery("always")) == Item.secret)
        try keychain().unlock()
        try keychain().lock()
        #expect(secret(of: Item.genericQuery("first unlock")) == Item.secret)
        #expect(secret(of: Item.genericQuery("always")) == Item.secret)
    }

    @Test("Case 53: an item with the primary key of another and a different accessibility is a duplicate, and is not stored")
    func otherAccessibility() throws {
        try keychain().setPasscode("swordfish")
        add(Item.generic())
        let rows = try StoredRows.all()
        let generation = try StoredRows.keybagGeneration()
        for itemClass in ProtectionClass.allCases {
            let item = Item.generic().with([kSecAttrAccessible: itemClass.accessible, kSecValueData: Data("new".utf8)])
            #expect(add(item).status == errSecDuplicateItem)
        }
        #expect(try StoredRows.all() == rows)
        #expect(try StoredRows.keybagGeneration() == generation)
        try keychain().lock()
        #expect(find(Item.genericQuery()).status == errSecInteractionNotAllowed)
    }

    @Test("Case 76: an item that requires a passcode is deleted with it, and cannot be added before a new one is set")
    func removedPasscode() throws {
        let item = Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
        let session = try KeychainSession.current()
        try session.setPasscode("swordfish")
        add(Item.generic("other"))
        #expect(add(item).status == errSecSuccess)

        var named: [KeychainSession.PasscodeItem] = []
        let isRemoved = try session.removePasscode("swordfish") { items in
            named = items
            return true
        }
        #expect(isRemoved)
        #expect(named.map(\.service) == ["service"])
        #expect(named.map(\.account) == ["account"])
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(add(item).status == errSecAuthFailed)
        #expect(secret(of: Item.genericQuery("other")) == Item.secret)

        try session.setPasscode("another")
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(add(item).status == errSecSuccess)
    }

    @Test("A synchronizable item that requires a passcode is stored only while one is set")
    func synchronizableWithPasscode() throws {
        let item = Item.generic().with([
            kSecAttrAccessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, kSecAttrSynchronizable: true,
        ])
        #expect(add(item).status == errSecAuthFailed)
        try KeychainSession.current().setPasscode("swordfish")
        #expect(add(item).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery().with(kSecAttrSynchronizable, true)) == Item.secret)
    }

    @Test("Case 76: without confirmation of the deletion, the passcode is kept")
    func keptPasscode() throws {
        let session = try KeychainSession.current()
        try session.setPasscode("swordfish")
        add(Item.generic().with(kSecAttrAccessible, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly))
        #expect(try !session.removePasscode("swordfish") { _ in false })
        #expect(try session.isPasscodeSet)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }
}
#endif
