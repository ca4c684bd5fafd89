// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// The findings of a repair that recomputes page checksums.
package struct RepairReport: Sendable {
    package let pageCount: Int
    /// How many pages are refused because of their checksums.
    package let refusedPageCount: Int
    /// How many of the newest changes are unreachable because of damage in the -wal file.
    ///
    /// A repair discards them.
    package let unreachableChangeCount: Int
    /// How many rows were authenticated.
    package internal(set) var itemCount = 0
    /// The parts that were altered.
    ///
    /// If there are any, nothing is changed.
    package internal(set) var objections: [String] = []
    /// The path of the original file; nil if nothing was changed.
    package internal(set) var originalPath: String?
}

extension LocalKeychain {
    /// Recomputes the page checksums of the keychain's file if its content is proved to be unaltered, and discards changes
    /// that damage in the -wal file has made unreachable.
    ///
    /// The proof consists of SQLite's own check, the authentication of the keybag, and the tag of every row, in a copy of the file. It
    /// needs the device secret and no passcode.
    ///
    /// - Parameters:
    ///   - applying: Whether to change the file. Otherwise the report describes the changes without making them.
    ///   - discardingUnreachableChanges: Whether changes may be discarded. Otherwise a file with such changes is not repaired.
    /// - Returns: The findings; nil if no page is refused.
    /// - Throws: `.itemNotFound` if there is no keychain, `.notAvailable` if another program has it open, `.unimplemented` for a keychain
    ///   in memory, and the errors of opening the keychain if the protector does not release the device secret.
    package func repair(applying: Bool, discardingUnreachableChanges: Bool = false) throws(KeychainFailure) -> RepairReport? {
        let configuration = try configuration()
        let path = configuration.storePath
        return try addingContext { () throws(KeychainFailure) in
            guard try SQLiteItemStore.inspect(path, fileSystem: configuration.storeOptions.fileSystem) == .present else {
                throw KeychainFailure(.itemNotFound, "there is no keychain yet")
            }
            closeCurrent()
            let now = Date(timeIntervalSinceReferenceDate: SystemWallClock().now())
            let suffix = ".before-repair-" + now.ISO8601Format(.init(dateSeparator: .omitted, timeSeparator: .omitted))
            var found: RepairReport?
            let outcome = try StoreRepair(path, options: configuration.storeOptions).run(originalSuffix: suffix) {
                copy throws(KeychainFailure) in
                let report = try RepairVerification(configuration: configuration, entitlements: entitlements).report(on: copy)
                found = report
                return applying && report.objections.isEmpty && (discardingUnreachableChanges || report.unreachableChangeCount == 0)
            }
            if case .done(let original) = outcome { found?.originalPath = original }
            return found
        }
    }
}

/// Checks that only this device can have written the content of a copy of a keychain.
private struct RepairVerification {
    let configuration: KeychainConfiguration
    let entitlements: Entitlements

    func report(on copy: StoreRepair.Copy) throws(KeychainFailure) -> RepairReport {
        var report = RepairReport(
            pageCount: copy.pageCount, refusedPageCount: copy.refusedPageCount, unreachableChangeCount: copy.unreachableChangeCount)
        do throws(KeychainFailure) {
            let store = try SQLiteItemStore(openingAt: copy.path, options: configuration.storeOptions)
            defer { store.close() }
            try examine(store, into: &report)
        } catch {
            guard error.isDamage else { throw error }
            report.objections.append("not all of it can be read: \(error.reason)")
        }
        return report
    }

    private func examine(_ store: SQLiteItemStore, into report: inout RepairReport) throws(KeychainFailure) {
        let structuralCount = try store.integrityProblems().count
        if structuralCount > 0 { report.objections.append("\(structuralCount) problems in the structure of the file") }
        let stored = try store.keybag()
        let keybag = try openKeybag(stored, storeID: store.storeID)
        if keybag.damagedCopyCount > 0 { report.objections.append("\(keybag.damagedCopyCount) of the copies of the keybag") }
        let isCurrent = stored.generation == keybag.keybagGeneration
        if !isCurrent { report.objections.append("the keybag is not the one stored last") }
        let keychain = SealedKeychain(
            store: store, keys: keybag, cipher: keybag.cipher, clock: SystemWallClock(), entitlements: entitlements, log: EngineLog.warn)
        let rows = try keychain.verify(underAnyKeybag: !isCurrent)
        report.itemCount = rows.checkedCount
        let damagedCount = rows.findings.count + rows.damagedPageRowCount
        if damagedCount > 0 { report.objections.append("\(damagedCount) of \(rows.checkedCount) items") }
    }

    /// Opens the keybag without a key holder: the tags of rows need no class key.
    private func openKeybag(_ stored: StoredKeybag, storeID: StoreID) throws(KeychainFailure) -> OpenKeybag {
        var failure = KeychainFailure(
            .notAvailable, "both copies of the keybag are damaged; nothing was changed", subject: .keybag, cause: .damaged, isDamage: true)
        for hint in try KeybagDocument.protectorHints(in: stored.copies) {
            do throws(KeychainFailure) {
                let protector = try ProtectorSelection(configuration: configuration).protector(of: hint, holder: NoKeyHolder())
                let secret = try protector.deviceSecret(for: storeID)
                return try OpenKeybag(copies: stored.copies, storeID: storeID, deviceSecret: secret)
            } catch {
                failure = error
            }
        }
        throw failure
    }
}

/// A key holder without keys, so that the check of a copy does not affect the held keys of the keychain.
private struct NoKeyHolder: KeyHolder {
    var kind: KeyHolderKind { .processMemory }

    func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder { self }

    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch) throws(KeychainFailure) -> HeldSecret? { nil }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        throw KeychainFailure(.notAvailable, "nothing is held for a copy")
    }

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {}

    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {}

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) {}
}
