// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import Synchronization

/// Calls that may have to ask a person for the passcode or an application password.
extension LocalKeychain {
    /// How often a call is repeated after an authentication; Apple's limit.
    private static var maximumRoundCount: Int { 20 }

    /// Runs a call; if an item needs authentication, asks the person and runs the call again.
    ///
    /// The prompt runs outside `body`, so neither a transaction nor a lock waits for a person. If the call has no context, the
    /// released keys are discarded when the call ends.
    func perform<Request: AuthenticatedRequest, Result>(
        creating: Bool, _ action: AuthenticatedAction, _ request: Request,
        _ body: (OpenKeychain, Request) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let context = request.authentication.context, context.isInvalidated { throw Self.invalidatedContext }
        var request = request
        var attempts = PasswordAttempts()
        var hasNotedEnrollment = false
        for _ in 0...Self.maximumRoundCount {
            let failure: KeychainFailure
            let password = request.authentication.context?.applicationPassword
            do throws(KeychainFailure) {
                return try perform(creating: creating) { opened throws(KeychainFailure) in try body(opened, request) }
            } catch {
                failure = error
            }
            if request.authentication.context == nil { request.authentication.context = AuthenticationContext(callScoped: true) }
            guard let needs = failure.needs else {
                guard failure.refusal == .biometryNotAvailable, biometry != nil, let context = request.authentication.context,
                    !hasNotedEnrollment
                else { throw failure }
                // An item that needs biometry is sealed again.
                try noteEnrollment(in: context)
                hasNotedEnrollment = true
                continue
            }
            try satisfy(needs, action, request.authentication, password, &attempts)
        }
        throw KeychainFailure(.authFailed, "the item cannot be opened although authentication succeeded", refusal: .notSatisfied)
    }

    static var invalidatedContext: KeychainFailure {
        KeychainFailure(.authFailed, "the authentication context was invalidated", refusal: .invalidContext)
    }

    func satisfy(_ needs: AuthenticationNeeds, _ authentication: Authentication) throws(KeychainFailure) {
        var attempts = PasswordAttempts()
        try satisfy(needs, .evaluate, authentication, nil, &attempts)
    }

    private func satisfy(
        _ needs: AuthenticationNeeds, _ action: AuthenticatedAction, _ authentication: Authentication, _ tried: ApplicationPassword?,
        _ attempts: inout PasswordAttempts
    ) throws(KeychainFailure) {
        guard let context = authentication.context else { throw KeychainFailure.authenticationRequired(needs) }
        if needs.applicationPassword == .wrong, let tried {
            // If another thread has set another password since, the call tries that one next.
            guard context.applicationPassword === tried else { return }
            context.removeApplicationPassword(tried)
            guard authentication.mayAsk, attempts.count < PasswordAttempts.limit else {
                throw KeychainFailure(.authFailed, "the application password is wrong", refusal: .wrongPassword)
            }
        }
        guard needs.biometry.isEmpty || biometry != nil else { throw KeychainFailure.biometryNotAvailable() }
        let biometryKinds = needs.biometry.union(needs.passcodeAlternative ?? [])
        if biometryKinds.contains(.currentSet), biometry != nil, try lacksEnrollment(context) {
            // An item of a former set of fingers is lost, and the person is not asked for it.
            do throws(KeychainFailure) {
                try noteEnrollment(in: context)
                return
            } catch {
                guard needs.biometry.isEmpty else { throw error }
            }
        }
        guard authentication.mayAsk else { throw KeychainFailure.authenticationRequired(needs) }
        if !needs.biometry.isEmpty { try releaseBiometry(biometryKinds, action, authentication, in: context) }
        if let classes = needs.passcodeClasses, needs.biometry.isEmpty || needs.passcodeAlternative == nil {
            try releasePresence(for: classes, orBiometry: needs.passcodeAlternative, action, authentication, in: context)
        }
        if let password = needs.applicationPassword {
            try askForPassword(password, action, authentication, in: context, &attempts)
        }
    }

    // MARK: The passcode

