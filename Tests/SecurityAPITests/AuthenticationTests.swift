// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("Authentication keys of a dictionary")
struct AuthenticationTests {
    /// Returns the authentication options that reach the keychain with this verb.
    private func authentication(_ verb: Verb, _ others: [String: Any]) throws -> Authentication {
        let (status, requests) = verb.call(genericPassword(others))
        try #require(status == errSecSuccess)
        let all =
            requests.added.map(\.authentication) + requests.matched.map(\.authentication) + requests.updated.map(\.authentication)
            + requests.deleted.map(\.authentication)
        return try #require(all.first)
    }

    @Test("Without any of the keys, prompts are allowed, and there is no context and no reason", arguments: Verb.allCases)
    func nothing(verb: Verb) throws {
        let authentication = try authentication(verb, [:])
        #expect(authentication.interaction == .allowed)
        #expect(authentication.context == nil)
        #expect(authentication.prompt == nil)
    }

    private static let interactions: [(ui: Unchecked?, noUI: Unchecked?, interaction: Authentication.Interaction)] = [
        (ui: Unchecked(any: kSecUseAuthenticationUIAllow), noUI: nil, interaction: .allowed),
        (ui: Unchecked(any: kSecUseAuthenticationUIFail), noUI: nil, interaction: .forbidden),
        (ui: Unchecked(any: NSString(string: kSecUseAuthenticationUIFail)), noUI: nil, interaction: .forbidden),
        (ui: Unchecked(any: "u_AuthUIX"), noUI: nil, interaction: .allowed),
        (ui: Unchecked(any: ""), noUI: nil, interaction: .allowed),
        (ui: Unchecked(any: 5), noUI: nil, interaction: .allowed),
        (ui: Unchecked(any: NSNull()), noUI: nil, interaction: .allowed),
        (ui: nil, noUI: Unchecked(any: true), interaction: .forbidden),
        (ui: nil, noUI: Unchecked(any: kCFBooleanTrue as Any), interaction: .forbidden),
        (ui: nil, noUI: Unchecked(any: false), interaction: .allowed),
        (ui: nil, noUI: Unchecked(any: 1), interaction: .allowed),
        (ui: nil, noUI: Unchecked(any: "true"), interaction: .allowed),
        // The older key has an effect only without the newer one, even if the value of the newer one is unknown.
        (ui: Unchecked(any: kSecUseAuthenticationUIAllow), noUI: Unchecked(any: true), interaction: .allowed),
        (ui: Unchecked(any: "odd"), noUI: Unchecked(any: true), interaction: .allowed),
        (ui: Unchecked(any: kSecUseAuthenticationUIFail), noUI: Unchecked(any: false), interaction: .forbidden),
    ]

    @Test("kSecUseAuthenticationUI determines whether prompts are allowed", arguments: Verb.allCases, Self.interactions)
    func interaction(verb: Verb, row: (ui: Unchecked?, noUI: Unchecked?, interaction: Authentication.Interaction)) throws {
        var dictionary: [String: Any] = [:]
        dictionary[kSecUseAuthenticationUI] = row.ui?.any
        dictionary[kSecUseNoAuthenticationUI] = row.noUI?.any
        #expect(try authentication(verb, dictionary).interaction == row.interaction)
    }

    @Test("A search can skip items with access control")
    func skip() throws {
        let dictionary: [String: Any] = [kSecUseAuthenticationUI: kSecUseAuthenticationUISkip, kSecUseNoAuthenticationUI: true]
        #expect(try authentication(.copyMatching, dictionary).interaction == .skippingItems)
    }

    @Test("The program's reason is a string that is not empty", arguments: Verb.allCases)
    func prompt(verb: Verb) throws {
        #expect(try authentication(verb, [kSecUseOperationPrompt: "open the safe"]).prompt == "open the safe")
        #expect(try authentication(verb, [kSecUseOperationPrompt: NSString("open the safe")]).prompt == "open the safe")
        for value in ["", 5, NSNull(), Data("open".utf8), true] as [Any] {
            #expect(try authentication(verb, [kSecUseOperationPrompt: value]).prompt == nil)
        }
    }

    @Test("A context is accepted in every form", arguments: Verb.allCases)
    func context(verb: Verb) throws {
        let context = LAContext()
        for value in [context, context as Any, AnyHashable(context), Optional(context) as Any, context as NSObject] as [Any] {
            #expect(try authentication(verb, [kSecUseAuthenticationContext: value]).context === context.authentication)
        }
        let derived = DerivedContext()
        #expect(try authentication(verb, [kSecUseAuthenticationContext: derived]).context === derived.authentication)
    }

    @Test("A value that is not a context is ignored", arguments: Verb.allCases)
    func noContext(verb: Verb) throws {
        for value in ["context", 1, Data(), NSNull(), NSObject(), LAContext?.none as Any] as [Any] {
            #expect(try authentication(verb, [kSecUseAuthenticationContext: value]).context == nil)
        }
    }

    @Test("A credential is rejected, alone or with a context", arguments: Verb.allCases)
    func credential(verb: Verb) {
        #expect(verb.status(genericPassword([kSecUseAuthenticationContext: LAContext(), "u_CredRef": Data([1])])) == errSecParam)
        #expect(verb.status(genericPassword(["u_CredRef": Data([1])])) == errSecParam)
    }

