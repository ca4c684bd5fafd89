// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainSystem

/// Authentication without an item: the evaluation of an `LAContext`.
extension LocalKeychain: KeychainAuthenticating {
    package func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        try requireSatisfiable(constraint)
        if let context, try needs(of: constraint, nil, in: context).isEmpty { return }
        guard context?.settings.isInteractionAllowed != false, promptSettings.prompter.canAsk else {
            throw KeychainFailure(
                .interactionNotAllowed, "there is neither a terminal nor a display to ask on", refusal: .notInteractive)
        }
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: ItemAccessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        guard let context = authentication.context else { throw Self.invalidatedContext }
        guard !context.isInvalidated else { throw Self.invalidatedContext }
        try requireSatisfiable(constraint)
        let needs = try needs(of: constraint, accessibility, in: context)
        guard !needs.isEmpty else { return }
        try satisfy(needs, authentication)
    }

    /// Throws the failure of a constraint that nothing satisfies now.
    private func requireSatisfiable(_ constraint: AccessControl.Constraint) throws(KeychainFailure) {
        guard constraint.isSatisfiable(withBiometry: biometry != nil) else { throw KeychainFailure.biometryNotAvailable() }
        if constraint.needsPresence || !constraint.isSatisfiable { try requirePasscodeForPresence() }
        if !constraint.isSatisfiable, let failure = biometry?.availability().failure { throw failure }
    }

    /// Returns the authentication that the constraint needs and the context lacks.
    private func needs(
        of constraint: AccessControl.Constraint, _ accessibility: ItemAccessibility?, in context: AuthenticationContext
    ) throws(KeychainFailure) -> AuthenticationNeeds {
        var needs = AuthenticationNeeds()
        if constraint.needsPresence {
            let (keys, isUnlocked) = try performOnCurrentKeybag { opened throws(KeychainFailure) in
                (
                    context.keys(of: opened.keybag.storeID, presencePublicKey: opened.keybag.cipher.presencePublicKey),
                    try opened.keybag.lockState(at: opened.store.lockEpoch()) == .unlocked
                )
            }
            let classes = accessibility.map { [$0] } ?? Set(ItemAccessibility.allCases)
            // While the keychain is locked, the class keys must have been released too.
            let isReleased = keys.presence.map { isUnlocked || $0.classes.isSuperset(of: classes) } ?? false
            let alternative = constraint.isSatisfiedByBiometry && isUnlocked ? constraint.biometryKinds : nil
            let isMatched = alternative.map { $0.contains { keys.biometry?.key($0) != nil } } ?? false
            if !isReleased, !isMatched { needs.formUnion(AuthenticationNeeds(passcodeFor: classes, orBiometry: alternative)) }
        } else if !constraint.isSatisfiable {
            let kinds = constraint.biometryKinds
            let keys = try performOnCurrentKeybag { opened throws(KeychainFailure) in
                context.keys(of: opened.keybag.storeID, presencePublicKey: opened.keybag.cipher.presencePublicKey)
            }
            if !kinds.contains(where: { keys.biometry?.key($0) != nil }) { needs.formUnion(AuthenticationNeeds(biometry: kinds)) }
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

/// How a keychain asks a person.
package struct PromptSettings: Sendable {
    package var prompter: any PresencePrompter
    /// The program that asks, as the prompt names it: the path of its executable.
    package var requester: String
    /// How long a person has to answer one prompt, in seconds.
    package var timeoutSeconds: UInt32
    /// The clock that limits the reuse of an authentication.
    package var time: any ContinuousTime
    /// Held while a prompt is shown.
    package var promptLock: TimedLock

    package init(
        prompter: any PresencePrompter, requester: String, timeoutSeconds: UInt32 = PresenceQuestion.standardTimeoutSeconds,
        time: any ContinuousTime = SystemContinuousTime(), promptLock: TimedLock = .promptLock
    ) {
        self.promptLock = promptLock
        self.prompter = prompter
        self.requester = requester
        self.timeoutSeconds = timeoutSeconds
        self.time = time
    }
}

extension KeychainConfiguration {
    /// The prompt settings of the running program.
    var promptSettings: PromptSettings {
        PromptSettings(
            prompter: prompter, requester: CurrentProcess.executablePath ?? "a program", timeoutSeconds: promptTimeoutSeconds, time: time,
            promptLock: promptLock)
    }
}
