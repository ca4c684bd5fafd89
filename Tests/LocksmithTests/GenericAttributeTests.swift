// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

private let groups = ["first", "second"]

@Suite("Each attribute of a generic password", .inMemoryKeychain(accessGroups: groups))
struct GenericAttributeTests {
    private let check = AttributeCheck(itemClass: kSecClassGenericPassword, password: GenericPassword()) { password in
        try password.tryReadFromSecureStore() as GenericPasswordSecureStorableResultType?
    }

    @Test func account() throws {
        try check(kSecAttrAccount, "a", "b", tellsApart: true, set: { $0.account = $1 }, get: { $0.account })
    }

    @Test func service() throws {
        try check(kSecAttrService, "a", "b", tellsApart: true, set: { $0.service = $1 }, get: { $0.service })
    }

    @Test func accessible() throws {
        try check(
            kSecAttrAccessible, .afterFirstUnlock, .whenUnlockedThisDeviceOnly, set: { $0.accessible = $1 }, get: { $0.accessible },
            stored: { ($0 as? String).flatMap(LocksmithAccessibleOption.init) })
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

    @Test func generic() throws {
        try check(kSecAttrGeneric, Data([1, 0]), Data([2]), set: { $0.generic = $1 }, get: { $0.generic })
    }

    @Test func isInvisible() throws {
        try check(kSecAttrIsInvisible, true, false, set: { $0.isInvisible = $1 }, get: { $0.isInvisible })
    }

    @Test func isNegative() throws {
        try check(kSecAttrIsNegative, true, false, set: { $0.isNegative = $1 }, get: { $0.isNegative })
    }

    @Test func label() throws {
        try check(kSecAttrLabel, "a", "b", set: { $0.label = $1 }, get: { $0.label })
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
