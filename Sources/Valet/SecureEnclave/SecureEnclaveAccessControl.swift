// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The authentication that reading a value of a Secure Enclave valet requires.
///
/// All cases require that a passcode is set.
public enum SecureEnclaveAccessControl: Int, Sendable {
    /// Any enrolled fingerprint or face, or the passcode.
    case userPresence = 1
    /// Any fingerprint or face that is enrolled when the value is read.
    case biometricAny
    /// A fingerprint or face that was enrolled when the value was stored. Enrolling another one makes the value unreadable.
    case biometricCurrentSet
    /// The passcode.
    case devicePasscode
}

/// The protection of items with access control: the class that requires a passcode, and the access control.
struct SecureEnclaveProtection: ItemProtection {
    let enclaveAccessControl: SecureEnclaveAccessControl?

    init(_ accessControl: SecureEnclaveAccessControl) {
        enclaveAccessControl = accessControl
    }

    /// The class, followed by the access control as other versions of Valet write it.
    var description: String {
        let name = Accessibility.whenPasscodeSetThisDeviceOnly.description
        return switch enclaveAccessControl {
        // The oldest versions had no other access control and wrote no name for it.
        case .userPresence, nil: name
        case .biometricAny: name + "_AccessControlTouchIDAnyFingerprint"
        case .biometricCurrentSet: name + "_AccessControlTouchIDCurrentFingerprintSet"
        case .devicePasscode: name + "_AccessControlDevicePasscode"
        }
    }

    var secAccessibilityAttribute: String { Accessibility.whenPasscodeSetThisDeviceOnly.secAccessibilityAttribute }
}

extension SecureEnclaveAccessControl {
    /// The corresponding flags of Keychain Services.
    var flags: SecAccessControlCreateFlags {
        switch self {
        case .userPresence: .userPresence
        case .biometricAny: .biometryAny
        case .biometricCurrentSet: .biometryCurrentSet
        case .devicePasscode: .devicePasscode
        }
    }
}

/// The namespace of a valet with access control, and its canary.
struct SecureEnclaveKeychain: Sendable {
    let values: NamespaceKeychain
    /// The namespace of the canary: an item of the same class without access control, so that reading it does not prompt the user.
    private let canary: NamespaceKeychain

    init(name: ValetName, namespace: KeychainNamespace) {
        values = NamespaceKeychain(namespace: namespace)
        canary = NamespaceKeychain(
            namespace: KeychainNamespace(name: name, kind: .local, protection: Accessibility.whenPasscodeSetThisDeviceOnly))
    }

    /// Returns whether items of the valet's protection class can be written and read.
    func isAccessible() -> Bool {
        canary.isAccessible()
    }

    /// Returns a migration of items into the valet.
    func migration(from source: MigrationQuery) -> Migration {
        Migration(source: source, destination: values, undoing: .once(""))
    }
}
