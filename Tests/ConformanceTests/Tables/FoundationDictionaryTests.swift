// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

/// Apple's platforms bridge such dictionaries; here each function takes an NSDictionary as it is.
@Suite("Section 2: a Foundation dictionary", .inMemoryKeychain)
struct FoundationDictionaryTests {
    private let item: NSDictionary = Item.generic() as NSDictionary

    @Test("Every call takes a Foundation dictionary")
    func calls() {
        #expect(SecItemAdd(item, nil) == errSecSuccess)
        #expect(SecItemCopyMatching(item, nil) == errSecSuccess)
        #expect(SecItemUpdate(item, [kSecAttrLabel: "label"] as NSDictionary) == errSecSuccess)
        #expect(SecItemDelete(item) == errSecSuccess)
    }

    @Test("A key that is not a string is refused")
    func keyThatIsNoString() {
        let dictionary = NSMutableDictionary(dictionary: Item.generic())
        dictionary[NSNumber(value: 1)] = "value"
        #expect(SecItemAdd(dictionary, nil) == errSecParam)
        #expect(SecItemCopyMatching(dictionary, nil) == errSecParam)
        #expect(SecItemUpdate(dictionary, [kSecAttrLabel: "label"] as NSDictionary) == errSecParam)
        #expect(SecItemUpdate(item, dictionary) == errSecParam)
        #expect(SecItemDelete(dictionary) == errSecParam)
    }
}
#endif
