// SPDX-License-Identifier: Apache-2.0

import KeychainCore
import KeychainEngine

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
            ("Protection", Self.protection(store.protector)),
            ("Lock state", "unlocked, always: no passcode is set"),
            ("Pending", Self.pending(store)),
        ]
        if store.damagedKeybagCopyCount > 0 {
            lines.append(("Damaged", "one copy of the keybag; the other one serves. Make a backup, and look after the disk"))
        }
        if !report.isKeyMemoryLocked {
            lines.append(("Memory", "the system does not let keys be locked in memory: they may be written to swap"))
        }
        if verbose {
            lines.append(("Store", store.id.hexadecimal))
            lines.append(("Keybag", "generation \(store.keybagGeneration)"))
            lines += program
        }
        return lines
    }

    private var program: [(title: String, text: String)] {
        [("Program", report.applicationIdentifier), ("Groups", report.accessGroups.joined(separator: ", "))]
    }

    private static func protector(_ store: KeychainReport.Store) -> String {
        switch store.protector {
        case .keyFile: "key file \(store.protectorLocation)"
        case .systemdCredential: "systemd credential \(store.protectorLocation)"
        }
    }

    /// What is really in force: no more than the protector gives.
    private static func protection(_ protector: DeviceProtectorKind) -> String {
        switch protector {
        case .keyFile: "the keychain file alone tells no name and no secret; whoever has the key file too can open it"
        case .systemdCredential: "the keychain file tells no name and no secret to anyone who cannot open the credential"
        }
    }

    private static func pending(_ store: KeychainReport.Store) -> String {
        var parts: [String] = []
        if store.isScrubPending { parts.append("old bytes are to be wiped from the file's log once no other program uses it") }
        if store.quarantinedCount > 0 {
            parts.append("\(store.quarantinedCount) damaged in quarantine: see `valet verify`")
        }
        return parts.isEmpty ? "nothing" : parts.joined(separator: "; ")
    }
}
