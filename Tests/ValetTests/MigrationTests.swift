// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import ServedKeychain
import Testing
import Valet

@Suite("Key-value pairs to migrate")
struct MigratableKeyValuePairTests {
    @Test("Text becomes its UTF-8 bytes")
    func text() {
        let pair = MigratableKeyValuePair(key: "Skroob", value: "12345 ✓")
        #expect(pair.key == "Skroob")
        #expect(pair.value == Data("12345 ✓".utf8))
        #expect(pair == MigratableKeyValuePair(key: "Skroob", value: Data("12345 ✓".utf8)))
    }

    @Test("Pairs are equal if their keys and values are equal")
    func equality() {
        let pair = MigratableKeyValuePair(key: "Skroob", value: "12345")
        #expect(pair != MigratableKeyValuePair(key: "Helmet", value: "12345"))
        #expect(pair != MigratableKeyValuePair(key: "Skroob", value: "54321"))
        #expect(Set([pair, pair]).count == 1)
    }
}

@Suite("Migrations", .keychain(accessGroups: testAccessGroups))
struct MigrationTests {
    private struct Stopped: Error {}

    @Test("Items of another program can be copied or moved", arguments: [true, false])
    func matchingItems(removing: Bool) throws {
        let valet = try valet()
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345")) == errSecSuccess)
        #expect(RawItems.add(account: "Helmet", service: "old", value: Data([0xFF])) == errSecSuccess)
        #expect(RawItems.add(account: "Skroob", service: "another", value: bytes("not this")) == errSecSuccess)
        try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: removing)
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try valet.object(forKey: "Helmet") == Data([0xFF]))
        let services = try RawItems.all().compactMap { $0[kSecAttrService as String] as? String }
        #expect(services.filter { $0 == "old" }.count == (removing ? 0 : 2))
        #expect(services.contains("another"))
    }

    @Test("The values of a valet can be copied or moved", arguments: [true, false])
    func fromValet(removing: Bool) throws {
        let source = try valet("source", .afterFirstUnlock)
        let destination = Valet.sharedGroupValet(with: try sharedGroup(), accessibility: .whenUnlocked)
        try source.setString("12345", forKey: "Skroob")
        try source.setString("melon", forKey: "Helmet")
        try destination.migrateObjects(from: source, removeOnCompletion: removing)
        #expect(try destination.allKeys() == ["Skroob", "Helmet"])
        #expect(try destination.string(forKey: "Skroob") == "12345")
        #expect(try source.allKeys() == (removing ? [] : ["Skroob", "Helmet"]))
    }

    @Test("Values move into an iCloud valet and out of it")
    func iCloud() throws {
        let local = try valet("local")
        let cloud = Valet.iCloudValet(with: try identifier("cloud"), accessibility: .whenUnlocked)
        try local.setString("12345", forKey: "Skroob")
        try cloud.migrateObjects(from: local, removeOnCompletion: true)
        #expect(try cloud.string(forKey: "Skroob") == "12345")
        #expect(try local.allKeys().isEmpty)
        try local.migrateObjects(from: cloud, removeOnCompletion: true)
        #expect(try local.string(forKey: "Skroob") == "12345")
        #expect(try cloud.allKeys().isEmpty)
    }

    @Test("A synchronizable item for this device only moves into a valet")
    func synchronizableForThisDeviceOnly() throws {
        let protection: [String: AnyHashable] = [
            kSecAttrSynchronizable as String: true, kSecAttrAccessible as String: kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String,
        ]
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345"), protection) == errSecSuccess)
        let valet = try valet()
        try valet.migrateObjects(matching: query(service: "old", protection), removeOnCompletion: true)
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try RawItems.all().count == 1)
    }

    @Test("A limit in the query limits the number of migrated items")
    func limit() throws {
        let valet = try valet()
        for name in ["a", "b", "c"] { #expect(RawItems.add(account: name, service: "old", value: bytes(name)) == errSecSuccess) }
        try valet.migrateObjects(matching: query(service: "old", [kSecMatchLimit as String: 2]), removeOnCompletion: true)
        #expect(try valet.allKeys().count == 2)
        #expect(try RawItems.all().count == 3)
    }

    @Test("A mapping can rename, change and leave out items, and the originals are not removed")
    func compactMap() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        try destination.migrateObjects(from: source) { pair in
            guard let key = pair.key as? String, key != "b" else { return nil }
            return MigratableKeyValuePair(key: key.uppercased(), value: pair.value + bytes("!"))
        }
        #expect(try destination.allKeys() == ["A", "C"])
        #expect(try destination.string(forKey: "A") == "value of a!")
        #expect(try source.allKeys() == ["a", "b", "c"])
    }

    @Test("A mapping may leave out all items")
    func compactMapToNothing() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        try source.setString("12345", forKey: "Skroob")
        try destination.migrateObjects(from: source) { _ in nil }
        #expect(try destination.allKeys().isEmpty)
        #expect(try source.allKeys() == ["Skroob"])
    }

    @Test("A mapping that throws fails the migration with its own error")
    func compactMapThrows() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        let before = try RawItems.fingerprint()
        var count = 0
        #expect(throws: Stopped.self) {
            try destination.migrateObjects(from: source) { pair in
                count += 1
                guard count < 3 else { throw Stopped() }
                return MigratableKeyValuePair(key: "\(pair.key)", value: pair.value)
            }
        }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("The canary is neither migrated, passed to a mapping, nor removed; migrating it alone is not an error")
    func canary() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        #expect(source.canAccessKeychain())
        let canary = try RawItems.fingerprint()
        try destination.migrateObjects(from: source, removeOnCompletion: true)
        #expect(try RawItems.fingerprint() == canary)
        try source.setString("12345", forKey: "Skroob")
        try destination.migrateObjects(from: source) { pair in
            #expect(pair.key == AnyHashable("Skroob"))
            return nil
        }
        try destination.migrateObjects(from: source, removeOnCompletion: true)
        #expect(try destination.allKeys() == ["Skroob"])
        try destination.removeAllObjects()
        #expect(try RawItems.fingerprint() == canary)
    }

    @Test("A group that the entitlements do not list fails the migration before any write")
    func missingEntitlement() throws {
        let source = try valet("source")
        let destination = Valet.sharedGroupValet(with: try foreignGroup(), accessibility: .whenUnlocked)
        try source.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: KeychainError.missingEntitlement) { try destination.migrateObjects(from: source, removeOnCompletion: true) }
        #expect(throws: KeychainError.missingEntitlement) { try source.migrateObjects(from: destination, removeOnCompletion: true) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("If a missing passcode prevents writing, nothing is migrated")
    func noPasscode() throws {
        let source = try valet("source")
        let destination = try valet("destination", .whenPasscodeSetThisDeviceOnly)
        try source.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try destination.migrateObjects(from: source, removeOnCompletion: true) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("A key added to the destination after its check fails the migration and rolls it back")
    func keyAppears() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        var checked: [String] = []
        #expect(throws: MigrationError.keyToMigrateAlreadyExistsInValet) {
            try destination.migrateObjects(from: source) { pair in
                // When the last pair is mapped, the previous one has passed its check, and the first is written before it.
                if checked.count == 2 { try destination.setString("another program's", forKey: checked[1]) }
                let key = try #require(pair.key as? String)
                checked.append(key)
                return MigratableKeyValuePair(key: key, value: pair.value)
            }
        }
        #expect(try destination.allKeys() == [checked[1]])
        #expect(try destination.string(forKey: checked[1]) == "another program's")
        #expect(try source.allKeys() == ["a", "b", "c"])
    }

    @Test("Changing the accessibility of an explicitly named valet changes the item in place")
    func changingAccessibility() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        let reference = try #require(RawItems.only()[kSecValuePersistentRef as String] as? Data)
        try new.migrateObjects(from: old, removeOnCompletion: true)
        #expect(try new.string(forKey: "Skroob") == "12345")
        #expect(try old.allKeys().isEmpty)
        let item = try RawItems.only()
        #expect(item[kSecValuePersistentRef as String] as? Data == reference)
        #expect(item[kSecAttrAccessible as String] as? String == kSecAttrAccessibleAfterFirstUnlock as String)
    }

    @Test("An item cannot be copied to another accessibility of the same explicitly named valet")
    func copyingOntoItself() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: MigrationError.keyToMigrateAlreadyExistsInValet) { try new.migrateObjects(from: old, removeOnCompletion: false) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("Migrating from before macOS Catalina does nothing on other platforms")
    func preCatalina() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        try valet.migrateObjectsFromPreCatalina()
        #expect(try RawItems.fingerprint() == before)
    }
}

