// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The lock states in which the values of a valet can be read and written.
///
/// Choose the strictest one that your program can work with.
///
/// Source: Apple, "Restricting keychain item accessibility".
public enum Accessibility: Int, CaseIterable, CustomStringConvertible, Sendable {
    /// While the device is unlocked. A backup restores the value on a new device.
    case whenUnlocked = 1
    /// From the first unlock after a restart until the next restart, for programs that run in the background.
    /// A backup restores the value on a new device.
    case afterFirstUnlock = 2
    /// While the device is unlocked and has a passcode. Without a passcode no value can be written, and removing the passcode removes
    /// the values. A value never leaves the device.
    case whenPasscodeSetThisDeviceOnly = 4
    /// While the device is unlocked. A value never leaves the device.
    case whenUnlockedThisDeviceOnly = 5
    /// From the first unlock after a restart until the next restart. A value never leaves the device.
    case afterFirstUnlockThisDeviceOnly = 6

    /// The name in the service of stored items.
    public var description: String {
        switch self {
        case .whenUnlocked: "AccessibleWhenUnlocked"
        case .afterFirstUnlock: "AccessibleAfterFirstUnlock"
        case .whenPasscodeSetThisDeviceOnly: "AccessibleWhenPasscodeSetThisDeviceOnly"
        case .whenUnlockedThisDeviceOnly: "AccessibleWhenUnlockedThisDeviceOnly"
        case .afterFirstUnlockThisDeviceOnly: "AccessibleAfterFirstUnlockThisDeviceOnly"
        }
    }

    /// The value of `kSecAttrAccessible` in items of this accessibility.
    public var secAccessibilityAttribute: String {
        switch self {
        case .whenUnlocked: kSecAttrAccessibleWhenUnlocked as String
        case .afterFirstUnlock: kSecAttrAccessibleAfterFirstUnlock as String
        case .whenPasscodeSetThisDeviceOnly: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String
        case .whenUnlockedThisDeviceOnly: kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String
        case .afterFirstUnlockThisDeviceOnly: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as String
        }
    }
}

/// The lock states in which the values of an iCloud valet can be read and written.
///
/// Only values of these accessibilities may leave the device.
public enum CloudAccessibility: Int, CaseIterable, CustomStringConvertible, Sendable {
    /// While the device is unlocked.
    case whenUnlocked = 1
    /// From the first unlock after a restart until the next restart.
    case afterFirstUnlock = 2

    /// The same accessibility for a valet on this device.
    public var accessibility: Accessibility {
        switch self {
        case .whenUnlocked: .whenUnlocked
        case .afterFirstUnlock: .afterFirstUnlock
        }
    }

    /// The name in the service of stored items.
    public var description: String { accessibility.description }

    /// The value of `kSecAttrAccessible` in items of this accessibility.
    public var secAccessibilityAttribute: String { accessibility.secAccessibilityAttribute }
}
