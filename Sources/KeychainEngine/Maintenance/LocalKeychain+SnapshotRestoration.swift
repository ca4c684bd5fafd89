// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore

/// The findings of a check of a snapshot.
package struct SnapshotReport: Sendable {
    /// How many items were authenticated.
    package internal(set) var itemCount = 0
    /// How many of them are damaged; restoring keeps them.
    package internal(set) var damagedItemCount = 0
    /// Whether the snapshot has a passcode.
    package internal(set) var isPasscodeSet = false
    /// Whether the passcode was set, changed, or removed since the snapshot was made, or may have been.
    package internal(set) var hasOtherPasscode = false
    /// Whether the keychain has a recovery key that does not open the snapshot.
    package internal(set) var lacksRecoveryKey = false
    /// Whether the snapshot has replaced the keychain.
    package internal(set) var isRestored = false
    /// The path of the keychain's previous file; nil if nothing was changed or there was none.
    package internal(set) var originalPath: String?

    /// Compares the keybag of the snapshot with that of the keychain, or with what the anchors tell about it if that cannot be read.
    fileprivate mutating func compare(_ findings: CopyCheck.Findings, withKeybag newest: KeybagDocument?) {
        isPasscodeSet = findings.keybag.isPasscodeSet
        guard let newest else {
            hasOtherPasscode = !findings.hasNewestKeybag
            return
        }
        hasOtherPasscode = !newest.hasSamePasscode(as: findings.keybag)
        lacksRecoveryKey = newest.hasRecoveryKey && !newest.hasSameRecoveryKey(as: findings.keybag)
    }
}

extension LocalKeychain {
    /// Replaces the keychain with a snapshot of it, after checking that only this device can have written the snapshot.
    ///
    /// Other processes may use the keychain meanwhile; they continue with the restored content. The check needs the device secret and no
    /// passcode. The keychain itself may be damaged or gone.
    ///
    /// - Parameters:
    ///   - path: The absolute path of the snapshot.
    ///   - applying: Whether to replace the keychain. Otherwise the snapshot is only checked.
    ///   - acceptingKeybag: Whether the snapshot may have another passcode than the keychain, or none.
    /// - Returns: The findings.
    /// - Throws: `.itemNotFound` if there is no such file; `.decode` if the file is damaged or not a snapshot; `.parameter` if it belongs to
    ///   another keychain, or is a file of the keychain itself; `.notAvailable` if it has a newer version, or another program writes to the
    ///   keychain for too long; a failure with the cause `.unexpectedState(.keybagReplaced)` if the keybag is not accepted; `.unimplemented` for a
    ///   keychain in memory; and the errors of the protector if it does not release the device secret.
    package func restoreSnapshot(
        fromPath path: String, applying: Bool, acceptingKeybag: Bool = false
    ) throws(KeychainFailure) -> SnapshotReport {
        let configuration = try configuration()
        try ReservedPaths(of: configuration).requireNotReserved(path)
        return try addingContext { () throws(KeychainFailure) in
            close()
            var report = SnapshotReport()
            let check = CopyCheck(configuration: configuration, entitlements: entitlements)
            let outcome = try SnapshotRestoration(configuration.storePath, options: configuration.storeOptions).run(
                from: path, originalSuffix: Self.keptFileSuffix("restore")
            ) { copyPath throws(KeychainFailure) in
                let findings = try Self.findings(inSnapshot: path, copyPath, check)
                let present = try check.presentStore(at: configuration.storePath, findings.stateCipher)
                guard present == nil || present?.storeID == findings.storeID else {
                    throw KeychainFailure(
                        .parameter, "the snapshot \(path) belongs to another keychain than the one in use", path: path, subject: .snapshot)
                }
                report.itemCount = findings.itemCount
                report.damagedItemCount = findings.damagedItemCount
                report.compare(findings, withKeybag: present?.newestKeybag)
                guard applying else { return .decline }
                guard acceptingKeybag || !report.hasOtherPasscode else { throw SQLiteItemStore.failure(.keybagReplaced) }
                let changeCount = try check.makeNewest(copyAt: copyPath, findings, replacing: present?.changeCount ?? 0)
                return .replace(
                    .init(
                        of: findings.storeID, findings.stateCipher, anchorsIn: configuration.keyDirectory, changeCountOfCopy: changeCount))
            }
            if case .done(let original) = outcome {
                report.isRestored = true
                report.originalPath = original
            }
            return report
        }
    }

    private static func findings(
        inSnapshot path: String, _ copyPath: String, _ check: CopyCheck
    ) throws(KeychainFailure) -> CopyCheck.Findings {
        let findings: CopyCheck.Findings
        do throws(KeychainFailure) {
            findings = try check.findings(inCopyAt: copyPath)
        } catch {
            guard error.isDamage, error.subject != .keybag else { throw error.addingContext("the snapshot \(path) cannot be opened") }
            throw damaged(path, error.reason)
        }
        guard findings.problems.isEmpty else { throw damaged(path, findings.problems.joined(separator: "; ")) }
        return findings
    }

    private static func damaged(_ path: String, _ reason: String) -> KeychainFailure {
        KeychainFailure(.decode, "the snapshot \(path) is damaged: \(reason)", path: path, subject: .snapshot, cause: .damaged)
    }
}
