// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("The keys that a context holds", .blocking)
struct ContextTests {
    @Test(
        "A satisfied context is reused without a prompt until the keychain is locked",
        arguments: [LockExtent.whenUnlocked, .everything])
    func reuse(extent: LockExtent) throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            let context = AuthenticationContext()
            items.person.then(.type(ProtectedItems.passcode))
            for _ in 0..<3 { #expect(try items.read("safe", Authentication(context: context)) == ["12345"]) }
            #expect(items.person.questions.count == 1)
            try items.keychain.lock(extent)
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: context)) == .interactionNotAllowed)
            #expect(!context.holdsReleases)
        }
    }

    @Test("Keys released while locked are wiped when the keychain locks itself after a later unlock")
    func autoLock() throws {
        let keychain = try InMemoryKeychain()
        let memory = keychain.keychain
        let items = ProtectedItems(keychain: memory, person: keychain.prompter)
        try items.setPasscode()
        try items.add()
        try items.keychain.lock(.whenUnlocked)
        let context = AuthenticationContext()
        items.person.then(.type(ProtectedItems.passcode))
        #expect(try items.read("safe", Authentication(context: context)) == ["12345"])
        try items.keychain.unlock(try Passcode(text: ProtectedItems.passcode), autoLock: .after(seconds: 60))
        #expect(try items.read("safe", Authentication(interaction: .forbidden, context: context)) == ["12345"])
        keychain.clock.advance(by: .seconds(61))
        #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: context)) == .interactionNotAllowed)
        #expect(!context.holdsReleases)
    }

    @Test("Changing or removing the passcode invalidates earlier authentications", arguments: [true, false])
    func otherPasscode(isRemoved: Bool) throws {
        try ProtectedItems.inFile { items, local in
            try items.add()
            let context = AuthenticationContext()
            items.person.then(.type(ProtectedItems.passcode))
            _ = try items.read("safe", Authentication(context: context))
            let other = LocalKeychain(configuration: try local.configuration(), entitlements: local.entitlements)
            let passcode = try Passcode(text: ProtectedItems.passcode)
            if isRemoved {
                try other.removePasscode(passcode, deleting: try other.passcodeRemoval(passcode))
            } else {
                try other.changePasscode(from: passcode, to: try Passcode(text: "another one"), rotatingKeys: false, autoLock: .standard)
            }
            #expect(waitUntil { !context.holdsReleases })
        }
    }

    @Test("The reuse ends with its duration")
    func window() throws {
        let keychain = try InMemoryKeychain()
        let memory = keychain.keychain
        let items = ProtectedItems(keychain: memory, person: keychain.prompter)
        try items.setPasscode()
        try items.add()
        let context = AuthenticationContext()
        context.settings.reuseSeconds = 10
        items.person.then(.type(ProtectedItems.passcode))
        #expect(try items.read("safe", Authentication(context: context)) == ["12345"])
        keychain.clock.advance(by: .seconds(9))
        #expect(try items.read("safe", Authentication(context: context)) == ["12345"])
        keychain.clock.advance(by: .seconds(1))
        #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: context)) == .interactionNotAllowed)
        #expect(!context.holdsReleases)
    }

    @Test("An authentication is valid for one keychain only")
    func boundToKeychain() throws {
        try ProtectedItems.inFile { first, _ in
            try ProtectedItems.inFile { second, _ in
                try first.add()
                try second.add()
                let context = AuthenticationContext()
                first.person.then(.type(ProtectedItems.passcode))
                #expect(try first.read("safe", Authentication(context: context)) == ["12345"])
                #expect(second.readStatus("safe", Authentication(interaction: .forbidden, context: context)) == .interactionNotAllowed)
                #expect(try first.read("safe", Authentication(interaction: .forbidden, context: context)) == ["12345"])
            }
        }
    }

    @Test("An invalidated context opens no items, not even items without constraints")
    func invalidated() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            try items.add("plain", nil, .whenUnlocked)
            let context = AuthenticationContext()
            items.person.then(.type(ProtectedItems.passcode))
            _ = try items.read("safe", Authentication(context: context))
            context.invalidate()
            #expect(!context.holdsReleases)
            #expect(items.readStatus("safe", Authentication(context: context)) == .authFailed)
            #expect(items.readStatus("plain", Authentication(context: context)) == .authFailed)
        }
    }

    @Test("An idle context wipes its keys within seconds after a lock by another process")
    func idle() throws {
        let context = AuthenticationContext()
        try ProtectedItems.inFile { items, local in
            try items.add()
            items.person.then(.type(ProtectedItems.passcode))
            _ = try items.read("safe", Authentication(context: context))
            #expect(context.holdsReleases)
            // Another program's way to the same keychain.
            try LocalKeychain(configuration: try local.configuration(), entitlements: local.entitlements).lock(.whenUnlocked)
            #expect(waitUntil { !context.holdsReleases })
        }
    }

    @Test("An evaluation before the access prompts once and releases the keys of the items")
    func evaluation() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            let context = AuthenticationContext()
            items.person.then(.type(ProtectedItems.passcode))
            for _ in 0..<2 { try items.keychain.authenticate(.userPresence, of: nil, Authentication(context: context)) }
            #expect(try items.read("safe", Authentication(interaction: .forbidden, context: context)) == ["12345"])
            #expect(items.person.questions.count == 1)
        }
    }

    @Test("An evaluation that cannot succeed fails before a prompt")
    func evaluationRefused() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            items.person.then(.type(ProtectedItems.passcode))
            func refusal(_ constraint: AccessControl.Constraint) -> AuthenticationRefusal? {
                do throws(KeychainFailure) {
                    try items.keychain.authenticate(constraint, of: nil, Authentication(context: AuthenticationContext()))
                    return nil
                } catch {
                    return error.refusal
                }
            }
            #expect(refusal(.userPresence) == .passcodeNotSet)
            #expect(refusal(.biometryAny) == .biometryNotAvailable)
            #expect(throws: KeychainFailure.self) { try items.keychain.requireCanAuthenticate(.userPresence, in: nil) }
            try items.setPasscode()
            try items.keychain.requireCanAuthenticate(.userPresence, in: nil)
            // An authentication that the context already holds needs no prompt.
            let context = AuthenticationContext()
            try items.keychain.authenticate(.userPresence, of: nil, Authentication(context: context))
            #expect(!items.person.canAsk)
            try items.keychain.requireCanAuthenticate(.userPresence, in: context)
            #expect(throws: KeychainFailure.self) { try items.keychain.requireCanAuthenticate(.userPresence, in: nil) }
            #expect(items.person.questions.count == 1)
        }
    }

    @Test("Two threads that make the same request concurrently share one prompt")
    func sharedQuestion() async throws {
        let keychain = try InMemoryKeychain()
        let memory = keychain.keychain
        let items = ProtectedItems(keychain: memory, person: keychain.prompter)
        try items.setPasscode()
        try items.add()
        items.person.then(
            .decide { _ in
                _ = waitUntil { memory.promptParticipantCount == 2 }
                return .type(ProtectedItems.passcode)
            })
        let read: @Sendable () -> [String] = { (try? items.read()) ?? [] }
        let outcomes = await onThreads([read, read])
        #expect(outcomes == [["12345"], ["12345"]])
        #expect(items.person.questions.count == 1)
    }
}

