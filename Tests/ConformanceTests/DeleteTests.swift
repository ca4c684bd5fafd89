// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 7: deletions", .keychain(accessGroups: ["group1", "group2"]))
struct DeleteTests {
    @Test("Every item that matches is deleted, in every group of the program")
    func manyItems() {
        add(Item.generic("first"))
        add(Item.generic("second"))
        add(Item.generic("third").with(kSecAttrAccessGroup, "group2"))
        add(Item.generic("other", service: "other"))
        #expect(delete([kSecClass: kSecClassGenericPassword, kSecAttrService: "service"]) == errSecSuccess)
        #expect(count(of: [kSecClass: kSecClassGenericPassword]) == 1)
        #expect(find(Item.genericQuery("other", service: "other")).status == errSecSuccess)
    }

    @Test("Deleting without a match reports \"not found\", also the second time")
    func noItem() {
        #expect(delete(Item.genericQuery()) == errSecItemNotFound)
        add(Item.generic())
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(delete(Item.genericQuery()) == errSecItemNotFound)
    }

    @Test(
        "A deletion must not contain a match key",
        arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, kSecMatchHostOrSubdomainOfHost, kSecMatchPolicy, "m_Unknown" as CFString])
    func matchKeys(key: CFString) {
        add(Item.internet())
        #expect(delete(Item.internetQuery().with(key, kSecMatchLimitAll)) == errSecParam)
        #expect(find(Item.internetQuery()).status == errSecSuccess)
    }

    @Test(
        "Return keys in a deletion are accepted and have no effect",
        arguments: [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnKeys(key: CFString) {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(key, true)) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("A deletion applies to local items, synchronizable ones, or both, as the query requests")
    func twins() {
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        add(Item.generic())
        add(Item.generic().with(synchronizable))
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(find(Item.genericQuery().with(synchronizable)).status == errSecSuccess)
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == errSecSuccess)
        #expect(count(of: Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == 0)
    }

    @Test("A tombstone contains the primary key and the dates, and no secret")
    func tombstone() throws {
        let synchronizable: ItemDictionary = [kSecAttrSynchronizable: true]
        add(Item.generic().with(synchronizable).with([kSecAttrLabel: "label", kSecAttrComment: "comment"]))
        let before = try #require(attributes(of: Item.genericQuery().with(synchronizable)))
        #expect(delete(Item.genericQuery().with(synchronizable)) == errSecSuccess)
        let query = Item.genericQuery().with(synchronizable).with(PrivateKey.tombstone, true)
        let after = try #require(find(query.with([kSecReturnAttributes: true, kSecReturnData: true])).attributes)
        for key in [
            kSecAttrAccount, kSecAttrService, kSecAttrAccessGroup, kSecAttrSynchronizable, kSecAttrAccessible, kSecAttrCreationDate,
        ] {
            #expect((after[key] as? NSObject) == (before[key] as? NSObject), "\(key)")
        }
        for key in [kSecAttrLabel, kSecAttrComment, kSecValueData] { #expect(after[key] == nil, "\(key)") }
        #expect(PlainValue(after[PrivateKey.tombstone]) == .number(1))
        let deleted = try #require(after[kSecAttrModificationDate] as? Date)
        #expect(deleted > (try #require(before[kSecAttrModificationDate] as? Date)))
    }
}

@Suite("Synchronizable items and tombstones, cases of the specification", .keychain)
struct SynchronizableCases {
    private let item = Item.generic().with(kSecAttrSynchronizable, true)
    private let query = Item.genericQuery().with(kSecAttrSynchronizable, true)
    private let tombstone = Item.genericQuery().with([kSecAttrSynchronizable: kSecAttrSynchronizableAny, PrivateKey.tombstone: true])

    @Test("Case 19: a synchronizable item is deleted by a query that says so, and can be added again")
    func deleteSynchronizable() {
        #expect(add(item).status == errSecSuccess)
        #expect(delete(Item.genericQuery()) == errSecItemNotFound)
        #expect(delete(query) == errSecSuccess)
        #expect(add(item).status == errSecSuccess)
    }

    @Test("Case 20: a synchronizable item is found by true and by any, and updated and deleted like every other")
    func lifeOfSynchronizable() {
        #expect(add(item).status == errSecSuccess)
        #expect(find(query).status == errSecSuccess)
        #expect(find(Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)).status == errSecSuccess)
        #expect(update(query, [kSecAttrComment: "changed"]) == errSecSuccess)
        let byComment = query.with(kSecAttrComment, "changed")
        #expect(find(byComment).status == errSecSuccess)
        #expect(delete(byComment) == errSecSuccess)
    }

    @Test("Case 21: a query that does not mention synchronizing finds no synchronizable item")
    func plainQuery() {
        add(item)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
    }

    @Test("Case 35: a deleted synchronizable item leaves a tombstone, which a query for tombstones finds and deletes")
    func leavesTombstone() {
        add(item)
        #expect(delete(query) == errSecSuccess)
        #expect(find(query).status == errSecItemNotFound)
        #expect(find(tombstone).status == errSecSuccess)
        #expect(delete(tombstone) == errSecSuccess)
        #expect(find(tombstone).status == errSecItemNotFound)
    }

    @Test("Case 36: a synchronizable item can be deleted without a tombstone")
    func withoutTombstone() {
        add(item)
        #expect(delete(query.with(PrivateKey.useTombstones, false)) == errSecSuccess)
        #expect(find(tombstone).status == errSecItemNotFound)
    }

    @Test("Case 37: a deleted local item leaves no tombstone")
    func localItem() {
        add(Item.generic())
        #expect(delete(Item.genericQuery()) == errSecSuccess)
        #expect(find(tombstone).status == errSecItemNotFound)
        #expect(delete(tombstone) == errSecItemNotFound)
    }

    @Test("Case 38: a local item leaves a tombstone if the deletion requests it")
    func localItemWithTombstone() {
        add(Item.generic())
        #expect(delete(Item.genericQuery().with(PrivateKey.useTombstones, true)) == errSecSuccess)
        #expect(find(tombstone).status == errSecSuccess)
    }

    @Test("Case 39: an item can be added over its tombstone, and has the same persistent reference")
    func addOverTombstone() throws {
        let old = try #require(add(item.with(kSecReturnPersistentRef, true)).data)
        #expect(delete(query) == errSecSuccess)
        let new = add(item.with(kSecReturnPersistentRef, true))
        #expect(new.status == errSecSuccess)
        #expect(new.data == old)
        #expect(find(tombstone).status == errSecItemNotFound)
    }

    @Test("Case 67: a program does not see the items of another user")
    func twoUsers() {
        let other = Data(repeating: 1, count: 16)
        #expect(add(Item.generic()).status == errSecSuccess)
        #expect(add(Item.generic().with(PrivateKey.user, other)).status == errSecSuccess)
        #expect(delete([kSecClass: kSecClassGenericPassword]) == errSecSuccess)
        #expect(find(Item.genericQuery()).status == errSecItemNotFound)
        #expect(find(Item.genericQuery().with(PrivateKey.user, other)).status == errSecSuccess)
    }
}
