// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@Suite("Entitlements")
struct EntitlementsTests {
    @Test("The order of groups is: keychain groups, associated programs, own identifier, application groups")
    func order() {
        let entitlements = Entitlements(
            applicationIdentifier: "own", keychainAccessGroups: ["k1", "k2"], associatedApplicationIdentifiers: ["a1"],
            applicationGroups: ["g1"]
        )
        #expect(entitlements.accessGroups == ["k1", "k2", "a1", "own", "g1"])
        #expect(entitlements.defaultGroup == "k1")
    }

    @Test("A program without groups has its own identifier as its group")
    func identifierOnly() {
        let entitlements = Entitlements(applicationIdentifier: "own")
        #expect(entitlements.accessGroups == ["own"] && entitlements.defaultGroup == "own")
    }

    @Test("Empty names and duplicates are ignored")
    func repetitions() {
        let entitlements = Entitlements(
            applicationIdentifier: "own", keychainAccessGroups: ["", "own", "k"], applicationGroups: ["k", "own", "g"]
        )
        #expect(entitlements.accessGroups == ["own", "k", "g"])
    }

    @Test("The token group is last, is never the default, and cannot be written")
    func tokenGroup() {
        let entitlements = Entitlements(applicationIdentifier: "own", keychainAccessGroups: [Entitlements.tokenGroup, "k"])
        #expect(entitlements.accessGroups == ["k", "own", Entitlements.tokenGroup])
        #expect(entitlements.defaultGroup == "k")
        #expect(entitlements.canRead(Entitlements.tokenGroup) && !entitlements.canWrite(Entitlements.tokenGroup))
        #expect(Entitlements(applicationIdentifier: "", keychainAccessGroups: [Entitlements.tokenGroup]).defaultGroup == nil)
    }

    @Test("A group that is not listed can be neither read nor written")
    func foreignGroup() {
        let entitlements = Entitlements(applicationIdentifier: "own", keychainAccessGroups: ["k"])
        #expect(entitlements.canRead("k") && entitlements.canWrite("own"))
        for group in ["other", "", "K", "k "] { #expect(!entitlements.canRead(group) && !entitlements.canWrite(group)) }
    }

    /// As the first keychain access group, a shared group would get the program's own new items.
    @Test("The error of a missing group names the entitlement that lists such groups")
    func missingGroup() {
        for (group, entitlement) in [("group.a", "com.apple.security.application-groups"), ("TEAM.a", "keychain-access-groups")] {
            let failure = #expect(throws: KeychainFailure.self) {
                try Entitlements(applicationIdentifier: "own").requireAccess(.read, to: group)
            }
            #expect(failure?.status == .missingEntitlement)
            #expect(Entitlements.entitlement(listing: group) == entitlement)
        }
    }

    /// Its items are the keys of synchronization, which a program could use to read what other devices write.
    @Test("A group of synchronization itself is refused, whichever entitlement names it")
    func synchronizationGroup() {
        let group = Entitlements.synchronizationGroupPrefix + "circle"
        let all = [
            Entitlements(applicationIdentifier: "own", keychainAccessGroups: [group, "k"]), Entitlements(applicationIdentifier: group),
            Entitlements(applicationIdentifier: "own", associatedApplicationIdentifiers: [group]),
            Entitlements(applicationIdentifier: "own", applicationGroups: [group]),
        ]
        for entitlements in all {
            #expect(!entitlements.canRead(group) && !entitlements.canWrite(group) && entitlements.defaultGroup != group)
            let failure = #expect(throws: KeychainFailure.self) { try entitlements.groups(forSearchNaming: nil, access: .read) }
            #expect(failure?.status == .missingEntitlement)
            #expect(throws: KeychainFailure.self) { try entitlements.group(forNewItemNaming: nil) }
        }
    }
}
