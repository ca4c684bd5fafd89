// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show where the keychain is and what protects it.",
        discussion: "Creates and changes nothing."
    )

    @Flag(help: "Also show identifiers, access groups, and the state of the TPM.")
    var verbose = false

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        if let kept = try? session.user.keptKeychain() {
            try show([("Keychain", "\(session.keychain.configuration().storePath), kept by keychaind")])
            let status = try session.performSessionCall { _ throws(KeychainFailure) in try kept.sessionStatus() }
            return try show([("Lock state", KeychainDescription.lockState(status))])
        }
        do {
            let report = try session.perform { try session.keychain.report(queriesTPM: verbose) }
            try show(KeychainDescription(report).lines(verbose: verbose))
        } catch {
            // The path helps to find the problem.
            try show([("Keychain", session.keychain.configuration().storePath)])
            guard error.isAdviceGeneral else { throw error }
            throw CommandFailure(error.status, error.problem, advice: "Nothing was changed. Solve the problem, then run the command again.")
        }
    }

    private func show(_ lines: [(title: String, text: String)]) throws(CommandFailure) {
        for (title, text) in lines {
            try StandardOutput.writeLine(
                (title + ":").padding(toLength: 14, withPad: " ", startingAt: 0) + ItemListing.escapingUnprintable(text))
        }
    }
}

/// The output of `valet status`.
struct KeychainDescription {
    private let report: KeychainReport

    init(_ report: KeychainReport) {
        self.report = report
    }

    func lines(verbose: Bool) -> [(title: String, text: String)] {
        guard let store = report.store else {
            let isRefused = report.placement?.losesKeyFirst == true
            let keychain = "\(report.storePath), does not exist yet" + (isRefused ? "" : "; `valet set` creates it")
            return [("Keychain", keychain)] + placement(verbose: verbose) + (verbose ? program : [])
        }
        var lines = [
            ("Keychain", report.storePath),
            ("Items", "\(store.itemCount) (all programs)"),
            ("Protector", Self.protector(store)),
            ("Protection", Self.protection(store)),
            ("Lock state", Self.lockState(store.session)),
            ("Key holder", Self.keyHolder(store.session.holder)),
            ("Keybag", "generation \(store.keybagGeneration)"),
            ("Pending", Self.pending(store)),
        ]
        lines += placement(verbose: verbose)
        if let path = store.leftoverKeyFile {
            lines.append(
                (
                    "Left over",
                    "the key file \(path) opens only old copies of the keychain; remove it with `valet protector set \(store.protector.name)`"
                ))
        }
        if store.damagedKeybagCopyCount > 0 {
            lines.append(("Damaged", Self.damagedKeybagCopy + ". " + Self.damagedKeybagCopyAdvice))
        }
        if let reason = store.anchorRefusal {
            lines.append(("Anchor", "\(reason), so an older copy of the keychain file would not be detected"))
        }
        if !report.isKeyMemoryLocked {
            lines.append(("Memory", "the system does not allow locking keys in memory, so they may be written to swap; raise `ulimit -l`"))
        }
        if verbose {
            lines += TPMDescription.lines(store.tpmState)
            lines.append(
                ("Recovery", store.hasRecoveryKey ? "set" : "none; create a recovery key with `valet recovery create`"))
            lines.append(("Store", store.id.hexadecimal))
            lines += program
        }
        return lines
    }

    static let damagedKeybagCopy = "one of the two copies of the keybag is damaged; the other is in use"
    static let damagedKeybagCopyAdvice =
        "Make a backup and check the disk. `valet passcode change` (or `valet passcode set` if none is set) rewrites both copies."

    /// The file systems of the keychain and its key file, always if the key file can be lost alone.
    private func placement(verbose: Bool) -> [(title: String, text: String)] {
        guard let placement = report.placement, verbose || placement.losesKeyFirst else { return [] }
        let places = [
            ("Keychain on", Self.fileSystem(of: placement.store)),
            ("Key file on", Self.fileSystem(of: placement.key)),
        ]
        guard placement.losesKeyFirst else { return places }
        let advice =
            report.store == nil
            ? "`valet set` will refuse to create the keychain; set KEYCHAIN_HOME to a directory on the volume"
            : "make a backup with `valet backup create` and restore it with KEYCHAIN_HOME on the volume"
        return places + [("Warning", "the key file can be lost while the keychain remains, which is unreadable then; \(advice)")]
    }

