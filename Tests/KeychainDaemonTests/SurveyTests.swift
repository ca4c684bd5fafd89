// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainPeers
import KeychainTesting
import Testing

@testable import keychaind

/// Where items are, for `valet apps` and for what its commands advise.
@Suite("Where items are in the keychain of keychaind", .blocking)
struct SurveyTests {
    private static let registrations = ProgramRegistrations(
        ["kc-demo": Entitlements(applicationIdentifier: "", keychainAccessGroups: ["com.example.shared"])])

    /// Returns the groups that a program finds, with an account that an item of each group has.
    private func groups(found identity: PeerIdentity, declaring declared: String = "app") throws -> Set<String> {
        let keychain = try InMemoryKeychain().keychain
        for group in ["app", "other", "com.example.shared", "group:kc-other", "program:/usr/bin/gh", "snap:example"] {
            let ofGroup = keychain.with(entitlements: Entitlements(applicationIdentifier: group))
            try ofGroup.set("token", "12345")
            _ = try ofGroup.add(AddRequest(itemClass: .internetPassword))
        }
        let service = try InProcessService(keychain, as: identity, registrations: Self.registrations)
        let client = service.client(declared)
        let survey = try client.survey()
        #expect(survey.accounts.values.allSatisfy { $0 == ["token"] })
        #expect(survey.unreadableCount == 0)
        let found = Set(survey.accounts.keys.map(\.accessGroup))
        #expect(survey.internetPasswordCounts == Dictionary(uniqueKeysWithValues: found.map { (Array($0.utf8), 1) }))
        #expect(try Set(client.places(ofAccount: "token", services: nil).map(\.accessGroup)) == found)
        #expect(try Set(client.places(ofAccount: "token", services: [""]).map(\.accessGroup)) == found)
        #expect(try client.places(ofAccount: "token", services: ["service"]).isEmpty)
        #expect(try client.places(ofAccount: "other", services: nil).isEmpty)
        return found
    }

    @Test("A program finds out where the items are that it could read, and not those of programs with an identity")
    func programs() throws {
        #expect(try groups(found: .anyProgram) == ["app", "other"])
        #expect(try groups(found: .program("/usr/bin/gh"), declaring: "program:/usr/bin/gh") == ["app", "other", "program:/usr/bin/gh"])
        #expect(try groups(found: .programGroup("kc-demo"), declaring: "com.example.shared") == ["com.example.shared"])
    }

    @Test("A program in a sandbox does not find out where items are")
    func sandbox() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain, as: .sandboxed(.snap(name: "example")))
        #expect(throws: KeychainFailure(.missingEntitlement, "")) { try service.client().survey() }
        #expect(throws: KeychainFailure(.missingEntitlement, "")) { try service.client().places(ofAccount: "token", services: nil) }
    }

    @Test("Items that cannot be read are not counted, because other programs may have them")
    func unreadable() throws {
        let keychain = try InMemoryKeychain()
        try keychain.keychain.with(entitlements: Entitlements(applicationIdentifier: "app")).set("token", "12345")
        try keychain.setPasscode("swordfish")
        try keychain.keychain.lock(.everything)
        #expect(try keychain.keychain.survey().unreadableCount == 1)
        let survey = try InProcessService(keychain.keychain, as: .anyProgram).client().survey()
        #expect(survey.unreadableCount == 0 && survey.accounts.isEmpty)
    }

    @Test("A group whose name has other bytes than that of another program is another group, also if the texts are equal")
    func equalTexts() throws {
        let (composed, decomposed) = ("com.ex\u{E4}mple", "com.exa\u{308}mple")
        let keychain = try InMemoryKeychain().keychain
        for (group, account) in [(composed, "theirs"), (decomposed, "mine")] {
            try keychain.with(entitlements: Entitlements(applicationIdentifier: group)).set(account, "12345")
        }
        let registrations = ProgramRegistrations(["kc-demo": Entitlements(applicationIdentifier: "", keychainAccessGroups: [composed])])
        let survey = try InProcessService(keychain, as: .anyProgram, registrations: registrations).client(decomposed).survey()
        #expect(survey.accounts.values.map(\.self) == [["mine"]])
    }

    @Test("A search for places is bounded, whatever a program asks for")
    func bounds() throws {
        let keychain = try InMemoryKeychain().keychain
        let app = keychain.with(entitlements: Entitlements(applicationIdentifier: "app"))
        for number in 0..<120 {
            let attributes = ItemAttributes([.account: .string("token"), .service: .string("\(number)")])
            _ = try app.add(AddRequest(itemClass: .genericPassword, attributes: attributes))
        }
        let client = try InProcessService(keychain, as: .anyProgram).client()
        #expect(try client.places(ofAccount: "token", services: nil).count == 100)
        #expect(try client.places(ofAccount: "token", services: Array(repeating: "7", count: 100)).count == 1)
        #expect(throws: KeychainFailure(.parameter, "")) {
            try client.places(ofAccount: "token", services: Array(repeating: "7", count: 101))
        }
    }
}
