// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Valet

// Explicitly named valets that differ in their accessibility only share a service, so the keychain can have one item of a key for all of them.
// Each finds the items of its own accessibility only.

extension CommandSession {
    /// Returns where an item is that prevents the valet from storing the key: one with the same primary key and another accessibility.
    ///
    /// Returns nil if there is none, if it is locked or damaged, and if the search fails.
    func placeOfOtherAccessibility(of key: String, in selected: SelectedValet) -> ItemPlace? {
        guard !selected.requiresAuthentication else { return nil }
        let place = selected.place
        let found = (try? user.places(ofAccount: key, services: [place.service])) ?? []
        return found.first {
            $0.accessGroup == place.accessGroup && $0.isSynchronizable == place.isSynchronizable && $0.accessibility != place.accessibility
        }
    }

    /// Returns the keys that the valet cannot store because an item of another accessibility has them, with the place of that item.
    func placesOfOtherAccessibility(of keys: some Sequence<String>, in selected: SelectedValet) -> [(key: String, place: ItemPlace)] {
        guard selected.isExplicit else { return [] }
        return keys.compactMap { key in placeOfOtherAccessibility(of: key, in: selected).map { (key, $0) } }
    }
}

extension CommandFailure {
    /// The note that marks such a key in a list.
    static let otherAccessibilityNote = "\t(already exists with a different accessibility)"

    /// A command that cannot store a key because an item at `place` has it.
    static func otherAccessibility(_ subject: String, at place: ItemPlace, than selected: SelectedValet) -> CommandFailure {
        let options = PlaceDescription(place).options.map { "Use \($0). " } ?? ""
        let move =
            moveCommand(from: place, to: selected).map { "To move all of its items to this accessibility, run: \($0)" }
            ?? "`valet apps` shows the items."
        return CommandFailure(.alreadyExists, "\(subject) with a different accessibility; nothing was stored", advice: options + move)
    }

    /// An import that cannot store these keys.
    static func otherAccessibility(
        of keys: [(key: String, place: ItemPlace)], than selected: SelectedValet
    ) -> CommandFailure? {
        guard let first = keys.first else { return nil }
        let names = keys.prefix(10).map { ItemListing.escapingUnprintable($0.key) }.joined(separator: ", ")
        let others = keys.count > 10 ? " and \(keys.count - 10) other keys" : ""
        let verb = keys.count == 1 ? "exists" : "exist"
        return .otherAccessibility("\(names)\(others) already \(verb)", at: first.place, than: selected)
    }

    /// The command that moves the items of a place to an explicitly named valet of the same name; nil if a shell cannot write it.
    private static func moveCommand(from place: ItemPlace, to selected: SelectedValet) -> String? {
        let source = [
            CommandLineOption(name: "--from-service", value: place.service),
            // Nil for the values that Apple has withdrawn: without the option, the items of every accessibility are moved.
            AccessibilityOption(place.accessibility).map { CommandLineOption(name: "--from-accessibility", value: $0.rawValue) },
            selected.isOfGroup ? CommandLineOption(name: "--from-group", value: place.accessGroup) : nil,
            place.isSynchronizable ? CommandLineOption(name: "--from-cloud") : nil,
        ].compactMap { $0?.text }
        return PlaceDescription(selected.place).options.map { "valet migrate \(source.joined(separator: " ")) \($0) --remove" }
    }
}
