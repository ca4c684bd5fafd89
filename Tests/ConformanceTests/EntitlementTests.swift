// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
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
        "A search without a group covers all groups of the program", arguments: ["group1", "group2", "associated", "application", "shared"])
    func allGroups(group: String) throws {
        try Program.run(entitledTo: Self.everything) {
            #expect(add(Item.generic().with(kSecAttrAccessGroup, group)).status == errSecSuccess)
            #expect(attributes(of: Item.genericQuery())?[kSecAttrAccessGroup] as? String == group)
            #expect(update(Item.genericQuery(), [kSecAttrLabel: "label"]) == errSecSuccess)
            #expect(delete(Item.genericQuery()) == errSecSuccess)
        }
    }

    @Test("A search with a group covers only that group")
    func oneGroup() throws {
        try Program.run(entitledTo: Self.everything) {
            add(Item.generic().with(kSecAttrAccessGroup, "group2"))
            #expect(find(Item.genericQuery().with(kSecAttrAccessGroup, "group2")).status == errSecSuccess)
            #expect(find(Item.genericQuery().with(kSecAttrAccessGroup, "group1")).status == errSecItemNotFound)
        }
    }

    @Test("For a program without a group, every call returns errSecMissingEntitlement", arguments: Verb.allCases)
    func noGroup(verb: Verb) throws {
        try Program.run(entitledTo: Entitlements(applicationIdentifier: "")) {
            #expect(verb.status([kSecClass: kSecClassInternetPassword]) == errSecMissingEntitlement)
            #expect(verb.status(Item.generic().with(kSecAttrAccessGroup, "group")) == errSecMissingEntitlement)
        }
    }

    @Test("Two programs with a common group share the items in it, and no others", .keychain(accessGroups: ["own", "common"]))
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
        "A persistent reference to an item of another program finds nothing", .keychain, arguments: [Verb.find, .update, .delete])
    func referenceOfAnotherProgram(verb: Verb) throws {
        let reference = try #require(add(Item.generic().with(kSecReturnPersistentRef, true)).data)
        try Program.runAnother(entitledTo: Entitlements(applicationIdentifier: "other")) {
            #expect(verb.status([kSecValuePersistentRef: reference]) == errSecItemNotFound)
        }
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    @Test("Two programs may each have an item with the same key, and neither affects the other", .keychain)
    func sameKey() throws {
        add(Item.generic())
        try Program.runAnother(entitledTo: Entitlements(applicationIdentifier: "other")) {
            #expect(add(Item.generic().with(kSecValueData, Data("other".utf8))).status == errSecSuccess)
            #expect(delete([kSecClass: kSecClassGenericPassword]) == errSecSuccess)
        }
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }
}

@Suite("Access groups and entitlements, cases of the specification")
struct AccessGroupCases {
    private static let groups = ["group1", "group2"]
    private let group1: ItemDictionary = [kSecAttrAccessGroup: "group1"]
    private let group2: ItemDictionary = [kSecAttrAccessGroup: "group2"]

    @Test("Case 27: an update moves an item to another access group", .keychain(accessGroups: groups))
    func moveToGroup() {
        #expect(add(Item.generic().with(group1)).status == errSecSuccess)
        #expect(update(Item.genericQuery().with(group1), group2) == errSecSuccess)
        #expect(find(Item.genericQuery().with(group1)).status == errSecItemNotFound)
        #expect(find(Item.genericQuery().with(group2)).status == errSecSuccess)
    }

    @Test("Case 58: for a program without an entitlement, every call returns errSecMissingEntitlement", arguments: Verb.allCases)
    func noEntitlements(verb: Verb) throws {
        try Program.run(entitledTo: Entitlements(applicationIdentifier: "")) {
            #expect(verb.status(Item.generic()) == errSecMissingEntitlement)
        }
    }

    @Test("Case 59: the application identifier is an access group")
    func applicationIdentifier() throws {
        try Program.run(entitledTo: Entitlements(applicationIdentifier: "com.example.app")) {
            let item = Item.generic().with(kSecAttrAccessGroup, "com.example.app")
            #expect(find(item).status == errSecItemNotFound)
            #expect(add(item).status == errSecSuccess)
            #expect(delete(item) == errSecSuccess)
        }
    }

