// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing
import Valet

@Suite("Migration from Locksmith to Valet and back", .inMemoryKeychain)
struct MigrationTests {
    private let twitter: [String: AnyHashable] = [
        kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: "Twitter",
    ]

    private func valet() throws -> Valet {
        Valet.valet(with: try #require(Identifier(nonEmpty: "Druidia")), accessibility: .whenUnlocked)
    }

    @Test("Items are migrated with their values, which still contain the dictionary")
    func move() throws {
        try Locksmith.saveData(["password": "12345"], forUserAccount: "Skroob", inService: "Twitter")
        try valet().migrateObjects(matching: twitter, removeOnCompletion: true)
        #expect(try Locksmith.userAccounts(inService: "Twitter") == [])
        #expect(try Locksmith.data(inValue: valet().object(forKey: "Skroob"))["password"] as? String == "12345")
    }

    @Test("An entry of the dictionary becomes the value")
    func unpack() throws {
        try Locksmith.saveData(["password": "12345"], forUserAccount: "Skroob", inService: "Twitter")
        try valet().migrateObjects(matching: twitter) { pair in
            let password = try Locksmith.data(inValue: pair.value)["password"] as? String ?? ""
            return MigratableKeyValuePair(key: pair.key as? String ?? "", value: Data(password.utf8))
        }
        #expect(try valet().string(forKey: "Skroob") == "12345")
        #expect(try Locksmith.userAccounts(inService: "Twitter") == ["Skroob"])
    }

    @Test("An account that another library has stored as data is listed, and found by that text")
    func accountAsData() throws {
        for account in [Data("Skroob".utf8), Data([0xFF])] {
            let item: [String: Any] = [
                kSecAttrService as String: "Twitter", kSecAttrAccount as String: account, kSecValueData as String: Data("text".utf8),
            ]
            try #require(RawItems.add(item) == errSecSuccess)
        }
        #expect(try Locksmith.userAccounts(inService: "Twitter") == ["Skroob"])
        try Locksmith.updateData(["password": "12345"], forUserAccount: "Skroob", inService: "Twitter")
        #expect(try Locksmith.userAccounts(inService: "Twitter") == ["Skroob"])
        #expect(Locksmith.loadDataForUserAccount("Skroob", inService: "Twitter")?["password"] as? String == "12345")
    }

    @Test("An item without a dictionary fails a migration that unpacks it, and nothing changes")
    func foreign() throws {
        try Locksmith.saveData(["password": "12345"], forUserAccount: "Skroob", inService: "Twitter")
        let item: [String: Any] = [
            kSecAttrService as String: "Twitter", kSecAttrAccount as String: "Helmet", kSecValueData as String: Data("text".utf8),
        ]
        try #require(RawItems.add(item) == errSecSuccess)
        #expect(throws: LocksmithError.decode) {
            try valet().migrateObjects(matching: twitter) { pair in
                _ = try Locksmith.data(inValue: pair.value)
                return MigratableKeyValuePair(key: pair.key as? String ?? "", value: pair.value)
            }
        }
        #expect(try valet().allKeys().isEmpty)
    }

    @Test("Values of a valet become dictionaries")
    func back() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        for key in try valet.allKeys() { try Locksmith.saveData(["password": valet.string(forKey: key)], forUserAccount: key) }
        #expect(Locksmith.loadDataForUserAccount("Skroob")?["password"] as? String == "12345")
    }
}
