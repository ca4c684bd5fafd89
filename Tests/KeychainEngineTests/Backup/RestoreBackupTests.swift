// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Restoring a portable backup")
struct RestoreBackupTests {
    @Test("On a new device the items have the same references, attributes, dates and secrets")
    func newDevice() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("unlocked", "1", .whenUnlocked)
            try keychains.old.addItem("first unlock", "2", .afterFirstUnlock)
            try keychains.old.addItem("always", "3", .always)
            try keychains.old.addItem("large", String(repeating: "large ", count: 30_000))
            try keychains.old.addItem("changed", "before")
            try keychains.old.updateItem("changed", to: "after")
            try keychains.old.addItem("of this device", "4", .whenUnlockedThisDeviceOnly)
            try keychains.backUp()
            let summary = try keychains.restore()
            #expect(summary.addedCount == 5 && summary.replacedCount == 0 && summary.unchangedCount == 0 && summary.conflicts == [])
            let before = try keychains.old.allItems().filter { $0.attributes.text(.account) != "of this device" }
            let after = try keychains.new.allItems()
            #expect(after.map(\.reference) == before.map(\.reference))
            #expect(after.map(\.attributes) == before.map(\.attributes))
            #expect(after.map(\.secret) == before.map(\.secret))
        }
    }

    @Test("Restoring a second time changes nothing")
    func again() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.backUp()
            #expect(try keychains.restore().addedCount == 1)
            let summary = try keychains.restore()
            #expect(summary.unchangedCount == 1 && summary.addedCount == 0 && summary.replacedCount == 0 && summary.conflicts == [])
        }
    }

    @Test("Newer items in the keychain are kept and reported, older ones replaced with the same reference, missing ones added")
    func newerAndOlder() throws {
        try TwoKeychains.with { keychains throws in
            for account in ["changed here", "changed there", "deleted"] { try keychains.old.addItem(account, "first") }
            try keychains.backUp()
            try keychains.restore()
            try keychains.new.updateItem("changed here", to: "newer")
            try keychains.new.deleteItem("deleted")
            try keychains.old.updateItem("changed there", to: "second")
            let references = try keychains.new.allItems().map(\.reference)
            try keychains.backUp(replacing: true)

            let summary = try keychains.restore()
            #expect(summary.addedCount == 1 && summary.replacedCount == 1 && summary.unchangedCount == 0)
            #expect(summary.conflicts.map(\.account) == ["changed here"] && summary.conflicts.map(\.service) == ["test"])
            #expect(summary.conflicts.map(\.reason) == [.newerInKeychain])
            #expect(try keychains.new.secret(of: "changed here") == "newer")
            #expect(try keychains.new.secret(of: "changed there") == "second")
            #expect(try keychains.new.secret(of: "deleted") == "first")
            #expect(try keychains.new.allItems().map(\.reference).starts(with: references))
        }
    }

    @Test("A dry run reports the same and writes nothing, with or without a keychain")
    func dryRun() throws {
        try TwoKeychains.with { keychains throws in
            for account in ["one", "two"] { try keychains.old.addItem(account, "first") }
            try keychains.backUp()
            #expect(try keychains.restore(dryRun: true).addedCount == 2)
            #expect(try keychains.newFileCount == 0)
            try keychains.restore()
            try keychains.new.updateItem("one", to: "newer")
            try keychains.old.updateItem("two", to: "second")
            try keychains.old.addItem("three", "first")
            try keychains.backUp(replacing: true)
            let told = try keychains.restore(dryRun: true)
            #expect(try keychains.new.secret(of: "two") == "first")
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychains.new.secret(of: "three") }
            #expect(try keychains.restore() == told)
            #expect(told.addedCount == 1 && told.replacedCount == 1 && told.conflicts.count == 1)
        }
    }

    @Test("A wrong password restores nothing and creates no keychain")
    func wrongPassword() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.backUp()
            for dryRun in [false, true] {
                #expect(throws: KeychainFailure(.authFailed, "")) { try keychains.restore(password: "another", dryRun: dryRun) }
            }
            #expect(try keychains.newFileCount == 0)
        }
    }

    @Test("Nothing of a backup with a damaged end is restored")
    func damaged() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("first", "secret")
            try keychains.old.addItem("large", String(repeating: "x", count: 200_000))
            try keychains.backUp()
            var bytes = try Data(contentsOf: URL(filePath: keychains.backupPath))
            bytes[bytes.count - 1] ^= 1
            try bytes.write(to: URL(filePath: keychains.backupPath))
            try keychains.new.checkBackup(atPath: keychains.backupPath)
            #expect(throws: KeychainFailure(.decode, "")) { try keychains.restore() }
            try bytes.prefix(bytes.count - 60_000).write(to: URL(filePath: keychains.backupPath))
            #expect(throws: KeychainFailure(.decode, "")) { try keychains.restore() }
            #expect(try keychains.newFileCount == 0)
        }
    }

    @Test("Nothing is restored into a locked keychain", arguments: [LockExtent.whenUnlocked, .everything])
    func locked(_ extent: LockExtent) throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret", .always)
            try keychains.backUp()
            try keychains.new.addItem("there", "secret", .always)
            try keychains.new.set("12345")
            try keychains.new.lock(extent)
            for dryRun in [false, true] {
                #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try keychains.restore(dryRun: dryRun) }
            }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychains.new.secret(of: "account") }
            try keychains.new.unlock(with: "12345")
            #expect(try keychains.restore().addedCount == 1)
        }
    }

    @Test("Only the backup's password is needed, whatever the passcodes of the keychains")
    func passcodes() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.old.set("the old one")
            try keychains.new.set("the new one")
            try keychains.backUp()
            #expect(try keychains.restore().addedCount == 1)
            try keychains.new.lock(.everything)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try keychains.new.secret(of: "account") }
            try keychains.new.unlock(with: "the new one")
            #expect(try keychains.new.secret(of: "account") == "secret")
        }
    }

    @Test("A file that is not a backup has another error than a missing file")
    func noBackup() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.new.addItem("account", "secret")
            let path = keychains.backupPath
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychains.new.checkBackup(atPath: path) }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychains.restore() }
            try Data("something else".utf8).write(to: URL(filePath: path))
            #expect(throws: KeychainFailure(.decode, "")) { try keychains.new.checkBackup(atPath: path) }
            try Data().write(to: URL(filePath: path))
            #expect(throws: KeychainFailure(.decode, "")) { try keychains.new.checkBackup(atPath: path) }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try keychains.new.checkBackup(atPath: keychains.newHome) }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try keychains.new.checkBackup(atPath: "/dev/zero") }
            #expect(throws: KeychainFailure(.parameter, "")) {
                try keychains.new.checkBackup(atPath: keychains.new.configuration().storePath)
            }
        }
    }

    @Test("The store's file is rejected as a backup under every name, because closing it would drop its locks")
    func storeUnderAnotherName() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.new.addItem("account", "secret")
            try FileManager.default.linkItem(atPath: keychains.new.configuration().storePath, toPath: keychains.backupPath)
            #expect(throws: KeychainFailure(.parameter, "")) { try keychains.restore() }
        }
    }
}
