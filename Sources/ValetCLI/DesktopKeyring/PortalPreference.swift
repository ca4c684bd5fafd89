// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainSystem

/// The setting by which xdg-desktop-portal chooses the keychain for the secrets of sandboxed applications.
///
/// xdg-desktop-portal reads one file only: the first that it finds for the desktop or for all of them, the user's directory first. A new file in
/// that directory would hide what the desktop has chosen for other portals, so it begins as a copy of that.
///
/// Source: xdg-desktop-portal 1.20, portals.conf(5).
enum PortalPreference {
    private static let directory = "/xdg-desktop-portal/"
    private static let commonName = "portals.conf"
    private static let group = "preferred"
    private static let key = "org.freedesktop.impl.portal.Secret"
    private static let backEnd = "keychain"

    /// Returns nil if the desktop has no name: a file for all desktops would hide those of each.
    static func setting(_ environment: [String: String], configuration: String, data: String) -> Setting? {
        func paths(_ variable: String, _ standard: String) -> [String] {
            (environment[variable].flatMap { $0.isEmpty ? nil : $0 } ?? standard).split(separator: ":").map(String.init)
        }
        let desktops = (environment["XDG_CURRENT_DESKTOP"] ?? "").lowercased().split(separator: ":").filter { name in
            name.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_.".unicodeScalars.contains($0) }
        }
        let names = desktops.map { "\($0)-\(commonName)" } + [commonName]
        for path in names.map({ configuration + directory + $0 }) where isUsed(path) {
            if (try? FileContent(at: path))?.isWrittenBySetup != true { return setting(path) }
        }
        guard let name = names.first, name != commonName else { return nil }
        let own = configuration + directory + name
        let others =
            paths("XDG_CONFIG_DIRS", "/etc/xdg") + ["/etc", data] + paths("XDG_DATA_DIRS", "/usr/local/share:/usr/share") + ["/usr/share"]
        for path in others.flatMap({ other in names.map { other + directory + $0 } }) where isUsed(path) {
            return setting(own, initialText: "\(KeyringPlaces.note)# A copy of \(path), which it hides.\n\(text(path) ?? "")")
        }
        return setting(own, initialText: KeyringPlaces.note)
    }

    private static func setting(_ path: String, initialText: String = "") -> Setting {
        Setting(path: path, group: group, key: key, initialText: initialText) { former in
            // The former one stays the second choice, for a time when the keychain's portal is not installed.
            let others = (former ?? "").split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
            if others.contains("none") { return nil }
            return others.first == backEnd ? former : ([backEnd] + others.filter { $0 != backEnd }).map { $0 + ";" }.joined()
        }
    }

    /// Whether xdg-desktop-portal uses the file: it has a group of preferences.
    private static func isUsed(_ path: String) -> Bool {
        text(path)?.split(separator: "\n").contains { $0.trimmingCharacters(in: .whitespaces) == "[\(group)]" } == true
    }

    /// The content of a file; nil if there is none, or none that can be read.
    private static func text(_ path: String) -> String? {
        guard let target = try? FileSystem.resolve(path), case .file(let data)? = try? FileContent(at: target) else { return nil }
        return String(validating: data, as: UTF8.self)
    }
}