    private static func fileSystem(of place: KeyPlacement.Place) -> String {
        "\(place.fileSystemName ?? "an unknown file system"): \(place.directory)"
            + (place.isTemporary ? ", lost at a restart or together with a container" : "")
    }

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

    /// The protection that the protector and the passcode provide together.
    private static func protection(_ store: KeychainReport.Store) -> String {
        switch (store.protector, store.session.isPasscodeSet) {
        case (.keyFile, false):
            "the keychain file alone reveals no names or secrets; anyone who also has the key file can open it"
        case (.keyFile, true):
            "the keychain file alone reveals no names or secrets; anyone who also has the key file can guess names, but needs the passcode to read secrets"
        case (.systemdCredential, false): "the keychain file reveals no names or secrets without the systemd credential"
        case (.systemdCredential, true):
            "the keychain file reveals no names or secrets without the systemd credential; secrets also need the passcode"
        case (.tpm2, false):
            "the keychain file reveals no names or secrets without this machine's TPM; here, every process that may use the TPM and read the file can open it"
        case (.tpm2, true):
            "the keychain file reveals no names or secrets without this machine's TPM; secrets also need the passcode, and the TPM limits guesses"
        }
    }

    static func lockState(_ session: SessionStatus) -> String {
        guard session.isPasscodeSet else { return "always unlocked (no passcode is set); set one with `valet passcode set`" }
        switch session.state {
        case .unlocked: return "unlocked; " + ((session.autoLock ?? .never).phrase)
        case .locked: return "locked; items with after-first-unlock accessibility can still be read"
        case .neverUnlocked: return "locked, and not unlocked since the last restart or `valet lock --all`"
        }
    }

    private static func keyHolder(_ holder: KeyHolderKind) -> String {
        switch holder {
        case .kernelKeyring: "kernel keyring: an unlock applies to all programs of this user"
        case .kernelKeyringOfUserNamespace:
            "kernel keyring of this user namespace: unlocks are not shared with processes outside it"
        case .processMemory:
            "process memory, because the kernel keyring is not available: an unlock ends with the program; use --passcode-fd"
        case .keychaind: "keychaind: an unlock applies to all programs of this user"
        }
    }

    private static func pending(_ store: KeychainReport.Store) -> String {
        var parts: [String] = []
        if store.isScrubPending {
            parts.append("old data will be erased from the write-ahead log when no other program has the keychain open")
        }
        if store.pendingRewrapCount > 0 {
            parts.append("\(Self.items(store.pendingRewrapCount)) under earlier keys; the next unlock re-encrypts those that are intact")
        }
        if store.quarantinedCount > 0 {
            parts.append("\(Self.items(store.quarantinedCount)) in quarantine, damaged; see `valet verify`")
        }
        return parts.isEmpty ? "nothing" : parts.joined(separator: "; ")
    }

    private static func items(_ count: Int) -> String { count == 1 ? "1 item" : "\(count) items" }
}

/// The lines of `valet status --verbose` about the TPM.
enum TPMDescription {
    static func lines(_ tpmState: KeychainReport.TPMState?) -> [(title: String, text: String)] {
        switch tpmState {
        case nil: return []
        case .silent(let reason):
            return [
                (
                    "TPM",
                    "\(reason). The keychain still opens because its secret is cached until the next restart. Restore access to the TPM, or run `valet protector set keyFile`"
                )
            ]
        case .other(let status):
            let warning =
                "this TPM is not the one that protects the keychain, or it was cleared: the keychain will not open after the next restart. Run `valet protector set keyFile` (or tpm2) now"
            return [("TPM", status.name), ("Warning", warning)]
        case .status(let status):
            return [("TPM", status.name), ("TPM lockout", lockout(status))] + warnings(status).map { ("Warning", $0) }
        }
    }

    private static func lockout(_ status: SealingDeviceStatus) -> String {
        let count =
            "\(status.failedTryCount) of \(status.largestFailedTryCount) failed attempts counted; one is cleared every \(status.recoverySeconds) s"
        return status.isLockedOut ? "locked out; " + count : count
    }

    /// Settings that weaken the TPM's protection against guessing.
    static func warnings(_ status: SealingDeviceStatus) -> [String] {
        guard !status.isLockoutAuthorizationSet else { return [] }
        return [
            "the TPM's lockout authorization is not set, so anyone with access to the TPM can reset its failed-attempt counter; set it with `tpm2_changeauth -c lockout PASSWORD`"
        ]
    }
}
