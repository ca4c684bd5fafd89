// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing
import Valet

@Suite("Migrations", .inMemoryKeychain(accessGroups: testAccessGroups))
struct MigrationTests {
    private struct Stopped: Error {}

    @Test("Items of another program are copied, or moved", arguments: [true, false])
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

    @Test("The values of a valet are copied, or moved", arguments: [true, false])
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

    @Test("A limit in the query is kept: no more than that many items move")
    func limit() throws {
        let valet = try valet()
        for name in ["a", "b", "c"] { #expect(RawItems.add(account: name, service: "old", value: bytes(name)) == errSecSuccess) }
        try valet.migrateObjects(matching: query(service: "old", [kSecMatchLimit as String: 2]), removeOnCompletion: true)
        #expect(try valet.allKeys().count == 2)
        #expect(try RawItems.all().count == 3)
    }

    @Test("A mapping renames, changes and leaves out; the originals stay")
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

    @Test("A mapping may leave everything out")
    func compactMapToNothing() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        try source.setString("12345", forKey: "Skroob")
        try destination.migrateObjects(from: source) { _ in nil }
        #expect(try destination.allKeys().isEmpty)
        #expect(try source.allKeys() == ["Skroob"])
    }

    @Test("A mapping that throws prevents the migration, with its own error")
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

    @Test("The canary is not migrated, not shown to a mapping, not removed; and alone it is nothing to migrate and no error")
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

    @Test("A group that the entitlements do not list is found out before anything is written")
    func missingEntitlement() throws {
        let source = try valet("source")
        let destination = Valet.sharedGroupValet(with: try foreignGroup(), accessibility: .whenUnlocked)
        try source.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: KeychainError.missingEntitlement) { try destination.migrateObjects(from: source, removeOnCompletion: true) }
        #expect(throws: KeychainError.missingEntitlement) { try source.migrateObjects(from: destination, removeOnCompletion: true) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("Nothing can be written for want of a passcode: nothing moves")
    func noPasscode() throws {
        let source = try valet("source")
        let destination = try valet("destination", .whenPasscodeSetThisDeviceOnly)
        try source.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: KeychainError.couldNotAccessKeychain) { try destination.migrateObjects(from: source, removeOnCompletion: true) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("A key that appears in the destination after its check stops the migration, and what was written goes again")
    func keyAppears() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for key in ["a", "b", "c"] { try source.setString("value of \(key)", forKey: key) }
        var checked: [String] = []
        #expect(throws: MigrationError.keyToMigrateAlreadyExistsInValet) {
            try destination.migrateObjects(from: source) { pair in
                // When the last pair is mapped, the one before it has passed its check, and the first is written before it.
                if checked.count == 2 { try destination.setString("somebody else's", forKey: checked[1]) }
                let key = try #require(pair.key as? String)
                checked.append(key)
                return MigratableKeyValuePair(key: key, value: pair.value)
            }
        }
        #expect(try destination.allKeys() == [checked[1]])
        #expect(try destination.string(forKey: checked[1]) == "somebody else's")
        #expect(try source.allKeys() == ["a", "b", "c"])
    }

    @Test("An explicitly named valet changes its accessibility: the item itself is changed, so there is no moment without it")
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

    @Test("Without removing, the one item cannot be in two accessibilities")
    func copyingOntoItself() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: MigrationError.keyToMigrateAlreadyExistsInValet) { try new.migrateObjects(from: old, removeOnCompletion: false) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("There is nothing to do for keychains from before macOS Catalina off macOS")
    func preCatalina() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        try valet.migrateObjectsFromPreCatalina()
        #expect(try RawItems.fingerprint() == before)
    }
}
