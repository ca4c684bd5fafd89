// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Valet

/// The options that say which valet is meant.
struct ValetOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The valet's identifier. (default: default; with --group: none)", valueName: "name"))
    var identifier: String?

    @Option(help: ArgumentHelp("When its items can be read. (default: when-unlocked)", valueName: "class"))
    var accessibility: AccessibilityOption?

    @Option(help: ArgumentHelp("The access group of a shared group valet.", valueName: "prefix.group"))
    var group: String?

    @Flag(help: "The iCloud valet: its items are marked to be synchronised.")
    var cloud = false

    @Flag(help: "The valet whose items have the identifier, or the group, as their service and nothing else.")
    var explicit = false

    @Option(
        help: ArgumentHelp("The valet whose items a person has to release: in this way, each time one is read.", valueName: "way"))
    var secureEnclave: SecureEnclaveOption?

    @Flag(help: "With --secure-enclave: the valet for which one answer serves the whole command.")
    var singlePrompt = false

    @Option(help: ArgumentHelp("Look into the items of the program with this application identifier. (default: valet)", valueName: "id"))
    var app: String?

    /// The valet that the options name, completed from the environment.
    func resolve(environment: [String: String] = ProcessInfo.processInfo.environment) throws(CommandFailure) -> SelectedValet {
        let defaults = EnvironmentDefaults(environment)
        let group = group ?? defaults.group
        let enclave = try SecureEnclaveSelection(
            secureEnclave, isSinglePrompt: singlePrompt, names: ("--secure-enclave", "--single-prompt"))
        if enclave != nil { try requireOptionsCompatibleWithSecureEnclave() }
        var chosen = accessibility
        if chosen == nil, enclave == nil { chosen = try defaults.accessibility }
        // A default from the environment gives way where it has no meaning; what was typed does not.
        let usesIdentifier = !(group != nil && explicit)
        return try SelectedValet(
            identifier: identifier ?? (usesIdentifier ? defaults.identifier : nil),
            accessibility: chosen ?? .whenUnlocked,
            group: group, isCloud: cloud, isExplicit: explicit, enclave: enclave, application: app ?? defaults.application ?? "valet"
        )
    }

    private func requireOptionsCompatibleWithSecureEnclave() throws(CommandFailure) {
        let advice = "Leave one of them out."
        if accessibility != nil {
            throw CommandFailure(
                .usage,
                "--accessibility does not go with --secure-enclave: such items are there when a passcode is set, on this device only",
                advice: advice)
        }
        if cloud {
            throw CommandFailure(
                .usage, "--cloud does not go with --secure-enclave: such items never leave this device", advice: advice)
        }
        if explicit {
            throw CommandFailure(
                .usage, "--explicit does not go with --secure-enclave: such valets always name themselves in the service", advice: advice)
        }
    }
}

/// Accessibility as it is written on the command line.
enum AccessibilityOption: String, CaseIterable, ExpressibleByArgument {
    case whenUnlocked = "when-unlocked"
    case afterFirstUnlock = "after-first-unlock"
    case whenPasscodeSetThisDeviceOnly = "when-passcode-set-this-device-only"
    case whenUnlockedThisDeviceOnly = "when-unlocked-this-device-only"
    case afterFirstUnlockThisDeviceOnly = "after-first-unlock-this-device-only"

    var accessibility: Accessibility {
        switch self {
        case .whenUnlocked: .whenUnlocked
        case .afterFirstUnlock: .afterFirstUnlock
        case .whenPasscodeSetThisDeviceOnly: .whenPasscodeSetThisDeviceOnly
        case .whenUnlockedThisDeviceOnly: .whenUnlockedThisDeviceOnly
        case .afterFirstUnlockThisDeviceOnly: .afterFirstUnlockThisDeviceOnly
        }
    }

    /// Nil: such items never leave the device, so no iCloud valet has them.
    var cloudAccessibility: CloudAccessibility? {
        switch self {
        case .whenUnlocked: .whenUnlocked
        case .afterFirstUnlock: .afterFirstUnlock
        default: nil
        }
    }
}

/// Defaults of options from the environment.
///
/// An empty variable counts as absent.
struct EnvironmentDefaults {
    private let environment: [String: String]

    init(_ environment: [String: String]) {
        self.environment = environment
    }

    var identifier: String? { value("VALET_IDENTIFIER") }
    var group: String? { value("VALET_GROUP") }
    var application: String? { value("VALET_APP") }

    var accessibility: AccessibilityOption? {
        get throws(CommandFailure) {
            guard let text = value("VALET_ACCESSIBILITY") else { return nil }
            guard let option = AccessibilityOption(rawValue: text) else {
                throw CommandFailure(
                    .usage, "VALET_ACCESSIBILITY is not an accessibility class",
                    advice: "Set it to one of: \(AccessibilityOption.allCases.map(\.rawValue).joined(separator: ", "))."
                )
            }
            return option
        }
    }

    private func value(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
