// SPDX-License-Identifier: Apache-2.0

/// A protection class as it is written into items: its value, and its name in their service.
protocol ItemProtection: CustomStringConvertible, Sendable {
    var secAccessibilityAttribute: String { get }
    /// What a person must do to read the items; nil: nothing.
    var enclaveAccessControl: SecureEnclaveAccessControl? { get }
}

extension ItemProtection {
    var enclaveAccessControl: SecureEnclaveAccessControl? { nil }
}

extension Accessibility: ItemProtection {}

/// The protection classes that earlier valets offered and Apple has withdrawn.
///
/// Their items can only be migrated away.
enum WithdrawnAccessibility: ItemProtection {
    case always
    case alwaysThisDeviceOnly

    var description: String {
        switch self {
        case .always: "AccessibleAlways"
        case .alwaysThisDeviceOnly: "AccessibleAlwaysThisDeviceOnly"
        }
    }

    /// The values of `kSecAttrAccessibleAlways` and `kSecAttrAccessibleAlwaysThisDeviceOnly`, which are deprecated
    /// on Apple platforms: naming them would be a warning.
    var secAccessibilityAttribute: String {
        switch self {
        case .always: "dk"
        case .alwaysThisDeviceOnly: "dku"
        }
    }
}