    /// Asks a person for the passcode, whatever was entered before.
    ///
    /// Throws `.authFailed` with the refusal `.passcodeNotSet` without a passcode.
    package func requirePasscode(for action: AuthenticatedAction) throws(KeychainFailure) {
        let context = AuthenticationContext()
        defer { context.invalidate() }
        try releasePresence(for: [], action, Authentication(context: context), in: context)
    }

    /// Asks for the passcode and stores the keys that it releases in the context.
    ///
    /// With `alternative`, a finger does as well if that can be verified now, and releases the biometric keys instead.
    func releasePresence(
        for classes: Set<ItemAccessibility>, orBiometry alternative: Set<BiometryKind>? = nil, _ action: AuthenticatedAction,
        _ authentication: Authentication,
        in context: AuthenticationContext
    ) throws(KeychainFailure) {
        let settings = context.settings
        // Read before the prompt, so that a lock during the prompt is detected.
        let before = try stateBeforePrompt()
        // The context keeps one release, so the new one includes the classes of the old.
        let classes = classes.union(context.releasedClasses(of: before.storeID))
        var usable: (keys: BiometricKeys, verifier: any BiometryVerifier)?
        // Without biometry, the passcode is asked for at once. Without a prompt, the person would not know what the reader waits for.
        if alternative != nil, biometry != nil, promptSettings.prompter.canAsk { usable = try? noteEnrollment(in: context) }
        let question = question(usable == nil ? .passcode : .passcodeOrFingerprint, action, authentication, settings)
        var key = PromptKey(storeID: before.storeID, question: question, classes: classes)
        key.biometry = usable == nil ? [] : alternative ?? []
        let scanned = usable
        let release = try promptSettings.prompter.waiting { () throws(KeychainFailure) in
            try prompts.share(key: key, timeoutSeconds: queueTimeoutSeconds) { () throws(KeychainFailure) in
                try askForPasscode(question, classes, scanned)
            }
        }
        keep(release, in: context, settings, before)
        guard !context.isInvalidated else { throw Self.invalidatedContext }
        if !context.isCallScoped { ExpiringContexts.shared.watch(context) }
    }

    private typealias StateBeforePrompt = (storeID: StoreID, epoch: LockEpoch, isUnlocked: Bool, passcodeIdentifier: [UInt8]?)

    /// Keeps released keys in the context for as long as they may be used.
    private func keep(
        _ release: Released, in context: AuthenticationContext, _ settings: AuthenticationContext.Settings, _ before: StateBeforePrompt
    ) {
        let end = settings.reuseSeconds.map {
            promptSettings.time.nowNanoseconds() &+ UInt64(min(max($0, 0), Self.longestReuseSeconds) * 1e9)
        }
        let observation = UnlockObservation(before.isUnlocked)
        let isValid: @Sendable () -> Bool = { [weak self, time = promptSettings.time] in
            if let end, time.nowNanoseconds() >= end { return false }
            return self?.isReleaseValid(since: before.epoch, observation, passcodeIdentifier: before.passcodeIdentifier) ?? false
        }
        switch release {
        case .presence(let release): context.store(release, while: isValid)
        case .biometry(let release):
            let (set, storeID) = (release.setID, release.storeID)
            context.store(release) { !Self.isReplaced(set, of: storeID) && isValid() }
        }
    }

    /// Verifies a finger and stores the biometric keys that a match releases in the context.
    private func releaseBiometry(
        _ kinds: Set<BiometryKind>, _ action: AuthenticatedAction, _ authentication: Authentication, in context: AuthenticationContext
    ) throws(KeychainFailure) {
        let settings = context.settings
        let before = try stateBeforePrompt()
        // Otherwise the reader would wait for a finger without a reason that the person sees.
        guard promptSettings.prompter.canAsk else { throw KeychainFailure(.promptUnavailable("nothing shows a prompt to the person")) }
        let (keys, verifier) = try noteEnrollment(in: context)
        let question = question(.fingerprint, action, authentication, settings)
        var key = PromptKey(storeID: before.storeID, question: question, classes: [])
        key.biometry = kinds
        let release = try promptSettings.prompter.waiting { () throws(KeychainFailure) in
            try prompts.share(key: key, timeoutSeconds: queueTimeoutSeconds) { () throws(KeychainFailure) in
                try askForFinger(question, keys, verifier)
            }
        }
        keep(.biometry(release), in: context, settings, before)
        guard !context.isInvalidated else { throw Self.invalidatedContext }
        if !context.isCallScoped { ExpiringContexts.shared.watch(context) }
    }

