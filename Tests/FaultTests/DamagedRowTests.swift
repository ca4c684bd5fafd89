// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A row that was damaged in the file")
struct DamagedRowTests {
    /// What of a row may be damaged, and whether its account can still be told.
    static let damages: [(column: String, isAccountKnown: Bool)] = [
        ("sealed_secret", true), ("tag", true), ("sealed_attributes", false), ("wrapped_item_key", false), ("revision", false),
    ]

    /// A keychain of three items, of which the second is damaged.
    private func withDamage(_ column: String, _ body: (_ home: String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            try Self.addThree(home)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET \(column) = zeroblob(length(\(column))) WHERE number = 2")
            try body(home)
        }
    }

    private static func addThree(_ home: String) throws {
        let keychain = LocalKeychain(home: home)
        for number in 1...3 { try keychain.addItem("account \(number)", "secret \(number)") }
    }

    @Test(
        "Verifying names it, by its account if that can be told; asked for alone it is an error; the others are readable",
        arguments: damages)
    func named(_ column: String, isAccountKnown: Bool) throws {
        try withDamage(column) { home in
            let keychain = LocalKeychain(home: home)
            let report = try keychain.verify(purgingQuarantine: false)
            #expect(report.findings.count == 1 && report.checkedCount == 3)
            #expect(report.findings.first?.account == (isAccountKnown ? "account 2" : nil))
            #expect(!report.isSound)
            if column != "tag" {
                // The tag is for those who have no key; who has one need not look at it.
                #expect(throws: KeychainFailure(.decode, "")) { try keychain.secret(of: "account 2") }
            }
            for number in [1, 3] { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
        }
    }

    @Test("Stored over or deleted, it is set aside, and only purging lets it go", arguments: [true, false])
    func setAside(_ isStoredOver: Bool) throws {
        try withDamage("sealed_attributes") { home in
            let keychain = LocalKeychain(home: home)
            if isStoredOver {
                try keychain.addItem("account 2", "a new secret")
                #expect(try keychain.secret(of: "account 2") == "a new secret")
            } else {
                try keychain.deleteItem("account 2")
                #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychain.secret(of: "account 2") }
            }
            #expect(try keychain.report().store?.quarantinedCount == 1)
            #expect(try keychain.verify(purgingQuarantine: false).findings.isEmpty)
            #expect(try LocalKeychain(home: home).report().store?.quarantinedCount == 1)
            _ = try keychain.verify(purgingQuarantine: true)
            #expect(try LocalKeychain(home: home).report().store?.quarantinedCount == 0)
        }
    }

    @Test("It stays behind in a backup, which tells so and has the others")
    func leftBehind() throws {
        try withDamage("sealed_secret") { home in
            let path = home + "/backup"
            let password = "a password"
            let summary = try LocalKeychain(home: home).createBackup(atPath: path, password: Passcode(text: password), replacing: false)
            #expect(summary.savedCount == 2 && summary.unreadableCount == 1)
            let new = LocalKeychain(home: home + "/new")
            #expect(try new.restoreBackup(atPath: path, password: Passcode(text: password), dryRun: false).addedCount == 2)
            // Restored where it was damaged, the others are unchanged.
            let restored = try LocalKeychain(home: home).restoreBackup(atPath: path, password: Passcode(text: password), dryRun: false)
            #expect(restored.unchangedCount == 2)
        }
    }

    @Test("A backup from before the damage puts it right, and what was damaged is set aside")
    func putRight() throws {
        try withTemporaryDirectory { directory in
            let (home, path, password) = (directory + "/home", directory + "/backup", "a password")
            try Self.addThree(home)
            _ = try LocalKeychain(home: home).createBackup(atPath: path, password: Passcode(text: password), replacing: false)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET sealed_secret = zeroblob(9) WHERE number = 2")
            let keychain = LocalKeychain(home: home)
            let summary = try keychain.restoreBackup(atPath: path, password: Passcode(text: password), dryRun: false)
            #expect(summary.addedCount == 1 && summary.unchangedCount == 2)
            #expect(try keychain.secret(of: "account 2") == "secret 2")
            #expect(try keychain.report().store?.quarantinedCount == 1)
        }
    }

    @Test("Two rows whose secrets were swapped give neither")
    func swapped() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            try Self.addThree(home)
            try RawDatabase(home + "/keychain.db").execute(
                """
                CREATE TEMP TABLE held AS SELECT number, sealed_secret FROM items;
                UPDATE items SET sealed_secret = (SELECT sealed_secret FROM held WHERE held.number = 3 - items.number) WHERE number IN (1, 2)
                """)
            for number in [1, 2] {
                #expect(throws: KeychainFailure(.decode, "")) { try LocalKeychain(home: home).secret(of: "account \(number)") }
            }
            #expect(try LocalKeychain(home: home).verify(purgingQuarantine: false).findings.count == 2)
        }
    }
}
