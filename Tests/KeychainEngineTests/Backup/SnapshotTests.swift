// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A snapshot of a keychain")
struct SnapshotTests {
    @Test("It opens with the same key file, and has what was there when it was taken")
    func opens() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("of this device", "secret", .whenUnlockedThisDeviceOnly)
            try keychains.old.snapshot(toPath: keychains.backupPath, replacing: false)
            try keychains.old.addItem("later", "secret")
            #expect(try keychains.stick == ["backup"])
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o700], ofItemAtPath: URL(filePath: keychains.backupPath).deletingLastPathComponent().path)
            let copy = LocalKeychain(home: keychains.newHome) { configuration in
                configuration.storePath = keychains.backupPath
                configuration.keyDirectory = keychains.old.configuration.keyDirectory
            }
            #expect(try copy.secret(of: "of this device") == "secret")
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try copy.secret(of: "later") }
        }
    }

    @Test("It can be taken while the keychain is locked: it opens nothing that is locked")
    func locked() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.old.set("12345")
            try keychains.old.lock(.everything)
            try keychains.old.snapshot(toPath: keychains.backupPath, replacing: false)
            let copy = LocalKeychain(home: keychains.newHome) { configuration in
                configuration.storePath = keychains.backupPath
                configuration.keyDirectory = keychains.old.configuration.keyDirectory
                configuration.keyHolder = .processMemory
            }
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try copy.secret(of: "account") }
        }
    }

    @Test("A file that is there is left as it is, unless it is to be replaced")
    func existing() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try Data("precious".utf8).write(to: URL(filePath: keychains.backupPath))
            #expect(throws: KeychainFailure(.duplicateItem, "")) {
                try keychains.old.snapshot(toPath: keychains.backupPath, replacing: false)
            }
            #expect(try Data(contentsOf: URL(filePath: keychains.backupPath)) == Data("precious".utf8))
            try keychains.old.snapshot(toPath: keychains.backupPath, replacing: true)
            #expect(try Data(contentsOf: URL(filePath: keychains.backupPath)).starts(with: Data("SQLite format 3".utf8)))
        }
    }

    @Test("Where there is no keychain there is nothing to copy")
    func nothingThere() throws {
        try TwoKeychains.with { keychains throws in
            #expect(throws: KeychainFailure(.itemNotFound, "")) {
                try keychains.new.snapshot(toPath: keychains.backupPath, replacing: false)
            }
            #expect(try keychains.stick == [])
            #expect(try keychains.newFileCount == 0)
        }
    }
}
