// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The capitalized names are those of Locksmith for Swift 2.

internal import KeychainServices

/// The lock states in which an item can be read and written.
///
/// Source: Apple, "Restricting keychain item accessibility".
public enum LocksmithAccessibleOption: RawRepresentable, CaseIterable, Hashable, Sendable {
    /// From the first unlock after a restart until the next restart.
    case afterFirstUnlock
    /// From the first unlock after a restart until the next restart; the item never leaves the device.
    case afterFirstUnlockThisDeviceOnly
    /// Always, even while the device is locked. Apple has withdrawn this option; prefer another.
    case always
    /// Always, even while the device is locked; the item never leaves the device. Apple has withdrawn this option; prefer another.
    case alwaysThisDeviceOnly
    /// While the device is unlocked and has a passcode; the item never leaves the device.
    case whenPasscodeSetThisDeviceOnly
    /// While the device is unlocked.
    case whenUnlocked
    /// While the device is unlocked; the item never leaves the device.
    case whenUnlockedThisDeviceOnly

    /// The value of the `kSecAttrAccessible` attribute.
    public var rawValue: String {
        switch self {
        case .afterFirstUnlock: kSecAttrAccessibleAfterFirstUnlock as String
        case .afterFirstUnlockThisDeviceOnly: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as String
        case .always: "dk"  // kSecAttrAccessibleAlways, whose name is deprecated on Apple platforms.
        case .alwaysThisDeviceOnly: "dku"  // kSecAttrAccessibleAlwaysThisDeviceOnly, as deprecated.
        case .whenPasscodeSetThisDeviceOnly: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String
        case .whenUnlocked: kSecAttrAccessibleWhenUnlocked as String
        case .whenUnlockedThisDeviceOnly: kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String
        }
    }

    /// Creates the case with a raw value.
    ///
    /// - Parameter rawValue: The value in items of the keychain. For any other value the initializer returns nil.
    public init?(rawValue: String) {
        guard let match = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = match
    }
}

/// The spellings of Swift 2.
extension LocksmithAccessibleOption {
    /// The same as `afterFirstUnlock`.
    public static let AfterFirstUnlock = Self.afterFirstUnlock
    /// The same as `afterFirstUnlockThisDeviceOnly`.
    public static let AfterFirstUnlockThisDeviceOnly = Self.afterFirstUnlockThisDeviceOnly
    /// The same as `always`.
    public static let Always = Self.always
    /// The same as `alwaysThisDeviceOnly`.
    public static let AlwaysThisDeviceOnly = Self.alwaysThisDeviceOnly
    /// The same as `whenPasscodeSetThisDeviceOnly`.
    public static let WhenPasscodeSetThisDeviceOnly = Self.whenPasscodeSetThisDeviceOnly
    /// The same as `whenUnlocked`.
    public static let WhenUnlocked = Self.whenUnlocked
    /// The same as `whenUnlockedThisDeviceOnly`.
    public static let WhenUnlockedThisDeviceOnly = Self.whenUnlockedThisDeviceOnly
}

/// The class of an item.
///
/// Source: Apple, "Item Class Values".
public enum LocksmithSecurityClass: RawRepresentable, CaseIterable, Hashable, Sendable {
    /// A generic password.
    case genericPassword
    /// An internet password.
    case internetPassword
    /// A certificate; not supported.
    case certificate
    /// A cryptographic key; not supported.
    case key
    /// A certificate with its private key; not supported.
    case identity

    /// The value of `kSecClass`.
    public var rawValue: String {
        switch self {
        case .genericPassword: kSecClassGenericPassword as String
        case .internetPassword: kSecClassInternetPassword as String
        case .certificate: kSecClassCertificate as String
        case .key: kSecClassKey as String
        case .identity: kSecClassIdentity as String
        }
    }

    /// Creates the case with a raw value.
    ///
    /// - Parameter rawValue: The value in items of the keychain. For any other value the initializer returns nil.
    public init?(rawValue: String) {
        guard let match = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = match
    }
}

/// The spellings of Swift 2.
extension LocksmithSecurityClass {
    /// The same as `genericPassword`.
    public static let GenericPassword = Self.genericPassword
    /// The same as `internetPassword`.
    public static let InternetPassword = Self.internetPassword
    /// The same as `certificate`.
    public static let Certificate = Self.certificate
    /// The same as `key`.
    public static let Key = Self.key
    /// The same as `identity`.
    public static let Identity = Self.identity
}
