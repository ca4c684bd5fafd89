// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing
import Valet

@Suite("A keychain of format 1, whose pages have no checksums")
struct OldFormatTests {
    /// Brings the keychain that an older version of the library made, with three items, to `home`.
    private static func restore(to home: String) throws {
        let vectors = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "TestVectors/store-format-1").path
        let keys = home + "/keys"
        try FileManager.default.createDirectory(
            atPath: keys, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: home)
        for name in try FileManager.default.contentsOfDirectory(atPath: vectors) {
            let path = name.hasSuffix(".key") ? "\(keys)/\(name)" : "\(home)/\(name)"
            try FileManager.default.copyItem(atPath: "\(vectors)/\(name)", toPath: path)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
    }

    private static func formatVersion(_ home: String) throws -> Int {
        try RawDatabase(home + "/keychain.db").integer("PRAGMA user_version")
    }

    /// As the program that made it.
    private static func withValet(_ home: String, _ body: (Valet) throws -> Void) throws {
        let keychain = LocalKeychain(
            configuration: KeychainConfiguration(home: home), entitlements: Entitlements(applicationIdentifier: "valet"))
        let identifier = try #require(Identifier(nonEmpty: "format one"))
        try CurrentKeychain.with(keychain) { try body(Valet.valet(with: identifier, accessibility: .whenUnlocked)) }
    }

    @Test("It is readable, and reading leaves it as it is")
    func readable() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.restore(to: home)
            let before = try FileSnapshot(of: home)
            try Self.withValet(home) { valet throws in
                for number in 1...3 { #expect(try valet.string(forKey: "key \(number)") == "secret \(number)") }
                #expect(try valet.allKeys() == ["key 1", "key 2", "key 3"])
            }
            #expect(try FileSnapshot(of: home) == before)
        }
    }

    @Test("The first write gives every page a checksum, and keeps what is there")
    func upgraded() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.restore(to: home)
            try Self.withValet(home) { valet throws in
                #expect(try valet.string(forKey: "key 1") == "secret 1")
                try valet.setString("secret 4", forKey: "key 4")
            }
            #expect(try Self.formatVersion(home) == 2)
            #expect(try SQLiteItemStore.damage(at: home + "/keychain.db").description == nil)
            try Self.withValet(home) { valet throws in
                for number in 1...4 { #expect(try valet.string(forKey: "key \(number)") == "secret \(number)") }
            }
        }
    }

    @Test("Killed at any moment of that, it is a keychain of the one format or of the other, with everything in it")
    func killed() throws {
        let tally = try KillHarness(scenario: UpgradeOperation()).run(pointCount: 10, callCount: 40)
        #expect(FlushTrace.obstacle != nil || tally.callCount > 0, "no call was met")
        #expect(tally.outcomes[.nothingDone] != nil && tally.outcomes[.done] != nil, "\(tally)")
    }

    /// The first write to a keychain of format 1, as something to be killed in.
    private struct UpgradeOperation: KillScenario {
        var request: String { "add late ak" }

        var systemCalls: [String] { ["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink"] }

        func prepare(home: String) throws {
            do {
                let keychain = LocalKeychain(home: home)
                for number in 1...5 { try keychain.addItem("account \(number)", "secret \(number)") }
            }
            let path = home + "/keychain.db"
            try RawDatabase(path, stamps: false).execute("PRAGMA user_version = 1")
            var bytes = try Data(contentsOf: URL(filePath: path))
            for end in stride(from: 4_096, through: bytes.count, by: 4_096) { bytes.replaceSubrange(end - 16..<end, with: Data(count: 16)) }
            try bytes.write(to: URL(filePath: path))
        }

        func check(home: String, _ comment: Comment) throws -> KillOutcome {
            var outcome = KillOutcome.done
            do {
                let keychain = LocalKeychain(home: home)
                for number in 1...5 { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)", comment) }
                do throws(KeychainFailure) {
                    let secret = try keychain.secret(of: "late")
                    #expect(secret == "secret of late", comment)
                } catch {
                    #expect(error.status == .itemNotFound, "\(error), \(comment)")
                    outcome = .nothingDone
                    try keychain.addItem("late", "secret of late")
                }
                try keychain.addItem("later", "secret of later")
                #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
            }
            #expect(try OldFormatTests.formatVersion(home) == 2, comment)
            #expect(try SQLiteItemStore.damage(at: home + "/keychain.db").description == nil, comment)
            return outcome
        }
    }
}
