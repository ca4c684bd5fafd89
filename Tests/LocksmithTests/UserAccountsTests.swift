// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("The accounts of a service", .inMemoryKeychain(accessGroups: ["first", "second"]))
struct UserAccountsTests {
    @Test("All of the service and none of another, each once")
    func listing() throws {
        #expect(try Locksmith.userAccounts() == [])
        for account in ["Skroob", "Helmet"] { try Locksmith.saveData([:], forUserAccount: account) }
        try GenericPassword(account: "Yogurt", accessGroup: "first").createInSecureStore()
        try GenericPassword(account: "Yogurt", accessGroup: "second").createInSecureStore()
        #expect(try Locksmith.userAccounts() == ["Helmet", "Skroob"])
        #expect(try Locksmith.userAccounts(inService: "Druidia") == ["Yogurt"])
        #expect(try Locksmith.userAccounts(inService: "Spaceball") == [])
    }

    @Test("Accounts that Swift takes for equal are two")
    func canonicallyEqual() throws {
        try Locksmith.saveData(["number": 1], forUserAccount: "\u{e9}")
        try Locksmith.saveData(["number": 2], forUserAccount: "e\u{301}")
        let accounts = try Locksmith.userAccounts()
        #expect(Set(accounts.map { Array($0.utf8) }).count == 2)
        #expect(Set(accounts.map { Locksmith.loadDataForUserAccount($0)?["number"] as? Int }) == [1, 2])
    }
}
