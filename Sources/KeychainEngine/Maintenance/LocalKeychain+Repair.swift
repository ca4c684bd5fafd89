// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// What giving a keychain's pages their checksums back comes to; counts alone.
package struct RepairReport: Sendable {
    package let pageCount: Int
    /// Pages that are refused because of their checksums.
    package let refusedPageCount: Int
    /// Changes stored last that damage in the -wal file has cut off: they would be left behind.
    package let unreachableChangeCount: Int
    /// Rows whose tag was checked.
    package internal(set) var itemCount = 0
    /// What is not as it was written: with any of them nothing is changed.
    package internal(set) var objections: [String] = []
    /// Where the file as it was is kept; nil while nothing was changed.
    package internal(set) var originalPath: String?
}

extension LocalKeychain {
    /// Gives the pages of the keychain's file new checksums if everything in them is shown to be as it was written, and goes on without
    /// changes that damage in the -wal file has cut off.
    ///
    /// Shown by SQLite's own check, the keybag's authentication and every row's tag, in a copy; the device secret is needed, and no
    /// passcode. Changes are left behind only if that is said. Unless `applying`, it is only told what would be done. Nil: nothing is refused.
    ///
    /// Throws `.itemNotFound` where there is no keychain, `.notAvailable` when another program has it open, and what opening throws when the
    /// protector does not give the device secret.
    package func repair(applying: Bool, discardingUnreachableChanges: Bool = false) throws(KeychainFailure) -> RepairReport? {
        let path = configuration.storePath
        return try naming { () throws(KeychainFailure) in
            guard try SQLiteItemStore.inspect(path, fileSystem: configuration.storeOptions.fileSystem) == .present else {
                throw KeychainFailure(.itemNotFound, "there is no keychain yet")
            }
            access.closeCurrent()
            let suffix = ".before-repair-" + Date().ISO8601Format(.init(dateSeparator: .omitted, timeSeparator: .omitted))
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

/// Looks at a copy of a keychain as nobody but its device could have made it.
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

    /// With no key holder: row tags need no class key.
    private func openKeybag(_ stored: StoredKeybag, storeID: StoreID) throws(KeychainFailure) -> OpenKeybag {
        var failure = KeychainFailure(.notAvailable, "both copies of the keybag are damaged; nothing was changed", isDamage: true)
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

/// Holds nothing: whoever looks at a copy must not touch what is held for the keychain itself.
private struct NoKeyHolder: KeyHolder {
    var kind: KeyHolderKind { .processMemory }

    func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder { self }

    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? { nil }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        throw KeychainFailure(.notAvailable, "nothing is held for a copy")
    }

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {}

    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {}

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) {}
}
