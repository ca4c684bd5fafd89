/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// When the values of a valet can be read and written. The numbers are those of Swift's `Accessibility`.
typedef NS_ENUM(NSInteger, VALAccessibility) {
    /// While the device is unlocked.
    VALAccessibilityWhenUnlocked = 1,
    /// From the first unlock after a start until the device is switched off, for background programs.
    VALAccessibilityAfterFirstUnlock = 2,
    /// While the device is unlocked, and only while a passcode is set; never leaves the device. Removing the passcode removes the values.
    VALAccessibilityWhenPasscodeSetThisDeviceOnly = 4,
    /// While the device is unlocked; never leaves the device.
    VALAccessibilityWhenUnlockedThisDeviceOnly = 5,
    /// From the first unlock after a start until the device is switched off; never leaves the device.
    VALAccessibilityAfterFirstUnlockThisDeviceOnly = 6
};
