// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// Two keychains, as on two devices, and a path for a backup that both can access.
struct TwoKeychains {
    let old: LocalKeychain
    let new: LocalKeychain
    /// The folder of the second keychain.
    let newHome: String
    /// The path that `backUp` writes to; its folder contains nothing else.
    let backupPath: String

    static let password = "a password"

    static func with(_ body: (TwoKeychains) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            for name in ["old", "new", "stick"] {
                try FileManager.default.createDirectory(atPath: directory + "/" + name, withIntermediateDirectories: false)
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory + "/" + name)
            }
            let keychains = TwoKeychains(
                old: try .withCheapPasscode(home: directory + "/old", holder: .processMemory),
                new: try .withCheapPasscode(home: directory + "/new", holder: .processMemory), newHome: directory + "/new",
                backupPath: directory + "/stick/backup")
            defer {
                keychains.old.forgetKeys()
                keychains.new.forgetKeys()
            }
            try body(keychains)
        }
    }

    @discardableResult
    func backUp(password: String = password, replacing: Bool = false) throws -> BackupSummary {
        try old.createBackup(atPath: backupPath, password: Passcode(text: password), replacing: replacing)
    }

    @discardableResult
    func restore(password: String = password, dryRun: Bool = false) throws -> RestoreSummary {
        try new.restoreBackup(atPath: backupPath, password: Passcode(text: password), dryRun: dryRun)
    }

    /// The names of everything in the folder of the backup.
    var stick: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: URL(filePath: backupPath).deletingLastPathComponent().path)
        }
    }

    /// The number of files of the second keychain, without its policy; none before it is created.
    var newFileCount: Int {
        get throws { try FileSnapshot(of: newHome).names.count { $0 != "policy.json" } }
    }
}

extension LocalKeychain {
    /// All items as their program reads them, in the order of the accounts.
    func allItems() throws -> [KeychainItem] {
        try copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: true))
            .sorted { ($0.attributes.text(.account) ?? "") < ($1.attributes.text(.account) ?? "") }
    }
}

@Suite("Creating a portable backup")
struct CreateBackupTests {
    @Test("The summary contains the number of saved items, and of omitted items with the reason")
    func summary() throws {
        try TwoKeychains.with { keychains throws in
            for accessibility in ItemAccessibility.allCases where accessibility != .whenPasscodeSetThisDeviceOnly {
                try keychains.old.addItem(accessibility.rawValue, "secret", accessibility)
            }
            let summary = try keychains.backUp()
            #expect(summary.savedCount == 3 && summary.thisDeviceOnlyCount == 3)
            #expect(summary.constrainedCount == 0 && summary.unreadableCount == 0)
        }
    }

    @Test("The file is accessible only to its owner, and no other file remains")
    func mode() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.backUp()
            #expect(try FileManager.default.attributesOfItem(atPath: keychains.backupPath)[.posixPermissions] as? Int == 0o600)
            #expect(try keychains.stick == ["backup"])
        }
    }

    @Test("The file contains no name and no secret in plain text")
    func sealed() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem(Marker.account.rawValue, Marker.value.rawValue)
            try keychains.backUp(password: Marker.key.rawValue)
            let bytes = try Data(contentsOf: URL(filePath: keychains.backupPath))
            for marker in [Marker.account, .value, .key] { #expect(bytes.firstRange(of: Data(marker.rawValue.utf8)) == nil) }
        }
    }

    @Test("An existing file is not changed, unless replacement is requested")
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

    @Test("In both locked states nothing is written", arguments: [LockExtent.whenUnlocked, .everything])
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

    @Test("Without a keychain the backup fails, and no keychain is created")
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

    @Test("A password must have the minimum length of a passcode")
    func shortPassword() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            #expect(throws: KeychainFailure(.parameter, "")) { try keychains.backUp(password: "123") }
            #expect(try keychains.stick == [])
        }
    }

    @Test("Neither a backup nor a snapshot can replace the keychain's own files")
    func ownFiles() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            let report = try #require(try keychains.old.report().store)
            let store = try keychains.old.configuration().storePath
            let linked = URL(filePath: keychains.backupPath).deletingLastPathComponent().path + "/linked"
            try FileManager.default.createSymbolicLink(atPath: linked, withDestinationPath: try keychains.old.configuration().keyDirectory)
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

@Suite("A snapshot of a keychain")
struct SnapshotTests {
    @Test("A snapshot opens with the same key file, and contains the items at the time of the snapshot")
    func opens() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("of this device", "secret", .whenUnlockedThisDeviceOnly)
            try keychains.old.snapshot(toPath: keychains.backupPath, replacing: false)
            try keychains.old.addItem("later", "secret")
            #expect(try keychains.stick == ["backup"])
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o700], ofItemAtPath: URL(filePath: keychains.backupPath).deletingLastPathComponent().path)
            let keyDirectory = try keychains.old.configuration().keyDirectory
            let copy = LocalKeychain(home: keychains.newHome) { configuration in
                configuration.storePath = keychains.backupPath
                configuration.keyDirectory = keyDirectory
            }
            #expect(try copy.secret(of: "of this device") == "secret")
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try copy.secret(of: "later") }
        }
    }

    @Test("A snapshot can be taken while the keychain is locked, and is locked too")
    func locked() throws {
        try TwoKeychains.with { keychains throws in
            try keychains.old.addItem("account", "secret")
            try keychains.old.set("12345")
            try keychains.old.lock(.everything)
            try keychains.old.snapshot(toPath: keychains.backupPath, replacing: false)
            let keyDirectory = try keychains.old.configuration().keyDirectory
            let copy = LocalKeychain(home: keychains.newHome) { configuration in
                configuration.storePath = keychains.backupPath
                configuration.keyDirectory = keyDirectory
                configuration.keyHolder = .processMemory
            }
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try copy.secret(of: "account") }
        }
    }

    @Test("An existing file is not changed, unless replacement is requested")
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

    @Test("Without a keychain the snapshot fails")
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
