// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import Valet

/// An option on a command line.
struct CommandLineOption {
    let name: String
    var value: String?

    /// The option as one argument.
    var argument: String { value.map { "\(name)=\($0)" } ?? name }

    /// The option as it is written in a shell; nil if its value cannot be.
    ///
    /// A value that begins with a dash would be taken for an option of its own.
    var text: String? {
        guard let value else { return name }
        return Self.quotedForShell(value).map { name + (value.hasPrefix("-") ? "=" : " ") + $0 }
    }

    /// Quotes text for a shell without printing characters that control a terminal.
    ///
    /// Returns nil for text that no command substitution has: one that ends with a line break, or contains a NUL.
    private static func quotedForShell(_ value: String) -> String? {
        guard ItemListing.escapingUnprintable(value) != value else { return SourceFile.quotedForShell(value) }
        guard value.utf8.last != UInt8(ascii: "\n"), !value.utf8.contains(0) else { return nil }
        let escaped = value.utf8.map { byte in
            let scalar = UnicodeScalar(byte)
            if scalar.properties.isAlphabetic && scalar.isASCII { return String(scalar) }
            let digits = String(byte, radix: 8)
            return "\\0" + String(repeating: "0", count: 3 - digits.count) + digits
        }
        return "\"$(printf %b '\(escaped.joined())')\""
    }
}

/// The options of `valet` that select the items of a place.
struct PlaceDescription {
    /// The program or group.
    let owner: String
    /// All options, which select the items on every command line, whatever defaults the environment has; nil if no options select them.
    let options: String?
    /// The options for a message about them.
    var shownOptions: String { options ?? "the given options" }
    /// What to do with items that no options select.
    let alternative: String

    init(_ place: ItemPlace, environment: [String: String] = ProcessEnvironment.variables) {
        owner = place.accessGroup
        options = Self.selectingOptions(of: place).lazy.compactMap { Self.text(Self.withoutDefaults($0, environment)) }.first
        let service = CommandLineOption(name: "--from-service", value: place.service)
        let cloud = place.isSynchronizable ? [CommandLineOption(name: "--from-cloud")] : []
        let source = Self.text([service] + cloud + [CommandLineOption(name: "--app", value: place.accessGroup)])
        alternative =
            if let source, !place.service.isEmpty { "valet migrate \(source) --identifier NAME copies them" } else {
                "SecItemCopyMatching finds them"
            }
    }

    /// Returns the options of `valet migrate` that select the items of a place as the source, for a destination of the program `application`.
    ///
    /// Returns nil if there are none. Those for another program describe the valet of both programs.
    static func sourceOptions(
        _ place: ItemPlace, for application: String, environment: [String: String] = ProcessEnvironment.variables
    ) -> String? {
        guard let options = selectingOptions(of: place).first, let owner = options.first else { return nil }
        let isOfProgram = owner.name == "--app"
        if isOfProgram, place.accessGroup != application {
            return text(
                [CommandLineOption(name: "--from-app", value: place.accessGroup)] + withoutDefaults(options.dropFirst(), environment))
        }
        if options.contains(where: { $0.name == "--explicit" }) {
            // Such a valet cannot be named as a source.
            return isOfProgram ? text([CommandLineOption(name: "--from-service", value: place.service)]) : nil
        }
        let source = options.dropFirst(isOfProgram ? 1 : 0).filter { $0.argument != option(.whenUnlocked).argument }
        return text(source.map { CommandLineOption(name: "--from-" + $0.name.dropFirst(2), value: $0.value) })
    }

    /// All ways to select the items of a place.
    private static func selectingOptions(of place: ItemPlace) -> some Collection<[CommandLineOption]> {
        let candidates =
            valetOptions(of: place.service, group: place.accessGroup)
            + [true, false].map { explicitOptions(of: place, isNamedByGroup: $0) }
        // The first one is mostly enough, and each is parsed.
        return candidates.lazy.filter { isSelected(place, by: $0) }
    }

    private static func withoutDefaults(
        _ options: some Sequence<CommandLineOption>, _ environment: [String: String]
    ) -> [CommandLineOption] {
        // The other defaults are overridden by the options of the owner and the identifier, which are never omitted.
        let isDefaultOmitted = !EnvironmentDefaults(environment).hasAccessibility
        return options.filter { !(isDefaultOmitted && $0.argument == option(.whenUnlocked).argument) }
    }

    /// Returns the options as they are written in a shell; nil if one of them cannot be.
    private static func text(_ options: [CommandLineOption]) -> String? {
        let texts = options.compactMap(\.text)
        return texts.count == options.count ? texts.joined(separator: " ") : nil
    }

