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
            try keychain.with(entitlements: Entitlements(applicationIdentifier: group)).set("token", "12345")
        }
        let service = try InProcessService(keychain, as: identity, registrations: Self.registrations)
        let client = service.client(declared)
        let survey = try client.survey()
        #expect(survey.accounts.values.allSatisfy { $0 == ["token"] })
        #expect(survey.unreadableCount == 0)
        let found = Set(survey.accounts.keys.map(\.accessGroup))
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

    @Test("Items that cannot be read are counted")
    func unreadable() throws {
        let keychain = try InMemoryKeychain()
        try keychain.keychain.with(entitlements: Entitlements(applicationIdentifier: "app")).set("token", "12345")
        try keychain.setPasscode("swordfish")
        try keychain.keychain.lock(.everything)
        #expect(try InProcessService(keychain.keychain, as: .anyProgram).client().survey().unreadableCount == 1)
    }
}
