/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

/// What a person must do before a value can be read. All of them need a passcode to be set.
///
/// The numbers are those of Swift's `SecureEnclaveAccessControl`. The short names are those of Valet's examples.
typedef NS_ENUM(NSInteger, VALSecureEnclaveAccessControl) {
    /// Show that they are there: by any enrolled finger or face, or by the passcode.
    VALSecureEnclaveAccessControlUserPresence = 1,
    /// Show any finger or face that is enrolled when the value is read.
    VALSecureEnclaveAccessControlBiometricAny = 2,
    /// Show a finger or face that was enrolled when the value was stored.
    VALSecureEnclaveAccessControlBiometricCurrentSet = 3,
    /// Type the passcode.
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
