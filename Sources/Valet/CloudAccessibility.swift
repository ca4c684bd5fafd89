// SPDX-License-Identifier: Apache-2.0

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
