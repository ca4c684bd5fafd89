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
        for _ in 0...Self.maximumRoundCount {
            let failure: KeychainFailure
            let password = request.authentication.context?.applicationPassword
            do throws(KeychainFailure) {
                return try perform(creating: creating) { opened throws(KeychainFailure) in try body(opened, request) }
            } catch {
                failure = error
            }
            guard let needs = failure.needs else { throw failure }
            if request.authentication.context == nil { request.authentication.context = AuthenticationContext(callScoped: true) }
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
        guard authentication.mayAsk else { throw KeychainFailure.authenticationRequired(needs) }
        if let classes = needs.passcodeClasses { try releasePresence(for: classes, action, authentication, in: context) }
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
    func releasePresence(
        for classes: Set<ItemAccessibility>, _ action: AuthenticatedAction, _ authentication: Authentication,
        in context: AuthenticationContext
    ) throws(KeychainFailure) {
        let settings = context.settings
        // Read before the prompt, so that a lock during the prompt is detected.
        let before = try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else {
                throw KeychainFailure.passcodeNotSet()
            }
            let epoch = try opened.store.lockEpoch()
            return (
                storeID: opened.keybag.storeID, epoch: epoch, isUnlocked: try opened.keybag.lockState(at: epoch) == .unlocked,
                passcodeIdentifier: opened.keybag.passcodeIdentifier
            )
        }
        // The context keeps one release, so the new one includes the classes of the old.
        let classes = classes.union(context.releasedClasses(of: before.storeID))
        let question = question(.passcode, action, authentication, settings)
        let key = PromptKey(storeID: before.storeID, question: question, classes: classes)
        let release = try promptSettings.prompter.waiting { () throws(KeychainFailure) in
            try prompts.share(key: key, timeoutSeconds: queueTimeoutSeconds) { () throws(KeychainFailure) in
                try askForPasscode(question, classes)
            }
        }
        let end = settings.reuseSeconds.map {
            promptSettings.time.nowNanoseconds() &+ UInt64(min(max($0, 0), Self.longestReuseSeconds) * 1e9)
        }
        let observation = UnlockObservation(before.isUnlocked)
        context.store(release) { [weak self, time = promptSettings.time] in
            if let end, time.nowNanoseconds() >= end { return false }
            return self?.isReleaseValid(since: before.epoch, observation, passcodeIdentifier: before.passcodeIdentifier) ?? false
        }
        guard !context.isInvalidated else { throw Self.invalidatedContext }
        if !context.isCallScoped { ExpiringContexts.shared.watch(context) }
    }

    /// How long a call waits for the prompt of another call, in seconds: that one may ask three times.
    private var queueTimeoutSeconds: UInt32 { promptSettings.timeoutSeconds &* 3 &+ 5 }

    /// Apple's limit for the reuse of an authentication, in seconds.
    package static var longestReuseSeconds: Double { 300 }

    private func askForPasscode(
        _ question: PresenceQuestion, _ classes: Set<ItemAccessibility>
    ) throws(KeychainFailure) -> PresenceRelease {
        var question = question
        for triesLeft in [2, 1, 0] {
            if case .secret(let typed) = try ask(question), let release = try release(typed, classes) { return release }
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

    private func ask(_ question: PresenceQuestion) throws(KeychainFailure) -> PresenceAnswer {
        do throws(PresenceRefusal) {
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
