// SPDX-License-Identifier: Apache-2.0

// The protection classes: when an item can be read (Apple: "Keychain item accessibility values").

/// Readable while the keychain is unlocked.
///
/// The default of passwords.
public let kSecAttrAccessibleWhenUnlocked: CFString = "ak"
/// Readable from the first unlock until the next restart.
public let kSecAttrAccessibleAfterFirstUnlock: CFString = "ck"
/// Readable at any time.
///
/// Deprecated by Apple: it protects nothing while locked.
public let kSecAttrAccessibleAlways: CFString = "dk"
/// Readable while the keychain is unlocked, and only on this device.
public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = "aku"
/// Readable from the first unlock until the next restart, and only on this device.
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
/// Readable at any time, and only on this device.
///
/// Deprecated by Apple: it protects nothing while locked.
public let kSecAttrAccessibleAlwaysThisDeviceOnly: CFString = "dku"
/// Readable while unlocked, only on this device, and only as long as a passcode is set.
public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "akpu"