#if !canImport(Darwin)
import KeychainTesting

@Suite("Migrations with a damaged item", .keychain(accessGroups: testAccessGroups))
struct DamagedItemMigrationTests {
    /// The part of the item with the account "b" that cannot be read.
    enum Damage: CaseIterable {
        case wholeItem, secretAlone

        func apply() throws {
            let keychain = try #require(InMemoryKeychain.current)
            switch self {
            case .wholeItem: try keychain.damageItems(account: "b")
            case .secretAlone: try keychain.damageSecrets(account: "b")
            }
        }
    }

    private func addItems() throws {
        for account in ["a", "b", "c"] {
            #expect(RawItems.add(account: account, service: "old", value: bytes("value of \(account)")) == errSecSuccess)
        }
    }

    private func expectValue(_ account: String) throws {
        let item = try #require(RawItems.all().first { $0[kSecAttrAccount as String] as? String == account })
        #expect(item[kSecAttrService as String] as? String == "old")
        #expect(item[kSecValueData as String] as? Data == bytes("value of \(account)"))
    }

    @Test("Migrating the items of a query throws and changes nothing", arguments: Damage.allCases, [true, false])
    func matching(damage: Damage, removing: Bool) throws {
        let valet = try valet()
        try addItems()
        try damage.apply()
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: removing)
        }
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try valet.migrateObjects(matching: query(service: "old")) { MigratableKeyValuePair(key: "new \($0.key)", value: $0.value) }
        }
        #expect(try valet.allKeys().isEmpty)
        for account in ["a", "c"] { try expectValue(account) }
    }

    @Test("Migrating the values of a valet throws and changes nothing", arguments: Damage.allCases, [true, false])
    func fromValet(damage: Damage, removing: Bool) throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        try damage.apply()
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try destination.migrateObjects(from: source, removeOnCompletion: removing)
        }
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try destination.migrateObjects(from: source) { MigratableKeyValuePair(key: "new \($0.key)", value: $0.value) }
        }
        #expect(try destination.allKeys().isEmpty)
        for key in ["a", "c"] { #expect(try source.string(forKey: key) == "value of \(key)") }
    }

    @Test("Migrating into a valet that requires authentication throws and changes nothing", arguments: Damage.allCases)
    func intoSecureEnclave(damage: Damage) throws {
        let keychain = try keychainWithPasscode()
        let source = try valet("source")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        try damage.apply()
        let enclave = try enclaveValet("damaged item")
        let singlePrompt = try singlePromptValet("damaged item")
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try enclave.migrateObjects(from: source, removeOnCompletion: true)
        }
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try singlePrompt.migrateObjects(from: source, removeOnCompletion: true)
        }
        #expect(keychain.person.questions.isEmpty)
        for key in ["a", "c"] {
            #expect(try source.string(forKey: key) == "value of \(key)")
            #expect(try !enclave.containsObject(forKey: key))
            #expect(try !singlePrompt.containsObject(forKey: key))
        }
    }

    @Test("Migrating from a single prompt valet throws and changes nothing", arguments: Damage.allCases)
    func fromSinglePrompt(damage: Damage) throws {
        let keychain = try keychainWithPasscode()
        let source = try singlePromptValet("damaged \(damage)")
        let destination = try enclaveValet("damaged \(damage)")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        try damage.apply()
        keychain.person.answers(.correctPasscode)
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try destination.migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: true)
        }
        for key in ["a", "c"] {
            #expect(try !destination.containsObject(forKey: key))
            #expect(try source.containsObject(forKey: key))
        }
    }

    @Test("Migrating a single damaged item throws")
    func onlyDamagedItem() throws {
        let valet = try valet()
        #expect(RawItems.add(account: "b", service: "old", value: bytes("1")) == errSecSuccess)
        try Damage.wholeItem.apply()
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: true)
        }
        #expect(try valet.allKeys().isEmpty)
    }

    @Test("A damaged item outside the query does not prevent a migration")
    func damagedItemElsewhere() throws {
        let valet = try valet()
        #expect(RawItems.add(account: "a", service: "old", value: bytes("1")) == errSecSuccess)
        #expect(RawItems.add(account: "b", service: "another", value: bytes("2")) == errSecSuccess)
        try Damage.wholeItem.apply()
        try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: true)
        #expect(try valet.string(forKey: "a") == "1")
    }
}
#endif
