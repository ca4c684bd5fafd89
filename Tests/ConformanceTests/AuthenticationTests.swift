// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 9.4: authentication", .keychain)
struct AuthenticationFlowTests {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    private func status(_ others: ItemDictionary = [:]) -> OSStatus {
        find(Item.genericQuery().with(others).with(kSecReturnData, true)).status
    }

    private func canEvaluate(_ context: LAContext, _ policy: LAPolicy) -> (Bool, LAError.Code?) {
        var error: NSError?
        // The variable is this function's, and used during the call alone.
        let isPossible = unsafe context.canEvaluatePolicy(policy, error: &error)
        return (isPossible, (error as? LAError)?.code)
    }

    // MARK: Contexts

    @Test("An evaluated context opens an item without another prompt, even if prompts are forbidden")
    func evaluated() async throws {
        try Constraint.userPresence.store()
        let person = try keychain().person
        person.answers(.correctPasscode)
        let context = LAContext()
        #expect(try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe"))
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        #expect(
            status([kSecUseAuthenticationContext: context, kSecUseAuthenticationUI: kSecUseAuthenticationUIFail]) == errSecSuccess)
        context.interactionNotAllowed = true
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        #expect(try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "once more"))
        #expect(person.questions.map(\.reason) == ["open the safe"])
        // The context keeps the authentication, not the process.
        #expect(status() == errSecInteractionNotAllowed)
        #expect(status([kSecUseAuthenticationContext: LAContext()]) == errSecInteractionNotAllowed)
    }

    @Test("A context keeps an authentication for the next call; without a context, each call authenticates by itself")
    func carried() throws {
        try Constraint.presenceAndPassword.store()
        let person = try keychain().person
        let context = LAContext()
        try Constraint.presenceAndPassword.satisfy()
        for _ in 0..<3 { #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess) }
        #expect(person.questions.count == 2)
        #expect(context.isCredentialSet(.applicationPassword))
        #expect(status() == errSecInteractionNotAllowed)
        try Constraint.presenceAndPassword.satisfy()
        #expect(status() == errSecSuccess)
        #expect(status() == errSecInteractionNotAllowed)
    }

    @Test("A wrong password is removed from the context, and the user is prompted")
    func wrongPassword() throws {
        try Constraint.applicationPassword.store()
        let person = try keychain().person
        let context = contextWithPassword("wrong")
        #expect(status([kSecUseAuthenticationContext: context, kSecUseAuthenticationUI: kSecUseAuthenticationUIFail]) == errSecAuthFailed)
        #expect(!context.isCredentialSet(.applicationPassword))
        #expect(person.questions.isEmpty)

        context.setCredential(Data("wrong".utf8), type: .applicationPassword)
        person.answers(.text(Constraint.password))
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        #expect(context.isCredentialSet(.applicationPassword))

        context.setCredential(Data("wrong".utf8), type: .applicationPassword)
        person.answers(.text("wrong"), times: 5)
        #expect(status([kSecUseAuthenticationContext: context]) == errSecAuthFailed)
        #expect(!context.isCredentialSet(.applicationPassword))
    }

    @Test("The correct password in the context opens an item that also requires the user, after authentication")
    func passwordInContext() throws {
        try Constraint.presenceAndPassword.store()
        let person = try keychain().person
        person.answers(.correctPasscode)
        #expect(status([kSecUseAuthenticationContext: contextWithPassword()]) == errSecSuccess)
        #expect(person.questions.map(\.secret) == [.passcode])
    }

    @Test("An invalidated context opens nothing, and wipes its secrets", arguments: Constraint.allCases)
    func invalidated(constraint: Constraint) throws {
        try constraint.store()
        try constraint.satisfy()
        let context = LAContext()
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        context.invalidate()
        #expect(!context.isCredentialSet(.applicationPassword))
        try constraint.satisfy()
        let questionCount = try keychain().person.questions.count
        #expect(status([kSecUseAuthenticationContext: context]) == errSecAuthFailed)
        #expect(add(Item.generic("other").with(kSecUseAuthenticationContext, context)).status == errSecAuthFailed)
        #expect(update(Item.genericQuery().with(kSecUseAuthenticationContext, context), [:]) == errSecAuthFailed)
        #expect(delete(Item.genericQuery().with(kSecUseAuthenticationContext, context)) == errSecAuthFailed)
        #expect(try keychain().person.questions.count == questionCount)
    }

    @Test("A context together with a credential is rejected", arguments: Verb.allCases)
    func contextAndCredential(verb: Verb) {
        let both: ItemDictionary = [kSecUseAuthenticationContext: LAContext(), PrivateKey.credentialReference: Data([1])]
        #expect(verb.status(Item.generic().with(both)) == errSecParam)
    }

    // MARK: Validity of an authentication

    @Test("An authentication is valid for the reuse duration, at most five minutes", arguments: [(10.0, 10), (300.0, 300), (4711.0, 300)])
    func reuse(duration: TimeInterval, seconds: Int) async throws {
        try Constraint.userPresence.store()
        let person = try keychain().person
        let context = LAContext()
        context.touchIDAuthenticationAllowableReuseDuration = duration
        person.answers(.correctPasscode)
        try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        try keychain().clock.advance(by: .seconds(seconds - 1))
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        try keychain().clock.advance(by: .seconds(1))
        #expect(status([kSecUseAuthenticationContext: context]) == errSecInteractionNotAllowed)
        person.answers(.correctPasscode)
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        #expect(person.questions.count == 3)
    }

    @Test("Without a reuse duration, an authentication is valid until the keychain is locked or its passcode changes")
    func withoutTime() async throws {
        try Constraint.userPresence.store()
        // Prevents automatic locking.
        try KeychainSession.current().setAutoLock(.never)
        let person = try keychain().person
        let context = LAContext()
        person.answers(.correctPasscode)
        try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        try keychain().clock.advance(by: .seconds(3_600))
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        try keychain().lock()
        try keychain().unlock()
        #expect(status([kSecUseAuthenticationContext: context]) == errSecInteractionNotAllowed)
        person.answers(.correctPasscode)
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
    }

    @Test("Changing or removing the passcode invalidates an authentication")
    func otherPasscode() async throws {
        try Constraint.userPresence.store()
        let session = try KeychainSession.current()
        let person = try keychain().person
        let context = LAContext()
        person.answers(.correctPasscode)
        try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        try session.changePasscode(from: "swordfish", to: "another")
        #expect(status([kSecUseAuthenticationContext: context]) == errSecInteractionNotAllowed)
        person.answers(.correctPasscode)
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
        #expect(try session.removePasscode("another") { _ in true })
        try Constraint.userPresence.store()
        #expect(status([kSecUseAuthenticationContext: context]) == errSecInteractionNotAllowed)
        #expect(person.questions.count == 4)
    }

    @Test("An authentication while locked opens its item, and the keychain remains locked")
    func whileLocked() throws {
        try Constraint.userPresence.store()
        add(Item.generic("other"))
        try keychain().lock()
        try keychain().person.answers(.correctPasscode)
        #expect(status() == errSecSuccess)
        #expect(try keychain().state == .locked)
        #expect(find(Item.genericQuery("other")).status == errSecInteractionNotAllowed)
    }

    @Test("An authentication is valid for one keychain only")
    func otherKeychain() async throws {
        try Constraint.userPresence.store()
        let context = LAContext()
        try keychain().person.answers(.correctPasscode)
        try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        let other = try InMemoryKeychain()
        try other.perform {
            try Constraint.userPresence.store()
            #expect(status([kSecUseAuthenticationContext: context]) == errSecInteractionNotAllowed)
        }
        #expect(status([kSecUseAuthenticationContext: context]) == errSecSuccess)
    }

    // MARK: Texts of prompts

    @Test("A prompt shows the program, the operation and the program's reason; the reason of the call takes precedence")
    func promptText() throws {
        try Constraint.userPresence.store()
        let person = try keychain().person
        let context = LAContext()
        context.localizedReason = "words of the context"
        context.localizedCancelTitle = "Not now"
        person.answers(.cancel, times: 3)
        _ = status()
        _ = status([kSecUseAuthenticationContext: context])
        _ = status([kSecUseAuthenticationContext: context, kSecUseOperationPrompt: "words of the call"])
        #expect(person.questions.map(\.reason) == [nil, "words of the context", "words of the call"])
        #expect(person.questions.map(\.cancelTitle) == [nil, "Not now", "Not now"])
        // keychaind names the program as it knows it, and not as it names itself.
        #expect(Set(person.questions.map(\.requester)).count == 1)
        #expect(person.questions.allSatisfy { !$0.requester.isEmpty && !$0.purpose.isEmpty })
    }

    // MARK: LAError

    private static let answers: [(InMemoryKeychain.Person.Answer, LAError.Code)] = [
        (.cancel, .userCancel), (.tooLate, .systemCancel), (.absence, .notInteractive), (.text("wrong"), .authenticationFailed),
        (.text(""), .authenticationFailed),
    ]

    @Test("A context reports why authentication failed", arguments: answers)
    func errors(answer: InMemoryKeychain.Person.Answer, code: LAError.Code) async throws {
        try keychain().setPasscode("swordfish")
        try keychain().person.answers(answer, times: 3)
        await #expect(throws: LAError(code)) {
            try await LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        }
    }

    @Test("A context reports in advance why authentication would fail")
    func beforehand() throws {
        let context = LAContext()
        #expect(canEvaluate(context, .deviceOwnerAuthentication) == (false, .passcodeNotSet))
        #expect(canEvaluate(context, .deviceOwnerAuthenticationWithBiometrics) == (false, .biometryNotAvailable))
        try keychain().setPasscode("swordfish")
        #expect(canEvaluate(context, .deviceOwnerAuthentication) == (false, .notInteractive))
        try keychain().person.answers(.correctPasscode)
        #expect(canEvaluate(context, .deviceOwnerAuthentication) == (true, nil))
        #expect(canEvaluate(context, .deviceOwnerAuthenticationWithBiometrics) == (false, .biometryNotAvailable))
        context.invalidate()
        #expect(canEvaluate(context, .deviceOwnerAuthentication) == (false, .invalidContext))
        #expect(try keychain().person.questions.isEmpty)
    }

    @Test("Without a passcode the user cannot authenticate, whether prompts are allowed or not")
    func withoutPasscode() async throws {
        try keychain().person.answers(.text("swordfish"))
        await #expect(throws: LAError(.passcodeNotSet)) {
            try await LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        }
        #expect(try keychain().person.questions.isEmpty)
    }

    @Test("A context that forbids prompts cannot evaluate a policy")
    func notInteractive() async throws {
        try keychain().setPasscode("swordfish")
        try keychain().person.answers(.correctPasscode)
        let context = LAContext()
        context.interactionNotAllowed = true
        await #expect(throws: LAError(.notInteractive)) {
            try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        }
        #expect(try keychain().person.questions.isEmpty)
    }

    @Test(
        "The application password of an access control is prompted for, and kept in the context",
        arguments: [LAAccessControlOperation.useItem, .createItem])
    func evaluatedPassword(operation: LAAccessControlOperation) async throws {
        let context = LAContext()
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, .applicationPassword)
        try keychain().person.answers(.text(Constraint.password))
        #expect(try await context.evaluateAccessControl(control, operation: operation, localizedReason: "open the safe"))
        #expect(context.isCredentialSet(.applicationPassword))
        let item = try Constraint.applicationPassword.item().with(kSecUseAuthenticationContext, context)
        #expect(add(item).status == errSecSuccess)
        #expect(status([kSecUseAuthenticationContext: contextWithPassword()]) == errSecSuccess)
    }
}

@Suite("Items that require authentication, cases of the specification", .keychain)
struct AuthenticationCases {
    private func keychain() throws -> InMemoryKeychain { try #require(InMemoryKeychain.current) }

    @Test("Case 70: an item that requires the user is added and read with one authenticated context and one prompt")
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

    @Test(
        "Case 71: if prompts are forbidden, an item with constraints cannot be read, or is left out, and can be deleted",
        arguments: Constraint.allCases)
    func promptsForbidden(constraint: Constraint) throws {
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

    @Test("Case 74: the correct application password opens its item without a prompt")
    func rightPassword() throws {
        try Constraint.applicationPassword.store()
        let query = Item.genericQuery().with(kSecUseAuthenticationContext, contextWithPassword())
        #expect(secret(of: query) == Item.secret)
        #expect(try keychain().person.questions.isEmpty)
    }

    @Test("Case 74: without the password the user is prompted for it, at most three times")
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

    @Test("Case 75: an update uses the application password in its query, and rejects it among the changes")
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

    @Test("Case 76: an item that requires the user is deleted with the passcode, and cannot be added before a new one is set")
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

    @Test("Case 77: the number of prompts for a wrong passcode is limited", arguments: Constraint.allCases)
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
