// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore
import KeychainEngine

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check the integrity of every item.",
        discussion: """
            Checks the items of all programs and exits with 4 if one is damaged. Does not change them. Replace a damaged item with `valet set` or \
            delete it with `valet remove`; its data then moves to the quarantine.
            """
    )

    @Flag(help: "Empty the quarantine, permanently.")
    var purge = false

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try CommandSession.forWholeKeychain(passcode: passcode.read())
        guard let report = try Self.report(session, purgingQuarantine: purge) else {
            return try StandardOutput.writeLine("No keychain exists yet.")
        }
        for finding in report.findings { try StandardOutput.writeLine(Self.line(finding)) }
        if report.damagedPageRowCount > 0 {
            try StandardOutput.writeLine("\(Self.items(report.damagedPageRowCount)) in damaged pages; names cannot be read")
        }
        for problem in report.structuralProblems { try StandardOutput.writeLine("keychain: \(problem)") }
        if report.damagedKeybagCopyCount > 0 { try StandardOutput.writeLine("keychain: \(KeychainDescription.damagedKeybagCopy)") }
        if report.quarantinedCount > 0 {
            try StandardOutput.writeLine(
                "\(Self.items(report.quarantinedCount)) in quarantine"
                    + (report.isQuarantinePurged ? ", removed" : purge ? ", kept because of the damage" : "; remove with --purge"))
        }
        if report.lockedCount > 0 {
            try StandardOutput.writeLine(
                "\(Self.items(report.lockedCount)) locked, or readable only after authentication: intact as far as can be checked without keys"
            )
        }
        let checked = "\(Self.items(report.checkedCount)) checked"
        guard report.isSound else { throw Self.failure(report, checked) }
        try StandardOutput.writeLine("\(checked), none damaged.")
    }

    /// The failure of a report that is not sound.
    private static func failure(_ report: VerificationReport, _ checked: String) -> CommandFailure {
        let damagedCount = report.findings.count + report.damagedPageRowCount
        let isAnchorUnusable = !report.structuralProblems.isEmpty && report.structuralProblems.allSatisfy(\.isOfAnchor)
        if damagedCount == 0, report.damagedKeybagCopyCount == 0, isAnchorUnusable {
            return CommandFailure(
                .damaged, "\(checked), none damaged, but its anchor cannot be used",
                advice: "Move the anchor away; the next write creates another.")
        }
        let outcome = report.isQuarantinePurged ? "only the quarantine was emptied" : "nothing was changed"
        if !report.structuralProblems.isEmpty {
            let items =
                damagedCount == 0
                ? "no items damaged, but the keychain file is damaged" : "\(damagedCount) damaged, and the keychain file is damaged"
            return CommandFailure(
                .damaged, "\(checked), \(items); \(outcome)",
                advice: report.hasRefusedPages
                    ? Self.repairAdvice : Self.recoveryAdvice
            )
        }
        if report.findings.contains(where: \.needsOtherKeys) {
            return CommandFailure(
                .damaged, "\(checked), \(damagedCount) damaged or under keys that the file does not have; \(outcome)",
                advice: "A newer copy of the keychain file may have the keys: put it back. Otherwise save the other items with "
                    + "`valet backup create` and start over from that backup.")
        }
        if damagedCount > 0 {
            return CommandFailure(
                .damaged, "\(checked), \(damagedCount) damaged; \(outcome)",
                advice: report.findings.contains(where: \.isInCircle)
                    ? "Run `valet sync now --check-items`, which restores from the circle what it has. Otherwise restore \(Self.replacementAdvice)"
                    : "Restore \(Self.replacementAdvice)")
        }
        return CommandFailure(
            .damaged, "\(checked), none damaged, but \(KeychainDescription.damagedKeybagCopy)",
            advice: KeychainDescription.damagedKeybagCopyAdvice)
    }

    private static let replacementAdvice = "a backup, replace the damaged items with `valet set`, or delete them with `valet remove`."

    private static func items(_ count: Int) -> String { count == 1 ? "1 item" : "\(count) items" }

    /// For a file that may be intact but for its checksums.
    static let repairAdvice =
        "Run `valet repair` to see whether it can be repaired; it asks before it changes anything. Otherwise: \(recoveryAdvice)"

    static let recoveryAdvice =
        "Save what is readable with `valet backup create --accept-content`, then restore an intact copy of the file, or move it away and start over from that backup."

    /// Returns nil if no keychain exists yet.
    private static func report(_ session: CommandSession, purgingQuarantine: Bool) throws -> VerificationReport? {
        do {
            return try session.perform { try session.keychain.verify(purgingQuarantine: purgingQuarantine) }
        } catch {
            if error.status == .notFound { return nil }
            throw error
        }
    }

    /// Names the item by its key, or by its reference if the key cannot be read.
    private static func line(_ finding: VerificationReport.Finding) -> String {
        let name =
            if let account = finding.account {
                "key \(ItemListing.escapingUnprintable(account)) of \(ItemListing.escapingUnprintable(finding.service ?? "-"))"
            } else {
                "item \(finding.reference.data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())"
            }
        return "\(name): \(finding.problem)" + (finding.isInCircle ? "; `valet sync now --check-items` restores it" : "")
    }
}
