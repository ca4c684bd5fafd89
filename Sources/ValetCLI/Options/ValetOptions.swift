// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainSystem
import Valet

/// The options that select a valet.
struct ValetOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The valet's identifier. (default: default; with --group: none)", valueName: "name"))
    var identifier: String?

    @Option(help: ArgumentHelp("The accessibility of its items: when they can be read. (default: when-unlocked)", valueName: "class"))
    var accessibility: AccessibilityOption?

    @Option(help: ArgumentHelp("The access group of a shared group valet.", valueName: "prefix.group"))
    var group: String?

    @Flag(help: "Use the iCloud valet, whose items are marked as synchronizable.")
    var cloud = false

    @Flag(help: "Use the valet whose items have exactly the identifier (or group) as their service.")
    var explicit = false

    @Option(
        help: ArgumentHelp("Use a Secure Enclave valet: reading an item requires this kind of authentication.", valueName: "kind"))
    var secureEnclave: SecureEnclaveOption?

    @Flag(help: "With --secure-enclave: use the valet that authenticates once for the whole command. It has items of its own.")
    var singlePrompt = false

    @Option(help: ArgumentHelp("Use the items of the program with this application identifier. (default: valet)", valueName: "id"))
    var app: String?

    /// Returns the valet that the options select, with defaults from the environment.
    ///
    /// A default is ignored where an option on the command line excludes it. `isOfProgram` says that another option of the command excludes a
    /// group.
    func resolve(
        isOfProgram: Bool = false, environment: [String: String] = ProcessEnvironment.variables
    ) throws(CommandFailure) -> SelectedValet {
        let defaults = EnvironmentDefaults(environment)
        // Only the valet of a program has an application identifier, or is explicitly named by an identifier.
        let excludesGroup = isOfProgram || app != nil || (explicit && identifier != nil)
        var group = group
        if group == nil, !excludesGroup { group = try defaults.group }
        let enclave = try SecureEnclaveSelection(
            secureEnclave, isSinglePrompt: singlePrompt, names: ("--secure-enclave", "--single-prompt"))
        if enclave != nil { try requireOptionsCompatibleWithSecureEnclave() }
        var chosen = accessibility
        if chosen == nil, enclave == nil {
            chosen = try defaults.accessibility
            if cloud, chosen?.cloudAccessibility == nil { chosen = nil }
        }
        // The identifier of a group's valet is optional, so `--group` alone means none. Otherwise no option could say so.
        let usesIdentifier = self.group == nil && !(group != nil && explicit)
        return try SelectedValet(
            identifier: identifier ?? (usesIdentifier ? defaults.identifier : nil),
            accessibility: chosen ?? .whenUnlocked,
            group: group, isCloud: cloud, isExplicit: explicit, enclave: enclave,
            application: app ?? defaults.application ?? SelectedValet.ownApplication
        )
    }

    private func requireOptionsCompatibleWithSecureEnclave() throws(CommandFailure) {
        let advice = "Omit one of the two options."
        if accessibility != nil {
            throw CommandFailure(
                .usage,
                "--accessibility cannot be combined with --secure-enclave: its items always use when-passcode-set-this-device-only",
                advice: advice)
        }
        if cloud {
            throw CommandFailure(
                .usage, "--cloud cannot be combined with --secure-enclave: its items never leave this device", advice: advice)
        }
        if explicit {
            throw CommandFailure(
                .usage, "--explicit cannot be combined with --secure-enclave: Secure Enclave valets always use the standard service name",
                advice: advice)
        }
    }
}

/// The accessibility of items, as on the command line.
enum AccessibilityOption: String, CaseIterable, ExpressibleByArgument {
    case whenUnlocked = "when-unlocked"
    case afterFirstUnlock = "after-first-unlock"
    case whenPasscodeSetThisDeviceOnly = "when-passcode-set-this-device-only"
    case whenUnlockedThisDeviceOnly = "when-unlocked-this-device-only"
    case afterFirstUnlockThisDeviceOnly = "after-first-unlock-this-device-only"

    /// Creates the option of an item's accessibility; nil for the values that Apple has withdrawn, which no valet has.
    init?(_ accessibility: ItemAccessibility) {
        guard let option = Self.allCases.first(where: { $0.itemAccessibility == accessibility }) else { return nil }
        self = option
    }

    var accessibility: Accessibility { accessibilities.valet }

    /// The accessibility of an item.
    var itemAccessibility: ItemAccessibility { accessibilities.item }

    private var accessibilities: (valet: Accessibility, item: ItemAccessibility) {
        switch self {
        case .whenUnlocked: (.whenUnlocked, .whenUnlocked)
        case .afterFirstUnlock: (.afterFirstUnlock, .afterFirstUnlock)
        case .whenPasscodeSetThisDeviceOnly: (.whenPasscodeSetThisDeviceOnly, .whenPasscodeSetThisDeviceOnly)
        case .whenUnlockedThisDeviceOnly: (.whenUnlockedThisDeviceOnly, .whenUnlockedThisDeviceOnly)
        case .afterFirstUnlockThisDeviceOnly: (.afterFirstUnlockThisDeviceOnly, .afterFirstUnlockThisDeviceOnly)
        }
    }

    /// The accessibility of an iCloud valet; nil for items that never leave the device.
    var cloudAccessibility: CloudAccessibility? { CloudAccessibility.allCases.first { $0.accessibility == accessibility } }
}

/// Defaults of options from the environment.
///
/// An empty variable is ignored.
struct EnvironmentDefaults {
    private let environment: [String: String]

    init(_ environment: [String: String]) {
        self.environment = environment
    }

    var identifier: String? { value("VALET_IDENTIFIER") }
    var application: String? { value("VALET_APP") }
    var hasAccessibility: Bool { value("VALET_ACCESSIBILITY") != nil }

    var group: String? {
        get throws(CommandFailure) {
            guard let text = value("VALET_GROUP") else { return nil }
            _ = try SelectedValet.parse(group: text, in: "VALET_GROUP")
            return text
        }
    }

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
