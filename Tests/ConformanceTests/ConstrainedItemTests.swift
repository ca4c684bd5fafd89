// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import ServedKeychain
import Testing

/// The rows of the table in section 9.3 that find an item with access control.
private enum Access: CaseIterable, Sendable {
    case data, attributes, persistentReference, existence, many, change

    func status(_ others: ItemDictionary = [:]) -> OSStatus {
        let query = Item.genericQuery().with(others)
        return switch self {
        case .data: find(query.with(kSecReturnData, true)).status
        case .attributes: find(query.with(kSecReturnAttributes, true)).status
        case .persistentReference: find(query.with(kSecReturnPersistentRef, true)).status
        case .existence: find(query).status
        case .many: find(query.with([kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll])).status
        case .change: update(query, [kSecAttrComment: "changed"])
        }
    }
}

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 9.3: items with constraints", .keychain)
struct ConstrainedItemTests {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    // MARK: Add

    @Test("Adding does not prompt, unless the application password is missing", arguments: Constraint.allCases, [true, false])
    func added(constraint: Constraint, mayAsk: Bool) throws {
        try keychain().setPasscode("swordfish")
        let person = try keychain().person
        person.answers(.text(Constraint.password))
        var item = try constraint.item()
        if !mayAsk { item[kSecUseAuthenticationUI] = kSecUseAuthenticationUIFail }
        let status = add(item).status
        #expect(status == (constraint.needsPassword && !mayAsk ? errSecInteractionNotAllowed : errSecSuccess))
        #expect(person.questions.map(\.secret) == (constraint.needsPassword && mayAsk ? [.newApplicationPassword] : []))
        guard status == errSecSuccess else { return #expect(try StoredRows.all().isEmpty) }
        // The password that was chosen is the one that opens it.
        person.answers(.correctPasscode)
        let query = Item.genericQuery().with(kSecUseAuthenticationContext, contextWithPassword())
        #expect(secret(of: query) == (constraint.needsPasscode || mayAsk ? Item.secret : nil))
    }

    @Test("Adding fails if no prompt for the password can be shown")
    func noPromptForNewPassword() throws {
        #expect(add(try Constraint.applicationPassword.item()).status == errSecInteractionNotAllowed)
        try keychain().person.answers(.cancel)
        #expect(add(try Constraint.applicationPassword.item()).status == errSecUserCanceled)
        #expect(try StoredRows.all().isEmpty)
    }

    @Test(
        "While no passcode is set, items cannot be added or updated with constraints that require the user", arguments: Constraint.allCases)
    func withoutPasscode(constraint: Constraint) throws {
        let item = try constraint.item().with(kSecUseAuthenticationContext, contextWithPassword())
        let expected = constraint.needsPasscode ? errSecAuthFailed : errSecSuccess
        #expect(add(item).status == expected)
        #expect(try StoredRows.all().count == (expected == errSecSuccess ? 1 : 0))
        add(Item.generic("other"))
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, constraint.flags)
        let query = Item.genericQuery("other").with(kSecUseAuthenticationContext, contextWithPassword())
        #expect(update(query, [kSecAttrAccessControl: control]) == expected)
        #expect(secret(of: query) == Item.secret)
    }

    private static let unsatisfiableFlags: [SecAccessControlCreateFlags] = [
        .biometryAny, .biometryCurrentSet, .companion, [.biometryAny, .and, .devicePasscode], [.biometryCurrentSet, .devicePasscode],
        [.companion, .and, .devicePasscode], [.biometryAny, .or, .companion], [.biometryAny, .applicationPassword],
    ]

