// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing

@Suite("Items that ask a person, cases of the specification", .inMemoryKeychain)
struct AuthenticationCases {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    @Test("Case 70: an item that needs somebody is added and read with one authenticated context, and one question")
    func oneContext() async throws {
        try keychain().setPasscode("swordfish")
        try keychain().person.answers(.correctPasscode)
        let context = LAContext()
        let control = try accessControl(kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .userPresence)
        #expect(try await context.evaluateAccessControl(control, operation: .useItem, localizedReason: "open the safe"))
        let item = Item.generic().with([kSecAttrAccessControl: control, kSecUseAuthenticationContext: context])
        #expect(add(item).status == errSecSuccess)
        let query = Item.genericQuery().with([
            kSecUseAuthenticationContext: context, kSecReturnData: true, kSecReturnAttributes: true,
        ])
        for _ in 0..<2 {
            let answer = find(query)
            #expect(answer.status == errSecSuccess)
            #expect(answer.attributes?[kSecValueData] as? Data == Item.secret)
            #expect(answer.attributes?[kSecAttrAccount] as? String == "account")
            #expect(answer.attributes?[kSecAttrAccessControl] as? SecAccessControl == control)
        }
        #expect(try keychain().person.questions.map(\.reason) == ["open the safe"])
    }

    @Test("Case 71: where nobody may be asked, an item that asks is not found, or passed over, and deleted", arguments: Constraint.allCases)
    func nobodyMayBeAsked(constraint: Constraint) throws {
        try constraint.store()
        let person = try keychain().person
        person.answers(.correctPasscode, .text(Constraint.password))
        let mayFail = Item.genericQuery().with(kSecUseAuthenticationUI, kSecUseAuthenticationUIFail)
        #expect(find(mayFail).status == errSecInteractionNotAllowed)
        #expect(find(Item.genericQuery().with(kSecUseAuthenticationUI, kSecUseAuthenticationUISkip)).status == errSecItemNotFound)
        #expect(delete(mayFail) == errSecSuccess)
        #expect(find(mayFail).status == errSecItemNotFound)
        #expect(person.questions.isEmpty)
    }

    @Test("Case 74: the right password of the program opens its item without a question")
    func rightPassword() throws {
        try Constraint.applicationPassword.store()
        let query = Item.genericQuery().with(kSecUseAuthenticationContext, contextWithPassword())
        #expect(secret(of: query) == Item.secret)
        #expect(try keychain().person.questions.isEmpty)
    }

    @Test("Case 74: without the password somebody is asked for it, three times at the most")
    func askedForPassword() throws {
        try Constraint.applicationPassword.store()
        let person = try keychain().person
        person.answers(.text(Constraint.password))
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        person.answers(.text("wrong"), .text(Constraint.password))
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        person.answers(.text("wrong"), times: 10)
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == errSecAuthFailed)
        #expect(person.remainingAnswerCount == 7)
        #expect(Set(person.questions.map(\.secret)) == [.applicationPassword])
    }

    @Test("Case 75: an update gives an item a password of the program's: in the query, and not among the changes")
    func passwordByUpdate() throws {
        add(Item.generic())
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, .applicationPassword)
        let changes: ItemDictionary = [kSecAttrAccessControl: control]
        for credential: ItemDictionary in [
            [kSecUseAuthenticationContext: contextWithPassword()], [PrivateKey.credentialReference: Data([1])],
        ] {
            #expect(update(Item.genericQuery(), changes.with(credential)) == errSecNoSuchAttr)
            #expect(secret(of: Item.genericQuery()) == Item.secret)
        }
        let query = Item.genericQuery().with(kSecUseAuthenticationContext, contextWithPassword())
        #expect(update(query, changes) == errSecSuccess)
        #expect(secret(of: query) == Item.secret)
        let mayFail = Item.genericQuery().with(kSecUseAuthenticationUI, kSecUseAuthenticationUIFail)
        #expect(find(mayFail).status == errSecInteractionNotAllowed)
    }

    @Test("Case 76: an item that needs somebody goes with the passcode, and cannot be added before there is another")
    func removedPasscode() throws {
        try Constraint.userPresence.store()
        add(Item.generic("other"))
        let session = try KeychainSession.current()
        var accounts: [String?] = []
        let isRemoved = try session.removePasscode("swordfish") { items in
            accounts = items.map(\.account)
            return true
        }
        #expect(isRemoved)
        #expect(accounts == ["account"])
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(add(try Constraint.userPresence.item()).status == errSecAuthFailed)
        #expect(secret(of: Item.genericQuery("other")) == Item.secret)
        try session.setPasscode("another")
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(add(try Constraint.userPresence.item()).status == errSecSuccess)
    }

    @Test("Case 77: a person who never knows the passcode is not asked for ever", arguments: Constraint.allCases)
    func neverSatisfied(constraint: Constraint) throws {
        try constraint.store()
        let person = try keychain().person
        person.answers(.text("wrong"), times: 100)
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == errSecAuthFailed)
        #expect(person.questions.count <= 20)
        #expect(person.questions.count == 3)
    }
}
#endif
