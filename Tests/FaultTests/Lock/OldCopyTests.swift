// SPDX-License-Identifier: Apache-2.0
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

@Suite("A copy of store and key file that was taken before a passcode was set")
struct OldCopyTests {
    /// What became of rows that somebody tried to open.
    private struct Attempt {
        var opened: Set<String> = []
        var refusedCount = 0
    }

    /// Tries every class key of an old keybag on every row of a store, with what any keychain program has for it.
    private static func openRows(of present: OpenedStore, withKeysOf old: OpenedStore) throws -> Attempt {
        var attempt = Attempt()
        let keybag = old.keybag
        try present.store.read { reading throws(KeychainFailure) in
            try reading.forEachRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
                var accounts: Set<String> = []
                for generation in 1...max(row.header.classKeyGeneration, keybag.currentPasscodeGeneration) {
                    let account = try? keybag.withClassKey(for: row.header.accessibility, generation: generation) {
                        (key: borrowing ClassKey) throws(KeychainFailure) in
                        // Under the row's own number: the key, and not its name, decides.
                        // The bytes are copied within the closure.
                        let copy = try unsafe key.secret.withBytes { (bytes) throws(KeychainFailure) in
                            try unsafe SecretBytes(copying: bytes)
                        }
                        let renamed = ClassKey(
                            accessibility: row.header.accessibility, generation: row.header.classKeyGeneration, secret: copy)
                        return try keybag.cipher.open(
                            row, includingSecret: true, with: ConstraintKeys(), under: renamed
                        ).attributes.text(.account) ?? ""
                    }
                    if let account { accounts.insert(account) }
                }
                attempt.opened.formUnion(accounts)
                if accounts.isEmpty { attempt.refusedCount += 1 }
                return .proceed
            }
        }
        return attempt
    }

    @Test("It opens what it held, and of the store as it is now nothing that the passcode protects")
    func opensNothingNewer() throws {
        try withLocalKeychain { keychain, home in
            try withTemporaryDirectory(inMemory: true) { directory in
                let before = try LocalKeychain.cheaplyUnlocked(home: home).addItemOfEachClass("old ")
                let copy = directory + "/copy"
                try FileManager.default.copyItem(atPath: home, toPath: copy)

                try keychain.set("swordfish")
                try keychain.addItemOfEachClass("new ", includingBoundToPasscode: true)
                try keychain.updateItem("old ak", to: "changed")

                let old = try OpenedStore(home: copy)
                #expect(try Self.openRows(of: old, withKeysOf: old).opened == Set(before.keys), "the attempt must be able to succeed")
                #expect(try LocalKeychain(home: copy).secrets() == before)

                // Rewrapped ones count as new. Those that no passcode protects show that the attempt can succeed here too.
                let attempt = try Self.openRows(of: OpenedStore(home: home), withKeysOf: old)
                #expect(attempt.opened == ["old dk", "old dku", "new dk", "new dku"])
                #expect(attempt.refusedCount == 9)
            }
        }
    }

    @Test("Its keybag, put back into the store as it is now, opens nothing that the passcode protects")
    func keybagPutBack() throws {
        try withLocalKeychain { keychain, home in
            try withTemporaryDirectory(inMemory: true) { directory in
                try LocalKeychain.cheaplyUnlocked(home: home).addItemOfEachClass()
                let copy = directory + "/copy"
                try FileManager.default.copyItem(atPath: home, toPath: copy)
                do {
                    let setting = try LocalKeychain.cheaplyUnlocked(home: home)
                    try setting.set("swordfish")
                    try setting.lock(.everything)
                }
                try RawDatabase(home + "/keychain.db").execute(
                    """
                    ATTACH '\(copy)/keychain.db' AS old; BEGIN; \
                    UPDATE keybag SET bytes = (SELECT bytes FROM old.keybag); \
                    UPDATE keybag_copy SET bytes = (SELECT bytes FROM old.keybag_copy); COMMIT
                    """)
                #expect(try keychain.secret(of: "dk") == "secret of dk")
                for account in ["ak", "aku", "ck", "cku"] {
                    #expect(throws: KeychainFailure(.notAvailable, "")) { try keychain.secret(of: account) }
                }
                // Nothing can be written under it either, so nothing can be lost.
                #expect(throws: KeychainFailure(.notAvailable, "")) { try keychain.addItem("new", "new") }
                #expect(try keychain.verify(purgingQuarantine: false).isSound == false)
            }
        }
    }
}
