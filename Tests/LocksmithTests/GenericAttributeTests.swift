// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("Each attribute that only generic passwords have", .inMemoryKeychain)
struct GenericAttributeTests {
    private let check = AttributeCheck(GenericPassword()) { password in
        try password.tryReadFromSecureStore() as GenericPasswordSecureStorableResultType?
    }

    @Test func service() throws {
        try check(kSecAttrService, "a", "b", tellsApart: true, set: { $0.service = $1 }, get: { $0.service })
    }

    @Test func generic() throws {
        try check(kSecAttrGeneric, Data([1, 0]), Data([2]), set: { $0.generic = $1 }, get: { $0.generic })
    }

    @Test func label() throws {
        try check(kSecAttrLabel, "a", "b", set: { $0.label = $1 }, get: { $0.label })
    }
}
