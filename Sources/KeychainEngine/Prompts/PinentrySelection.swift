// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Which pinentry program asks the person.
package enum PinentrySelection: Hashable, Sendable {
    /// The first of `standardPaths` that exists, where there is a display; without one the terminal.
    case automatic
    /// The program at this absolute path, always.
    case program(String)
    /// None: the terminal.
    case never

    /// The places where distributions install one, those that show windows before those that need a terminal.
    ///
    /// Never looked up along `PATH`: whoever can change that would be told the passcode.
    package static let standardPaths = ["", "-gnome3", "-qt", "-qt6", "-qt5", "-qt4", "-gtk", "-gtk-2", "-fltk", "-efl", "-curses", "-tty"]
        .map { "/usr/bin/pinentry" + $0 }

    /// What `KEYCHAIN_PINENTRY` says: unset is automatic, empty is never.
    ///
    /// Throws `.parameter` for a relative path.
    package init(variable value: String?) throws(KeychainFailure) {
        switch value {
        case nil: self = .automatic
        case "": self = .never
        case .some(let path) where path.hasPrefix("/"): self = .program(path)
        case .some:
            throw KeychainFailure(.parameter, "KEYCHAIN_PINENTRY must be an absolute path, or empty for no pinentry at all")
        }
    }
}
