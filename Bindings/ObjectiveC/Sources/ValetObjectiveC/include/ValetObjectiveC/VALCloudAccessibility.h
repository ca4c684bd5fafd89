/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// When values that other devices also have can be read and written. The numbers are those of Swift's `CloudAccessibility`.
typedef NS_ENUM(NSInteger, VALCloudAccessibility) {
    /// While the device is unlocked.
    VALCloudAccessibilityWhenUnlocked = 1,
    /// From the first unlock after a start until the device is switched off.
    VALCloudAccessibilityAfterFirstUnlock = 2
};
