// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import Valet

/// The options of `valet` that select the items of a place.
struct PlaceDescription {
    /// The program or group.
    let owner: String
    /// All options, which select the items on every command line, whatever defaults the environment has.
    let options: String

    init(_ place: ItemPlace, environment: [String: String] = ProcessEnvironment.variables) {
        owner = place.accessGroup
        let all = Self.valetOptions(of: place.service, group: place.accessGroup) ?? Self.explicitOptions(of: place)
        options = Self.withoutDefaults(all, environment).joined(separator: " ")
    }

    private static func withoutDefaults(_ options: some Sequence<String>, _ environment: [String: String]) -> [String] {
        // The other defaults are overridden by the options of the owner and the identifier, which are never omitted.
        let isDefaultOmitted = !EnvironmentDefaults(environment).hasAccessibility
        return options.filter { !(isDefaultOmitted && $0 == option(.whenUnlocked)) }
    }

    /// Returns the options of `valet migrate` that select the items of a place as the source, for a destination of the program `application`.
    ///
    /// Returns nil if there are none. Those for another program describe the valet of both programs.
    static func sourceOptions(
        _ place: ItemPlace, for application: String, environment: [String: String] = ProcessEnvironment.variables
    ) -> String? {
        let valetOptions = valetOptions(of: place.service, group: place.accessGroup)
        let options = valetOptions ?? explicitOptions(of: place)
        let isOfProgram = options[0].hasPrefix("--app")
        if isOfProgram, place.accessGroup != application {
            return ([option("--from-app", place.accessGroup)] + withoutDefaults(options.dropFirst(), environment)).joined(separator: " ")
        }
        // Such a valet cannot be named as a source.
        guard valetOptions != nil else { return isOfProgram ? option("--from-service", place.service) : nil }
        return options.dropFirst(isOfProgram ? 1 : 0).filter { $0 != option(.whenUnlocked) }.map { "--from-" + $0.dropFirst(2) }
            .joined(separator: " ")
    }

    private static func option(_ accessibility: AccessibilityOption) -> String { "--accessibility \(accessibility.rawValue)" }

    /// The option that selects the items of a program or a group.
    private static func ownerOption(_ owner: String, isGroup: Bool) -> String { option(isGroup ? "--group" : "--app", owner) }

    /// The text around the names in the service of a valet, and the options that select such a valet.
    private struct Template {
        let prefix: String
        let suffix: String
        let options: [String]

        /// Derives the template from the service of a valet whose only name is `name`.
        init?(_ valet: SelectedValet?, named name: String, _ options: [String?]) {
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
            application: "valet")
    }

    private static let groupTemplates = templates { cloud, accessibility, enclave in
        try? SelectedValet(
            identifier: nil, accessibility: accessibility, group: "prefix.\(placeholder)", isCloud: cloud, isExplicit: false,
            enclave: enclave, application: "valet")
    }

    private static let placeholder = "{}"

    private static func templates(
        _ valet: (Bool, AccessibilityOption, SecureEnclaveSelection?) -> SelectedValet?
    ) -> [Template] {
        let plain = [false, true].flatMap { isCloud in
            AccessibilityOption.allCases.compactMap { option in
                Template(
                    valet(isCloud, option, nil), named: placeholder,
                    [isCloud ? "--cloud" : nil, Self.option(option)])
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
                    ["--secure-enclave \(option.rawValue)", isSinglePrompt ? "--single-prompt" : nil])
            }
        }
        return plain + enclave
    }

    private static func valetOptions(of service: String, group: String) -> [String]? {
        for template in ownTemplates {
            guard let name = template.names(in: service) else { continue }
            return [ownerOption(group, isGroup: false), option("--identifier", name)] + template.options
        }
        guard let dot = group.firstIndex(of: ".") else { return nil }
        let groupName = String(group[group.index(after: dot)...])
        for template in groupTemplates {
            guard let names = template.names(in: service) else { continue }
            let owner = ownerOption(group, isGroup: true)
            if names == groupName { return [owner] + template.options }
            guard names.hasPrefix(groupName + "_") else { continue }
            let identifier = option("--identifier", String(names.dropFirst(groupName.count + 1)))
            return [owner, identifier] + template.options
        }
        return nil
    }

    /// Any service selects an explicitly named valet.
    private static func explicitOptions(of place: ItemPlace) -> [String] {
        let accessibility = AccessibilityOption(place.accessibility)
        let isNamedByGroup = place.accessGroup.hasSuffix("." + place.service)
        return [
            ownerOption(place.accessGroup, isGroup: isNamedByGroup), "--explicit",
            isNamedByGroup ? nil : option("--identifier", place.service), place.isSynchronizable ? "--cloud" : nil,
            accessibility.map(option),
        ].compactMap(\.self)
    }

    /// Writes an option with its value for a shell.
    ///
    /// A value that begins with a dash would be taken for an option of its own.
    static func option(_ name: String, _ value: String) -> String {
        name + (value.hasPrefix("-") ? "=" : " ") + SourceFile.quotedForShell(ItemListing.escapingUnprintable(value))
    }
}

extension CommandSession {
    /// Adds a warning if items with some of these keys are in other valets too.
    ///
    /// The valets are those of other programs, or of another accessibility, and otherwise the same name. Programs find the item of one place only,
    /// so a second one with the same key is often a mistake. If the search fails, there is no warning.
    func warnOfOtherPlaces(of keys: [String], than selected: SelectedValet) {
        let services = selected.siblings.map(\.service)
        var counts: [String: Int] = [:]
        for key in keys {
            let found = (try? keychain.places(ofAccount: key, services: services)) ?? []
            let similar = found.filter { $0.isSynchronizable == selected.place.isSynchronizable }
            for place in Self.options(of: similar, otherThan: selected) { counts[place, default: 0] += 1 }
        }
        guard !counts.isEmpty else { return }
        let places = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
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
            found = try keychain.places(ofAccount: key, services: nil)
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
        let advice = places.isEmpty ? failure.advice : "An item with this key exists with \(shown)\(others)."
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
        let places = ((try? keychain.survey())?.itemCounts ?? [:]).keys.filter {
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
    /// They are complete, so that they can be copied in place of those of the command.
    private static func options(of places: [ItemPlace], otherThan selected: SelectedValet) -> [String] {
        let others = places.filter { $0 != selected.place }
        guard !others.isEmpty else { return [] }
        let own = PlaceDescription(selected.place)
        let descriptions = others.map { PlaceDescription($0) }.filter { $0.options != own.options }
            .sorted { ($0.owner == own.owner ? 0 : 1, $0.options) < ($1.owner == own.owner ? 0 : 1, $1.options) }
        return descriptions.map(\.options)
    }
}
