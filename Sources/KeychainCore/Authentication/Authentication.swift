// SPDX-License-Identifier: Apache-2.0

/// Authenticates a person before items are read.
///
/// `LAContext` evaluates policies with it.
///
/// Implementations of `Keychain` implement it too.
package protocol KeychainAuthenticating: Sendable {
    /// Checks whether `authenticate` could succeed, without showing a prompt.
    ///
    /// A context that already satisfies the constraint needs no prompt. Throws the errors that `authenticate` would throw immediately.
    func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure)

    /// What a program can learn about biometry.
    func biometryStatus() throws(KeychainFailure) -> BiometryStatus

    /// Satisfies the constraint and stores the released keys in the context of `authentication`. Prompts only for what is missing.
    ///
    /// `accessibility` is the class of the items to be read; nil: any. Throws `.userCanceled`, `.interactionNotAllowed` if no prompt may
    /// or can be shown, and otherwise `.authFailed`, each with its refusal.
    func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: ItemAccessibility?, _ authentication: Authentication
    ) throws(KeychainFailure)
}

extension KeychainAuthenticating {
    package func biometryStatus() throws(KeychainFailure) -> BiometryStatus { BiometryStatus() }
}

/// Why authentication failed.
///
/// Every failure with the status `.authFailed` has one.
package enum AuthenticationRefusal: Hashable, Sendable {
    /// No passcode is set, so there is nothing to lock or unlock, and user presence cannot be proved.
    case passcodeNotSet
    case wrongPasscode
    /// The password of an item or of a backup is wrong.
    case wrongPassword
    /// The recovery key is that of another keychain, or was replaced.
    case wrongRecoveryKey
    /// The item still requires authentication after the permitted number of rounds.
    case notSatisfied
    /// The TPM refuses attempts after too many wrong passcodes. `seconds` is the duration; nil: unknown.
    case lockedOut(seconds: UInt32?)
    case timedOut
    /// Only biometry would satisfy the constraint, and it is not available.
    case biometryNotAvailable
    /// No finger is enrolled.
    case biometryNotEnrolled
    /// Too many fingers did not match; the passcode permits biometry again.
    case biometryLockedOut
    /// A finger was not recognized.
    case biometryNotRecognized
    /// A passcode is required and was not given, and no prompt can be shown, or prompts are forbidden.
    case notInteractive
    /// The context was invalidated.
    case invalidContext
}

/// How a call may satisfy access control: with earlier releases, and with prompts.
package struct Authentication: Sendable {
    /// Whether a prompt may be shown (`kSecUseAuthenticationUI`).
    package enum Interaction: Hashable, Sendable {
        case allowed
        /// A call that would need a prompt throws `.interactionNotAllowed`.
        case forbidden
        /// Searches skip items with access control.
        case skippingItems
    }

    package var interaction: Interaction
    /// The context with earlier releases (`kSecUseAuthenticationContext`); nil: authentication is valid for this call alone.
    package var context: AuthenticationContext?
    /// The program's text for the prompt (`kSecUseOperationPrompt`).
    package var prompt: String?

    package init(interaction: Interaction = .allowed, context: AuthenticationContext? = nil, prompt: String? = nil) {
        self.interaction = interaction
        self.context = context
        self.prompt = prompt
    }

    /// Whether both the call and its context permit prompts.
    package var mayAsk: Bool { interaction == .allowed && context?.settings.isInteractionAllowed != false }
}

/// The authentication that a call requires: the passcode, biometry, an application password, or several of them.
package struct AuthenticationNeeds: Hashable, Sendable {
    /// The passcode, for items of these classes; nil: no passcode.
    package private(set) var passcodeClasses: Set<ItemAccessibility>?
    /// The biometric keys that do as well as the passcode; nil: only the passcode does.
    package private(set) var passcodeAlternative: Set<BiometryKind>?
    /// The biometric keys without which an item does not open.
    package private(set) var biometry: Set<BiometryKind> = []
    package private(set) var applicationPassword: Password?

    package enum Password: Hashable, Sendable {
        case missing
        /// The given password does not open an item.
        case wrong
        /// A new item needs a password to be chosen.
        case new
    }

    package init() {}

    package init(passcodeFor classes: Set<ItemAccessibility>, orBiometry alternative: Set<BiometryKind>? = nil) {
        passcodeClasses = classes
        passcodeAlternative = alternative
    }

    package init(biometry kinds: Set<BiometryKind>) {
        biometry = kinds
    }

    package init(applicationPassword: Password) {
        self.applicationPassword = applicationPassword
    }

    package var isEmpty: Bool { passcodeClasses == nil && biometry.isEmpty && applicationPassword == nil }

    /// Adds classes whose keys the passcode must release, if it is needed.
    package mutating func addPasscodeClasses(_ classes: Set<ItemAccessibility>) { passcodeClasses?.formUnion(classes) }

    /// The needs of a call for which these or others suffice.
    ///
    /// Only a choice between the passcode and biometry is left to the person; otherwise these are needed.
    package func or(_ other: AuthenticationNeeds) -> AuthenticationNeeds {
        guard applicationPassword == nil, other.applicationPassword == nil else {
            // The one for which no reader is needed.
            return biometry.isEmpty || !other.biometry.isEmpty ? self : other
        }
        let kinds = biometry.union(other.biometry).union(passcodeAlternative ?? []).union(other.passcodeAlternative ?? [])
        if let classes = passcodeClasses, biometry.isEmpty, other.passcodeClasses == nil {
            return AuthenticationNeeds(passcodeFor: classes, orBiometry: kinds)
        }
        if let classes = other.passcodeClasses, other.biometry.isEmpty, passcodeClasses == nil {
            return AuthenticationNeeds(passcodeFor: classes, orBiometry: kinds)
        }
        return self
    }

    package mutating func formUnion(_ other: AuthenticationNeeds) {
        if let classes = other.passcodeClasses {
            if passcodeClasses == nil {
                passcodeAlternative = other.passcodeAlternative
            } else if let alternative = passcodeAlternative {
                passcodeAlternative = other.passcodeAlternative.map(alternative.union)
            }
            passcodeClasses = (passcodeClasses ?? []).union(classes)
        }
        biometry.formUnion(other.biometry)
        // A wrong password must be removed before another prompt.
        if applicationPassword != .wrong { applicationPassword = other.applicationPassword ?? applicationPassword }
    }
}
