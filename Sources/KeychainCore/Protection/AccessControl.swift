// SPDX-License-Identifier: Apache-2.0

/// When an item can be read: its protection class.
///
/// The raw value is Apple's, as in `kSecAttrAccessible`.
package enum ItemAccessibility: String, CaseIterable, Sendable {
    case whenUnlocked = "ak"
    case afterFirstUnlock = "ck"
    case always = "dk"
    case whenUnlockedThisDeviceOnly = "aku"
    case afterFirstUnlockThisDeviceOnly = "cku"
    case alwaysThisDeviceOnly = "dku"
    case whenPasscodeSetThisDeviceOnly = "akpu"

    /// The number of the class on disk, the same as in Apple's keybags.
    package var code: UInt8 {
        switch self {
        case .whenUnlocked: 6
        case .afterFirstUnlock: 7
        case .always: 8
        case .whenUnlockedThisDeviceOnly: 9
        case .afterFirstUnlockThisDeviceOnly: 10
        case .alwaysThisDeviceOnly: 11
        case .whenPasscodeSetThisDeviceOnly: 12
        }
    }

    package init?(code: UInt8) {
        guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = match
    }

    /// Whether an item of this class must never leave the device, even if it is synchronizable.
    package var isThisDeviceOnly: Bool {
        switch self {
        case .whenUnlocked, .afterFirstUnlock, .always: false
        default: true
        }
    }

    /// Whether the passcode key wraps the class key while a passcode is set.
    ///
    /// The device key wraps the others, so that their items are available before any unlock.
    package var isPasscodeProtected: Bool {
        switch self {
        case .always, .alwaysThisDeviceOnly: false
        default: true
        }
    }
}

/// A protection class with an optional constraint, which a person must satisfy before the item's key is released.
package struct AccessControl: Hashable, Sendable {
    package let accessibility: ItemAccessibility
    package let constraint: Constraint?
    /// Whether the access control is for private keys, which may only sign.
    ///
    /// A password stored with it could not be read back.
    package let allowsPrivateKeyUsageOnly: Bool

    package init(_ accessibility: ItemAccessibility, constraint: Constraint? = nil, allowsPrivateKeyUsageOnly: Bool = false) {
        self.accessibility = accessibility
        self.constraint = constraint
        self.allowsPrivateKeyUsageOnly = allowsPrivateKeyUsageOnly
    }

    /// Whether the protection class alone decides, without authentication.
    package var isUnconstrained: Bool { constraint == nil && !allowsPrivateKeyUsageOnly }

    /// A tree of conditions.
    ///
    /// The order matters: the keys of `all` are combined in order.
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
