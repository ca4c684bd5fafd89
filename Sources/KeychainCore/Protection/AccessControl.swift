// SPDX-License-Identifier: Apache-2.0

/// A protection class and, perhaps, what a person must do before the item's key is released.
package struct AccessControl: Hashable, Sendable {
    package let accessibility: Accessibility
    package let constraint: Constraint?
    /// The item is a private key's: it may sign, and a password stored with it could not be read back.
    package let allowsPrivateKeyUsageOnly: Bool

    package init(_ accessibility: Accessibility, constraint: Constraint? = nil, allowsPrivateKeyUsageOnly: Bool = false) {
        self.accessibility = accessibility
        self.constraint = constraint
        self.allowsPrivateKeyUsageOnly = allowsPrivateKeyUsageOnly
    }

    /// Whether the protection class alone decides, with nobody asked.
    package var isUnconstrained: Bool { constraint == nil && !allowsPrivateKeyUsageOnly }

    /// A tree of conditions.
    ///
    /// Order matters: the keys of `all` are combined in order.
    package indirect enum Constraint: Hashable, Sendable {
        case userPresence
        case devicePasscode
        case biometryAny
        case biometryCurrentSet
        case companion
        case applicationPassword
        case any([Constraint])
        case all([Constraint])
    }
}
