// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Wrappers written for Apple platforms work", .inMemoryKeychain)
struct WrapperTests {
    @Test("A wrapper with the interface of UserDefaults")
    func defaultsStyle() {
        let keychain = DefaultsStyleKeychain(serviceName: "luggage")
        #expect(keychain.string(forKey: "code") == nil)
        #expect(keychain.allKeys() == [])
        #expect(keychain.set("12345", forKey: "code"))
        #expect(keychain.integer(forKey: "code") == 12345)
        #expect(keychain.set("1234", forKey: "code"))
        #expect(keychain.string(forKey: "code") == "1234")
        #expect(keychain.set(Data(), forKey: "empty"))
        #expect(keychain.data(forKey: "empty") == Data())
        #expect(keychain.dataRef(forKey: "code")?.count == 20)
        #expect(keychain.accessibility(ofKey: "code") == kSecAttrAccessibleWhenUnlocked as String)
        #expect(keychain.allKeys() == ["code", "empty"])
        #expect(keychain.removeObject(forKey: "empty"))
        #expect(!keychain.removeObject(forKey: "empty"))
        #expect(!keychain.hasValue(forKey: "empty"))
        #expect(keychain.removeAllKeys())
        #expect(!keychain.hasValue(forKey: "code"))
    }

    @Test("A wrapper around an options structure, for generic passwords")
    func optionsStyle() throws {
        let keychain = OptionsStyleKeychain(service: "luggage")
        #expect(try keychain.get("code") == nil)
        try keychain.label("suitcase").comment("the president's").set("12345", key: "code")
        try keychain.accessibility(.whenUnlocked).set("1234", key: "code")
        #expect(try keychain.get("code") == "1234")
        #expect(try keychain.contains("code"))
        #expect(try !keychain.contains("other"))
        keychain["other"] = "5"
        #expect(keychain["other"] == "5")
        #expect(keychain.allKeys() == ["code", "other"])
        let (attributes, reference) = try keychain.get("code") { ($0, $0?.persistentRef) }
        #expect(attributes?.data == Data("1234".utf8))
        #expect(attributes?.label == "suitcase")
        #expect(attributes?.comment == "the president's")
        #expect(attributes?.accessible == kSecAttrAccessibleWhenUnlocked as String)
        #expect(attributes?.synchronizable == false)
        #expect(attributes?.creationDate != nil)
        #expect(attributes?.accessControl != nil)
        #expect(reference?.count == 20)
        keychain["other"] = nil
        #expect(keychain.allKeys() == ["code"])
        try keychain.removeAll()
        #expect(keychain.allKeys() == [])
        try keychain.removeAll()
    }

    @Test("A wrapper around an options structure, for internet passwords and synchronizable items")
    func optionsStyleInternet() throws {
        let keychain = OptionsStyleKeychain(server: try #require(URL(string: "https://example.com:8443")))
        let other = OptionsStyleKeychain(server: try #require(URL(string: "https://example.com")))
        try keychain.synchronizable(true).set("12345", key: "Skroob")
        #expect(try keychain.get("Skroob") == "12345")
        #expect(try keychain.get("Skroob") { $0?.port } == 8443)
        #expect(try keychain.get("Skroob") { $0?.synchronizable } == true)
        try keychain.remove("Skroob")
        #expect(try other.get("Skroob") == nil)
    }

    @Test("A wrapper converts the errors to its own")
    func optionsStyleErrors() throws {
        let keychain = OptionsStyleKeychain(service: "luggage")
        #expect(throws: KeychainStatus.authFailed) {
            try keychain.accessibility(.whenUnlocked, policy: .userPresence).set("12345", key: "code")
        }
        try KeychainSession.current().setPasscode("swordfish")
        try keychain.accessibility(.whenUnlocked, policy: .userPresence).set("12345", key: "code")
        #expect(throws: KeychainStatus.interactionNotAllowed) { try keychain.get("code") }
        let error = #expect(throws: NSError.self) {
            try keychain.accessibility(.whenUnlocked, policy: [.userPresence, .devicePasscode]).set("12345", key: "code")
        }
        #expect(error?.domain == NSOSStatusErrorDomain)
        #expect(error?.code == Int(errSecParam))
        #expect(KeychainStatus(status: errSecItemNotFound).description == SecCopyErrorMessageString(errSecItemNotFound, nil))
    }

    @Test("A wrapper that reads through pointers")
    func pointerStyle() {
        let keychain = PointerStyleKeychain(keyPrefix: "luggage.")
        #expect(keychain.get("code") == nil)
        #expect(keychain.lastResultCode == errSecItemNotFound)
        #expect(keychain.set("12345", forKey: "code"))
        #expect(keychain.set("1234", forKey: "code", withAccess: .accessibleAfterFirstUnlockThisDeviceOnly))
        #expect(keychain.get("code") == "1234")
        #expect(keychain.set(true, forKey: "locked"))
        #expect(keychain.getBool("locked") == true)
        #expect(keychain.getData("code", asReference: true)?.count == 20)
        #expect(Set(keychain.allKeys) == ["luggage.code", "luggage.locked"])
        #expect(keychain.delete("locked"))
        #expect(!keychain.delete("locked"))
        keychain.synchronizable = true
        #expect(keychain.set("12345", forKey: "twin"))
        #expect(keychain.get("twin") == "12345")
        #expect(Set(keychain.allKeys) == ["luggage.code", "luggage.twin"])
        #expect(keychain.clear())
        #expect(keychain.allKeys == [])
        keychain.accessGroup = "another.program"
        #expect(!keychain.set("12345", forKey: "code"))
        #expect(keychain.lastResultCode == errSecMissingEntitlement)
    }

    @Test("A wrapper ported from Objective-C")
    func foundationStyle() throws {
        #expect(throws: NSError.self) { try FoundationStyleKeychain.password(forService: "luggage", account: "Skroob") }
        try FoundationStyleKeychain.setPassword("12345", forService: "luggage", account: "Skroob")
        try FoundationStyleKeychain.setPassword("1234", forService: "luggage", account: "Skroob")
        try FoundationStyleKeychain.setPassword("5", forService: "luggage", account: "Helmet")
        #expect(try FoundationStyleKeychain.password(forService: "luggage", account: "Skroob") == "1234")
        let accounts = try FoundationStyleKeychain.accounts(forService: "luggage")
        #expect(accounts.compactMap { ($0 as? NSDictionary)?[kSecAttrAccount] as? String } == ["Skroob", "Helmet"])
        try FoundationStyleKeychain.deletePassword(forService: "luggage", account: "Skroob")
        let error = #expect(throws: NSError.self) {
            try FoundationStyleKeychain.deletePassword(forService: "luggage", account: "Skroob")
        }
        #expect(error?.code == Int(errSecItemNotFound))
        #expect(error?.localizedDescription == SecCopyErrorMessageString(errSecItemNotFound, nil))
    }
}
