// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Damaged rows", .blocking)
struct DamagedRowTests {
    /// Columns to damage, and whether the account can still be read.
    static let damages: [(column: String, isAccountKnown: Bool)] = [
        ("sealed_secret", true), ("sealed_attributes", false), ("wrapped_item_key", false), ("revision", false),
    ]

    /// A keychain of three items, of which the second is damaged.
    private func withDamagedRow(_ column: String, _ body: (_ home: String) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
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
        "Verification reports the row, by account if that can be read; reading it fails, and other items are readable",
        arguments: damages)
    func named(_ column: String, isAccountKnown: Bool) throws {
        try withDamagedRow(column) { home in
            let keychain = LocalKeychain(home: home)
            let report = try keychain.verify(purgingQuarantine: false)
            #expect(report.findings.count == 1 && report.checkedCount == 3)
            #expect(report.findings.first?.account == (isAccountKnown ? "account 2" : nil))
            #expect(!report.isSound)
            #expect(throws: KeychainFailure(.decode, "")) { try keychain.secret(of: "account 2") }
            for number in [1, 3] { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
        }
    }

    @Test("A damaged row that is replaced or deleted is quarantined until the quarantine is purged", arguments: [true, false])
    func setAside(_ isStoredOver: Bool) throws {
        try withDamagedRow("sealed_attributes") { home in
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

    @Test("A backup contains the other items, and counts the damaged one as unreadable")
    func leftBehind() throws {
        try withDamagedRow("sealed_secret") { home in
            let path = home + "/backup"
            let password = "a password"
            let summary = try LocalKeychain.withCheapPasscode(home: home).createBackup(
                atPath: path, password: Passcode(text: password), replacing: false)
            #expect(summary.savedCount == 2 && summary.unreadableCount == 1)
            let new = LocalKeychain(home: home + "/new")
            #expect(try new.restoreBackup(atPath: path, password: Passcode(text: password), dryRun: false).addedCount == 2)
            // Restoring into the damaged keychain leaves the other items unchanged.
            let restored = try LocalKeychain(home: home).restoreBackup(atPath: path, password: Passcode(text: password), dryRun: false)
            #expect(restored.unchangedCount == 2)
        }
    }

    @Test("Restoring an earlier backup repairs the item, and quarantines the damaged row")
    func restored() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let (home, path, password) = (directory + "/home", directory + "/backup", "a password")
            try Self.addThree(home)
            _ = try LocalKeychain.withCheapPasscode(home: home).createBackup(
                atPath: path, password: Passcode(text: password), replacing: false)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET sealed_secret = zeroblob(9) WHERE number = 2")
            let keychain = LocalKeychain(home: home)
            let summary = try keychain.restoreBackup(atPath: path, password: Passcode(text: password), dryRun: false)
            #expect(summary.addedCount == 1 && summary.unchangedCount == 2)
            #expect(try keychain.secret(of: "account 2") == "secret 2")
            #expect(try keychain.report().store?.quarantinedCount == 1)
        }
    }

    @Test("Swapped secrets of two rows cannot be read")
    func swapped() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
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

@Suite("Rows edited by SQL", .blocking)
struct EditedRowTests {
    struct Edit: Sendable, CustomTestStringConvertible {
        let column: String
        let value: String
        /// Searches use the column, so the item may be missing from the results, as if the row had been removed.
        var isSearchedBy = false

        var testDescription: String { "\(column) = \(value)" }
    }

    static let edits: [Edit] = [
        Edit(column: "class", value: "2", isSearchedBy: true), Edit(column: "class", value: "77", isSearchedBy: true),
        Edit(column: "id", value: "randomblob(16)"),
        Edit(column: "format_version", value: "0"), Edit(column: "format_version", value: "2"),
        Edit(column: "accessibility", value: "8"), Edit(column: "accessibility", value: "99"),
        Edit(column: "class_key_generation", value: "class_key_generation + 1"),
        Edit(column: "is_synchronizable", value: "1", isSearchedBy: true), Edit(column: "is_tombstone", value: "1", isSearchedBy: true),
        Edit(column: "service_digest", value: "randomblob(16)", isSearchedBy: true),
        Edit(column: "account_digest", value: "randomblob(16)", isSearchedBy: true),
        Edit(column: "remaining_key_digest", value: "randomblob(16)", isSearchedBy: true),
        Edit(column: "access_group_digest", value: "randomblob(16)", isSearchedBy: true),
        Edit(column: "revision", value: "randomblob(16)"), Edit(column: "attribute_digests", value: "x'01'"),
        Edit(column: "constraints", value: "x'0103'"), Edit(column: "wrapped_item_key", value: "randomblob(40)"),
        Edit(column: "sealed_attributes", value: "randomblob(length(sealed_attributes))"),
        Edit(column: "sealed_secret", value: "randomblob(length(sealed_secret))"), Edit(column: "sealed_secret", value: "x''"),
    ]

    private static func withEdit(
        _ sql: String, stamps: Bool, _ body: (_ keychain: LocalKeychain) throws -> Void
    ) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = directory + "/home"
            do {
                let keychain = LocalKeychain(home: home)
                for number in 1...3 { try keychain.addItem("account \(number)", "secret \(number)") }
            }
            try RawDatabase(home + "/keychain.db", stamps: stamps).execute(sql)
            try body(LocalKeychain(home: home))
        }
    }

