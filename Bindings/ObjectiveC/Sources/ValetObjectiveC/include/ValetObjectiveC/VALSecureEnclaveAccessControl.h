/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// How a person must authenticate before a value can be read. Every kind requires a passcode to be set.
///
/// The numbers are those of Swift's `SecureEnclaveAccessControl`. The short names are those of Valet's examples.
typedef NS_ENUM(NSInteger, VALSecureEnclaveAccessControl) {
    /// Any enrolled finger or face, or the passcode.
    VALSecureEnclaveAccessControlUserPresence = 1,
    /// Any finger or face that is enrolled when the value is read.
    VALSecureEnclaveAccessControlBiometricAny = 2,
    /// A finger or face that was enrolled when the value was stored.
    VALSecureEnclaveAccessControlBiometricCurrentSet = 3,
    /// The passcode.
    VALSecureEnclaveAccessControlDevicePasscode = 4,

    /// `VALSecureEnclaveAccessControlUserPresence`.
    VALAccessControlUserPresence = VALSecureEnclaveAccessControlUserPresence,
    /// `VALSecureEnclaveAccessControlBiometricAny`.
    VALAccessControlBiometricAny = VALSecureEnclaveAccessControlBiometricAny,
    /// `VALSecureEnclaveAccessControlBiometricCurrentSet`.
    VALAccessControlBiometricCurrentSet = VALSecureEnclaveAccessControlBiometricCurrentSet,
    /// `VALSecureEnclaveAccessControlDevicePasscode`.
    VALAccessControlDevicePasscode = VALSecureEnclaveAccessControlDevicePasscode
};
