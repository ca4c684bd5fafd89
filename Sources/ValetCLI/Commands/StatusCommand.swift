// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Tell where the keychain is and what really protects it.",
        discussion: "Looks only: makes nothing and changes nothing."
    )

    @Flag(help: "Tell also what helps to find a fault: identifiers, generations, access groups.")
    var verbose = false

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        do {
            let report = try session.perform { try session.keychain.report(asksChip: verbose) }
            try show(KeychainDescription(report).lines(verbose: verbose))
        } catch {
            // Where it should be is what somebody needs to know first when it cannot be used.
            try show([("Keychain", session.keychain.configuration.storePath)])
            throw CommandFailure(error.status, error.problem, advice: "Nothing was changed. Put that right, then try again.")
        }
    }

    private func show(_ lines: [(title: String, text: String)]) throws(CommandFailure) {
        for (title, text) in lines {
            try StandardOutput.writeLine((title + ":").padding(toLength: 14, withPad: " ", startingAt: 0) + ItemListing.printable(text))
        }
    }
}

/// What `valet status` says about a keychain, in plain words.
struct KeychainDescription {
    private let report: KeychainReport

    init(_ report: KeychainReport) {
        self.report = report
    }

    func lines(verbose: Bool) -> [(title: String, text: String)] {
        guard let store = report.store else {
            return [("Keychain", "\(report.storePath), not made yet: the first secret that is stored makes it")]
                + (verbose ? program : [])
        }
        var lines = [
            ("Keychain", report.storePath),
            ("Items", "\(store.itemCount), of all programs"),
            ("Protector", Self.protector(store)),
            ("Protection", Self.protection(store)),
            ("Lock state", Self.lockState(store.session)),
            ("Key holder", Self.keyHolder(store.session.holder)),
            ("Keybag", "generation \(store.keybagGeneration)"),
            ("Pending", Self.pending(store)),
        ]
        if let path = store.leftoverKeyFile {
            lines.append(
                ("Left over", "the key file \(path) opens old copies only; `valet protector set \(store.protector.name)` removes it"))
        }
        if store.damagedKeybagCopyCount > 0 {
            lines.append(("Damaged", Self.damagedKeybagCopy + ". " + Self.repairOfKeybagCopy))
        }
        if !report.isKeyMemoryLocked {
            lines.append(("Memory", "the system does not let keys be locked in memory: they may be written to swap"))
        }
        if verbose {
            lines += TPMDescription.lines(store.chip)
            lines.append(
                ("Recovery", store.hasRecoveryKey ? "there is a recovery key" : "no recovery key: `valet recovery create` makes one"))
            lines.append(("Store", store.id.hexadecimal))
            lines += program
        }
        return lines
    }

    static let damagedKeybagCopy = "one copy of the keybag is damaged; the other one serves"
    static let repairOfKeybagCopy =
        "Make a backup, and look after the disk. `valet passcode change` (or set, where none is) writes both copies anew."

    private var program: [(title: String, text: String)] {
        [("Program", report.applicationIdentifier), ("Groups", report.accessGroups.joined(separator: ", "))]
    }

    private static func protector(_ store: KeychainReport.Store) -> String {
        switch store.protector {
        case .keyFile: "key file \(store.protectorLocation)"
        case .systemdCredential: "systemd credential \(store.protectorLocation)"
        case .tpm2: store.protectorLocation
        }
    }

    /// What is really in force: no more than the protector and the passcode give.
    private static func protection(_ store: KeychainReport.Store) -> String {
        switch (store.protector, store.session.isPasscodeSet) {
        case (.keyFile, false): "the keychain file alone tells no name and no secret; whoever has the key file too can open it"
        case (.keyFile, true):
            "the keychain file alone tells no name and no secret; whoever has the key file too can guess names, and needs the passcode for secrets"
        case (.systemdCredential, false): "the keychain file tells no name and no secret to anyone who cannot open the credential"
        case (.systemdCredential, true):
            "the keychain file tells no name and no secret to anyone who cannot open the credential; secrets need the passcode too"
        case (.tpm2, false): "the keychain file tells no name and no secret without this machine's TPM; on this machine it can be opened"
        case (.tpm2, true):
            "the keychain file tells no name and no secret without this machine's TPM; secrets need the passcode too, and the TPM limits guesses"
        }
    }

    private static func lockState(_ session: SessionStatus) -> String {
        guard session.isPasscodeSet else { return "unlocked, always: no passcode is set" }
        switch session.state {
        case .unlocked: return "unlocked; " + ((session.autoLock ?? .never).phrase)
        case .locked: return "locked; what is accessible after the first unlock can be read"
        case .neverUnlocked: return "locked, and not unlocked since the system started or everything was locked"
        }
    }

    private static func keyHolder(_ holder: KeyHolderKind) -> String {
        switch holder {
        case .kernelKeyring: "the kernel's keyring: an unlock holds for all programs of this user"
        case .kernelKeyringOfUserNamespace:
            "the kernel's keyring of this user namespace: an unlock outside of it does not hold here, nor one here outside"
        case .processMemory: "each program's own memory, since the system refuses its keyring: an unlock ends with the program"
        }
    }

    private static func pending(_ store: KeychainReport.Store) -> String {
        var parts: [String] = []
        if store.isScrubPending { parts.append("old bytes are to be wiped from the file's log once no other program uses it") }
        if store.pendingRewrapCount > 0 {
            parts.append("\(store.pendingRewrapCount) under earlier keys: the next unlock seals anew what is not damaged")
        }
        if store.quarantinedCount > 0 {
            parts.append("\(store.quarantinedCount) damaged in quarantine: see `valet verify`")
        }
        return parts.isEmpty ? "nothing" : parts.joined(separator: "; ")
    }
}

/// What `valet status --verbose` says about a TPM, in plain words.
enum TPMDescription {
    static func lines(_ chip: KeychainReport.Chip?) -> [(title: String, text: String)] {
        switch chip {
        case nil: return []
        case .silent(let reason):
            return [("TPM", "\(reason). The keychain is open because its secret is held until the system restarts")]
        case .other(let status):
            let warning =
                "this is not the TPM that the keychain was moved to, or it was cleared since: after the next restart the keychain does not open. Now it does: move it with `valet protector set`"
            return [("TPM", status.name), ("Warning", warning)]
        case .status(let status):
            return [("TPM", status.name), ("TPM lockout", lockout(status))] + warnings(status).map { ("Warning", $0) }
        }
    }

    private static func lockout(_ status: SealingDeviceStatus) -> String {
        let count =
            "\(status.failedTryCount) of \(status.largestFailedTryCount) wrong tries counted, one forgiven every \(status.recoverySeconds) s"
        return status.isLockedOut ? "locked out; " + count : count
    }

    /// What weakens the chip's protection against guessing.
    static func warnings(_ status: SealingDeviceStatus) -> [String] {
        guard !status.isLockoutAuthorizationSet else { return [] }
        return [
            "the TPM's lockout authorization is not set, so whoever may use the TPM can reset its count of wrong passcodes; `tpm2_changeauth -c lockout` sets it"
        ]
    }
}
