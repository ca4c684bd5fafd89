// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@Suite("Section 8: protection classes and lock states", .inMemoryKeychain)
struct LockStateTests {
    private static let new = Data("new".utf8)

    private static let withPasscode: [LockState] = [.neverUnlocked, .locked, .unlocked]

    /// An item of that class, put there while unlocked, and the keychain in that state.
    private func prepare(_ itemClass: ProtectionClass, in state: LockState) throws {
        let keychain = try #require(InMemoryKeychain.current)
        if state != .noPasscode { try keychain.setPasscode("swordfish") }
        add(Item.generic().with(kSecAttrAccessible, itemClass.accessible))
        try state.enter()
    }

    private func expected(_ itemClass: ProtectionClass, _ state: LockState) -> OSStatus {
        itemClass.isAvailable(in: state) ? errSecSuccess : errSecInteractionNotAllowed
    }

    @Test("Every class is added, or locked, as the table says", arguments: ProtectionClass.allCases, withPasscode)
    func added(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let item = Item.generic("other").with(kSecAttrAccessible, itemClass.accessible)
        let status = add(item).status
        #expect(status == expected(itemClass, state))
        try LockState.unlocked.enter()
        #expect(find(Item.genericQuery("other")).status == (status == errSecSuccess ? errSecSuccess : errSecItemNotFound))
    }

    @Test("The secret of every class is found, or locked, as the table says", arguments: ProtectionClass.allCases, withPasscode)
    func findData(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let answer = find(Item.genericQuery().with(kSecReturnData, true))
        #expect(answer.status == expected(itemClass, state))
        #expect(answer.data == (itemClass.isAvailable(in: state) ? Item.secret : nil))
    }

    @Test("The attributes of every class are found, or locked, as the table says", arguments: ProtectionClass.allCases, withPasscode)
    func findAttributes(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let answer = find(Item.genericQuery().with(kSecReturnAttributes, true))
        #expect(answer.status == expected(itemClass, state))
        #expect(answer.attributes?[kSecAttrAccessible] as? String == (itemClass.isAvailable(in: state) ? itemClass.rawValue : nil))
    }

    @Test("That an item is there is not said while it is locked, either", arguments: ProtectionClass.allCases, withPasscode)
    func findNothing(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        #expect(find(Item.genericQuery()).status == expected(itemClass, state))
        let reference = find(Item.genericQuery().with(kSecReturnPersistentRef, true))
        #expect(reference.status == expected(itemClass, state))
        #expect((reference.data == nil) == !itemClass.isAvailable(in: state))
    }

    @Test("Every class is updated, or locked and unchanged, as the table says", arguments: ProtectionClass.allCases, withPasscode)
    func updated(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        let status = update(Item.genericQuery(), [kSecValueData: Self.new])
        #expect(status == expected(itemClass, state))
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery()) == (status == errSecSuccess ? Self.new : Item.secret))
    }

    @Test("Every class is deleted in every state: that takes no key", arguments: ProtectionClass.allCases, withPasscode)
    func deleted(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: state)
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        try LockState.unlocked.enter()
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("Without a passcode everything can be had but what needs one", arguments: ProtectionClass.allCases)
    func noPasscode(itemClass: ProtectionClass) throws {
        let isAvailable = itemClass.isAvailable(in: .noPasscode)
        let added = add(Item.generic().with(kSecAttrAccessible, itemClass.accessible))
        #expect(added.status == (isAvailable ? errSecSuccess : errSecAuthFailed))
        #expect(secret(of: Item.genericQuery()) == (isAvailable ? Item.secret : nil))
    }

    @Test(
        "What was stored before there was a passcode is under it afterwards",
        arguments: ProtectionClass.allCases.filter { $0 != .akpu }, withPasscode)
    func storedBefore(itemClass: ProtectionClass, state: LockState) throws {
        try prepare(itemClass, in: .noPasscode)
        try #require(InMemoryKeychain.current).setPasscode("swordfish")
        try state.enter()
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == expected(itemClass, state))
    }

    @Test("What was changed while locked is there after the unlock", arguments: [LockState.neverUnlocked, .locked])
    func changedWhileLocked(state: LockState) throws {
        try prepare(.dk, in: state)
        #expect(update(Item.genericQuery(), [kSecValueData: Self.new]) == errSecSuccess)
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery()) == Self.new)
    }
}

@Suite("What is said of items while some are locked", .inMemoryKeychain)
struct LockedSearchTests {
    private let all: ItemDictionary = [
        kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll,
    ]

    /// An item that can always be had and then one that is locked.
    private func prepare() throws {
        add(Item.generic("open").with([kSecAttrAccessible: kSecAttrAccessibleAlways, kSecAttrLabel: "label"]))
        add(Item.generic("closed").with([kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked, kSecAttrLabel: "label"]))
        try LockState.locked.enter()
    }

    @Test("Absence is proved while locked: what no item has is not found")
    func absence() throws {
        try prepare()
        #expect(find(Item.genericQuery("absent")).status == errSecItemNotFound)
        #expect(find([kSecClass: kSecClassInternetPassword]).status == errSecItemNotFound)
        #expect(find(Item.genericQuery("closed").with(kSecAttrLabel, "other")).status == errSecItemNotFound)
        #expect(update(Item.genericQuery("absent"), [kSecAttrLabel: "new"]) == errSecItemNotFound)
        #expect(delete(Item.genericQuery("absent")) == errSecItemNotFound)
    }

    @Test("A condition that only the sealed part could decide leaves the question open, so it is locked and not absent")
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

    @Test("A search for one item ends at the first that can be had, and at the first that is locked")
    func oneOfAMix() throws {
        try prepare()
        let query: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrLabel: "label"]
        #expect(attributes(of: query)?[kSecAttrAccount] as? String == "open")
        #expect(delete(Item.genericQuery("open")) == errSecSuccess)
        add(Item.generic("open").with([kSecAttrAccessible: kSecAttrAccessibleAlways, kSecAttrLabel: "label"]))
        #expect(find(query).status == errSecInteractionNotAllowed)
    }

    @Test("An update of several items changes none when one of them is locked")
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

    @Test("A locked item keeps its primary key: nothing takes its place")
    func primaryKeyOfLocked() throws {
        try prepare()
        let item = Item.generic("closed").with(kSecAttrAccessible, kSecAttrAccessibleAlways)
        #expect(add(item).status == errSecDuplicateItem)
        #expect(update(Item.genericQuery("open"), [kSecAttrAccount: "closed"]) == errSecDuplicateItem)
        try LockState.unlocked.enter()
        #expect(secret(of: Item.genericQuery("closed")) == Item.secret)
    }

    @Test("A damaged item is damaged while it is locked too, and a locked one is never taken for damaged")
    func damagedWhileLocked() throws {
        try prepare()
        try #require(InMemoryKeychain.current).damageItems(account: "closed")
        let replacement: ItemDictionary = [kSecValueData: Data("new".utf8)]
        #expect(find(Item.genericQuery("closed")).status == errSecInteractionNotAllowed)
        // What the row says of its access control may be forged, and the call says nothing of it.
        #expect(update(Item.genericQuery("closed"), replacement) == errSecDecode)
        #expect(delete(Item.genericQuery("closed")) == errSecSuccess)
        #expect(try StoredRows.quarantined().count == 1)
    }

    @Test("A synchronizable item that is deleted while locked leaves no mark: what that says would have to be sealed")
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
#endif
