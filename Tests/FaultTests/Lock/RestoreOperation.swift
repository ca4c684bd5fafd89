// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// Restoring a backup of items that are new, newer than those present, and older, as something to be killed in.
struct RestoreOperation: KillScenario {
    private static let password = "portable"
    private static let new = (0..<40).map { "new \($0)" }
    private static let changed = (0..<20).map { "changed \($0)" }
    private static let older = (0..<10).map { "older \($0)" }

    var request: String { "restore backup \(Self.password)" }

    func prepare(home: String) throws {
        let present = try LocalKeychain.cheaplyUnlocked(home: home)
        for account in Self.changed { try present.addItem(account, "present") }
        try withTemporaryDirectory(inMemory: true) { otherHome in
            let source = try LocalKeychain.cheaplyUnlocked(home: otherHome)
            for account in Self.new + Self.changed + Self.older { try source.addItem(account, "from the backup") }
            let summary = try source.createBackup(
                atPath: home + "/backup", password: try Passcode(text: Self.password), replacing: false)
            #expect(summary.savedCount == 70)
        }
        for account in Self.older { try present.addItem(account, "present") }
    }

    private static func items(isRestored: Bool) -> [String: String] {
        var items: [String: String] = [:]
        for account in changed { items[account] = isRestored ? "from the backup" : "present" }
        for account in older { items[account] = "present" }
        if isRestored { for account in new { items[account] = "from the backup" } }
        return items
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        let keychain = try LocalKeychain.cheaplyUnlocked(home: home)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
        let secrets = try keychain.secrets()
        let isRestored = secrets.count > Self.changed.count + Self.older.count
        #expect(secrets == Self.items(isRestored: isRestored), comment)
        _ = try keychain.restoreBackup(atPath: home + "/backup", password: try Passcode(text: Self.password), dryRun: false)
        #expect(try keychain.secrets() == Self.items(isRestored: true), comment)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
        return isRestored ? .done : .nothingDone
    }
}
