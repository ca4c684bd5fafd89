// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The protection of items that a person has to release: the class that needs a passcode, and an access control.
struct EnclaveProtection: ItemProtection {
    let enclaveAccessControl: SecureEnclaveAccessControl?

    init(_ accessControl: SecureEnclaveAccessControl) {
        enclaveAccessControl = accessControl
    }

    /// The class, followed by the access control as other versions of Valet write it.
    var description: String {
        let name = Accessibility.whenPasscodeSetThisDeviceOnly.description
        return switch enclaveAccessControl {
        // The oldest versions knew no other one and did not name it.
        case .userPresence, nil: name
        case .biometricAny: name + "_AccessControlTouchIDAnyFingerprint"
        case .biometricCurrentSet: name + "_AccessControlTouchIDCurrentFingerprintSet"
        case .devicePasscode: name + "_AccessControlDevicePasscode"
        }
    }

    var secAccessibilityAttribute: String { Accessibility.whenPasscodeSetThisDeviceOnly.secAccessibilityAttribute }
}

extension SecureEnclaveAccessControl {
    /// The same in the words of Keychain Services.
    var flags: SecAccessControlCreateFlags {
        switch self {
        case .userPresence: .userPresence
        case .biometricAny: .biometryAny
        case .biometricCurrentSet: .biometryCurrentSet
        case .devicePasscode: .devicePasscode
        }
    }

    /// Whether nothing but a finger or a face will do.
    var needsBiometry: Bool { self == .biometricAny || self == .biometricCurrentSet }
}
