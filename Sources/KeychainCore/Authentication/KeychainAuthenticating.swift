// SPDX-License-Identifier: Apache-2.0

/// Asks the person for what items of a keychain need, before any item is read: what `LAContext` evaluates with.
///
/// Beside `Keychain`, and implemented by whatever implements that.
package protocol KeychainAuthenticating: Sendable {
    /// Whether `authenticate` could succeed, as far as can be told without asking.
    ///
    /// With a context that has what is needed, nobody needs to be there. Throws what `authenticate` would throw at once.
    func requireAuthenticable(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure)

    /// Satisfies the constraint and leaves what was released in the context of `authentication`; asks nothing that is at hand already.
    ///
    /// `accessibility`: the class whose items are to be read; nil: any. Throws `.userCanceled`, `.interactionNotAllowed` when nobody
    /// may or can be asked, and else `.authFailed`, each with its refusal.
    func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure)
}

/// Why somebody could not be authenticated, where the status does not tell.
package enum AuthenticationRefusal: Hashable, Sendable {
    /// No passcode is set, so nobody can prove to be there.
    case passcodeNotSet
    /// What was typed was wrong, as often as it may be.
    case wrong
    /// So many wrong passcodes that the chip refuses more, for so many seconds.
    case lockedOut(seconds: UInt32?)
    case timedOut
    /// Biometry alone was asked for, and there is none.
    case biometryNotAvailable
    /// There is nobody to ask, or asking is forbidden.
    case notInteractive
    /// The context was invalidated.
    case invalidContext
}
