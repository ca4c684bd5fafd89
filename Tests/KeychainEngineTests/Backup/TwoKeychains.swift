// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// Two keychains, as on two devices, and a place for a backup that can be reached from both.
struct TwoKeychains {
    let old: LocalKeychain
    let new: LocalKeychain
    /// The folder of the second one.
    let newHome: String
    /// Where `backUp` writes; its folder holds nothing else.
    let backupPath: String

    static let password = "a password"

    static func with(_ body: (TwoKeychains) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            for name in ["old", "new", "stick"] {
                try FileManager.default.createDirectory(atPath: directory + "/" + name, withIntermediateDirectories: false)
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory + "/" + name)
            }
            let keychains = TwoKeychains(
                old: try .cheaplyUnlocked(home: directory + "/old", holder: .processMemory),
                new: try .cheaplyUnlocked(home: directory + "/new", holder: .processMemory), newHome: directory + "/new",
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

    /// How many files the second keychain has; none before it is made, but for its policy.
    var newFileCount: Int {
        get throws { try FileSnapshot(of: newHome).names.count { $0 != "policy.json" } }
    }
}

extension LocalKeychain {
    /// Every item, as its program sees it, in the order of the accounts.
    func allItems() throws -> [KeychainItem] {
        try copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: true))
            .sorted { ($0.attributes.text(.account) ?? "") < ($1.attributes.text(.account) ?? "") }
    }
}
