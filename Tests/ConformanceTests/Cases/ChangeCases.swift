// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Updates and deletions, cases of the specification", .inMemoryKeychain)
struct ChangeCases {
    @Test("Case 82: a limit is for searches: delete and update refuse it")
    func limit() {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(kSecMatchLimit, kSecMatchLimitAll)) == errSecParam)
        #expect(update(Item.genericQuery().with(kSecMatchLimit, kSecMatchLimitOne), [kSecAttrLabel: "label"]) == errSecParam)
        #expect(find(Item.genericQuery()).status == errSecSuccess)
    }

    @Test("Case 83: an update changes attributes and the secret, and refuses every other key")
    func otherKeys() {
        add(Item.generic())
        #expect(update(Item.genericQuery(), [kSecClass: kSecClassGenericPassword]) == errSecNoSuchAttr)
        #expect(update(Item.genericQuery(), [kSecReturnData: true]) == errSecNoSuchAttr)
    }

    @Test("Case 86: every update makes the modification date later, whatever it says about it")
    func modificationDate() throws {
        add(Item.generic())
        var last = try #require(attributes(of: Item.genericQuery())?[kSecAttrModificationDate] as? Date)
        let changes: [ItemDictionary] = [
            [kSecAttrLabel: "label"], [kSecAttrLabel: "label"], [kSecValueData: Data()], [:],
            [kSecAttrModificationDate: Date(timeIntervalSinceReferenceDate: 0)],
            [kSecAttrModificationDate: Date.distantFuture, kSecAttrComment: "comment"],
        ]
        for change in changes {
            #expect(update(Item.genericQuery(), change) == errSecSuccess)
            let next = try #require(attributes(of: Item.genericQuery())?[kSecAttrModificationDate] as? Date)
            #expect(next > last)
            #expect(next < Date(timeIntervalSinceNow: 3600))
            last = next
        }
    }
}
