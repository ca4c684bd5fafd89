// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
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
    /// Whether more changes are missing than `unreachableChangeCount`: damage has hidden some, or an older copy of the files was put back.
    package internal(set) var isOlder = false
    /// Whether the unreachable changes include one of the passcode or the keys, so that the passcode, if there is one, is an earlier one.
    package internal(set) var isKeybagReplaced = false
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
    ///   - acceptingOlder: Whether more changes may be missing than the report counts.
    ///   - acceptingKeybag: Whether a change of the passcode or the keys may be among the discarded ones.
    /// - Returns: The findings; nil if no page is refused.
    /// - Throws: `.itemNotFound` if there is no keychain, `.notAvailable` if another program has it open, `.unimplemented` for a keychain
    ///   in memory, and the errors of opening the keychain if the protector does not release the device secret.
    package func repair(
        applying: Bool, discardingUnreachableChanges: Bool = false, acceptingOlder: Bool = false, acceptingKeybag: Bool = false
    ) throws(KeychainFailure) -> RepairReport? {
        let configuration = try configuration()
        let path = configuration.storePath
        return try addingContext { () throws(KeychainFailure) in
            try fileBackend().requireStore()
            close()
            var found: RepairReport?
            let outcome = try StoreRepair(path, options: configuration.storeOptions).run(originalSuffix: Self.keptFileSuffix("repair")) {
                copy throws(KeychainFailure) in
                var report = RepairReport(
                    pageCount: copy.pageCount, refusedPageCount: copy.refusedPageCount, unreachableChangeCount: copy.unreachableChangeCount)
                let check = CopyCheck(configuration: configuration, entitlements: entitlements)
                var findings: CopyCheck.Findings?
                do throws(KeychainFailure) {
                    let found = try check.findings(inCopyAt: copy.path, missingChangeCount: copy.unreachableChangeCount)
                    report.isOlder = found.isOlder
                    report.isKeybagReplaced = found.isKeybagReplaced
                    report.itemCount = found.itemCount
                    report.objections = found.problems
                    if found.damagedItemCount > 0 {
                        report.objections.append("\(found.damagedItemCount) of \(found.itemCount) items")
                    }
                    findings = found
                } catch {
                    guard error.isDamage else { throw error }
                    report.objections.append("not all of it can be read: \(error.reason)")
                }
                found = report
                guard applying, report.objections.isEmpty, let findings else { return false }
                guard report.unreachableChangeCount > 0 else { return true }
                guard discardingUnreachableChanges, acceptingOlder || !report.isOlder, acceptingKeybag || !report.isKeybagReplaced
                else { return false }
                // The person has accepted that the discarded changes are missing.
                try check.makeNewest(copyAt: copy.path, findings)
                return true
            }
            if case .done(let original) = outcome { found?.originalPath = original }
            return found
        }
    }

    /// Returns the suffix of the file that is kept when a keychain is replaced: the action and the time.
    static func keptFileSuffix(_ action: String) -> String {
        let now = Date(timeIntervalSinceReferenceDate: SystemWallClock().now())
        return ".before-\(action)-" + now.ISO8601Format(.init(dateSeparator: .omitted, timeSeparator: .omitted))
    }
}