    @Test("Case 60: an associated identifier comes before the application identifier as the default group")
    func associatedIdentifier() throws {
        let entitlements = Entitlements(
            applicationIdentifier: "com.example.app", associatedApplicationIdentifiers: ["com.example.associated"])
        try Program.run(entitledTo: entitlements) {
            #expect(add(Item.generic()).status == errSecSuccess)
            #expect(attributes(of: Item.genericQuery())?[kSecAttrAccessGroup] as? String == "com.example.associated")
        }
    }

    @Test(
        "Case 61: an access group that the program is not entitled to is refused by every call", .keychain, arguments: Verb.allCases
    )
    func foreignGroup(verb: Verb) {
        #expect(verb.status(Item.generic().with(kSecAttrAccessGroup, "foreign")) == errSecMissingEntitlement)
    }

    @Test("Case 62: an update cannot move an item to a foreign access group", .keychain)
    func moveToForeignGroup() {
        add(Item.generic())
        #expect(update(Item.genericQuery(), [kSecAttrAccessGroup: "foreign"]) == errSecMissingEntitlement)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    @Test("Case 63: a program does not find an item of another program", .keychain, arguments: [Verb.find, .update, .delete])
    func itemOfAnotherProgram(verb: Verb) throws {
        add(Item.generic())
        try Program.runAnother(entitledTo: Entitlements(applicationIdentifier: "other")) {
            #expect(verb.status(Item.genericQuery()) == errSecItemNotFound)
        }
        #expect(secret(of: Item.genericQuery()) == Item.secret)
    }

    @Test("Case 64: the group of tokens can be read, but not written")
    func tokenGroup() throws {
        let entitlements = Entitlements(applicationIdentifier: "app", keychainAccessGroups: ["com.apple.token"])
        try Program.run(entitledTo: entitlements) {
            let item = Item.generic().with(kSecAttrAccessGroup, "com.apple.token")
            #expect(find(item).status == errSecItemNotFound)
            #expect(add(item).status == errSecMissingEntitlement)
            #expect(delete(item) == errSecMissingEntitlement)
            #expect(update(item, [kSecAttrLabel: "label"]) == errSecMissingEntitlement)
        }
    }

    @Test("Case 64: a program whose only group is that of tokens can only search")
    func onlyTokenGroup() throws {
        let entitlements = Entitlements(applicationIdentifier: "", keychainAccessGroups: ["com.apple.token"])
        try Program.run(entitledTo: entitlements) {
            #expect(find(Item.genericQuery()).status == errSecItemNotFound)
            #expect(add(Item.generic()).status == errSecMissingEntitlement)
        }
    }

    @Test("Case 65: deleting everything in one access group does not change another", .keychain(accessGroups: groups))
    func deleteOneGroup() {
        add(Item.generic("first").with(group1))
        add(Item.generic("second").with(group1))
        add(Item.generic("first").with(group2))
        let all: ItemDictionary = [kSecClass: kSecClassGenericPassword]
        #expect(delete(all.with(group1)) == errSecSuccess)
        #expect(find(all.with(group1)).status == errSecItemNotFound)
        #expect(find(all.with(group2)).status == errSecSuccess)
    }

    @Test("Case 66: an app clip can use its own group, without synchronizable items")
    func appClip() throws {
        try Program.run(entitledTo: Entitlements(applicationIdentifier: "clip", isAppClip: true)) {
            #expect(add(Item.generic()).status == errSecSuccess)
            #expect(find(Item.genericQuery()).status == errSecSuccess)
            let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
            #expect(add(Item.generic("other").with(synchronizable)).status == errSecRestrictedAPI)
            #expect(find(Item.genericQuery().with(synchronizable)).status == errSecItemNotFound)
            #expect(update(Item.genericQuery(), synchronizable) == errSecRestrictedAPI)
            #expect(update(Item.genericQuery(), [kSecAttrAccessGroup: "foreign"]) == errSecMissingEntitlement)
            #expect(secret(of: Item.genericQuery()) == Item.secret)
        }
    }

    @Test("Case 66: for an app clip with another group every call fails", arguments: Verb.allCases)
    func appClipWithAnotherGroup(verb: Verb) throws {
        let entitlements = Entitlements(applicationIdentifier: "clip", keychainAccessGroups: ["another"], isAppClip: true)
        try Program.run(entitledTo: entitlements) {
            #expect(verb.status(Item.generic()) == errSecRestrictedAPI)
        }
    }
}
#endif