    /// Whether nothing was noted of the present fingers of the person in a context.
    private func lacksEnrollment(_ context: AuthenticationContext) throws(KeychainFailure) -> Bool {
        let storeID = try storeID()
        guard let enrollment = context.keys(of: storeID, presencePublicKey: nil).enrollment else { return true }
        return Self.isReplaced(enrollment.setID, of: storeID)
    }

    private func stateBeforePrompt() throws(KeychainFailure) -> StateBeforePrompt {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else { throw KeychainFailure.passcodeNotSet() }
            let epoch = try opened.store.lockEpoch()
            return (
                storeID: opened.keybag.storeID, epoch: epoch, isUnlocked: try opened.keybag.lockState(at: epoch) == .unlocked,
                passcodeIdentifier: opened.keybag.passcodeIdentifier
            )
        }
    }

    /// How long a call waits for the prompt of another call, in seconds: that one may ask three times.
    private var queueTimeoutSeconds: UInt32 { promptSettings.timeoutSeconds &* 3 &+ 5 }

    /// Apple's limit for the reuse of an authentication, in seconds.
    package static var longestReuseSeconds: Double { 300 }

    private func askForPasscode(
        _ question: PresenceQuestion, _ classes: Set<ItemAccessibility>,
        _ scanned: (keys: BiometricKeys, verifier: any BiometryVerifier)?
    ) throws(KeychainFailure) -> Released {
        var question = question
        // A reader that is in use, for example by the lock screen, leaves the passcode.
        let scan = scanned.flatMap {
            try? RunningScan($0.verifier, timeoutSeconds: question.timeoutSeconds &* 3, endsPromptIfRefused: false)
        }
        defer { scan?.cancel() }
        for triesLeft in [2, 1, 0] {
            let answer = Result { () throws(KeychainFailure) in try ask(question, endedBy: scan?.promptEnd) }
            if case .matched(let set)? = scan?.outcome, let scanned {
                return .biometry(try release(scanned.keys, after: set, scanned.verifier))
            }
            if case .secret(let typed) = try answer.get(), let release = try release(typed, classes) {
                biometry?.passcodeWasEntered()
                return .presence(release)
            }
            question.triesLeft = triesLeft
        }
        throw KeychainFailure(.authFailed, "the passcode was wrong three times", refusal: .wrongPasscode)
    }

    /// Returns the presence keys that a passcode releases; nil if it is wrong.
    private func release(
        _ typed: borrowing SecretBytes, _ classes: Set<ItemAccessibility>
    ) throws(KeychainFailure) -> PresenceRelease? {
        // The bytes are copied within the closure. Bytes that cannot be a passcode count as a wrong one.
        let copied: Passcode? = unsafe typed.withBytes { bytes in
            do throws(KeychainFailure) { return try unsafe Passcode(typed: bytes) } catch { return nil }
        }
        guard let passcode = copied else { return nil }
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in
                try opened.unlockedKeys(passcode: passcode).presenceRelease(for: classes)
            }
        } catch {
            guard error.refusal == .wrongPasscode else { throw error }
            return nil
        }
    }

    /// Whether the keychain was not locked since `epoch` and its passcode is the same.
    ///
    /// Keys that were released while the keychain was locked stay valid until it is unlocked and locked again.
    private func isReleaseValid(since epoch: LockEpoch, _ observation: UnlockObservation, passcodeIdentifier: [UInt8]?) -> Bool {
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in
                let present = try opened.store.lockEpoch()
                guard epoch.isValid(for: .unlocked, at: present),
                    opened.keybag.passcodeIdentifier == passcodeIdentifier
                else {
                    return false
                }
                return observation.allows(try opened.keybag.lockState(at: present))
            }
        } catch {
            // If the state is unknown, the person is asked again.
            return false
        }
    }

    // MARK: The application password

    private func askForPassword(
        _ need: AuthenticationNeeds.Password, _ action: AuthenticatedAction, _ authentication: Authentication,
        in context: AuthenticationContext, _ attempts: inout PasswordAttempts
    ) throws(KeychainFailure) {
        var question = question(
            need == .new ? .newApplicationPassword : .applicationPassword, action, authentication, context.settings)
        question.triesLeft = attempts.count == 0 ? nil : PasswordAttempts.limit - attempts.count
        // The password of a new item is never shared with another call.
        let key = PromptKey(storeID: nil, question: question, classes: [], item: need == .new ? .random() : nil)
        let asked = question
        let password = try promptSettings.prompter.waiting { () throws(KeychainFailure) in
            try prompts.share(key: key, timeoutSeconds: queueTimeoutSeconds) { () throws(KeychainFailure) in try askForPassword(asked) }
        }
        attempts.count += 1
        context.setApplicationPassword(password)
        guard !context.isInvalidated else { throw Self.invalidatedContext }
    }

    private func askForPassword(_ question: PresenceQuestion) throws(KeychainFailure) -> ApplicationPassword {
        switch try ask(question) {
        case .secret(let typed):
            // The bytes are copied within the closure.
            guard let password = unsafe typed.withBytes({ unsafe ApplicationPassword(given: $0) }) else {
                throw KeychainFailure(.allocate, "no memory for a password")
            }
            return password
        case .empty: throw KeychainFailure(.userCanceled, "no application password was given")
        }
    }

    // MARK: Questions

    private func ask(_ question: PresenceQuestion, endedBy end: PromptEnd? = nil) throws(KeychainFailure) -> PresenceAnswer {
        do throws(PresenceRefusal) {
            if let end { return try promptSettings.prompter.ask(question, endedBy: end) }
            return try promptSettings.prompter.ask(question)
        } catch {
            throw KeychainFailure(error)
        }
    }

    private func question(
        _ secret: PresenceQuestion.Secret, _ action: AuthenticatedAction, _ authentication: Authentication,
        _ settings: AuthenticationContext.Settings
    ) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: promptSettings.requester, purpose: action.purpose, reason: authentication.prompt ?? settings.reason,
            cancelTitle: settings.cancelTitle, timeoutSeconds: promptSettings.timeoutSeconds)
    }
}

