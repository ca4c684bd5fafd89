// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("The dictionary of SecItemDelete")
struct DeleteRequestTests {
    private func request(_ dictionary: [String: Any]) throws -> DeleteRequest {
        try DeleteRequest(try ItemDictionary(dictionary))
    }

    @Test("The query is the one of a search")
    func query() throws {
        let request = try request(genericPassword([kSecAttrAccount: "a", kSecAttrSynchronizable: kSecAttrSynchronizableAny]))
        #expect(request.query.attributes == ItemAttributes([.account: .string("a")]))
        #expect(request.query.twin == .either)
        #expect(try self.request(genericPassword()).query.twin == .local)
    }

    @Test("There is no limit, and no other match key", arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, "m_Unknown"])
    func matchKeys(key: String) {
        #expect(Verb.delete.status(genericPassword([key: kSecMatchLimitAll])) == errSecParam)
    }

    @Test("What to return and the secret are ignored")
    func ignored() throws {
        let request = try request(genericPassword([kSecReturnData: true, kSecReturnRef: true, kSecValueData: Data([1])]))
        #expect(request.query.attributes.isEmpty)
    }

    @Test("The query says whether a tombstone is left")
    func tombstones() throws {
        #expect(try request(genericPassword(["u_Tomb": false])).leavesTombstone == false)
        #expect(try request(genericPassword(["u_Tomb": 1])).leavesTombstone == true)
        #expect(try request(genericPassword()).leavesTombstone == nil)
    }
}
