// SPDX-License-Identifier: Apache-2.0

/// Those of the caller's variables that say where a person is and which language to speak: all that a pinentry program is given.
package struct PromptEnvironment: Hashable, Sendable {
    package let variables: [String: String]

    private static let names: Set<String> = [
        "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "TERM", "LANG", "HOME", "USER", "GPG_TTY",
    ]
    private static let prefixes = ["XDG_", "LC_"]

    /// Takes what belongs there from a process's environment; the default has neither display nor terminal type.
    package init(_ environment: [String: String] = [:]) {
        variables = environment.filter { name, _ in Self.names.contains(name) || Self.prefixes.contains { name.hasPrefix($0) } }
    }

    /// A value that is set and says something.
    package subscript(_ name: String) -> String? {
        variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether a window could be shown, as far as the variables tell.
    package var hasDisplay: Bool { self["DISPLAY"] != nil || self["WAYLAND_DISPLAY"] != nil }

    /// The value of a category of the locale, in the order of setlocale(3).
    func locale(_ category: String) -> String? { self["LC_ALL"] ?? self[category] ?? self["LANG"] }
}
