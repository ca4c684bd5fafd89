// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A class key that is temporarily unavailable does not make a row count as damaged", .blocking)
struct KeyFailureTests {
    private static let statuses: [KeychainStatus] = [.allocate, .internal, .notAvailable]

    /// Provides every key except those of `ak`.
    private struct FailingKeys: KeyProvider {
        let base: any KeyProvider
        let status: KeychainStatus

        var keybagGeneration: UInt64 { base.keybagGeneration }

        func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32 {
            try base.currentGeneration(for: accessibility)
        }

        func availability(of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading) -> KeyAvailability {
            base.availability(of: accessibility, generation: generation, lockEpoch: lockEpoch)
        }

        func withClassKey<Result>(
            for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
            _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
        ) throws(KeychainFailure) -> Result {
            guard accessibility != .whenUnlocked else { throw KeychainFailure(status, "not now") }
            return try base.withClassKey(for: accessibility, generation: generation, lockEpoch: lockEpoch, body)
        }

        func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider { self }
    }

    private enum Call: String, CaseIterable {
        case add, find, findSecret, findAll, update, delete, verify, backUp, restore
    }

    private static let attributes = ItemAttributes([.account: .string("ak"), .service: .string("test")])
    private static let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)

    private func make(_ call: Call, on keychain: SealedKeychain, backup: [BackupItem]) throws(KeychainFailure) {
        switch call {
        case .add:
            let control = AccessControl(.alwaysThisDeviceOnly)
            _ = try keychain.add(
                AddRequest(itemClass: .genericPassword, attributes: Self.attributes, secret: Data("new".utf8), accessControl: control))
        case .find: _ = try keychain.copyMatching(MatchRequest(query: Self.query))
        case .findSecret: _ = try keychain.copyMatching(MatchRequest(query: Self.query, includesSecrets: true, attributes: .none))
        case .findAll: _ = try keychain.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil))
        case .update:
            try keychain.update(
                UpdateRequest(query: Self.query, secret: Data("new".utf8), accessControl: AccessControl(.alwaysThisDeviceOnly)))
        case .delete: try keychain.delete(DeleteRequest(query: Self.query))
        case .verify: _ = try keychain.verify()
        case .backUp: _ = try keychain.forEachBackupItem { _ in }
        case .restore:
            _ = try keychain.restore { restore throws(KeychainFailure) in
                for item in backup { try restore(item) }
            }
        }
    }

    private func withStore(_ body: (LocalKeychain, OpenedStore) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("ak", "secret of ak", .whenUnlocked)
            try keychain.addItem("dk", "secret of dk", .alwaysThisDeviceOnly)
            try body(keychain, try OpenedStore(home: home))
        }
    }

    @Test("The call throws the key provider's error, and the row is unchanged", arguments: Call.allCases, statuses)
    private func untouched(_ call: Call, _ status: KeychainStatus) throws {
        try withStore { keychain, opened in
            var backup: [BackupItem] = []
            _ = try opened.keychain().forEachBackupItem { backup.append($0) }
            #expect(backup.count == 1)
            let failing = opened.keychain(keys: FailingKeys(base: opened.keybag, status: status))
            #expect(throws: KeychainFailure(status, "")) { try make(call, on: failing, backup: backup) }
            #expect(try keychain.secret(of: "ak") == "secret of ak")
            let report = try keychain.verify(purgingQuarantine: false)
            #expect(report.isSound && report.checkedCount == 2 && report.quarantinedCount == 0)
        }
    }

    @Test("With a keybag that has been replaced, verifying rows and listing a passcode's items throw an error that asks for reopening")
    func olderKeybag() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItem("ak", "secret of ak", .whenUnlocked)
            let older = try OpenedStore(home: home).keychain()
            #expect(try older.verify().isSound)
            try keychain.set("swordfish")
            try keychain.addItem("akpu", "secret of akpu", .whenPasscodeSetThisDeviceOnly)
            expectReopening { _ = try older.verify() }
            expectReopening { _ = try older.passcodeRemoval() }
        }
    }

    private func expectReopening(_ call: () throws -> Void) {
        #expect {
            try call()
        } throws: { error in
            (error as? KeychainFailure)?.requiresReopening == true
        }
    }
}
