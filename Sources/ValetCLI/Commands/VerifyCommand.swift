// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import KeychainCore
import KeychainEngine

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check that every item is as it was written.",
        discussion: """
            Looks at the items of all programs, and exits with 4 if one is damaged. Nothing is changed or removed. A damaged item can be \
            replaced with `valet set` or removed with `valet remove`; what is left of it then goes into a quarantine.
            """
    )

    @Flag(help: "Empty the quarantine. What was in it is gone for good.")
    var purge = false

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try CommandSession.forWholeKeychain(passcode: passcode.read())
        guard let report = try Self.report(session, purgingQuarantine: purge) else {
            return try StandardOutput.writeLine("There is no keychain yet, so nothing is damaged.")
        }
        for finding in report.findings { try StandardOutput.writeLine(Self.line(finding)) }
        if report.damagedPageRowCount > 0 {
            try StandardOutput.writeLine("\(report.damagedPageRowCount) in damaged pages of the file: not even a name can be read")
        }
        for problem in report.structuralProblems { try StandardOutput.writeLine("keychain: \(problem)") }
        if report.damagedKeybagCopyCount > 0 { try StandardOutput.writeLine("keychain: \(KeychainDescription.damagedKeybagCopy)") }
        if report.quarantinedCount > 0 {
            try StandardOutput.writeLine(
                "\(report.quarantinedCount) in quarantine\(purge ? ", removed" : "; --purge removes what is in it")")
        }
        if report.lockedCount > 0 {
            try StandardOutput.writeLine("\(report.lockedCount) locked: undamaged as far as that can be seen without their keys")
        }
        let checked = report.checkedCount == 1 ? "1 item checked" : "\(report.checkedCount) items checked"
        if let failure = Self.failure(report, checked) { throw failure }
        try StandardOutput.writeLine("\(checked), none damaged.")
    }

    private static func failure(_ report: VerificationReport, _ checked: String) -> CommandFailure? {
        let damagedCount = report.findings.count + report.damagedPageRowCount
        if !report.structuralProblems.isEmpty {
            let items =
                damagedCount == 0 ? "none damaged, but the keychain's file is" : "\(damagedCount) damaged, and so is the keychain's file"
            return CommandFailure(
                .damaged, "\(checked), \(items); it is kept as it is",
                advice: report.hasRefusedPages
                    ? "`valet repair` tells whether it can be mended: nothing is changed unasked. \(Self.recoveryAdvice)"
                    : Self.recoveryAdvice
            )
        }
        if damagedCount > 0 {
            return CommandFailure(
                .damaged, "\(checked), \(damagedCount) damaged, and kept as it is",
                advice: "Put back a backup, or replace what is damaged with `valet set` or `valet remove`.")
        }
        guard report.damagedKeybagCopyCount > 0 else { return nil }
        return CommandFailure(
            .damaged, "\(checked), none damaged, but one copy of the keybag is", advice: KeychainDescription.repairOfKeybagCopy)
    }

    static let recoveryAdvice =
        "Save what can be read with `valet backup create`, then put back a sound copy of the file, or begin anew with that backup."

    /// Nil: there is no keychain yet.
    private static func report(_ session: CommandSession, purgingQuarantine: Bool) throws -> VerificationReport? {
        do {
            return try session.perform { try session.keychain.verify(purgingQuarantine: purgingQuarantine) }
        } catch {
            if error.status == .notFound { return nil }
            throw error
        }
    }

    /// The item by its key, if that can still be read; else by its reference, which at least counts.
    private static func line(_ finding: VerificationReport.Finding) -> String {
        let name =
            if let account = finding.account {
                "key \(ItemListing.printable(account)) of \(ItemListing.printable(finding.service ?? "-"))"
            } else {
                "item \(finding.reference.data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())"
            }
        return "\(name): \(finding.problem)"
    }
}
