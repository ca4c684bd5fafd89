// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A row that somebody edited by SQL")
struct EditedRowTests {
    struct Edit: Sendable, CustomTestStringConvertible {
        let column: String
        let value: String
        /// A search goes by it, so that what is sought may be gone from where it is sought, as if the row had been removed.
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
        Edit(column: "tag", value: "randomblob(32)"), Edit(column: "sealed_attributes", value: "randomblob(length(sealed_attributes))"),
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

    @Test("By who keeps the checksums right: it gives no wrong secret, verifying tells, and the others are readable", arguments: edits)
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

    @Test("By who does not: the pages that were written are refused, and named", arguments: edits)
    func unstamped(_ edit: Edit) throws {
        try Self.withEdit("UPDATE items SET \(edit.column) = \(edit.value) WHERE number = 2", stamps: false) { keychain throws in
            for number in 1...3 {
                let failure = #expect(throws: KeychainFailure.self) { try keychain.secret(of: "account \(number)") }
                // An index that can still be read tells that the item is there; where it is damaged itself, nothing can be told.
                let isHonest = failure?.status == .decode || failure?.status == .notAvailable
                #expect(isHonest && failure?.isDamage == true, "\(String(describing: failure))")
            }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("account 4", "secret 4") }
            #expect(failure?.status == .notAvailable && failure?.reason.contains("unknown") == false)
            let verified = Result { () throws(KeychainFailure) in try keychain.verify(purgingQuarantine: false).structuralProblems }
            switch verified {
            case .success(let problems): #expect(problems.contains { $0.contains("of the file is damaged") }, "\(problems)")
            case .failure(let failure): #expect(failure.reason.contains("damaged pages"), "\(failure)")
            }
        }
    }

    @Test("All that is sealed of one row put into another gives neither")
    func mixed() throws {
        let columns = ["revision", "wrapped_item_key", "tag", "sealed_attributes", "sealed_secret"]
        let assignments = columns.map { "\($0) = (SELECT \($0) FROM items WHERE number = 1)" }.joined(separator: ", ")
        try Self.withEdit("UPDATE items SET \(assignments) WHERE number = 2", stamps: true) { keychain throws in
            #expect(throws: KeychainFailure(.decode, "")) { try keychain.secret(of: "account 2") }
            #expect(try keychain.secret(of: "account 1") == "secret 1")
            #expect(try keychain.verify(purgingQuarantine: false).findings.count == 1)
        }
    }

    @Test("Two rows under each other's keys give neither secret as the other's")
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
