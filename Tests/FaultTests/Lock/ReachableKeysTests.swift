// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("Keys that are reachable without the passcode", .blocking)
struct ReachableKeysTests {
    private static let passcode = "swordfish"

    /// Every key that another process of the same user can read while the keychain is unlocked: those of the store, the key file, and
    /// the key holder, and every run of 32 bytes in them.
    private struct AttackerKeys {
        var keys: [[UInt8]] = []

        mutating func add(_ secret: borrowing SecretBytes) {
            // The bytes are copied within the closure.
            let bytes = unsafe secret.withBytes { unsafe Array($0) }
            add(everyStretchOf: bytes)
        }

        mutating func add(everyStretchOf bytes: [UInt8]) {
            guard bytes.count >= 32 else { return }
            for start in 0...(bytes.count - 32) { keys.append(Array(bytes[start..<(start + 32)])) }
        }
    }

    private func secret(_ bytes: [UInt8]) throws -> SecretBytes {
        // As many bytes as the buffer has.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    private func protectedRow(of opened: OpenedStore) throws -> SealedRow {
        var rows: [SealedRow] = []
        try opened.store.read { reading throws(KeychainFailure) in
            _ = try reading.forEachRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
                if row.header.constraints != nil { rows.append(row) }
                return .proceed
            }
        }
        return try #require(rows.first)
    }

    /// Whether any of the keys opens the row: as the private half of the presence key pair, as the node's key, or as the item key's.
    private func opens(_ row: SealedRow, with reach: AttackerKeys, _ opened: OpenedStore, _ classKeys: any KeyProvider) throws -> Bool {
        let header = row.header
        let record = try #require(ConstraintRecord(encoded: header.constraints ?? []))
        guard case .presence(_, let sealedKey) = record else { return false }
        let inner = try classKeys.withClassKey(for: header.accessibility, generation: header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            KeyWrapping.unwrap(twiceWrapped: row.wrappedItemKey, under: key.secret)
        }
        let innerWrapped = try #require(inner, "the class key of an unlocked keychain opens the outer wrapping")
        for bytes in reach.keys {
            let key = try secret(bytes)
            if KeyWrapping.unwrap(innerWrapped, under: key) != nil { return true }
            if try SealedBox.open(sealedKey, with: key, .presence, storeID: opened.store.storeID) != nil { return true }
        }
        return false
    }

    @Test("No key in the store, the key file, or the unlocked key holder opens an item that requires the passcode")
    func unlocked() throws {
        try withLocalKeychain(holder: .automatic) { keychain, home in
            try keychain.set(Self.passcode)
            try keychain.addItem("safe", "12345", protectedBy: AccessControl(.whenUnlocked, constraint: .devicePasscode))
            let opened = try OpenedStore(home: home)
            let holder = try opened.holder()
            // Without a keyring only the process that unlocked has the keys. Here they are derived from the passcode.
            let unlocked = try opened.unlockedKeys(Self.passcode)
            var reach = AttackerKeys()
            reach.add(opened.deviceSecret)
            for key in [KeyPurpose.deviceKey, .keybagAuthentication, .passcodeKey] {
                reach.add(try key.derive(from: opened.deviceSecret, storeID: opened.store.storeID))
            }
            for key in try opened.classKeys(of: unlocked).values { reach.add(everyStretchOf: key) }
            for slot in KeyHolderSlot.allCases {
                let held = try holder.forKeybag(opened.keybag.identity).load(slot, for: .inspection, lockEpoch: opened.store.lockEpoch())
                guard let held else { continue }
                reach.add(held.secret)
            }
            reach.add(everyStretchOf: opened.keybag.document.encoded)
            let row = try protectedRow(of: opened)
            reach.add(everyStretchOf: row.header.encoded(storeID: opened.store.storeID))
            #expect(reach.keys.count > 500)
            #expect(try !opens(row, with: reach, opened, unlocked))

            // With the key that the passcode releases the search succeeds, which proves that it works.
            reach.add(try unlocked.presenceRelease(for: []).privateKey)
            #expect(try opens(row, with: reach, opened, unlocked))
        }
    }
}

@Suite("A copy of store and key file from before the passcode was set", .blocking)
struct OldCopyTests {
    /// The result of trying to open every row.
    private struct Attempt {
        var opened: Set<String> = []
        var refusedCount = 0
    }

    /// Tries every class key of an old keybag on every row of a store.
    private static func openRows(of present: OpenedStore, withKeysOf old: OpenedStore) throws -> Attempt {
        var attempt = Attempt()
        let keybag = old.keybag
        try present.store.read { reading throws(KeychainFailure) in
            _ = try reading.forEachRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
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

    @Test("The copy's keys open its own items, and no passcode-protected item of the current store")
    func opensNothingNewer() throws {
        try withLocalKeychain { keychain, home in
            try withTemporaryDirectory(inMemory: true) { directory in
                let before = try LocalKeychain.withCheapPasscode(home: home).addItemOfEachClass("old ")
                let copy = directory + "/copy"
                try FileManager.default.copyItem(atPath: home, toPath: copy)

                try keychain.set("swordfish")
                try keychain.addItemOfEachClass("new ", includingBoundToPasscode: true)
                try keychain.updateItem("old ak", to: "changed")

                let old = try OpenedStore(home: copy)
                #expect(try Self.openRows(of: old, withKeysOf: old).opened == Set(before.keys), "the attempt must be able to succeed")
                #expect(try LocalKeychain(home: copy).secrets() == before)

                // Rewrapped items count as new. The items that no passcode protects prove that the attempt can succeed.
                let attempt = try Self.openRows(of: OpenedStore(home: home), withKeysOf: old)
                #expect(attempt.opened == ["old dk", "old dku", "new dk", "new dku"])
                #expect(attempt.refusedCount == 9)
            }
        }
    }

    @Test("The copy's keybag, restored into the current store, opens no passcode-protected item")
    func restoredKeybag() throws {
        try withLocalKeychain { keychain, home in
            try withTemporaryDirectory(inMemory: true) { directory in
                try LocalKeychain.withCheapPasscode(home: home).addItemOfEachClass()
                let copy = directory + "/copy"
                try FileManager.default.copyItem(atPath: home, toPath: copy)
                do {
                    let setting = try LocalKeychain.withCheapPasscode(home: home)
                    try setting.set("swordfish")
                    try setting.lock(.everything)
                }
                try RawDatabase(home + "/keychain.db").execute(
                    """
                    ATTACH '\(copy)/keychain.db' AS old; BEGIN; \
                    UPDATE keybag SET bytes = (SELECT bytes FROM old.keybag); \
                    UPDATE keybag_copy SET bytes = (SELECT bytes FROM old.keybag_copy); COMMIT
                    """)
                for account in ["dk", "ak", "aku", "ck", "cku"] {
                    #expect(throws: KeychainFailure(.notAvailable, "")) { try keychain.secret(of: account) }
                }
                // Nothing can be written under it either, so nothing can be lost.
                #expect(throws: KeychainFailure(.notAvailable, "")) { try keychain.addItem("new", "new") }
                #expect(throws: KeychainFailure(.notAvailable, "")) { try keychain.verify(purgingQuarantine: false) }
            }
        }
    }
}
