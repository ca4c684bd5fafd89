// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension Accessibility {
    /// Where the holder has the class's keys while a passcode is set; nil for the classes that no lock takes away.
    var holderSlot: KeyHolderSlot? {
        switch self {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: .unlocked
        case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: .firstUnlock
        case .always, .alwaysThisDeviceOnly: nil
        }
    }
}
