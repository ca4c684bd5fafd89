// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@Suite("Locked items, cases of the specification", .inMemoryKeychain)
struct LockCases {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    @Test("Case 40: a locked keychain takes no new item")
    func addWhileLocked() throws {
        try keychain().lock()
        #expect(add(Item.generic()).status == errSecInteractionNotAllowed)
        #expect(try StoredRows.all().isEmpty)
    }

    @Test("Case 41: an item that is there already is locked first, and a duplicate once unlocked")
    func addAgainWhileLocked() throws {
        add(Item.generic())
        try keychain().lock()
        #expect(add(Item.generic()).status == errSecInteractionNotAllowed)
        try keychain().unlock()
        #expect(add(Item.generic()).status == errSecDuplicateItem)
    }

    @Test("Case 42: the secret of a locked item is not delivered")
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

    @Test("Case 44: the attributes of a locked item are not delivered either", arguments: [kSecMatchLimitOne, kSecMatchLimitAll])
    func attributesWhileLocked(limit: CFString) throws {
        add(Item.generic())
        try keychain().lock()
        let answer = find(Item.genericQuery().with([kSecReturnAttributes: true, kSecMatchLimit: limit]))
        #expect(answer.status == errSecInteractionNotAllowed)
        #expect(answer.result == nil)
    }

    @Test("Case 45: before the first unlock only what is always accessible is found; afterwards a lock leaves the rest of it")
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

    @Test("Case 53: an item with the key of another and another accessibility is a duplicate, and leaves nothing behind")
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

    @Test("Case 76: an item that needs a passcode goes with it, and cannot be added before there is another")
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

    @Test("Case 76: as long as nobody agrees to the deletion, the passcode stays")
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
