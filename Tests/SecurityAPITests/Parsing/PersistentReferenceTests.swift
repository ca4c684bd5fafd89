// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("Persistent references in a dictionary")
struct PersistentReferenceTests {
    private let reference = KeychainItem.persistentReference
    private let legacy = Data("genp".utf8) + Data([0, 0, 0, 0, 0, 0, 0, 1])

    @Test("A reference tells the class", arguments: [Verb.copyMatching, .update, .delete])
    func tellsClass(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: reference]) == errSecSuccess)
        #expect(verb.status([kSecValuePersistentRef: NSData(data: reference)]) == errSecSuccess)
        #expect(verb.status([kSecValuePersistentRef: reference, kSecClass: 1]) == errSecSuccess)
    }

    @Test("A class beside it must be the same", arguments: Verb.allCases)
    func sameClass(verb: Verb) {
        #expect(verb.status(genericPassword([kSecValuePersistentRef: reference])) == errSecSuccess)
        #expect(verb.status(internetPassword([kSecValuePersistentRef: reference])) == errSecNoSuchClass)
        #expect(verb.status(internetPassword([kSecValuePersistentRef: legacy])) == errSecNoSuchClass)
    }

    @Test("What is no reference is a wrong parameter", arguments: Verb.allCases)
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

    @Test("A search by reference finds local and synchronizable items alike, and takes no attributes")
    func search() throws {
        let (status, requests) = Verb.copyMatching.call([kSecValuePersistentRef: reference, kSecReturnData: true])
        #expect(status == errSecSuccess)
        let query = try #require(requests.matched.first).query
        #expect(query.reference == PersistentReference(reference))
        #expect(query.twin == .either)
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

    @Test("Updates and deletions take attributes beside a reference", arguments: [Verb.update, .delete])
    func attributesBeside(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: reference, kSecAttrAccount: "a"]) == errSecSuccess)
    }

    @Test("The older form is understood, and no item has one", arguments: [Verb.copyMatching, .update, .delete])
    func olderForm(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: legacy]) == errSecItemNotFound)
    }

    @Test("The older form takes no attributes", arguments: [Verb.copyMatching, .update, .delete])
    func olderFormWithAttributes(verb: Verb) {
        #expect(verb.status([kSecValuePersistentRef: legacy, kSecAttrAccount: "a"]) == errSecParam)
    }

    @Test("A new item ignores a reference, but not one of the older form")
    func add() throws {
        #expect(Verb.add.status(genericPassword([kSecValuePersistentRef: reference])) == errSecSuccess)
        #expect(Verb.add.status(genericPassword([kSecValuePersistentRef: legacy])) == errSecParam)
    }
}
