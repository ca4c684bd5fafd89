// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Persistent references, cases of the specification", .inMemoryKeychain)
struct PersistentReferenceCases {
    /// Adds an item and answers its persistent reference.
    private func reference(ofAdding item: ItemDictionary) throws -> Data {
        try #require(add(item.with(kSecReturnPersistentRef, true)).data)
    }

    @Test("Case 28: a reference alone, without class, leads to the same attributes as a query")
    func attributesByReference() throws {
        let reference = try reference(ofAdding: Item.internet())
        let byReference = try #require(attributes(of: [kSecValuePersistentRef: reference]))
        #expect(byReference.isEqual(to: attributes(of: Item.internetQuery())))
    }

    @Test("Case 29: the reference of a deleted item leads nowhere, and an item added again has one of its own")
    func deleted() throws {
        let old = try reference(ofAdding: Item.internet())
        #expect(delete(Item.internetQuery()) == errSecSuccess)
        #expect(find([kSecValuePersistentRef: old]).status == errSecItemNotFound)
        let new = try reference(ofAdding: Item.internet())
        #expect(new != old)
        #expect(secret(of: [kSecValuePersistentRef: new]) == Item.secret)
    }

    @Test("Case 30: an update through a reference moves that item, keeps the reference and touches no other")
    func updateByReference() throws {
        let first = try reference(ofAdding: Item.internet(server: "first.example.com"))
        let second = try reference(ofAdding: Item.internet(server: "second.example.com"))
        #expect(update([kSecValuePersistentRef: first], [kSecAttrServer: "new.example.com"]) == errSecSuccess)
        #expect(attributes(of: [kSecValuePersistentRef: first])?[kSecAttrServer] as? String == "new.example.com")
        #expect(attributes(of: [kSecValuePersistentRef: second])?[kSecAttrServer] as? String == "second.example.com")
    }

    @Test("Case 31: a delete by reference deletes that item alone, and may have a return key")
    func deleteByReference() throws {
        let first = try reference(ofAdding: Item.internet(server: "first.example.com"))
        let second = try reference(ofAdding: Item.internet(server: "second.example.com"))
        #expect(delete([kSecValuePersistentRef: first]) == errSecSuccess)
        #expect(find([kSecValuePersistentRef: first]).status == errSecItemNotFound)
        #expect(find([kSecValuePersistentRef: second]).status == errSecSuccess)
        #expect(delete([kSecValuePersistentRef: second, kSecReturnData: true]) == errSecSuccess)
    }

    @Test("Case 32: a reference has 20 bytes, begins with the class and is not among the attributes", arguments: Item.Kind.allCases)
    func shape(kind: Item.Kind) throws {
        let reference = try reference(ofAdding: kind.item)
        #expect(reference.count == 20)
        #expect(reference.prefix(4) == Data((kind.itemClass as String).utf8))
        let found = try #require(attributes(of: kind.query))
        #expect(found[kSecAttrPersistentReference] == nil)
        #expect(found[PrivateKey.uuid] == nil)
    }

    @Test("Case 34: a search by reference takes no attribute")
    func referenceWithAttribute() throws {
        let reference = try reference(ofAdding: Item.generic())
        #expect(find([kSecValuePersistentRef: reference, kSecAttrAccount: "account"]).status == errSecParam)
    }
}
