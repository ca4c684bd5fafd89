// SPDX-License-Identifier: Apache-2.0

/// What looking at every row has shown.
package struct VerificationReport: Sendable {
    /// One row that is not as it was written, or that this version cannot read.
    package struct Finding: Sendable {
        package let reference: PersistentReference
        package let problem: String
        /// Where the item belongs, if its attributes can still be read.
        package let service: String?
        package let account: String?
    }

    package var checkedCount = 0
    /// Rows whose class is locked, or that somebody would have to be asked for: their tag was checked, their contents were not.
    package var lockedCount = 0
    package var findings: [Finding] = []
    /// Rows that lie in damaged pages, of which nothing can be read.
    package var damagedPageRowCount = 0
    package var quarantinedCount = 0
    /// What the database itself says about its structure; empty when it is sound.
    package var structuralProblems: [String] = []
    /// Whether pages of the file are refused because of their checksums.
    package var hasRefusedPages = false
    /// How many of the two copies of the keybag are damaged: one of them serves.
    package var damagedKeybagCopyCount = 0

    package init() {}

    package var isSound: Bool { findings.isEmpty && damagedPageRowCount == 0 && structuralProblems.isEmpty && damagedKeybagCopyCount == 0 }
}

extension SealedKeychain {
    /// Authenticates every row of the store, of all programs.
    ///
    /// Changes nothing. When the store's keybag changed since it was opened this calls for reopening, unless `underAnyKeybag`: then the
    /// keybag at hand is known not to be the one stored last, and the best there is.
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
            let damagedPageRowCount = try reading.forEachReadableRow(matching: RowQuery(), includingSecrets: true) {
                row throws(KeychainFailure) in
                report.checkedCount += 1
                if let finding = try check(row, countingLockedIn: &report.lockedCount) { report.findings.append(finding) }
                return .proceed
            }
            report.checkedCount += damagedPageRowCount
            report.damagedPageRowCount = damagedPageRowCount
        }
        return report
    }

    /// Empties the quarantine and answers how many rows went.
    ///
    /// Only ever done because a person asked for it.
    package func purgeQuarantine() throws(KeychainFailure) -> Int {
        try write { writing throws(KeychainFailure) in
            let count = try writing.quarantinedRows().count
            try writing.purgeQuarantine()
            return count
        }
    }

    private func check(
        _ row: SealedRow, countingLockedIn lockedCount: inout Int
    ) throws(KeychainFailure) -> VerificationReport.Finding? {
        let problem: String
        let isNewer = row.header.formatVersion > RowHeader.currentFormatVersion
        // A newer version may tag rows in another way: its rows are left to it.
        var isAsWritten = isNewer
        if !isNewer { isAsWritten = try cipher.isIntact(row) }
        if !isAsWritten {
            problem = "damaged"
        } else {
            switch try open(row, includingSecret: true) {
            case .opened: return nil
            case .locked, .guarded:
                lockedCount += 1
                return nil
            case .damaged: problem = "damaged"
            case .unsupported(let failure): problem = failure.reason
            }
        }
        var attributes = ItemAttributes()
        if case .opened(let opened) = try open(row, includingSecret: false) { attributes = opened.attributes }
        let leading = PrimaryKey.leading(of: row.header.reference.itemClass)
        return VerificationReport.Finding(
            reference: row.header.reference, problem: problem, service: attributes.text(leading.service),
            account: attributes.text(leading.account)
        )
    }
}