    /// Whether the valet that the options select finds the items of a place.
    ///
    /// The service alone does not decide: another program can have stored an item with any accessibility under the service of a valet.
    private static func isSelected(_ place: ItemPlace, by options: [CommandLineOption]) -> Bool {
        let valet = try? ValetOptions.parse(options.map(\.argument)).resolve(environment: [:])
        return valet?.place == place
    }

    private static func option(_ accessibility: AccessibilityOption) -> CommandLineOption {
        CommandLineOption(name: "--accessibility", value: accessibility.rawValue)
    }

    /// The option that selects the items of a program or a group.
    private static func ownerOption(_ owner: String, isGroup: Bool) -> CommandLineOption {
        CommandLineOption(name: isGroup ? "--group" : "--app", value: owner)
    }

    /// The text around the names in the service of a valet, and the options that select such a valet.
    private struct Template {
        let prefix: String
        let suffix: String
        let options: [CommandLineOption]

        /// Derives the template from the service of a valet whose only name is `name`.
        init?(_ valet: SelectedValet?, named name: String, _ options: [CommandLineOption?]) {
            guard let service = valet?.service, let range = service.range(of: name) else { return nil }
            prefix = String(service[..<range.lowerBound])
            suffix = String(service[range.upperBound...])
            self.options = options.compactMap(\.self)
        }

        /// Returns the names between prefix and suffix.
        func names(in service: String) -> String? {
            guard service.hasPrefix(prefix), service.hasSuffix(suffix), service.utf8.count > prefix.utf8.count + suffix.utf8.count else {
                return nil
            }
            return String(service.dropFirst(prefix.count).dropLast(suffix.count))
        }
    }

    private static let ownTemplates = templates { cloud, accessibility, enclave in
        try? SelectedValet(
            identifier: placeholder, accessibility: accessibility, group: nil, isCloud: cloud, isExplicit: false, enclave: enclave,
            application: SelectedValet.ownApplication)
    }

    private static let groupTemplates = templates { cloud, accessibility, enclave in
        try? SelectedValet(
            identifier: nil, accessibility: accessibility, group: "prefix.\(placeholder)", isCloud: cloud, isExplicit: false,
            enclave: enclave, application: SelectedValet.ownApplication)
    }

    private static let placeholder = "{}"

    private static func templates(
        _ valet: (Bool, AccessibilityOption, SecureEnclaveSelection?) -> SelectedValet?
    ) -> [Template] {
        let plain = [false, true].flatMap { isCloud in
            AccessibilityOption.allCases.compactMap { option in
                Template(
                    valet(isCloud, option, nil), named: placeholder,
                    [isCloud ? CommandLineOption(name: "--cloud") : nil, Self.option(option)])
            }
        }
        let enclave = [false, true].flatMap { isSinglePrompt in
            SecureEnclaveOption.allCases.compactMap { option -> Template? in
                // No item has an authentication that this platform does not support.
                guard let selection = try? SecureEnclaveSelection(option, isSinglePrompt: isSinglePrompt, names: ("", "")) else {
                    return nil
                }
                return Template(
                    valet(false, .whenPasscodeSetThisDeviceOnly, selection), named: placeholder,
                    [
                        CommandLineOption(name: "--secure-enclave", value: option.rawValue),
                        isSinglePrompt ? CommandLineOption(name: "--single-prompt") : nil,
                    ])
            }
        }
        return plain + enclave
    }

    /// The options of the valets whose services have this form.
    private static func valetOptions(of service: String, group: String) -> [[CommandLineOption]] {
        func identifier(_ name: some StringProtocol) -> CommandLineOption { CommandLineOption(name: "--identifier", value: String(name)) }
        let own = ownTemplates.compactMap { template in
            template.names(in: service).map { [ownerOption(group, isGroup: false), identifier($0)] + template.options }
        }
        guard let dot = group.firstIndex(of: ".") else { return own }
        let groupName = String(group[group.index(after: dot)...])
        let shared = groupTemplates.compactMap { template -> [CommandLineOption]? in
            guard let names = template.names(in: service) else { return nil }
            let owner = ownerOption(group, isGroup: true)
            if names == groupName { return [owner] + template.options }
            guard names.hasPrefix(groupName + "_") else { return nil }
            return [owner, identifier(names.dropFirst(groupName.count + 1))] + template.options
        }
        return own + shared
    }

    /// The options of the explicitly named valet with this service.
    private static func explicitOptions(of place: ItemPlace, isNamedByGroup: Bool) -> [CommandLineOption] {
        [
            ownerOption(place.accessGroup, isGroup: isNamedByGroup), CommandLineOption(name: "--explicit"),
            isNamedByGroup ? nil : CommandLineOption(name: "--identifier", value: place.service),
            place.isSynchronizable ? CommandLineOption(name: "--cloud") : nil, AccessibilityOption(place.accessibility).map(option),
        ].compactMap(\.self)
    }
}

