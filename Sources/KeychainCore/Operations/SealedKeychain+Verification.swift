// SPDX-License-Identifier: Apache-2.0

/// The result of verifying every row of a store.
package struct VerificationReport: Sendable {
    /// One row that was altered, or that this version cannot read.
    package struct Finding: Sendable {
        package let reference: PersistentReference
        package let problem: String
        /// Whether the row is intact, and only a newer version or another keybag opens it, so that it is never replaced.
        package let needsOtherKeys: Bool
        /// The item's service and account, if its attributes can still be read.
        package let service: String?
        package let account: String?
        /// Whether the circle has the item, so that synchronization restores it.
        package var isInCircle = false
    }

    package var checkedCount = 0
    /// Rows whose class is locked or that require authentication: their tags were checked, their contents were not.
    package var lockedCount = 0
    package var findings: [Finding] = []
    /// Rows in damaged pages, of which nothing can be read.
    package var damagedPageRowCount = 0
    package var quarantinedCount = 0
    /// Whether the quarantined rows were deleted.
    package var isQuarantinePurged = false
    /// Problems of the file as a whole; empty if it is sound.
    package var structuralProblems: [StructuralProblem] = []
    /// Whether pages of the file are refused because of their checksums.
    package var hasRefusedPages = false
    /// How many of the two copies of the keybag are damaged; one damaged copy does no harm.
    package var damagedKeybagCopyCount = 0

    package init() {}

    package var isSound: Bool { findings.isEmpty && damagedPageRowCount == 0 && structuralProblems.isEmpty && damagedKeybagCopyCount == 0 }
}

/// A problem of a store that is not one row's.
package enum StructuralProblem: Equatable, Sendable, CustomStringConvertible {
    /// A part of the verification.
    package enum Part: String, Sendable {
        case sqlite = "SQLite's integrity check"
        case searchIndex = "the check of the search index"
        case keybag = "the check of the keybag"
        case items = "the check of the items"
    }

    /// The checksum of a page is wrong. `content` is the table or index that begins on the page, if known.
    case damagedPage(Int64, content: String?)
    /// The write-ahead log is damaged before its end.
    case damagedLog(String)
    /// A line of `PRAGMA integrity_check`.
    case sqlite(String)
    case unreadableDigests(row: Int64)
    case missingFromIndex(row: Int64)
    case keybagCopiesDiffer
    /// The content is not what the keychain wrote last.
    case unexpectedState(StateProblem)
    /// The anchor cannot be used, so an older copy of the file would not be detected.
    case unusableAnchor(String)
    /// Damage stopped a part of the verification.
    case incomplete(Part, KeychainFailure)

    /// Whether a write could destroy content that is sound, because pages may be used twice, or that is unknown.
    package var preventsWriting: Bool {
        switch self {
        case .damagedPage, .sqlite, .incomplete(.sqlite, _): true
        default: false
        }
    }

    /// Whether the problem is one of the anchor, and not of the keychain's file.
    package var isOfAnchor: Bool { if case .unusableAnchor = self { true } else { false } }

    /// A line for people, without a final period.
    package var description: String {
        switch self {
        case .damagedPage(let page, let content): "page \(page) of the file is damaged" + (content.map { " (\($0))" } ?? "")
        case .damagedLog(let text), .sqlite(let text): text
        case .unreadableDigests(let row): "row \(row): its search digests cannot be read"
        case .missingFromIndex(let row): "row \(row) is missing from the search index of its attributes"
        case .keybagCopiesDiffer: "the two copies of the keybag differ"
        case .unexpectedState(let problem): "\(problem)"
        case .unusableAnchor(let reason): "\(reason), so an older copy of the file would not be detected"
        case .incomplete(let part, let failure): "\(part.rawValue) is incomplete: \(failure.reason)"
        }
    }

    /// The number of the damaged page, if the problem is one.
    package var damagedPage: Int64? { if case .damagedPage(let page, _) = self { page } else { nil } }
}

extension SealedKeychain {
    /// Authenticates every row of the store, of all programs.
    ///
    /// Changes nothing. If the store's keybag changed since it was opened, throws a failure that requires reopening. With
    /// `underAnyKeybag` it proceeds: the caller reports a keybag that is not the one stored last.
    package func verify(underAnyKeybag: Bool = false) throws(KeychainFailure) -> VerificationReport {
        try scopedToCall.verifyRows(underAnyKeybag: underAnyKeybag)
    }

    private func verifyRows(underAnyKeybag: Bool) throws(KeychainFailure) -> VerificationReport {
        var report = VerificationReport()
        try store.read { reading throws(KeychainFailure) in
            if !underAnyKeybag {
                guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            }
            report.quarantinedCount = try reading.quarantinedRows().count
            let skipped = try reading.forEachReadableRow(matching: RowQuery(), includingSecrets: true) {
                row throws(KeychainFailure) in
                report.checkedCount += 1
                if let finding = try check(row, in: reading, countingLockedIn: &report.lockedCount) { report.findings.append(finding) }
                return .proceed
            }
            report.checkedCount += skipped.damagedPageRowCount
            report.damagedPageRowCount = skipped.damagedPageRowCount
        }
        return report
    }

    /// Empties the quarantine, and returns the number of rows deleted.
    ///
    /// Call it only at a person's request.
    package func purgeQuarantine() throws(KeychainFailure) -> Int {
        try write { writing throws(KeychainFailure) in
            let count = try writing.quarantinedRows().count
            try writing.purgeQuarantine()
            return count
        }
    }

    /// Returns the latest modification date of the items whose attributes can be read, in seconds since 2001-01-01 00:00:00 UTC; nil if there
    /// is none.
    package func latestModificationDate() throws(KeychainFailure) -> Double? {
        let keychain = scopedToCall
        var latest: Double?
        try store.read { reading throws(KeychainFailure) in
            _ = try reading.forEachReadableRow(matching: RowQuery(), includingSecrets: false) { row throws(KeychainFailure) in
                guard
                    case .opened(let opened) = try keychain.open(
                        row, includingSecret: false, keeping: .only(.modificationDate), in: reading),
                    case .date(let date)? = opened.attributes[.modificationDate]
                else { return .proceed }
                latest = max(latest ?? date, date)
                return .proceed
            }
        }
        return latest
    }

    private func check(
        _ row: SealedRow, in reading: any ItemReading, countingLockedIn lockedCount: inout Int
    ) throws(KeychainFailure) -> VerificationReport.Finding? {
        let problem: String
        var needsOtherKeys = false
        if !cipher.isIntact(row) {
            problem = "damaged"
        } else {
            switch try open(row, includingSecret: true, in: reading) {
            case .opened: return nil
            case .locked, .needsAuthentication, .destroyed:
                lockedCount += 1
                return nil
            case .damaged: problem = "damaged"
            case .unsupported(let failure):
                problem = failure.reason
                needsOtherKeys = true
            }
        }
        var attributes = ItemAttributes()
        if case .opened(let opened) = try open(row, includingSecret: false, in: reading) { attributes = opened.attributes }
        let leading = PrimaryKey.leading(of: row.header.reference.itemClass)
        return VerificationReport.Finding(
            reference: row.header.reference, problem: problem, needsOtherKeys: needsOtherKeys, service: attributes.text(leading.service),
            account: attributes.text(leading.account)
        )
    }
}