    @Test("A call with an invalidated context fails without reaching the keychain", arguments: Verb.allCases)
    func invalidated(verb: Verb) {
        let context = LAContext()
        context.invalidate()
        #expect(verb.status(genericPassword([kSecUseAuthenticationContext: context])) == errSecAuthFailed)
        // Mistakes in the call are reported first.
        #expect(verb.status(genericPassword([kSecUseAuthenticationContext: context, "subj": 1])) == errSecNoSuchAttr)
    }

    @Test("A context is not an attribute that an update can change, valid or invalidated", arguments: [true, false])
    func contextInChanges(isInvalidated: Bool) {
        let context = LAContext()
        if isInvalidated { context.invalidate() }
        let (status, requests) = Verb.update.call(genericPassword(), changes: [kSecUseAuthenticationContext: context])
        #expect(status == errSecNoSuchAttr)
        #expect(requests.isEmpty)
    }
}

/// A subclass as a program may declare it.
private final class DerivedContext: LAContext, @unchecked Sendable {
    // Unchecked, as its superclass is; it adds nothing.
}

@Suite("Persistent references in a dictionary")
struct PersistentReferenceTests {
    private let reference = KeychainItem.persistentReference
    private let legacy = Data("genp".utf8) + Data([0, 0, 0, 0, 0, 0, 0, 1])

    @Test("A reference determines the class", arguments: [Verb.copyMatching, .update, .delete])
    func referenceDeterminesClass(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: reference]) == errSecSuccess)
        #expect(verb.status([kSecValuePersistentRef: NSData(data: reference)]) == errSecSuccess)
        #expect(verb.status([kSecValuePersistentRef: reference, kSecClass: 1]) == errSecSuccess)
    }

    @Test("A class next to a reference must be the same", arguments: Verb.allCases)
    func sameClass(verb: Verb) {
        #expect(verb.status(genericPassword([kSecValuePersistentRef: reference])) == errSecSuccess)
        #expect(verb.status(internetPassword([kSecValuePersistentRef: reference])) == errSecNoSuchClass)
        #expect(verb.status(internetPassword([kSecValuePersistentRef: legacy])) == errSecNoSuchClass)
    }

    @Test("A malformed reference is rejected", arguments: Verb.allCases)
    func malformed(verb: Verb) {
        let data = [
            Data(), Data([1]), Data("genp".utf8), Data("xxxx".utf8) + Data(count: 16), Data(count: 20), reference + Data([0]),
            reference.dropLast(),
            Data("xxxx".utf8) + Data(count: 8), Data(count: 12),
        ]
        for value in data as [Any] + ["genp", 1, NSNull(), true] {
            #expect(verb.status(genericPassword([kSecValuePersistentRef: value])) == errSecParam)
        }
    }

    @Test("A search by reference finds local and synchronizable items, and accepts no attributes")
    func search() throws {
        let (status, requests) = Verb.copyMatching.call([kSecValuePersistentRef: reference, kSecReturnData: true])
        #expect(status == errSecSuccess)
        let query = try #require(requests.matched.first).query
        #expect(query.reference == PersistentReference(reference))
        #expect(query.synchronizability == .either)
        #expect(query.attributes.isEmpty)

        let attributes: [String: Any] = [
            kSecAttrAccount: "a", kSecAttrAccessGroup: "a", kSecAttrSynchronizable: false,
            kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked,
            "tomb": true, kSecAttrAccessControl: SecAccessControl(of: .password()),
        ]
        for (key, value) in attributes {
            #expect(Verb.copyMatching.status([kSecValuePersistentRef: reference, key: value]) == errSecParam)
            #expect(Verb.copyMatching.status([kSecValuePersistentRef: legacy, key: value]) == errSecParam)
        }
        let allowed: [String: Any] = [
            kSecValuePersistentRef: reference, kSecAttrSynchronizable: kSecAttrSynchronizableAny, kSecMatchLimit: kSecMatchLimitAll,
            kSecReturnAttributes: true, kSecUseDataProtectionKeychain: true, kSecUseOperationPrompt: "a",
        ]
        #expect(Verb.copyMatching.status(allowed) == errSecSuccess)
    }

    @Test("Updates and deletions accept attributes next to a reference", arguments: [Verb.update, .delete])
    func attributesBeside(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: reference, kSecAttrAccount: "a"]) == errSecSuccess)
    }

    @Test("The older form is accepted, and no item has one", arguments: [Verb.copyMatching, .update, .delete])
    func olderForm(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: legacy]) == errSecItemNotFound)
    }

    @Test("The older form allows no attributes", arguments: [Verb.copyMatching, .update, .delete])
    func olderFormWithAttributes(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: legacy, kSecAttrAccount: "a"]) == errSecParam)
    }

    @Test("A new item ignores a reference, but not one of the older form")
    func add() throws {
        #expect(Verb.add.status(genericPassword([kSecValuePersistentRef: reference])) == errSecSuccess)
        #expect(Verb.add.status(genericPassword([kSecValuePersistentRef: legacy])) == errSecParam)
    }
}
