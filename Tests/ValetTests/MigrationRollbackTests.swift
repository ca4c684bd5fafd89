// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import ServedKeychain
import Testing

@testable import Valet

/// Changes by another program between two steps of a migration.
///
/// These tests perform the steps one by one.
@Suite("Rollback of a migration", .keychain(accessGroups: testAccessGroups))
struct MigrationRollbackTests {
    @Test("An original that changed since it was read is kept, and its copy is removed")
    func originalChanged() throws {
        let destination = try valet("destination")
        try addOriginals(["a", "b", "c"])
        var journal = MigrationJournal(destination: destination.keychain)
        for copy in try plannedCopies() { try journal.write(copy, removingOriginal: true) }
        #expect(try destination.allKeys() == ["a", "b", "c"])
        #expect(RawItems.setValue(bytes("newer"), account: "b", service: "old") == errSecSuccess)
        #expect(throws: MigrationError.removalFailed) { try journal.removeOriginals() }
        journal.undo()
        #expect(try destination.allKeys().isEmpty)
        #expect(try values(service: "old") == ["a": "value of a", "b": "newer", "c": "value of c"])
    }

    @Test("A restored original has its value and attributes")
    func originalRestored() throws {
        let destination = try valet("destination")
        let attributes: [String: Any] = [
            kSecAttrLabel as String: "a label", kSecAttrComment as String: "a comment", kSecAttrDescription as String: "a description",
            kSecAttrGeneric as String: Data([1, 2, 3]), kSecAttrCreator as String: 7, kSecAttrType as String: 8,
            kSecAttrIsInvisible as String: true, kSecAttrIsNegative as String: true,
            kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as String,
            kSecAttrAccessGroup as String: "AppID12345.Druidia",
        ]
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345"), attributes) == errSecSuccess)
        let before = try RawItems.only()
        var journal = MigrationJournal(destination: destination.keychain)
        for copy in try plannedCopies() { try journal.write(copy, removingOriginal: true) }
        try journal.removeOriginals()
        #expect(try values(service: "old").isEmpty)
        journal.undo()
        let after = try RawItems.only()
        for key in attributes.keys {
            let (old, new) = (before[key] as? AnyHashable, after[key] as? AnyHashable)
            #expect(old != nil && old == new, "\(key)")
        }
        #expect(after[kSecValueData as String] as? Data == bytes("12345"))
        #expect(after[kSecAttrService as String] as? String == "old")
    }

    @Test("A copy is kept if its original cannot be restored, so the value is not lost")
    func originalNotRestorable() throws {
        let destination = try valet("destination")
        try addOriginals(["a", "b"])
        var journal = MigrationJournal(destination: destination.keychain)
        for item in try RawItems.all() {
            var attributes = item
            let key = try #require(item[kSecAttrAccount as String] as? String)
            if key == "a" {
                // As if the passcode had been removed since: an item of this class cannot be added.
                attributes[kSecAttrAccessControl as String] = nil
                attributes[kSecAttrAccessible as String] = kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String
            }
            let original = StoredItem(attributes: attributes, value: bytes("value of \(key)"), accessOptions: [:])
            try journal.write(PlannedCopy(original: original, key: key, value: bytes("value of \(key)")), removingOriginal: true)
        }
        try journal.removeOriginals()
        journal.undo()
        #expect(try values(service: "old") == ["b": "value of b"])
        #expect(try destination.allKeys() == ["a"])
        #expect(try destination.string(forKey: "a") == "value of a")
    }

    @Test("A restored synchronizable original is synchronizable")
    func synchronizableOriginalRestored() throws {
        let source = Valet.iCloudValet(with: try identifier("source"), accessibility: .afterFirstUnlock)
        try source.setString("12345", forKey: "Skroob")
        var journal = MigrationJournal(destination: try valet("destination").keychain)
        for item in try MigrationQuery(source.keychain.items).readItems() {
            try journal.write(PlannedCopy(original: item, key: "Skroob", value: bytes("12345")), removingOriginal: true)
        }
        try journal.removeOriginals()
        #expect(try source.allKeys().isEmpty)
        journal.undo()
        #expect(try source.string(forKey: "Skroob") == "12345")
        #expect(try RawItems.all().count == 1)
    }