    @Test("Items cannot be added or updated with constraints that cannot be satisfied", arguments: unsatisfiableFlags)
    func unsatisfiable(flags: SecAccessControlCreateFlags) throws {
        try keychain().setPasscode("swordfish")
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, flags)
        let credential: ItemDictionary = [kSecUseAuthenticationContext: contextWithPassword()]
        #expect(add(Item.generic().with(kSecAttrAccessControl, control).with(credential)).status == errSecAuthFailed)
        #expect(try StoredRows.all().isEmpty)
        add(Item.generic())
        #expect(update(Item.genericQuery().with(credential), [kSecAttrAccessControl: control]) == errSecAuthFailed)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    @Test(
        "Access control only for private keys is rejected for passwords, in an add and in an update",
        arguments: [
            SecAccessControlCreateFlags.privateKeyUsage, [.privateKeyUsage, .userPresence], [.privateKeyUsage, .applicationPassword],
        ])
    func privateKeyUsage(flags: SecAccessControlCreateFlags) throws {
        try keychain().setPasscode("swordfish")
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, flags)
        #expect(add(Item.generic().with(kSecAttrAccessControl, control)).status == errSecParam)
        #expect(try StoredRows.all().isEmpty)
        add(Item.generic())
        #expect(update(Item.genericQuery(), [kSecAttrAccessControl: control]) == errSecParam)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    // MARK: Find and update

    @Test("Each access to an item prompts once for all of its constraints", arguments: Constraint.allCases, Access.allCases)
    private func satisfied(constraint: Constraint, access: Access) throws {
        try constraint.store()
        try constraint.satisfy()
        #expect(access.status() == errSecSuccess)
        #expect(try keychain().person.questions.map(\.secret) == constraint.secrets)
        #expect(try keychain().person.remainingAnswerCount == 0)
    }

    @Test("Each access fails if prompts are forbidden or cannot be shown", arguments: Constraint.allCases, Access.allCases)
    private func unattended(constraint: Constraint, access: Access) throws {
        try constraint.store()
        #expect(access.status() == errSecInteractionNotAllowed)
        let person = try keychain().person
        let questionCount = person.questions.count
        try constraint.satisfy()
        #expect(access.status([kSecUseAuthenticationUI: kSecUseAuthenticationUIFail]) == errSecInteractionNotAllowed)
        #expect(access.status([kSecUseNoAuthenticationUI: true]) == errSecInteractionNotAllowed)
        let silent = LAContext()
        silent.interactionNotAllowed = true
        #expect(access.status([kSecUseAuthenticationContext: silent]) == errSecInteractionNotAllowed)
        #expect(person.questions.count == questionCount)
    }

    @Test(
        "Each access fails if the user cancels or answers wrong three times", arguments: Constraint.allCases,
        Access.allCases)
    private func refused(constraint: Constraint, access: Access) throws {
        try constraint.store()
        let person = try keychain().person
        person.answers(.cancel)
        #expect(access.status() == errSecUserCanceled)
        #expect(person.questions.count == 1)
        person.answers(.text("wrong"), times: 3)
        #expect(access.status() == errSecAuthFailed)
        #expect(person.questions.map(\.triesLeft) == [nil, nil, 2, 1])
        person.answers(.tooLate)
        #expect(access.status() == errSecInteractionNotAllowed)
    }

    @Test("Searches that skip items with constraints find the others", arguments: Constraint.allCases)
    func skipped(constraint: Constraint) throws {
        try constraint.store()
        add(Item.generic("other"))
        let query: ItemDictionary = [
            kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll,
            kSecUseAuthenticationUI: kSecUseAuthenticationUISkip,
        ]
        #expect(find(query).attributesArray?.map { $0[kSecAttrAccount] as? String } == ["other"])
        #expect(try keychain().person.questions.isEmpty)
    }

    @Test("A search for several items prompts once for all of their constraints")
    func many() throws {
        let person = try keychain().person
        for constraint in Constraint.allCases {
            try keychain().setPasscode("swordfish")
            #expect(
                add(try constraint.item("\(constraint)").with(kSecUseAuthenticationContext, contextWithPassword())).status == errSecSuccess)
        }
        person.answers(.correctPasscode, .text(Constraint.password))
        let query: ItemDictionary = [
            kSecClass: kSecClassGenericPassword, kSecReturnData: true, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll,
        ]
        #expect(find(query).attributesArray?.count == Constraint.allCases.count)
        #expect(person.questions.map(\.secret) == [.passcode, .applicationPassword])
    }

    @Test("A new accessibility does not change the constraints of an item", arguments: Constraint.allCases)
    func otherAccessibility(constraint: Constraint) throws {
        try constraint.store()
        try constraint.satisfy()
        #expect(update(Item.genericQuery(), [kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock]) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecInteractionNotAllowed)
        try constraint.satisfy()
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(
            found[kSecAttrAccessControl] as? SecAccessControl
                == (try accessControl(kSecAttrAccessibleAfterFirstUnlock, constraint.flags)))
    }

    @Test("If prompts are forbidden, an update with the whole primary key and a secret replaces an item with constraints")
    func replacedUnread() throws {
        try Constraint.userPresence.store()
        let mayFail = Item.genericQuery().with(kSecUseAuthenticationUI, kSecUseAuthenticationUIFail)
        let new = Data("new".utf8)
        #expect(update(mayFail, [kSecAttrComment: "changed"]) == errSecInteractionNotAllowed)
        #expect(update(mayFail, [kSecValueData: new]) == errSecSuccess)
        #expect(find(mayFail).status == errSecInteractionNotAllowed)
        #expect(try keychain().person.questions.isEmpty)
        try keychain().person.answers(.correctPasscode)
        #expect(secret(of: Item.genericQuery()) == new)
    }

    // MARK: Delete

    @Test("Deleting does not prompt", arguments: Constraint.allCases)
    func deleted(constraint: Constraint) throws {
        try constraint.store()
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(try keychain().person.questions.isEmpty)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    // MARK: Stored access control

    @Test("Case 68: access control is returned as it was stored", arguments: Constraint.allCases)
    func readBack(constraint: Constraint) throws {
        try constraint.store()
        try constraint.satisfy()
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecAttrAccessControl] as? SecAccessControl == (try accessControl(kSecAttrAccessibleWhenUnlocked, constraint.flags)))
        #expect(found[kSecAttrAccessible] as? String == kSecAttrAccessibleWhenUnlocked as String)
    }

    @Test("Case 88: the attributes of an item with access control are a query once its access control or its accessibility is left out")
    func roundTrip() throws {
        try Constraint.userPresence.store()
        try keychain().person.answers(.correctPasscode, times: 3)
        let found = try #require(attributes(of: Item.genericQuery())).with(kSecClass, kSecClassGenericPassword)
        #expect(find(found).status == errSecParam)
        #expect(find(found.without(kSecAttrAccessControl)).status == errSecSuccess)
        #expect(find(found.without(kSecAttrAccessible)).status == errSecSuccess)
    }
}
#endif
