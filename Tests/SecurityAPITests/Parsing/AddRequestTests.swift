// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("The dictionary of SecItemAdd")
struct AddRequestTests {
    private func request(_ dictionary: [String: Any]) throws -> AddRequest {
        try AddRequest(try ItemDictionary(dictionary))
    }

    @Test("Only the class is needed")
    func classOnly() throws {
        let request = try request(genericPassword())
        #expect(request.itemClass == .genericPassword)
        #expect(request.attributes == ItemAttributes([.synchronizable: .number(0)]))
        #expect(request.secret == nil)
        #expect(request.accessControl == nil)
    }

    @Test("Attributes and the secret arrive as they were given")
    func everything() throws {
        let request = try request(
            internetPassword([
                kSecAttrAccount: "a", kSecAttrServer: Data("s".utf8), kSecAttrPort: 80, kSecAttrProtocol: "http", kSecAttrLabel: "l",
                kSecAttrAccessGroup: "g", kSecValueData: Data([1]), kSecAttrIsInvisible: true,
            ]))
        #expect(
            request.attributes
                == ItemAttributes([
                    .account: .string("a"), .server: .data(Data("s".utf8)), .port: .number(80), .protocol: .string("http"),
                    .label: .string("l"), .accessGroup: .string("g"), .isInvisible: .number(1), .synchronizable: .number(0),
                ]))
        #expect(request.secret == Data([1]))
    }

    @Test("What the keychain sets itself is left out, but must be well formed")
    func dates() throws {
        let request = try request(
            genericPassword([kSecAttrCreationDate: Date(), kSecAttrModificationDate: Date(), "sha1": Data(count: 20), "tomb": 0]))
        #expect(request.attributes == ItemAttributes([.synchronizable: .number(0)]))
        #expect(Verb.add.status(genericPassword([kSecAttrCreationDate: "today"])) == errSecParam)
    }

    @Test("A tombstone cannot be added")
    func tombstone() {
        #expect(Verb.add.status(genericPassword(["tomb": true])) == errSecParam)
    }

    @Test("An item is synchronizable if that is said, and 'any' means no")
    func synchronizable() throws {
        #expect(try request(genericPassword([kSecAttrSynchronizable: true])).attributes.flag(.synchronizable) == true)
        #expect(try request(genericPassword([kSecAttrSynchronizable: "1"])).attributes.flag(.synchronizable) == true)
        #expect(try request(genericPassword([kSecAttrSynchronizable: 0])).attributes.flag(.synchronizable) == false)
        #expect(
            try request(genericPassword([kSecAttrSynchronizable: kSecAttrSynchronizableAny])).attributes.flag(.synchronizable) == false)
    }

    @Test("What never leaves the device cannot be synchronizable", arguments: Accessibility.allCases)
    func thisDeviceOnly(accessibility: Accessibility) throws {
        let dictionary = genericPassword([kSecAttrSynchronizable: true, kSecAttrAccessible: accessibility.rawValue])
        #expect(Verb.add.status(dictionary) == (accessibility.isThisDeviceOnly ? errSecParam : errSecSuccess))
        #expect(Verb.add.status(genericPassword([kSecAttrAccessible: accessibility.rawValue])) == errSecSuccess)
        let object = try makeAccessControl(accessibility.rawValue, [])
        #expect(Verb.add.status(genericPassword([kSecAttrSynchronizable: true, kSecAttrAccessControl: object])) == errSecParam)
    }

    @Test("The protection is the accessibility or the access control")
    func protection() throws {
        #expect(
            try request(genericPassword([kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock])).accessControl
                == AccessControl(.afterFirstUnlock))
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        #expect(try request(genericPassword([kSecAttrAccessControl: object])).accessControl == object.accessControl)
        #expect(try request(genericPassword([kSecAttrAccessControl: object])).attributes[.accessible] == nil)
    }

    @Test("Nothing is matched when an item is added", arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, kSecMatchPolicy, "m_Unknown"])
    func matchKeys(key: String) {
        #expect(Verb.add.status(genericPassword([key: kSecMatchLimitOne])) == errSecParam)
    }

    @Test("A list of items is not accepted")
    func itemList() {
        #expect(Verb.add.status(genericPassword([kSecUseItemList: [NSObject()]])) == errSecParam)
    }
}