extension CommandSession {
    /// Adds a warning if items with some of these keys are in other valets too.
    ///
    /// The valets are those of other programs, or of another accessibility, and otherwise the same name. Programs find the item of one place only,
    /// so a second one with the same key is often a mistake. If the search fails, there is no warning.
    func warnOfOtherPlaces(of keys: some Collection<String>, than selected: SelectedValet) {
        let services = selected.siblings.map(\.service)
        let own = selected.place
        var counts: [ItemPlace: Int] = [:]
        for key in keys {
            let found = (try? user.places(ofAccount: key, services: services)) ?? []
            for place in found where place.isSynchronizable == own.isSynchronizable && place != own { counts[place, default: 0] += 1 }
        }
        let places = counts.compactMap { place, count in PlaceDescription(place).options.map { (key: $0, value: count) } }
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        guard !places.isEmpty else { return }
        guard keys.count > 1 else {
            WarningLog.add("an item with this key also exists with \(places.map(\.key).joined(separator: ", and with "))")
            return
        }
        let phrases = places.prefix(3).map { place, count in "\(count) of these keys also \(count == 1 ? "exists" : "exist") with \(place)"
        }
        WarningLog.add(phrases.joined(separator: ", and ") + (places.count > 3 ? ", and others with other options" : ""))
    }

    /// Adds to the failure of a missing item where an item with this key is, or that there is no keychain yet.
    func addingOtherPlaces(of key: String, than selected: SelectedValet, to failure: CommandFailure) -> CommandFailure {
        guard failure.status == .notFound else { return failure }
        let found: [ItemPlace]
        do throws(KeychainFailure) {
            found = try user.places(ofAccount: key, services: nil)
        } catch {
            guard error.status == .itemNotFound, let path = try? keychain.configuration().storePath else { return failure }
            return CommandFailure(
                failure.status, "no keychain exists yet at \(ItemListing.escapingUnprintable(path))",
                advice:
                    "`valet set` creates it with the first secret. If there should be one, check KEYCHAIN_HOME, XDG_DATA_HOME, and HOME.")
        }
        let services = Set(selected.siblings.map(\.service))
        let places =
            Self.options(of: found.filter { services.contains($0.service) }, otherThan: selected)
            + Self.options(of: found.filter { !services.contains($0.service) }, otherThan: selected)
        let shown = places.prefix(3).joined(separator: ", and with ")
        let others = places.count > 3 ? ", and with other options (see `valet apps`)" : ""
        let isInaccessible = places.isEmpty && found.contains { PlaceDescription($0).options == nil }
        let advice =
            places.isEmpty
            ? isInaccessible ? "An item with this key exists that no options select; `valet apps` shows it." : failure.advice
            : "An item with this key exists with \(shown)\(others)."
        // Whether this valet has the item is known while it is locked. In which others it is, is not.
        let isLocked = (try? status()).map { $0.state != .unlocked } ?? false
        return CommandFailure(
            failure.status, failure.problem,
            advice: isLocked ? advice + " Locked items of other valets were not searched: run `valet unlock` to find them too." : advice)
    }

    /// Adds to the failure of a migration that finds no items the options of up to three sources that have some.
    ///
    /// They have the service of the source that was given, or belong to the same program or group.
    func addingSources(
        of owner: String, service: String, into destination: SelectedValet, to failure: CommandFailure
    ) -> CommandFailure {
        let places = ((try? user.survey())?.itemCounts ?? [:]).keys.filter {
            $0 != destination.place && ($0.accessGroup == owner || $0.service == service)
        }
        let sources = places.compactMap { place in
            PlaceDescription.sourceOptions(place, for: destination.application).map { (place.service == service ? 0 : 1, $0) }
        }.sorted(by: <).map(\.1)
        guard !sources.isEmpty else { return failure }
        let shown = sources.prefix(3).joined(separator: ", and with ") + (sources.count > 3 ? ", and with other options" : "")
        return CommandFailure(failure.status, failure.problem, advice: "Items are found with \(shown); `valet apps` lists all of them.")
    }

    /// The options of places other than that of a valet, first those of the same program or group.
    ///
    /// They are complete, so that they can be copied in place of those of the command. Places that no options select are left out.
    private static func options(of places: [ItemPlace], otherThan selected: SelectedValet) -> [String] {
        let own = selected.accessGroup
        let descriptions = places.filter { $0 != selected.place }.map { PlaceDescription($0) }
            .compactMap { place in place.options.map { (place.owner, $0) } }
            .sorted { ($0.0 == own ? 0 : 1, $0.1) < ($1.0 == own ? 0 : 1, $1.1) }
        return descriptions.map(\.1)
    }
}
