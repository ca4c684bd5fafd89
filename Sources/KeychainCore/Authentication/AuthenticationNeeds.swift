// SPDX-License-Identifier: Apache-2.0

/// What a call found that only a person, or the program's own password, can release.
package struct AuthenticationNeeds: Hashable, Sendable {
    /// The passcode, for items of these classes; nil: no passcode.
    package private(set) var passcodeClasses: Set<Accessibility>?
    package private(set) var applicationPassword: Password?

    package enum Password: Hashable, Sendable {
        case missing
        /// The one at hand does not open an item.
        case wrong
        /// One is to be chosen, for a new item.
        case new
    }

    package init() {}

    package init(passcodeFor classes: Set<Accessibility>) {
        passcodeClasses = classes
    }

    package init(applicationPassword: Password) {
        self.applicationPassword = applicationPassword
    }

    package var isEmpty: Bool { passcodeClasses == nil && applicationPassword == nil }

    package mutating func formUnion(_ other: AuthenticationNeeds) {
        if let classes = other.passcodeClasses { passcodeClasses = (passcodeClasses ?? []).union(classes) }
        // A wrong one must go before another can be asked for.
        if applicationPassword != .wrong { applicationPassword = other.applicationPassword ?? applicationPassword }
    }
}
