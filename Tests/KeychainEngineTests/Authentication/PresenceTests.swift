// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("Items that require authentication")
struct PresenceTests {
    @Test(
        "Adding does not prompt; each read prompts once and shows the program and the operation",
        arguments: [AccessControl.Constraint.userPresence, .devicePasscode])
    func readPrompts(constraint: AccessControl.Constraint) throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add("safe", constraint)
            #expect(items.person.questions.isEmpty)
            for _ in 0..<2 {
                items.person.then(.type(ProtectedItems.passcode))
                #expect(try items.read("safe", Authentication(prompt: "Open the safe")) == ["12345"])
            }
            #expect(items.person.questions.count == 2)
            let question = try #require(items.person.questions.first)
            #expect(question.secret == .passcode && question.reason == "Open the safe" && !question.requester.isEmpty)
        }
    }

    @Test("Reading attributes and checking existence require authentication too, deleting does not")
    func otherCallsPrompt() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            #expect(
                items.status { () throws(KeychainFailure) in _ = try items.read("safe", includesSecrets: false) } == .interactionNotAllowed)
            #expect(items.readStatus("safe", .forbidden) == .interactionNotAllowed)
            #expect(items.readStatus("absent", .forbidden) == .itemNotFound)
            #expect(items.readStatus("safe", .skipping) == .itemNotFound)
            try items.keychain.delete(DeleteRequest(query: items.query(), authentication: .forbidden))
            #expect(items.readStatus() == .itemNotFound)
            #expect(items.person.questions.count == 1)
        }
    }

    @Test("Three wrong passcodes fail, each prompt shows the attempts left; a correct one after two wrong ones succeeds")
    func wrongPasscode() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            items.person.then(.type("wrong"), .type(""), .type("Swordfish"))
            #expect(items.readStatus() == .authFailed)
            #expect(items.person.questions.map(\.triesLeft) == [nil, 2, 1])
            items.person.then(.type("wrong"), .type("wrong"), .type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
        }
    }

    @Test(
        "Canceling, a timeout and a missing prompt each have their own status",
        arguments: [
            (ScriptedPresencePrompter.Reaction.cancel, KeychainStatus.userCanceled), (.promptUnavailable, .interactionNotAllowed),
            (.timeOut, .interactionNotAllowed), (.fail("it died"), .interactionNotAllowed),
        ])
    func refusals(reaction: ScriptedPresencePrompter.Reaction, status: KeychainStatus) throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            items.person.then(reaction)
            #expect(items.readStatus() == status)
            #expect(items.person.questions.count == 1)
        }
    }

    @Test("Without a passcode such an item is rejected and not stored")
    func withoutPasscode() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            for accessibility in [ItemAccessibility.whenUnlocked, .whenPasscodeSetThisDeviceOnly] {
                let failure = #expect(throws: KeychainFailure.self) { try items.add("safe", .userPresence, accessibility) }
                #expect(failure?.status == .authFailed)
            }
            #expect(items.readStatus() == .itemNotFound)
        }
    }

    @Test(
        "Required biometry is rejected; if it is one of several alternatives, the passcode is used",
        arguments: [
            (AccessControl.Constraint.biometryAny, false), (.biometryCurrentSet, false), (.companion, false),
            (.all([.biometryAny, .devicePasscode]), false), (.any([.biometryAny, .companion]), false),
            (.any([.biometryAny, .devicePasscode]), true), (.any([.companion, .devicePasscode, .biometryCurrentSet]), true),
        ])
    func biometry(constraint: AccessControl.Constraint, isPossible: Bool) throws {
        try ProtectedItems.inEveryKeychain { items in
            #expect(
                items.status { () throws(KeychainFailure) in try items.add("safe", constraint) } == (isPossible ? .success : .authFailed))
            guard isPossible else {
                #expect(items.readStatus("safe", .forbidden) == .itemNotFound)
                return
            }
            items.person.then(.type(ProtectedItems.passcode))
            let secrets = try items.read()
            #expect(secrets == ["12345"])
        }
    }

    @Test("The access control is returned with the item")
    func accessControlIsKept() throws {
        try ProtectedItems.inEveryKeychain { items in
            let constraint = AccessControl.Constraint.any([.biometryAny, .devicePasscode])
            try items.add("safe", constraint, .whenUnlocked)
            items.person.then(.type(ProtectedItems.passcode))
            let item = try items.keychain.copyMatching(MatchRequest(query: items.query())).first
            #expect(item?.accessControl == AccessControl(.whenUnlocked, constraint: constraint))
        }
    }

    @Test("A search for many items prompts once for all of them")
    func manyItems() throws {
        try ProtectedItems.inEveryKeychain { items in
            for account in ["a", "b", "c"] { try items.add(account, secret: account) }
            try items.add("open", nil, .whenUnlocked, secret: "open")
            items.person.then(.type(ProtectedItems.passcode))
            #expect(try Set(items.read(nil, limit: nil)) == ["a", "b", "c", "open"])
            #expect(items.person.questions.count == 1)
            #expect(try items.read(nil, limit: nil, .skipping) == ["open"])
            // The search stops at its limit; the first item requires a prompt.
            #expect(items.status { () throws(KeychainFailure) in _ = try items.read(nil, limit: 1, .forbidden) } == .interactionNotAllowed)
        }
    }

    @Test("A passcode given for an item of a locked keychain opens that item, and the keychain stays locked")
    func locked() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            try items.add("unconstrained", nil, .whenUnlocked)
            try items.keychain.lock(.everything)
            items.person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            #expect(items.readStatus("unconstrained") == .interactionNotAllowed)
            #expect(try items.keychain.sessionStatus().state == .neverUnlocked)
            #expect(items.status { () throws(KeychainFailure) in try items.add("another") } == .interactionNotAllowed)
            #expect(items.person.questions.count == 1)
        }
    }

    @Test("An update reads the old item first, so it prompts")
    func update() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            items.person.then(.type(ProtectedItems.passcode), .type(ProtectedItems.passcode))
            try items.keychain.update(UpdateRequest(query: items.query(), changes: ItemAttributes([.label: .string("Luggage")])))
            #expect(items.person.questions.count == 1)
            let item = try items.keychain.copyMatching(MatchRequest(query: items.query(), includesSecrets: true)).first
            #expect(item?.attributes.text(.label) == "Luggage" && item?.secret == Data("12345".utf8))
        }
    }

    @Test("Without prompts, an update that names the whole item replaces it; one that would lose attributes fails")
    func unreadUpdate() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            try items.keychain.update(UpdateRequest(query: items.query(), secret: Data("54321".utf8), authentication: .forbidden))
            items.person.then(.type(ProtectedItems.passcode))
            let item = try items.keychain.copyMatching(MatchRequest(query: items.query(), includesSecrets: true)).first
            #expect(item?.secret == Data("54321".utf8))
            #expect(item?.accessControl == AccessControl(.whenPasscodeSetThisDeviceOnly, constraint: .userPresence))

            items.person.then(.type(ProtectedItems.passcode))
            try items.keychain.update(UpdateRequest(query: items.query(), changes: ItemAttributes([.label: .string("Luggage")])))
            func update(_ query: ItemQuery, _ changes: ItemAttributes = ItemAttributes(), _ secret: Data?) -> KeychainStatus {
                items.status { () throws(KeychainFailure) in
                    try items.keychain.update(UpdateRequest(query: query, changes: changes, secret: secret, authentication: .forbidden))
                }
            }
            #expect(update(items.query(), ItemAttributes(), Data("0".utf8)) == .interactionNotAllowed)
            #expect(update(items.query(nil), ItemAttributes([.label: .string("x")]), Data("0".utf8)) == .interactionNotAllowed)
            #expect(update(items.query(), ItemAttributes([.label: .string("x")]), nil) == .interactionNotAllowed)
            items.person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["54321"])
            #expect(update(items.query(), ItemAttributes([.label: .string("x")]), Data("0".utf8)) == .success)
        }
    }

    @Test("Without prompts, an update keeps the attributes of its query, and changes no item if the password is wrong")
    func unreadUpdateLosesNothing() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            items.person.then(.type(ProtectedItems.passcode))
            try items.keychain.update(
                UpdateRequest(query: items.query(), changes: ItemAttributes([.label: .string("Luggage"), .comment: .string("brown")])))
            var query = items.query()
            query.attributes[.label] = .string("Luggage")
            query.attributes[.comment] = .string("brown")
            try items.keychain.update(UpdateRequest(query: query, secret: Data("54321".utf8), authentication: .forbidden))
            items.person.then(.type(ProtectedItems.passcode))
            let item = try items.keychain.copyMatching(MatchRequest(query: items.query(), includesSecrets: true)).first
            #expect(item?.attributes.text(.label) == "Luggage" && item?.attributes.text(.comment) == "brown")
            #expect(item?.secret == Data("54321".utf8))

            let right = AuthenticationContext()
            right.setApplicationPassword(try .given("spaceballs"))
            try items.add("password", .applicationPassword, .whenUnlocked, authentication: Authentication(context: right))
            for given in ["wrong", nil] {
                let context = AuthenticationContext()
                if let given { context.setApplicationPassword(try .given(given)) }
                let status = items.status { () throws(KeychainFailure) in
                    try items.keychain.update(
                        UpdateRequest(
                            query: items.query("password"), secret: Data("0".utf8),
                            authentication: Authentication(interaction: .forbidden, context: context)))
                }
                #expect(status == (given == nil ? .interactionNotAllowed : .authFailed))
            }
            #expect(try items.read("password", Authentication(context: right)) == ["12345"])
        }
    }

    @Test("One authentication releases items of several classes of a locked keychain")
    func severalClassesWhileLocked() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add("one", .userPresence, .whenUnlockedThisDeviceOnly, secret: "one")
            try items.add("two", .userPresence, .whenPasscodeSetThisDeviceOnly, secret: "two")
            try items.keychain.lock(.everything)
            items.person.then(.type(ProtectedItems.passcode))
            #expect(try items.read(nil, limit: nil) == ["one", "two"])
            #expect(items.person.questions.count == 1)

            let context = AuthenticationContext()
            let authentication = Authentication(context: context)
            items.person.then(.type(ProtectedItems.passcode), .type(ProtectedItems.passcode))
            #expect(try items.read("one", authentication) == ["one"])
            #expect(try items.read(nil, limit: nil, authentication) == ["one", "two"])
            #expect(try items.read("one", authentication) == ["one"])
            #expect(items.person.questions.count == 3)
            items.person.then(.type(ProtectedItems.passcode))
            let evaluated = Authentication(context: AuthenticationContext())
            try items.keychain.authenticate(.userPresence, of: .whenUnlockedThisDeviceOnly, evaluated)
            items.person.then(.type(ProtectedItems.passcode))
            try items.keychain.authenticate(.userPresence, of: .whenPasscodeSetThisDeviceOnly, evaluated)
            #expect(try items.read("two", Authentication(interaction: .forbidden, context: evaluated.context)) == ["two"])

            items.person.then(.type(ProtectedItems.passcode))
            try items.keychain.update(UpdateRequest(query: items.query("one"), accessibility: .whenPasscodeSetThisDeviceOnly))
            #expect(items.person.remainingCount == 0)
        }
    }

    @Test("Changing only the protection class preserves the constraint")
    func accessibilityAlone() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            items.person.then(.type(ProtectedItems.passcode))
            try items.keychain.update(UpdateRequest(query: items.query(), accessibility: .whenUnlockedThisDeviceOnly))
            #expect(items.readStatus("safe", .forbidden) == .interactionNotAllowed)
            items.person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("Changing passcode and class keys preserves such items; removing the passcode lists and deletes them")
    func passcodeChanges() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add()
            try items.add("any class", .devicePasscode, .whenUnlocked)
            try items.add("plain", nil, .whenUnlocked)
            try items.keychain.changePasscode(
                from: try Passcode(text: ProtectedItems.passcode), to: try Passcode(text: "another one"), rotatingKeys: true,
                autoLock: .standard)
            items.person.then(.type("another one"), .type("another one"))
            #expect(try items.read() == ["12345"])
            #expect(try items.read("any class") == ["12345"])
            let removal = try items.keychain.passcodeRemoval(try Passcode(text: "another one"))
            #expect(Set(removal.items.compactMap { $0.name?.account }) == ["safe", "any class"])
            try items.keychain.removePasscode(try Passcode(text: "another one"), deleting: removal)
            #expect(items.readStatus() == .itemNotFound)
            #expect(items.readStatus("any class") == .itemNotFound)
            #expect(try items.read("plain") == ["12345"])
        }
    }
}