@Suite("Items under an application password")
struct ApplicationPasswordTests {
    private func context(_ password: String?) throws -> AuthenticationContext {
        let context = AuthenticationContext()
        if let password { context.setApplicationPassword(ApplicationPassword(try Passcode(text: password).bytesForTest())) }
        return context
    }

    @Test("The correct password opens the items without a prompt and without a passcode")
    func right() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            let first = try context("spaceballs")
            try items.add("safe", .applicationPassword, .whenUnlocked, authentication: Authentication(context: first))
            #expect(try items.read("safe", Authentication(interaction: .forbidden, context: first)) == ["12345"])
            let second = try context("spaceballs")
            #expect(try items.read("safe", Authentication(interaction: .forbidden, context: second)) == ["12345"])
            #expect(items.person.questions.isEmpty)
        }
    }

    @Test("A wrong password is removed and prompted for; if no prompt can be shown, the call fails")
    func wrong() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            try items.add("safe", .applicationPassword, .whenUnlocked, authentication: Authentication(context: try context("spaceballs")))
            let wrong = try context("wrong")
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: wrong)) == .authFailed)
            #expect(wrong.applicationPassword == nil)
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: wrong)) == .interactionNotAllowed)
            items.person.then(.type("wrong"), .type("spaceballs"))
            #expect(try items.read("safe", Authentication(context: try context("wrong"))) == ["12345"])
            #expect(items.person.questions.map(\.secret) == [.applicationPassword, .applicationPassword])
            items.person.then(.type("a"), .type("b"), .type("c"), .type("spaceballs"))
            #expect(items.readStatus() == .authFailed)
            #expect(items.person.remainingCount == 1)
        }
    }

    @Test("A password is normalized, so the same text typed on two systems is equal")
    func normalization() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            let composed = AuthenticationContext()
            composed.setApplicationPassword(
                try ApplicationPassword.given("caf\u{E9}"))
            try items.add("safe", .applicationPassword, .whenUnlocked, authentication: Authentication(context: composed))
            items.person.then(.type("cafe\u{301}"))
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("Without a password, adding an item prompts for a new one")
    func new() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            items.person.then(.type("spaceballs"))
            try items.add("safe", .applicationPassword, .whenUnlocked)
            #expect(items.person.questions.map(\.secret) == [.newApplicationPassword])
            items.person.then(.cancel)
            #expect(
                items.status { () throws(KeychainFailure) in try items.add("other", .applicationPassword, .whenUnlocked) } == .userCanceled)
            #expect(items.readStatus("other", .forbidden) == .itemNotFound)
            items.person.then(.type("spaceballs"))
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("If passcode and password are both required, each is prompted for")
    func both() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add(
                "safe", .all([.userPresence, .applicationPassword]), authentication: Authentication(context: try context("spaceballs")))
            let password = try context("spaceballs")
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: password)) == .interactionNotAllowed)
            items.person.then(.type(ProtectedItems.passcode), .type("spaceballs"))
            #expect(try items.read() == ["12345"])
            #expect(items.person.questions.map(\.secret) == [.passcode, .applicationPassword])
            // Of an item protected by an application password, only the number is known.
            let removal = try items.keychain.passcodeRemoval(try Passcode(text: ProtectedItems.passcode))
            #expect(removal.items.map(\.name) == [nil])
        }
    }
}

extension Passcode {
    fileprivate consuming func bytesForTest() throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe bytes.withBytes { try unsafe SecretBytes(copying: $0) }
    }
}
