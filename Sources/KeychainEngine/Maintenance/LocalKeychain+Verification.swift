// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore

extension LocalKeychain {
    /// Authenticates every row of every program and checks the structure of the database.
    ///
    /// With `purgingQuarantine` it also deletes the quarantined rows, provided that all rows could be read.
    /// Throws the errors of opening the keychain, and `.unimplemented` for a keychain in memory.
    package func verify(purgingQuarantine: Bool) throws(KeychainFailure) -> VerificationReport {
        let configuration = try configuration()
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in
                try Self.verify(opened, purgingQuarantine: purgingQuarantine)
            }
        } catch {
            guard error.isDamage else { throw error }
            // Even if the store is too damaged to be opened, the damaged places can be named.
            let damage = try? SQLiteItemStore.damage(at: configuration.storePath, options: configuration.storeOptions)
            throw damage?.description.map(error.addingContext(_:)) ?? error
        }
    }

    /// Returns the problems of the keychain's file, without authenticating its rows.
    ///
    /// Empty for a file that can be written. Throws as `verify(purgingQuarantine:)` does.
    package func structuralProblems() throws(KeychainFailure) -> [StructuralProblem] {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            let store = try opened.fileStore()
            // One intact copy of the keybag is enough, and a write needs no anchor.
            return try store.integrityProblems().filter { $0 != .keybagCopiesDiffer }
                + Self.stateProblems(of: store).filter { !$0.isOfAnchor }
        }
    }

    /// The problems of the state that authenticates the rows as a whole, and of its record in the anchor.
    private static func stateProblems(of store: SQLiteItemStore) throws(KeychainFailure) -> [StructuralProblem] {
        [
            try store.stateProblem(readingAllRows: true).map(StructuralProblem.unexpectedState),
            store.anchorRefusal.map(StructuralProblem.unusableAnchor),
        ]
        .compactMap(\.self)
    }

    /// Notes which damaged items synchronization restores.
    ///
    /// Best effort: a damaged ledger is reported as damage of the file.
    private static func noteItemsInCircle(in report: inout VerificationReport, of store: SQLiteItemStore) {
        do throws(KeychainFailure) {
            guard !report.findings.isEmpty, try store.isSynchronizing() else { return }
            let items = report.findings.filter { !$0.needsOtherKeys }.map(\.reference.id)
            let shared = try store.readLedger { ledger throws(KeychainFailure) in
                var shared: Set<ItemID> = []
                for item in items {
                    if let version = try ledger.liveVersion(shownBy: item), version.reference.origin != nil { shared.insert(item) }
                }
                return shared
            }
            for index in report.findings.indices where shared.contains(report.findings[index].reference.id) {
                report.findings[index].isInCircle = true
            }
        } catch {
            return
        }
    }

    private static func verify(_ opened: OpenKeychain, purgingQuarantine: Bool) throws(KeychainFailure) -> VerificationReport {
        let store = try opened.fileStore()
        var report = VerificationReport()
        var incompleteScan: KeychainFailure?
        do throws(KeychainFailure) {
            report = try opened.keychain.verify()
        } catch {
            // The check of the file's structure below reports a damaged page in more detail.
            guard error.isDamage else { throw error }
            incompleteScan = error
        }
        noteItemsInCircle(in: &report, of: store)
        report.structuralProblems = try store.integrityProblems()
        if !report.structuralProblems.isEmpty { report.hasRefusedPages = try store.hasDamagedPages() }
        if let incompleteScan { report.structuralProblems.append(.incomplete(.items, incompleteScan)) }
        report.damagedKeybagCopyCount = opened.keybag.damagedCopyCount
        // The copies of the keybag differ, so one of them is damaged even if both can be opened.
        if let index = report.structuralProblems.firstIndex(of: .keybagCopiesDiffer) {
            report.structuralProblems.remove(at: index)
            report.damagedKeybagCopyCount = max(1, report.damagedKeybagCopyCount)
        }
        report.structuralProblems += try stateProblems(of: store)
        // Nothing is deleted unless all rows could be read, and from no file that is not as it should be.
        let isFileSound = report.structuralProblems.allSatisfy(\.isOfAnchor)
        if purgingQuarantine, incompleteScan == nil, report.damagedPageRowCount == 0, isFileSound {
            _ = try opened.keychain.purgeQuarantine()
            report.isQuarantinePurged = true
        }
        return report
    }
}
