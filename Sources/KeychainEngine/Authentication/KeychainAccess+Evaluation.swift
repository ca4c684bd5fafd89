// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// Authenticating ahead of any item: what a context evaluates.
extension KeychainAccess {
    package func requireAuthenticable(_ constraint: AccessControl.Constraint) throws(KeychainFailure) {
        guard constraint.isReleasable else {
            throw KeychainFailure(.authFailed, "biometry and companions release no key here", refusal: .biometryNotAvailable)
        }
        if constraint.needsPresence { try requirePasscodeForPresence() }
        guard prompting.verifier.canAsk else {
            throw KeychainFailure(
                .interactionNotAllowed, "there is neither a terminal nor a display to ask on", refusal: .notInteractive)
        }
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        guard let context = authentication.context else { throw Self.invalidContext }
        guard !context.isInvalidated else { throw Self.invalidContext }
        guard constraint.isReleasable else {
            throw KeychainFailure(.authFailed, "biometry and companions release no key here", refusal: .biometryNotAvailable)
        }
        var needs = AuthenticationNeeds()
        if constraint.needsPresence {
            try requirePasscodeForPresence()
            let keys = try performOnCurrentKeybag { opened throws(KeychainFailure) in
                context.keys(of: opened.keybag.storeID, presencePublicKey: opened.keybag.cipher.presencePublicKey)
            }
            let classes = accessibility.map { [$0] } ?? Set(Accessibility.allCases)
            if keys.presence == nil { needs.formUnion(AuthenticationNeeds(passcodeFor: classes)) }
        }
        if constraint.needsApplicationPassword, context.applicationPassword == nil {
            needs.formUnion(AuthenticationNeeds(applicationPassword: .missing))
        }
        guard !needs.isEmpty else { return }
        try satisfy(needs, authentication)
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
            throw KeychainFailure(
                .authFailed, "no passcode is set, and without one nobody can prove to be there", refusal: .passcodeNotSet)
        }
    }
}
