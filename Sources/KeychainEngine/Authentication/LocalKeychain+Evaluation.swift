// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import Keybag
package import KeychainCore
internal import KeychainSystem

extension LocalKeychain: KeychainAuthenticating {
    package func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in try access.requireCanAuthenticate(constraint, in: context) }
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in try access.authenticate(constraint, of: accessibility, authentication) }
    }

    /// What the person is told is asking.
    static var pathOfThisProgram: String {
        CurrentProcess.executablePath ?? CommandLine.arguments.first ?? "a program"
    }
}

extension KeychainConfiguration {
    func prompting(requester: String) -> Prompting {
        Prompting(
            verifier: verifier, requester: requester,
            timeoutSeconds: promptTimeoutSeconds)
    }
}

/// Authenticating ahead of any item: what a context evaluates.
extension KeychainAccess {
    package func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        guard constraint.isSatisfiable else {
            throw KeychainFailure.biometryNotAvailable()
        }
        if constraint.needsPresence { try requirePasscodeForPresence() }
        if let context, try needs(of: constraint, nil, in: context).isEmpty { return }
        guard context?.settings.isInteractionAllowed != false, prompting.verifier.canAsk else {
            throw KeychainFailure(
                .interactionNotAllowed, "there is neither a terminal nor a display to ask on", refusal: .notInteractive)
        }
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        guard let context = authentication.context else { throw Self.invalidContext }
        guard !context.isInvalidated else { throw Self.invalidContext }
        guard constraint.isSatisfiable else {
            throw KeychainFailure.biometryNotAvailable()
        }
        if constraint.needsPresence { try requirePasscodeForPresence() }
        let needs = try needs(of: constraint, accessibility, in: context)
        guard !needs.isEmpty else { return }
        try satisfy(needs, authentication)
    }

    /// What the context lacks.
    private func needs(
        of constraint: AccessControl.Constraint, _ accessibility: Accessibility?, in context: AuthenticationContext
    ) throws(KeychainFailure) -> AuthenticationNeeds {
        var needs = AuthenticationNeeds()
        if constraint.needsPresence {
            let (keys, isUnlocked) = try performOnCurrentKeybag { opened throws(KeychainFailure) in
                (
                    context.keys(of: opened.keybag.storeID, presencePublicKey: opened.keybag.cipher.presencePublicKey),
                    try opened.keybag.lockState() == .unlocked
                )
            }
            let classes = accessibility.map { [$0] } ?? Set(Accessibility.allCases)
            // While it is locked the class keys must have been released too.
            let isReleased = keys.presence.map { isUnlocked || $0.classes.isSuperset(of: classes) } ?? false
            if !isReleased { needs.formUnion(AuthenticationNeeds(passcodeFor: classes)) }
        }
        if constraint.needsApplicationPassword, context.applicationPassword == nil {
            needs.formUnion(AuthenticationNeeds(applicationPassword: .missing))
        }
        return needs
    }

    private func requirePasscodeForPresence() throws(KeychainFailure) {
        let isSet: Bool
        do throws(KeychainFailure) {
            isSet = try performOnCurrentKeybag { opened throws(KeychainFailure) in opened.keybag.isPasscodeSet }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            isSet = false
        }
        guard isSet else {
            throw KeychainFailure.passcodeNotSet()
        }
    }
}
