// SPDX-License-Identifier: Apache-2.0

/// When an item can be read: its protection class.
///
/// The raw value is Apple's, as in `kSecAttrAccessible`.
package enum Accessibility: String, CaseIterable, Sendable {
    case whenUnlocked = "ak"
    case afterFirstUnlock = "ck"
    case always = "dk"
    case whenUnlockedThisDeviceOnly = "aku"
    case afterFirstUnlockThisDeviceOnly = "cku"
    case alwaysThisDeviceOnly = "dku"
    case whenPasscodeSetThisDeviceOnly = "akpu"

    /// The number that stands for the class on disk.
    ///
    /// Apple's keybags number them the same way.
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

    /// Whether an item of this class must never leave the device; such an item cannot be synchronizable.
    package var isThisDeviceOnly: Bool {
        switch self {
        case .whenUnlocked, .afterFirstUnlock, .always: false
        default: true
        }
    }

    /// Whether the class key is under the passcode while one is set.
    ///
    /// The others are under the device key, so that their items can be had before any unlock.
    package var isPasscodeProtected: Bool {
        switch self {
        case .always, .alwaysThisDeviceOnly: false
        default: true
        }
    }
}
