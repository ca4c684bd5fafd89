// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

private let groups = ["first", "second"]

@Suite("Each attribute that both sorts of passwords have", .inMemoryKeychain(accessGroups: groups))
struct AttributeTests {
    private func check<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout any Password, Value) -> Void,
        get: (PasswordResult) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }
    ) throws {
        for password in [GenericPassword(), InternetPassword()] as [any Password] {
            let check = AttributeCheck(password: password, asPassword: { $0 }, read: { try $0.readPassword() })
            try check(
                key, first, second, tellsApart: tellsApart, set: set, get: get, stored: stored, unasked: { $0.unasked = $1 })
        }
    }

    @Test func account() throws {
        try check(kSecAttrAccount, "a", "b", tellsApart: true, set: { $0.account = $1 }, get: { $0.account })
    }

    @Test func accessible() throws {
        for (first, second) in [
            (LocksmithAccessibleOption.afterFirstUnlock, LocksmithAccessibleOption.whenUnlockedThisDeviceOnly), (.always, .whenUnlocked),
        ] {
            try check(
                kSecAttrAccessible, first, second, set: { $0.accessible = $1 }, get: { $0.accessible },
                stored: { ($0 as? String).flatMap(LocksmithAccessibleOption.init) })
        }
    }

    @Test func accessGroup() throws {
        try check(
            kSecAttrAccessGroup, groups[0], groups[1], tellsApart: true, set: { $0.accessGroup = $1 }, get: { $0.accessGroup })
    }

    @Test func comment() throws {
        try check(kSecAttrComment, "a", "b", set: { $0.comment = $1 }, get: { $0.comment })
    }

    @Test func creator() throws {
        try check(kSecAttrCreator, 1, 0xffff_ffff, set: { $0.creator = $1 }, get: { $0.creator })
    }

    @Test func description() throws {
        try check(kSecAttrDescription, "a", "b", set: { $0.description = $1 }, get: { $0.description })
    }

    @Test func isInvisible() throws {
        try check(kSecAttrIsInvisible, true, false, set: { $0.isInvisible = $1 }, get: { $0.isInvisible })
    }

    @Test func isNegative() throws {
        try check(kSecAttrIsNegative, true, false, set: { $0.isNegative = $1 }, get: { $0.isNegative })
    }

    @Test func type() throws {
        try check(kSecAttrType, 1, 2, set: { $0.type = $1 }, get: { $0.type })
    }

    @Test("An attribute that is not given is nil, and stays as it is in an update")
    func notGiven() throws {
        try GenericPassword(comment: "kept").createInSecureStore()
        try GenericPassword(secret: "54321").updateInSecureStore()
        let result = try GenericPassword().tryReadFromSecureStore()
        #expect(result?.comment == "kept")
        #expect(result?.label == nil)
        #expect(result?.data?["secret"] as? String == "54321")
    }

    @Test("An update without an access group concerns the items of all the program's groups")
    func bothGroups() throws {
        for group in groups { try GenericPassword(accessGroup: group).createInSecureStore() }
        try GenericPassword(secret: "54321").updateInSecureStore()
        for group in groups {
            #expect(try GenericPassword(accessGroup: group).tryReadFromSecureStore()?.data?["secret"] as? String == "54321")
        }
    }

    @Test("A number that no attribute holds is an error")
    func largeNumber() {
        #expect(throws: LocksmithError.param) { try GenericPassword(creator: .max).createInSecureStore() }
    }

    @Test("A program that is not entitled to an access group is told so")
    func foreignGroup() throws {
        let error = #expect(throws: LocksmithError.undefined) { try GenericPassword(accessGroup: "third").createInSecureStore() }
        #expect(error?.status == errSecMissingEntitlement)
    }
}
