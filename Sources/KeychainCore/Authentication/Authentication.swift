// SPDX-License-Identifier: Apache-2.0

/// Asks the person for what items of a keychain need, before any item is read: what `LAContext` evaluates with.
///
/// Beside `Keychain`, and implemented by whatever implements that.
package protocol KeychainAuthenticating: Sendable {
    /// Whether `authenticate` could succeed, as far as can be told without asking.
    ///
    /// With a context that has what is needed, nobody needs to be there. Throws what `authenticate` would throw at once.
    func requireCanAuthenticate(
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

/// How a call may satisfy access control: with what is at hand already, and by asking.
package struct Authentication: Sendable {
    /// Whether somebody may be asked (`kSecUseAuthenticationUI`).
    package enum Interaction: Hashable, Sendable {
        case allowed
        /// A call that would have to ask answers `.interactionNotAllowed`.
        case forbidden
        /// Items with access control are passed over, in searches.
        case skippingItems
    }

    package var interaction: Interaction
    /// What earlier answers released (`kSecUseAuthenticationContext`); nil: nothing, and an answer serves this call alone.
    package var context: AuthenticationContext?
    /// The program's own words for the person (`kSecUseOperationPrompt`).
    package var prompt: String?

    package init(interaction: Interaction = .allowed, context: AuthenticationContext? = nil, prompt: String? = nil) {
        self.interaction = interaction
        self.context = context
        self.prompt = prompt
    }

    /// Whether somebody may be asked, by what the call says and by what its context says.
    package var mayAsk: Bool { interaction == .allowed && context?.settings.isInteractionAllowed != false }
}

/// What a call found that only a person, or the program's own password, can release.
package struct AuthenticationNeeds: Hashable, Sendable {
    /// The passcode, for items of these classes; nil: no passcode.
    package private(set) var passcodeClasses: Set<Accessibility>?
    package private(set) var applicationPassword: Password?

    package enum Password: Hashable, Sendable {
        case missing
        /// The one at hand does not open an item.
        case wrong
        /// One is to be chosen, for a new item.
        case new
    }

    package init() {}

    package init(passcodeFor classes: Set<Accessibility>) {
        passcodeClasses = classes
    }

    package init(applicationPassword: Password) {
        self.applicationPassword = applicationPassword
    }

    package var isEmpty: Bool { passcodeClasses == nil && applicationPassword == nil }

    package mutating func formUnion(_ other: AuthenticationNeeds) {
        if let classes = other.passcodeClasses { passcodeClasses = (passcodeClasses ?? []).union(classes) }
        // A wrong one must go before another can be asked for.
        if applicationPassword != .wrong { applicationPassword = other.applicationPassword ?? applicationPassword }
    }
}
