// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore

/// What there is to say about a keychain without touching it: for `valet status`.
package struct KeychainReport: Sendable {
    package struct Store: Sendable {
        package let id: StoreID
        package let itemCount: Int
        package let quarantinedCount: Int
        package let keybagGeneration: UInt64
        /// One copy of two is damaged: the other serves.
        package let damagedKeybagCopyCount: Int
        package let protector: DeviceProtectorKind
        /// Where the protector keeps the device secret.
        package let protectorLocation: String
        /// What the chip says of itself, when it was asked; nil with another protector.
        package let chip: Chip?
        package let hasRecoveryKey: Bool
        /// A key file that stayed when the keychain was moved to another protector: it opens copies from before that.
        package let leftoverKeyFile: String?
        /// Old bytes of the database may still be in its write-ahead log until a later opening scrubs them.
        package let isScrubPending: Bool
        package let session: SessionStatus
        /// Rows under a class key from before the last change of keys: the next unlock seals them anew.
        package let pendingRewrapCount: Int
    }

    package enum Chip: Sendable {
        case status(SealingDeviceStatus)
        /// It is another chip, or was cleared: the keychain is open only until the system restarts.
        case other(SealingDeviceStatus)
        /// It did not answer, though the keychain is open: its secret is held until the system restarts.
        case silent(String)
    }

    package let storePath: String
    /// Nil: there is no keychain yet; the first write makes one.
    package let store: Store?
    /// Whether keys stay out of swap: false once the kernel refused to lock memory for them.
    package let isKeyMemoryLocked: Bool
    package let applicationIdentifier: String
    package let accessGroups: [String]
}

extension LocalKeychain {
    /// Looks, and creates nothing; a chip is asked only when `asksChip`.
    ///
    /// Throws what opening throws when the keychain is there and cannot be used.
    package func report(asksChip: Bool = false) throws(KeychainFailure) -> KeychainReport {
        let store: KeychainReport.Store?
        do throws(KeychainFailure) {
            store = try naming { () throws(KeychainFailure) in
                try access.performOnCurrentKeybag { opened throws(KeychainFailure) in try describe(opened, asksChip: asksChip) }
            }
        } catch  where error.status == .itemNotFound {
            store = nil
        }
        return KeychainReport(
            storePath: configuration.storePath, store: store, isKeyMemoryLocked: SecretArena.isFullyLocked,
            applicationIdentifier: entitlements.applicationIdentifier, accessGroups: entitlements.accessGroups
        )
    }

    private func describe(
        _ opened: OpenKeychain<SQLiteItemStore>, asksChip: Bool
    ) throws(KeychainFailure) -> KeychainReport.Store {
        let (itemCount, quarantinedCount) = try opened.store.read { reading throws(KeychainFailure) in
            (try reading.itemCount(), try reading.quarantinedRows().count)
        }
        return KeychainReport.Store(
            id: opened.store.storeID, itemCount: itemCount, quarantinedCount: quarantinedCount,
            keybagGeneration: opened.keybag.keybagGeneration, damagedKeybagCopyCount: opened.keybag.damagedCopyCount,
            protector: opened.protector.kind, protectorLocation: opened.protector.location(for: opened.store.storeID),
            chip: asksChip ? Self.chip(of: opened) : nil, hasRecoveryKey: opened.keybag.hasRecoveryKey,
            leftoverKeyFile: leftoverKeyFile(of: opened),
            isScrubPending: try opened.store.isScrubPending(), session: try opened.sessionStatus(),
            pendingRewrapCount: try pendingRewrapCount(opened)
        )
    }

    private static func chip(of opened: OpenKeychain<SQLiteItemStore>) -> KeychainReport.Chip? {
        guard let protector = opened.protector as? TPMProtector else { return nil }
        do throws(SealingFailure) {
            let status = try protector.device.status()
            return try protector.isOfPresentChip() ? .status(status) : .other(status)
        } catch {
            return .silent(KeychainFailure(error).reason)
        }
    }

    private func leftoverKeyFile(of opened: OpenKeychain<SQLiteItemStore>) -> String? {
        guard opened.protector.kind != .keyFile else { return nil }
        return ProtectorSelection(configuration: configuration).keyFile.leftover(of: opened.store.storeID)
    }

    private func pendingRewrapCount(_ opened: OpenKeychain<SQLiteItemStore>) throws(KeychainFailure) -> Int {
        guard opened.keybag.isPasscodeSet, opened.keybag.holdsOlderGenerations else { return 0 }
        return try opened.store.read { reading throws(KeychainFailure) in
            try reading.rowCount(underPasscodeKeysBelow: opened.keybag.currentPasscodeGeneration)
        }
    }

    /// Authenticates every row, of all programs, and asks the database about its structure.
    ///
    /// Purges only when told to.
    package func verify(purgingQuarantine: Bool) throws(KeychainFailure) -> VerificationReport {
        do throws(KeychainFailure) {
            let report = try naming { () throws(KeychainFailure) in
                try access.performOnCurrentKeybag { opened throws(KeychainFailure) in
                    try Self.verify(opened, purgingQuarantine: purgingQuarantine)
                }
            }
            return report
        } catch {
            guard error.isDamage else { throw error }
            throw namingDamage(error)
        }
    }

    /// A store may be too damaged to be opened, and it can still be told where.
    private func namingDamage(_ failure: KeychainFailure) -> KeychainFailure {
        let damage = try? SQLiteItemStore.damage(at: configuration.storePath, options: configuration.storeOptions)
        return damage?.description.map(failure.prefixed(by:)) ?? failure
    }

    private static func verify(
        _ opened: OpenKeychain<SQLiteItemStore>, purgingQuarantine: Bool
    ) throws(KeychainFailure) -> VerificationReport {
        var report = VerificationReport()
        var unfinished: KeychainFailure?
        do throws(KeychainFailure) {
            report = try opened.keychain.verify(underAnyKeybag: !opened.isKeybagCurrent)
        } catch {
            // Where a page is damaged, the file's own problems tell more.
            guard error.isDamage else { throw error }
            unfinished = error
        }
        report.structuralProblems = try opened.store.integrityProblems()
        if !report.structuralProblems.isEmpty { report.hasRefusedPages = try opened.store.hasDamagedPages() }
        if let unfinished { report.structuralProblems.append("not all items could be looked at: \(unfinished.reason)") }
        report.damagedKeybagCopyCount = opened.keybag.damagedCopyCount
        // The same in other words; where both copies open, one is not what was written all the same.
        if let index = report.structuralProblems.firstIndex(of: SQLiteItemStore.differingKeybagCopies) {
            report.structuralProblems.remove(at: index)
            report.damagedKeybagCopyCount = max(1, report.damagedKeybagCopyCount)
        }
        if !opened.isKeybagCurrent {
            report.structuralProblems.append("the keybag is not the one stored last: items can be read, not written")
        }
        // What could not all be looked at is left as it is.
        if purgingQuarantine, unfinished == nil, report.damagedPageRowCount == 0 { _ = try opened.keychain.purgeQuarantine() }
        return report
    }
}
