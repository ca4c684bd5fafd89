// SPDX-License-Identifier: Apache-2.0
import Contracts
import Crypto
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("An altered cost of a password", .blocking)
struct AlteredCostTests {
    static let password = "spaceballs"

    private func authentication() throws -> Authentication {
        let context = AuthenticationContext()
        let bytes = Array(Self.password.utf8)
        // The bytes are copied within the closure.
        context.setApplicationPassword(
            ApplicationPassword(try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }))
        return Authentication(interaction: .forbidden, context: context)
    }

    /// Doubles the cost in the constraint record of the only row: version (1), kind (1), salt (16), log2 N (1).
    private func raiseCost(_ home: String) throws {
        let database = try RawDatabase(home + "/keychain.db")
        var record = try database.blob("SELECT constraints FROM items")
        record[18] += 1
        let literal = record.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
        try database.execute("UPDATE items SET constraints = x'\(literal)'")
    }

    @Test("An item whose cost was altered is damaged before anything is derived, also without its secret")
    func row() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            let attributes = ItemAttributes([.account: .string("safe"), .service: .string("test")])
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: attributes, secret: Data("12345".utf8),
                    accessControl: AccessControl(.whenUnlocked, constraint: .applicationPassword), authentication: authentication()))
            let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
            for includesSecrets in [false, true] {
                let request = MatchRequest(query: query, includesSecrets: includesSecrets, authentication: try authentication())
                #expect(try keychain.copyMatching(request).count == 1)
            }
            try raiseCost(home)
            for includesSecrets in [false, true] {
                let request = MatchRequest(query: query, includesSecrets: includesSecrets, authentication: try authentication())
                // If the altered cost were used, the password would seem wrong.
                #expect(throws: KeychainFailure(.decode, "")) { _ = try keychain.copyMatching(request) }
            }
            #expect(throws: KeychainFailure(.decode, "")) {
                try keychain.update(
                    UpdateRequest(
                        query: query, changes: ItemAttributes([.comment: .string("new")]), authentication: authentication()))
            }
        }
    }

    /// A backup whose header names another cost, with a correct checksum: the magic (4), version (2), byte count (2), id (16), derivation
    /// (1), and salt (32) precede log2 N.
    private func raiseCost(ofBackup path: String, to exponent: UInt8) throws {
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[57] = exponent
        bytes.replaceSubrange(110..<118, with: Array(SHA256.hash(data: bytes[..<110]).prefix(8)))
        try bytes.write(to: URL(filePath: path))
    }

    @Test("A backup with a cost above the usual one is refused before anything is derived, unless the cost is accepted")
    func backup() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            // With the lowest cost, r is too small for 128 MiB.
            _ = try LocalKeychain.withCheapPasscode(home: home, policyMebibytes: 1)
            try keychain.addItem("Skroob", "12345")
            let path = home + "/backup"
            _ = try keychain.createBackup(atPath: path, password: Passcode(text: Self.password), replacing: false)
            func restore(acceptingCost: Bool) throws(KeychainFailure) -> RestoreSummary {
                try keychain.restoreBackup(
                    atPath: path, password: Passcode(text: Self.password), dryRun: true, acceptingCost: acceptingCost)
            }
            #expect(try restore(acceptingCost: false).unchangedCount == 1)
            // 128 MiB; the standard cost is 64 MiB.
            try raiseCost(ofBackup: path, to: 17)
            for check: () throws -> Void in [{ try keychain.checkBackup(atPath: path) }, { _ = try restore(acceptingCost: false) }] {
                let failure = #expect(throws: KeychainFailure.self) { try check() }
                #expect(failure?.cause == .costRefused && failure?.remedy == .acceptCost)
            }
            try keychain.checkBackup(atPath: path, acceptingCost: true)
            // The cost is derived, and the password is wrong with it.
            #expect(throws: KeychainFailure(.authFailed, "")) { _ = try restore(acceptingCost: true) }
        }
    }
}
