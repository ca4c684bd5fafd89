// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Making a portable backup")
struct CreateBackupTests {
    @Test("It tells how many items were saved, and what stayed behind and why")
    func summary() throws {
        try TwoKeychains.with { keychains throws in
            for accessibility in Accessibility.allCases where accessibility != .whenPasscodeSetThisDeviceOnly {
                try keychains.old.addItem(accessibility.rawValue, "secret", accessibility)
            }
            let summary = try keychains.backUp()
            #expect(summary.savedCount == 3 && summary.thisDeviceOnlyCount == 3)
            #expect(summary.constrainedCount == 0 && summary.unreadableCount == 0)
        }
    }

    @Test("The file is for its owner alone, and nothing else is left beside it")
    func mode() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.backUp()
            #expect(try FileManager.default.attributesOfItem(atPath: keychains.backupPath)[.posixPermissions] as? Int == 0o600)
            #expect(try keychains.stick == ["backup"])
        }
    }

    @Test("No name and no secret shows in the file")
    func sealed() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem(Marker.account.rawValue, Marker.value.rawValue)
            try keychains.backUp(password: Marker.key.rawValue)
            let bytes = try Data(contentsOf: URL(filePath: keychains.backupPath))
            for marker in [Marker.account, .value, .key] { #expect(bytes.firstRange(of: Data(marker.rawValue.utf8)) == nil) }
        }
    }

    @Test("A file that is there is left as it is, unless it is to be replaced")
    func existing() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try Data("precious".utf8).write(to: URL(filePath: keychains.backupPath))
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try keychains.backUp() }
            #expect(try Data(contentsOf: URL(filePath: keychains.backupPath)) == Data("precious".utf8))
            try keychains.backUp(replacing: true)
            #expect(try keychains.restore().addedCount == 1)
            #expect(try keychains.stick == ["backup"])
        }
    }

    @Test("Locked, in either way, nothing is written", arguments: [LockExtent.whenUnlocked, .everything])
    func locked(_ extent: LockExtent) throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret", .always)
            try keychains.old.set("12345")
            try keychains.old.lock(extent)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try keychains.backUp() }
            #expect(try keychains.stick == [])
            try keychains.old.unlock(with: "12345")
            #expect(try keychains.backUp().savedCount == 1)
        }
    }

    @Test("Where there is no keychain there is nothing to save, and none is made")
    func nothingThere() throws {
        try TwoKeychains.with { keychains throws in
            #expect(throws: KeychainFailure(.itemNotFound, "")) {
                try keychains.new.createBackup(
                    atPath: keychains.backupPath, password: Passcode(text: TwoKeychains.password), replacing: false)
            }
            #expect(try keychains.stick == [])
            #expect(try keychains.newFileCount == 0)
        }
    }

    @Test("A password must be as long as a passcode must be")
    func shortPassword() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            #expect(throws: KeychainFailure(.parameter, "")) { try keychains.backUp(password: "123") }
            #expect(try keychains.stick == [])
        }
    }

    @Test("It never takes the place of the keychain's own files, nor does a snapshot")
    func ownFiles() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            let report = try #require(try keychains.old.report().store)
            let store = keychains.old.configuration.storePath
            let linked = URL(filePath: keychains.backupPath).deletingLastPathComponent().path + "/linked"
            try FileManager.default.createSymbolicLink(atPath: linked, withDestinationPath: keychains.old.configuration.keyDirectory)
            let names = [store, store + "-wal", store + "-shm", report.protectorLocation, linked + "/new"]
            for path in names {
                #expect(throws: KeychainFailure(.parameter, ""), "\(path)") {
                    try keychains.old.createBackup(atPath: path, password: Passcode(text: TwoKeychains.password), replacing: true)
                }
                #expect(throws: KeychainFailure(.parameter, ""), "\(path)") { try keychains.old.snapshot(toPath: path, replacing: true) }
            }
            #expect(try keychains.old.secret(of: "account") == "secret")
        }
    }
}