/// Counts the application passwords that one call has asked for.
private struct PasswordAttempts {
    static let limit = 3
    var count = 0
}

/// The action that a person authorizes.
package enum AuthenticatedAction: Hashable, Sendable {
    case read, add, change, delete, evaluate
    /// To read the items of another program's access group, until the program ends.
    case readGroup(String)
    /// To let a program read the items of another one's access group, until that is revoked.
    case grant(program: String, group: String)

    /// The text after the name of the program and "wants to".
    var purpose: String {
        switch self {
        case .read: "read an item that you protected"
        case .add: "store an item that a password protects"
        case .change: "change an item that you protected"
        case .delete: "delete an item that you protected"
        case .evaluate: "make sure that it is you"
        case .readGroup(let group): "read all items of the access group '\(group)' of another program"
        case .grant(let program, let group): "let '\(program)' read all items of the access group '\(group)'"
        }
    }
}

/// Detects that a keychain was locked after it was seen unlocked.
final class UnlockObservation: Sendable {
    private let wasUnlocked: Mutex<Bool>

    init(_ isUnlocked: Bool) {
        wasUnlocked = Mutex(isUnlocked)
    }

    /// Records `state`; returns false if it shows a lock after an unlock.
    func allows(_ state: LockState) -> Bool {
        wasUnlocked.withLock { wasUnlocked in
            if state == .unlocked { wasUnlocked = true }
            return state == .unlocked || !wasUnlocked
        }
    }
}
