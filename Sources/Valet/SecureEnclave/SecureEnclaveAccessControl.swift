// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// What a person must do before a value of a Secure Enclave valet can be read.
///
/// All of them need a passcode to be set.
public enum SecureEnclaveAccessControl: Int, Sendable {
    /// Show that they are there: by any enrolled finger or face, or by the passcode.
    case userPresence = 1
    /// Show any finger or face that is enrolled when the value is read.
    case biometricAny
    /// Show a finger or face that was enrolled when the value was stored: enrolling another one makes the value unreadable.
    case biometricCurrentSet
    /// Type the passcode.
    case devicePasscode
}

/// The protection of items that a person has to release: the class that needs a passcode, and an access control.
struct SecureEnclaveProtection: ItemProtection {
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

/// The keychain as a valet sees it whose values a person has to release.
struct SecureEnclaveKeychain: Sendable {
    let values: NamespaceKeychain
    /// Holds the canary: an item of the same class that anybody may read while it is unlocked, so that looking asks nobody.
    private let canary: NamespaceKeychain
    private let accessControl: SecureEnclaveAccessControl

    init(name: ValetName, sandbox: Sandbox, accessControl: SecureEnclaveAccessControl) {
        values = NamespaceKeychain(sandbox: sandbox)
        canary = NamespaceKeychain(
            sandbox: Sandbox(name: name, kind: .local, protection: Accessibility.whenPasscodeSetThisDeviceOnly))
        self.accessControl = accessControl
    }

    /// Whether values can be stored now, and read by whoever shows to be the right person.
    func isAccessible() -> Bool {
        (!accessControl.needsBiometry || PlatformRules.hasBiometry()) && canary.isAccessible()
    }

    /// Brings items into the valet.
    func migration(from source: MigrationQuery) -> Migration {
        Migration(source: source, destination: values, undoing: .once(""))
    }
}
