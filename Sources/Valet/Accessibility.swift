// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// When the values of a valet can be read and written.
///
/// Choose the strictest that lets the program work.
///
/// Source: Apple, "Restricting keychain item accessibility".
public enum Accessibility: Int, CaseIterable, CustomStringConvertible, Sendable {
    /// While the device is unlocked. A restored backup brings the value to a new device.
    case whenUnlocked = 1
    /// From the first unlock after a start until the device is switched off: for programs that work in the background.
    /// A restored backup brings the value to a new device.
    case afterFirstUnlock = 2
    /// While the device is unlocked, and only while it has a passcode: without one nothing can be written, and removing
    /// the passcode removes the values. Never leaves the device.
    case whenPasscodeSetThisDeviceOnly = 4
    /// While the device is unlocked. Never leaves the device.
    case whenUnlockedThisDeviceOnly = 5
    /// From the first unlock after a start until the device is switched off. Never leaves the device.
    case afterFirstUnlockThisDeviceOnly = 6

    /// The name that stands in the service of stored items.
    public var description: String {
        switch self {
        case .whenUnlocked: "AccessibleWhenUnlocked"
        case .afterFirstUnlock: "AccessibleAfterFirstUnlock"
        case .whenPasscodeSetThisDeviceOnly: "AccessibleWhenPasscodeSetThisDeviceOnly"
        case .whenUnlockedThisDeviceOnly: "AccessibleWhenUnlockedThisDeviceOnly"
        case .afterFirstUnlockThisDeviceOnly: "AccessibleAfterFirstUnlockThisDeviceOnly"
        }
    }

    /// The value of `kSecAttrAccessible` that items of this accessibility carry.
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

/// When the values of an iCloud valet can be read and written: the accessibilities that may leave the device.
public enum CloudAccessibility: Int, CaseIterable, CustomStringConvertible, Sendable {
    /// While the device is unlocked.
    case whenUnlocked = 1
    /// From the first unlock after a start until the device is switched off.
    case afterFirstUnlock = 2

    /// The same accessibility as a valet that stays on the device has it.
    public var accessibility: Accessibility {
        switch self {
        case .whenUnlocked: .whenUnlocked
        case .afterFirstUnlock: .afterFirstUnlock
        }
    }

    /// The name that stands in the service of stored items.
    public var description: String { accessibility.description }

    /// The value of `kSecAttrAccessible` that items of this accessibility carry.
    public var secAccessibilityAttribute: String { accessibility.secAccessibilityAttribute }
}
