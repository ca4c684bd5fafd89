// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("The dictionaries of SecItemUpdate")
struct UpdateRequestTests {
    private func request(_ query: [String: Any], _ changes: [String: Any]) throws -> UpdateRequest {
        let dictionary = try ItemDictionary(query)
        return try UpdateRequest(dictionary, changes: try UpdateDictionary(changes, of: dictionary.itemClass))
    }

    private func request(_ changes: [String: Any]) throws -> UpdateRequest {
        try request(genericPassword(), changes)
    }

    private func status(_ query: [String: Any], _ changes: [String: Any]) -> OSStatus {
        Verb.update.call(query, changes: changes).0
    }

    private func status(_ changes: [String: Any]) -> OSStatus {
        status(genericPassword(), changes)
    }

    @Test("Attributes and the secret can be changed")
    func changes() throws {
        let request = try request([
            kSecAttrAccount: "a", kSecAttrAccessGroup: "g", kSecAttrSynchronizable: true, kSecValueData: Data([1]),
            kSecAttrCreationDate: Date(timeIntervalSinceReferenceDate: 5),
        ])
        #expect(
            request.changes
                == ItemAttributes([
                    .account: .string("a"), .accessGroup: .string("g"), .synchronizable: .number(1), .creationDate: .date(5),
                ]))
        #expect(request.secret == Data([1]))
        #expect(request.accessControl == nil)
    }

    @Test("Nothing to change is a change of the date alone")
    func empty() throws {
        let request = try request([:])
        #expect(request.changes.isEmpty)
        #expect(request.secret == nil)
    }

    @Test("An empty secret is not the same as none")
    func emptySecret() throws {
        #expect(try request([kSecValueData: Data()]).secret == Data())
    }

    @Test("The protection can be changed by either key")
    func protection() throws {
        let ofClass = try request([kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock])
        #expect(ofClass.accessibility == .afterFirstUnlock)
        #expect(ofClass.accessControl == nil)
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        let ofObject = try request([kSecAttrAccessControl: object])
        #expect(ofObject.accessControl == object.accessControl)
        #expect(ofObject.accessibility == nil)
        #expect(
            status([kSecAttrAccessControl: object, kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]) == errSecParam)
        #expect(status([kSecAttrAccessControl: object, kSecAttrSynchronizable: true]) == errSecParam)
        #expect(status([kSecAttrAccessible: kSecAttrAccessibleAlwaysThisDeviceOnly, kSecAttrSynchronizable: true]) == errSecParam)
    }

    @Test("What the keychain sets itself is ignored")
    func ignored() throws {
        let request = try request([
            kSecAttrModificationDate: Date(), "sha1": Data(count: 20), "musr": "whatever", kSecUseDataProtectionKeychain: true,
            kSecAttrSynchronizable: kSecAttrSynchronizableAny,
        ])
        #expect(request.changes.isEmpty)
    }

    @Test(
        "What is no attribute cannot be changed",
        arguments: [
            kSecClass, kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef, kSecMatchLimit, "m_Unknown",
            kSecValueRef,
            kSecValuePersistentRef, kSecUseAuthenticationUI, kSecUseOperationPrompt, kSecUseAuthenticationContext, "u_CredRef", "u_Tomb",
            kSecAttrServer, "subj", "persistref", "xxxxx", "f_Callback", "",
        ])
    func noAttribute(key: String) {
        #expect(status([key: "a"]) == errSecNoSuchAttr)
    }

    @Test("What belongs to the keychain itself is a wrong parameter", arguments: ["tomb", "clip", "ggrp"])
    func internalAttributes(key: String) {
        #expect(status([key: 1]) == errSecParam)
    }

    @Test("Types and values are checked as in every dictionary")
    func badValues() {
        for value in ["a", 1, NSNull(), [UInt8(1)]] as [Any] { #expect(status([kSecValueData: value]) == errSecParam) }
        #expect(status([kSecAttrAccount: true]) == errSecParam)
        #expect(status([kSecAttrAccessible: "never"]) == errSecParam)
        #expect(status([kSecAttrAccessControl: "a"]) == errSecParam)
        #expect(status([kSecAttrModificationDate: "today"]) == errSecParam)
    }

    @Test("Names count before types, whatever the order", arguments: 0..<10)
    func order(round: Int) {
        #expect(status([kSecAttrAccount: true, "subj": 1, kSecValueData: "a"]) == errSecNoSuchAttr)
    }

    @Test("The query must not match or limit", arguments: [kSecMatchLimit, kSecMatchCaseInsensitive, "m_Unknown"])
    func matchKeys(key: String) {
        #expect(status(genericPassword([key: kSecMatchLimitOne]), [:]) == errSecParam)
    }

    @Test(
        "The query must not ask for results",
        arguments: [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnKeys(key: String) {
        #expect(status(genericPassword([key: true]), [:]) == errSecParam)
        #expect(status(genericPassword([key: false]), [:]) == errSecSuccess)
    }

    @Test("The query says whether a tombstone is left")
    func tombstones() throws {
        #expect(try request(genericPassword(["u_Tomb": true]), [:]).leavesTombstone == true)
        #expect(try request(genericPassword(["u_Tomb": "0"]), [:]).leavesTombstone == false)
        #expect(try request(genericPassword(), [:]).leavesTombstone == nil)
        #expect(status(genericPassword(["u_Tomb": Data()]), [:]) == errSecParam)
    }

    @Test("Mistakes in the query count before mistakes in the changes")
    func queryFirst() {
        #expect(status(["class": "none"], ["subj": 1]) == errSecNoSuchClass)
        #expect(status(genericPassword([kSecAttrAccount: true]), ["subj": 1]) == errSecParam)
    }
}