    @Test("A restored synchronizable original for this device only keeps both properties")
    func deviceOnlyOriginalRestored() throws {
        let protection: [String: AnyHashable] = [
            kSecAttrSynchronizable as String: true, kSecAttrAccessible as String: kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String,
        ]
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345"), protection) == errSecSuccess)
        var journal = MigrationJournal(destination: try valet("destination").keychain)
        for item in try MigrationQuery(query(service: "old", protection)).readItems() {
            try journal.write(PlannedCopy(original: item, key: "Skroob", value: bytes("12345")), removingOriginal: true)
        }
        try journal.removeOriginals()
        #expect(try RawItems.only()[kSecAttrService as String] as? String != "old")
        journal.undo()
        let restored = try RawItems.only()
        #expect(restored[kSecAttrSynchronizable as String] as? Bool == true)
        #expect(restored[kSecAttrAccessible as String] as? String == kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String)
        #expect(restored[kSecValueData as String] as? Data == bytes("12345"))
    }

    @Test("An original that another program removed is not a failure")
    func originalGone() throws {
        let destination = try valet("destination")
        try addOriginals(["a", "b"])
        var journal = MigrationJournal(destination: destination.keychain)
        for copy in try plannedCopies() { try journal.write(copy, removingOriginal: true) }
        #expect(RawItems.remove(account: "a", service: "old") == errSecSuccess)
        try journal.removeOriginals()
        #expect(try values(service: "old").isEmpty)
        #expect(try destination.allKeys() == ["a", "b"])
    }

    @Test("An item added after the items were read is neither copied nor removed")
    func itemAddedMeanwhile() throws {
        let destination = try valet("destination")
        try addOriginals(["a"])
        var journal = MigrationJournal(destination: destination.keychain)
        let copies = try plannedCopies()
        try addOriginals(["late"])
        for copy in copies { try journal.write(copy, removingOriginal: true) }
        try journal.removeOriginals()
        #expect(try values(service: "old") == ["late": "value of late"])
        #expect(try destination.allKeys() == ["a"])
    }

    @Test("A copy that another program has changed is not removed")
    func copyChanged() throws {
        let destination = try valet("destination")
        try addOriginals(["a", "b"])
        var journal = MigrationJournal(destination: destination.keychain)
        for copy in try plannedCopies() { try journal.write(copy, removingOriginal: true) }
        try destination.setString("theirs", forKey: "a")
        journal.undo()
        #expect(try destination.allKeys() == ["a"])
        #expect(try destination.string(forKey: "a") == "theirs")
        #expect(try values(service: "old") == ["a": "value of a", "b": "value of b"])
    }

    @Test("A rollback restores an accessibility changed in place, and preserves a newer value")
    func movedInPlace() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        var journal = MigrationJournal(destination: new.keychain)
        for item in try MigrationQuery(old.keychain.items).readItems() {
            try journal.write(PlannedCopy(original: item, key: "Skroob", value: bytes("12345")), removingOriginal: true)
        }
        try journal.removeOriginals()
        #expect(try new.string(forKey: "Skroob") == "12345")
        try new.setString("newer", forKey: "Skroob")
        journal.undo()
        #expect(try old.string(forKey: "Skroob") == "newer")
        #expect(try new.allKeys().isEmpty)
    }

    @Test("An item changed before its accessibility is changed in place fails the migration")
    func changedBeforeMovedInPlace() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        var journal = MigrationJournal(destination: new.keychain)
        let items = try MigrationQuery(old.keychain.items).readItems()
        try old.setString("newer", forKey: "Skroob")
        #expect(throws: MigrationError.removalFailed) {
            for item in items {
                try journal.write(PlannedCopy(original: item, key: "Skroob", value: bytes("12345")), removingOriginal: true)
            }
        }
        #expect(try old.string(forKey: "Skroob") == "newer")
    }

    private func addOriginals(_ accounts: [String]) throws {
        for account in accounts {
            try #require(RawItems.add(account: account, service: "old", value: bytes("value of \(account)")) == errSecSuccess)
        }
    }

    private func plannedCopies() throws -> [PlannedCopy] {
        try MigrationQuery(query(service: "old")).readItems().map { item in
            PlannedCopy(original: item, key: try #require(item.account as? String), value: try #require(item.value))
        }
    }

    private func values(service: String) throws -> [String: String] {
        var values: [String: String] = [:]
        for item in try RawItems.all() where item[kSecAttrService as String] as? String == service {
            let account = try #require(item[kSecAttrAccount as String] as? String)
            values[account] = String(decoding: try #require(item[kSecValueData as String] as? Data), as: UTF8.self)
        }
        return values
    }
}
