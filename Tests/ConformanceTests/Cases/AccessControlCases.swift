// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@Suite("Access control, cases of the specification", .inMemoryKeychain)
struct AccessControlCases {
    @Test("Case 69: an item whose access control asks for nothing is read like every other")
    func withoutConstraints() throws {
        let control = try accessControl(kSecAttrAccessibleAfterFirstUnlock, [])
        #expect(add(Item.generic().with(kSecAttrAccessControl, control)).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecAttrAccessible] as? String == kSecAttrAccessibleAfterFirstUnlock as String)
    }

    #if !canImport(Darwin)
    @Test("Case 69: such an item is locked with its class, and there again after the unlock")
    func lockedWithoutConstraints() throws {
        let keychain = try #require(InMemoryKeychain.current)
        #expect(
            add(Item.generic().with(kSecAttrAccessControl, try accessControl(kSecAttrAccessibleWhenUnlocked, []))).status == errSecSuccess)
        try keychain.lock()
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == errSecInteractionNotAllowed)
        try keychain.unlock()
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        #expect(keychain.person.questions.isEmpty)
    }
    #endif

    @Test("Case 72: items may be skipped in searches only", arguments: [Verb.add, .update, .delete])
    func skip(verb: Verb) {
        if verb != .add { add(Item.generic()) }
        let dictionary = Item.generic().with(kSecUseAuthenticationUI, kSecUseAuthenticationUISkip)
        #expect(verb.status(dictionary) == errSecParam)
        #expect(find(Item.genericQuery().with(kSecUseAuthenticationUI, kSecUseAuthenticationUISkip)).status != errSecParam)
    }

    @Test("Case 73: an item with access control cannot be synchronizable, and is not stored", arguments: [true, false])
    func synchronizable(hasConstraints: Bool) throws {
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, hasConstraints ? .userPresence : [])
        let item = Item.generic().with([kSecAttrAccessControl: control, kSecAttrSynchronizable: true])
        #expect(add(item).status == errSecParam)
        #expect(count(of: Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == 0)
    }

    @Test("Case 84: an accessibility and an access control exclude each other, even one without constraints", arguments: [true, false])
    func accessibilityAndAccessControl(hasConstraints: Bool) throws {
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, hasConstraints ? .userPresence : [])
        let both: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked, kSecAttrAccessControl: control]
        #expect(add(Item.generic().with(both)).status == errSecParam)
        add(Item.generic())
        #expect(update(Item.genericQuery(), both) == errSecParam)
    }

    @Test("Case 88: a query with both an accessibility and an access control is refused; with one of them it is not")
    func accessibilityAndAccessControlInQuery() throws {
        add(Item.generic())
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        let query = Item.genericQuery().with([
            kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked, kSecAttrAccessControl: control,
        ])
        #expect(find(query).status == errSecParam)
        #expect(find(query.without(kSecAttrAccessible)).status == errSecSuccess)
        #expect(find(query.without(kSecAttrAccessControl)).status == errSecSuccess)
    }
}