    @Test(
        "With valid page checksums, no wrong secret is read, verification reports the row, and other items are readable",
        arguments: edits)
    func stamped(_ edit: Edit) throws {
        try Self.withEdit("UPDATE items SET \(edit.column) = \(edit.value) WHERE number = 2", stamps: true) { keychain throws in
            do throws(KeychainFailure) {
                let secret = try keychain.secret(of: "account 2")
                #expect(secret == "secret 2")
            } catch {
                let isHonest = error.status != .itemNotFound || edit.isSearchedBy
                #expect(isHonest, "\(error)")
            }
            for number in [1, 3] { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
            #expect(try !keychain.verify(purgingQuarantine: false).isSound)
        }
    }

    @Test("With invalid page checksums, the written pages are rejected and reported", arguments: edits)
    func unstamped(_ edit: Edit) throws {
        try Self.withEdit("UPDATE items SET \(edit.column) = \(edit.value) WHERE number = 2", stamps: false) { keychain throws in
            for number in 1...3 {
                let failure = #expect(throws: KeychainFailure.self) { try keychain.secret(of: "account \(number)") }
                // `.decode` if the index is readable and shows that the item exists, `.notAvailable` if it is damaged too.
                let isHonest = failure?.status == .decode || failure?.status == .notAvailable
                #expect(isHonest && failure?.isDamage == true, "\(String(describing: failure))")
            }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("account 4", "secret 4") }
            #expect(failure?.status == .notAvailable && failure?.cause != .outcomeUnknown)
            let verified = Result { () throws(KeychainFailure) in try keychain.verify(purgingQuarantine: false).structuralProblems }
            switch verified {
            case .success(let problems): #expect(problems.contains { $0.damagedPage != nil }, "\(problems)")
            case .failure(let failure): #expect(failure.isDamage, "\(failure)")
            }
        }
    }

    @Test("The sealed columns of one row cannot be read in another")
    func mixed() throws {
        let columns = ["revision", "wrapped_item_key", "sealed_attributes", "sealed_secret"]
        let assignments = columns.map { "\($0) = (SELECT \($0) FROM items WHERE number = 1)" }.joined(separator: ", ")
        try Self.withEdit("UPDATE items SET \(assignments) WHERE number = 2", stamps: true) { keychain throws in
            #expect(throws: KeychainFailure(.decode, "")) { try keychain.secret(of: "account 2") }
            #expect(try keychain.secret(of: "account 1") == "secret 1")
            #expect(try keychain.verify(purgingQuarantine: false).findings.count == 1)
        }
    }

    @Test("Two rows with swapped primary keys cannot be read")
    func underEachOthersKeys() throws {
        let sql = """
            CREATE TEMP TABLE held AS SELECT number, account_digest, service_digest, remaining_key_digest FROM items;
            UPDATE items SET account_digest = randomblob(16) WHERE number IN (1, 2);
            UPDATE items SET account_digest = (SELECT account_digest FROM held WHERE held.number = 3 - items.number),
                remaining_key_digest = (SELECT remaining_key_digest FROM held WHERE held.number = 3 - items.number)
                WHERE number IN (1, 2)
            """
        try Self.withEdit(sql, stamps: true) { keychain throws in
            for number in [1, 2] { #expect(throws: KeychainFailure(.decode, "")) { try keychain.secret(of: "account \(number)") } }
            #expect(try keychain.verify(purgingQuarantine: false).findings.count == 2)
        }
    }
}

@Suite("Access control altered in the file", .blocking)
struct TamperedConstraintTests {
    private static let protected = AccessControl(.whenPasscodeSetThisDeviceOnly, constraint: .userPresence)
    private static let forbidden = Authentication(interaction: .forbidden)

    private func query(_ account: String?) -> ItemQuery {
        var attributes = ItemAttributes([.service: .string("test")])
        if let account { attributes[.account] = .string(account) }
        return ItemQuery(itemClass: .genericPassword, attributes: attributes)
    }

    private func status(_ body: () throws(KeychainFailure) -> Void) -> KeychainStatus {
        do throws(KeychainFailure) {
            try body()
            return .success
        } catch {
            return error.status
        }
    }

    @Test("If the access control was removed, the next value is not stored without it")
    func stripped() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.set("swordfish")
            try keychain.addItem("safe", "12345", protectedBy: Self.protected)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET constraints = NULL")
            #expect(status { () throws(KeychainFailure) in _ = try keychain.secret(of: "safe") } == .decode)
            func update(_ control: AccessControl?) -> KeychainStatus {
                status { () throws(KeychainFailure) in
                    try keychain.update(UpdateRequest(query: query("safe"), secret: Data("new".utf8), accessControl: control))
                }
            }
            #expect(update(nil) == .decode)
            #expect(update(Self.protected) == .success)
            #expect(status { () throws(KeychainFailure) in _ = try keychain.secret(of: "safe", Self.forbidden) } == .interactionNotAllowed)
        }
    }

    @Test("A forged constraint that cannot be satisfied hides no other item")
    func forged() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.addItem("forged", "lost", .whenUnlocked)
            try keychain.addItem("sound", "sound", .whenUnlocked)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET constraints = x'0103' WHERE number = 1")
            let found = try keychain.copyMatching(MatchRequest(query: query(nil), limit: nil, includesSecrets: true))
            #expect(found.map(\.secret) == [Data("sound".utf8)])
            #expect(status { () throws(KeychainFailure) in _ = try keychain.secret(of: "forged") } != .itemNotFound)
        }
    }
}
