// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Valet

/// The valet that a command works on, and the program in whose name it does.
struct SelectedValet {
    let valet: ChosenValet
    let accessibility: AccessibilityOption
    /// The application identifier of the program whose items these are.
    let application: String
    private let group: String?

    init(
        identifier: String?, accessibility: AccessibilityOption, group: String?, isCloud: Bool, isExplicit: Bool,
        enclave: EnclaveSelection? = nil, application: String
    ) throws(CommandFailure) {
        self.accessibility = enclave == nil ? accessibility : .whenPasscodeSetThisDeviceOnly
        valet =
            switch (group, enclave) {
            case (let group?, let enclave?):
                Self.sharedGroupValet(try Self.parse(group: group), try identifier.map(Self.parse(identifier:)), enclave)
            case (nil, let enclave?):
                Self.ownValet(try Self.parse(identifier: identifier ?? "default"), enclave)
            case (let group?, nil):
                try .plain(
                    Self.sharedGroupValet(
                        try Self.parse(group: group), identifier, accessibility, isCloud: isCloud, isExplicit: isExplicit))
            case (nil, nil):
                try .plain(
                    Self.ownValet(
                        try Self.parse(identifier: identifier ?? "default"), accessibility, isCloud: isCloud, isExplicit: isExplicit))
            }
        guard !application.isEmpty else {
            throw CommandFailure(
                .usage, "the application identifier is empty", advice: "Give --app the name of a program, or leave it out.")
        }
        self.application = application
        self.group = group
    }

    /// What the program may reach: its own items, and those of the groups that were named.
    var entitlements: Entitlements { entitlements(alsoReaching: nil) }

    /// The same for a command that works on `other` too.
    func entitlements(alsoReaching other: SelectedValet?) -> Entitlements {
        Entitlements(
            applicationIdentifier: application, applicationGroups: [group, other?.group].compactMap(\.self),
            origin: "the options of this command"
        )
    }

    private static func ownValet(_ identifier: Identifier, _ enclave: EnclaveSelection) -> ChosenValet {
        let accessControl = enclave.option.accessControl
        return enclave.isSinglePrompt
            ? .singlePrompt(.valet(with: identifier, accessControl: accessControl))
            : .secureEnclave(.valet(with: identifier, accessControl: accessControl))
    }

    private static func sharedGroupValet(
        _ group: SharedGroupIdentifier, _ identifier: Identifier?, _ enclave: EnclaveSelection
    ) -> ChosenValet {
        let accessControl = enclave.option.accessControl
        return enclave.isSinglePrompt
            ? .singlePrompt(.sharedGroupValet(with: group, identifier: identifier, accessControl: accessControl))
            : .secureEnclave(.sharedGroupValet(with: group, identifier: identifier, accessControl: accessControl))
    }

    private static func ownValet(
        _ identifier: Identifier, _ accessibility: AccessibilityOption, isCloud: Bool, isExplicit: Bool
    ) throws(CommandFailure) -> Valet {
        switch (isCloud, isExplicit) {
        case (false, false): .valet(with: identifier, accessibility: accessibility.accessibility)
        case (false, true): .valet(withExplicitlySet: identifier, accessibility: accessibility.accessibility)
        case (true, false): .iCloudValet(with: identifier, accessibility: try cloud(accessibility))
        case (true, true): .iCloudValet(withExplicitlySet: identifier, accessibility: try cloud(accessibility))
        }
    }

    private static func sharedGroupValet(
        _ group: SharedGroupIdentifier, _ identifier: String?, _ accessibility: AccessibilityOption, isCloud: Bool, isExplicit: Bool
    ) throws(CommandFailure) -> Valet {
        if isExplicit, identifier != nil {
            throw CommandFailure(
                .usage, "--explicit with --group names the valet by its group alone", advice: "Leave out --identifier.")
        }
        let identifier = try identifier.map(parse(identifier:))
        return switch (isCloud, isExplicit) {
        case (false, false): .sharedGroupValet(with: group, identifier: identifier, accessibility: accessibility.accessibility)
        case (false, true): .sharedGroupValet(withExplicitlySet: group, accessibility: accessibility.accessibility)
        case (true, false): .iCloudSharedGroupValet(with: group, identifier: identifier, accessibility: try cloud(accessibility))
        case (true, true): .iCloudSharedGroupValet(withExplicitlySet: group, accessibility: try cloud(accessibility))
        }
    }

    private static func parse(identifier: String) throws(CommandFailure) -> Identifier {
        guard let identifier = Identifier(nonEmpty: identifier) else {
            throw CommandFailure(.usage, "the identifier is empty", advice: "Give --identifier a name, or leave it out.")
        }
        return identifier
    }

    /// `group.name` is an application group; every other prefix is that of a maker.
    private static func parse(group: String) throws(CommandFailure) -> SharedGroupIdentifier {
        let parts = group.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, let identifier = SharedGroupIdentifier(appIDPrefix: parts[0], nonEmptyGroup: parts[1]) else {
            throw CommandFailure(
                .usage, "the access group has no prefix or no name", advice: "Write it as PREFIX.GROUP, such as group.com.example.shared.")
        }
        return identifier
    }

    private static func cloud(_ option: AccessibilityOption) throws(CommandFailure) -> CloudAccessibility {
        guard let accessibility = option.cloudAccessibility else {
            throw CommandFailure(
                .usage, "items of an iCloud valet cannot be kept to this device",
                advice: "With --cloud, choose --accessibility when-unlocked or after-first-unlock."
            )
        }
        return accessibility
    }
}
