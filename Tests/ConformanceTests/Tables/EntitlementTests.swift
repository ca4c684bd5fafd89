// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Section 10: access groups and entitlements")
struct EntitlementTests {
    private static let everything = Entitlements(
        applicationIdentifier: "application", keychainAccessGroups: ["com.apple.token", "group1", "group2"],
        associatedApplicationIdentifiers: ["associated"], applicationGroups: ["shared"])

    private func groupOfNewItem() -> String? {
        add(Item.generic())
        return attributes(of: Item.genericQuery())?[kSecAttrAccessGroup] as? String
    }

    @Test(
        "The group of a new item is the first: keychain groups, then associated identifiers, then the application, then its groups",
        arguments: [
            (everything, "group1"),
            (
                Entitlements(
                    applicationIdentifier: "application", associatedApplicationIdentifiers: ["associated"], applicationGroups: ["shared"]),
                "associated"
            ),
            (Entitlements(applicationIdentifier: "application", applicationGroups: ["shared"]), "application"),
            (Entitlements(applicationIdentifier: "", applicationGroups: ["shared"]), "shared"),
        ])
    func defaultGroup(entitlements: Entitlements, group: String) throws {
        try Program.run(entitledTo: entitlements) {
            #expect(groupOfNewItem() == group)
        }
    }

    @Test(
        "A search that names no group covers all of the program's", arguments: ["group1", "group2", "associated", "application", "shared"])
    func allGroups(group: String) throws {
        try Program.run(entitledTo: Self.everything) {
            #expect(add(Item.generic().with(kSecAttrAccessGroup, group)).status == errSecSuccess)
            #expect(attributes(of: Item.genericQuery())?[kSecAttrAccessGroup] as? String == group)
            #expect(update(Item.genericQuery(), [kSecAttrLabel: "label"]) == errSecSuccess)
            #expect(delete(Item.genericQuery()) == errSecSuccess)
        }
    }

    @Test("A search that names a group covers that one")
    func oneGroup() throws {
        try Program.run(entitledTo: Self.everything) {
            add(Item.generic().with(kSecAttrAccessGroup, "group2"))
            #expect(find(Item.genericQuery().with(kSecAttrAccessGroup, "group2")).status == errSecSuccess)
            #expect(find(Item.genericQuery().with(kSecAttrAccessGroup, "group1")).status == errSecItemNotFound)
        }
    }

    @Test("A program without any group is told so by every call, whatever it asks", arguments: Verb.allCases)
    func noGroup(verb: Verb) throws {
        try Program.run(entitledTo: Entitlements(applicationIdentifier: "")) {
            #expect(verb.status([kSecClass: kSecClassInternetPassword]) == errSecMissingEntitlement)
            #expect(verb.status(Item.generic().with(kSecAttrAccessGroup, "group")) == errSecMissingEntitlement)
        }
    }

    @Test("Two programs with a group in common share what is in it, and nothing else", .inMemoryKeychain(accessGroups: ["own", "common"]))
    func sharedGroup() throws {
        add(Item.generic("own").with(kSecAttrAccessGroup, "own"))
        add(Item.generic("common").with(kSecAttrAccessGroup, "common"))
        try Program.runAnother(entitledTo: Entitlements(applicationIdentifier: "other", keychainAccessGroups: ["common"])) {
            #expect(secret(of: Item.genericQuery("common")) == Item.secret)
            #expect(find(Item.genericQuery("own")).status == errSecItemNotFound)
            #expect(count(of: [kSecClass: kSecClassGenericPassword]) == 1)
            #expect(update(Item.genericQuery("common"), [kSecValueData: Data("new".utf8)]) == errSecSuccess)
        }
        #expect(secret(of: Item.genericQuery("common")) == Data("new".utf8))
    }

    @Test(
        "A persistent reference to an item of another program leads nowhere", .inMemoryKeychain, arguments: [Verb.find, .update, .delete])
    func referenceOfAnotherProgram(verb: Verb) throws {
        let reference = try #require(add(Item.generic().with(kSecReturnPersistentRef, true)).data)
        try Program.runAnother(entitledTo: Entitlements(applicationIdentifier: "other")) {
            #expect(verb.status([kSecValuePersistentRef: reference]) == errSecItemNotFound)
        }
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    @Test("Two programs may each have an item with the same key, and a program adds over neither", .inMemoryKeychain)
    func sameKey() throws {
        add(Item.generic())
        try Program.runAnother(entitledTo: Entitlements(applicationIdentifier: "other")) {
            #expect(add(Item.generic().with(kSecValueData, Data("other".utf8))).status == errSecSuccess)
            #expect(delete([kSecClass: kSecClassGenericPassword]) == errSecSuccess)
        }
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }
}
#endif
