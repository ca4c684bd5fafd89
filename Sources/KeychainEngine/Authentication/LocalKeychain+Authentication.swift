// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import Synchronization

/// Calls that may have to ask the person.
extension KeychainAccess {
    /// How often a call is tried again after something was released for it; Apple's limit.
    private static var maximumRoundCount: Int { 20 }

    /// Runs a call; when it finds that a person, or a password, has to release something, asks and runs it again.
    ///
    /// Nobody is asked within `body`, so neither a transaction nor a lock waits for a person. What was released for this call alone is
    /// gone when it ends.
    package func perform<Request: AuthenticatedRequest, Result>(
        creating: Bool, _ action: AuthenticatedAction, _ request: Request,
        _ body: (Opened, Request) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let context = request.authentication.context, context.isInvalidated { throw Self.invalidContext }
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
        throw KeychainFailure(.authFailed, "what the person released does not open the item", refusal: .wrong)
    }

    static var invalidContext: KeychainFailure {
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
            // Another thread may have set another one meanwhile: that one is tried next.
            guard context.applicationPassword === tried else { return }
            context.removeApplicationPassword(tried)
            guard authentication.mayAsk, attempts.count < PasswordAttempts.limit else {
                throw KeychainFailure(.authFailed, "the application password is wrong", refusal: .wrong)
            }
        }
        guard authentication.mayAsk else { throw KeychainFailure.authenticationRequired(needs) }
        if let classes = needs.passcodeClasses { try releasePresence(for: classes, action, authentication, in: context) }
        if let password = needs.applicationPassword {
            try askForPassword(password, action, authentication, in: context, &attempts)
        }
    }

    // MARK: The passcode

    /// Asks for the passcode, and leaves in the context what it releases.
    func releasePresence(
        for classes: Set<Accessibility>, _ action: AuthenticatedAction, _ authentication: Authentication,
        in context: AuthenticationContext
    ) throws(KeychainFailure) {
        let settings = context.settings
        // Before anybody is asked: a lock that comes meanwhile counts.
        let before = try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else {
                throw KeychainFailure.passcodeNotSet()
            }
            return (
                storeID: opened.keybag.storeID, epoch: try opened.present().lockEpoch,
                isUnlocked: try opened.keybag.lockState() == .unlocked, passcodeIdentifier: opened.keybag.passcodeIdentifier
            )
        }
        // With those that the context has already: what takes the place of a release must serve what that served.
        let classes = classes.union(context.releasedClasses(of: before.storeID))
        let question = question(.passcode, action, authentication, settings)
        let key = PromptKey(storeID: before.storeID, question: question, classes: classes)
        let release = try prompts.share(key: key, timeoutSeconds: Self.patienceSeconds(prompting)) { () throws(KeychainFailure) in
            try askForPasscode(question, classes)
        }
        let end = settings.reuseSeconds.map { prompting.time.nowNanoseconds() &+ UInt64(min(max($0, 0), Self.longestReuseSeconds) * 1e9) }
        let wasUnlocked = UnlockObservation(before.isUnlocked)
        context.store(release) { [weak self, time = prompting.time] in
            if let end, time.nowNanoseconds() >= end { return false }
            return self?.isStillOpen(since: before.epoch, wasUnlocked, passcodeIdentifier: before.passcodeIdentifier) ?? false
        }
        guard !context.isInvalidated else { throw Self.invalidContext }
        if !context.isCallScoped { ExpiringContexts.ofThisProcess.watch(context) }
    }

    /// How long somebody waits for the answer to a question that another shows: as long as that may be asked again and again.
    private static func patienceSeconds(_ prompting: Prompting) -> UInt32 { prompting.timeoutSeconds &* 3 &+ 5 }

    /// Apple's limit for the reuse of an authentication.
    package static var longestReuseSeconds: Double { 300 }

    private func askForPasscode(
        _ question: PresenceQuestion, _ classes: Set<Accessibility>
    ) throws(KeychainFailure) -> PresenceRelease {
        var question = question
        for triesLeft in [2, 1, 0] {
            if case .secret(let typed) = try ask(question), let release = try release(typed, classes) { return release }
            question.triesLeft = triesLeft
        }
        throw KeychainFailure(.authFailed, "the passcode was wrong three times", refusal: .wrong)
    }

    /// What a passcode releases; nil when it is wrong.
    private func release(
        _ typed: borrowing SecretBytes, _ classes: Set<Accessibility>
    ) throws(KeychainFailure) -> PresenceRelease? {
        // The bytes are copied within the closure. What cannot be a passcode is a wrong one.
        let copied: Passcode? = unsafe typed.withBytes { bytes in
            do throws(KeychainFailure) { return try unsafe Passcode(typed: bytes) } catch { return nil }
        }
        guard let passcode = copied else { return nil }
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in
                try opened.unlockedKeys(passcode: passcode).presenceRelease(for: classes)
            }
        } catch {
            // With a refusal it is something else than a wrong passcode.
            guard error.status == .authFailed, error.refusal == nil else { throw error }
            return nil
        }
    }

    /// Whether nobody has locked the keychain or changed its passcode since, and it has not locked itself.
    ///
    /// What was released while it was locked serves until it was unlocked once and is so no longer.
    private func isStillOpen(since epoch: LockEpoch, _ wasUnlocked: UnlockObservation, passcodeIdentifier: [UInt8]?) -> Bool {
        do throws(KeychainFailure) {
            return try performOnCurrentKeybag { opened throws(KeychainFailure) in
                guard epoch.keeps(.unlocked, at: try opened.present().lockEpoch), opened.keybag.passcodeIdentifier == passcodeIdentifier
                else {
                    return false
                }
                return wasUnlocked.allows(try opened.keybag.lockState())
            }
        } catch {
            // What cannot be said is not relied on: the person can be asked again.
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
        // Two new items are two questions, however alike.
        let key = PromptKey(storeID: nil, question: question, classes: [], item: need == .new ? .random() : nil)
        let asked = question
        let password = try prompts.share(key: key, timeoutSeconds: Self.patienceSeconds(prompting)) { () throws(KeychainFailure) in
            switch try ask(asked) {
            case .secret(let typed):
                // The bytes are copied within the closure.
                guard let password = unsafe typed.withBytes({ unsafe ApplicationPassword(given: $0) }) else {
                    throw KeychainFailure(.allocate, "no memory for a password")
                }
                return password
            case .empty: throw KeychainFailure(.userCanceled, "no application password was given")
            }
        }
        attempts.count += 1
        context.setApplicationPassword(password)
        guard !context.isInvalidated else { throw Self.invalidContext }
    }

    // MARK: Questions

    private func ask(_ question: PresenceQuestion) throws(KeychainFailure) -> PresenceAnswer {
        do throws(PresenceRefusal) {
            return try prompting.verifier.ask(question)
        } catch {
            throw KeychainFailure(error)
        }
    }

    private func question(
        _ secret: PresenceQuestion.Secret, _ action: AuthenticatedAction, _ authentication: Authentication,
        _ settings: AuthenticationContext.Settings
    ) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: prompting.requester, purpose: action.purpose, reason: authentication.prompt ?? settings.reason,
            cancelTitle: settings.cancelTitle, timeoutSeconds: prompting.timeoutSeconds)
    }
}

/// How often an application password was asked for in one call.
private struct PasswordAttempts {
    static let limit = 3
    var count = 0
}

/// What the person is asked for.
package enum AuthenticatedAction: Hashable, Sendable {
    case read, add, change, delete, evaluate

    /// Goes on after the name of the program and "wants to".
    var purpose: String {
        switch self {
        case .read: "read an item that you protected"
        case .add: "store an item that a password protects"
        case .change: "change an item that you protected"
        case .delete: "delete an item that you protected"
        case .evaluate: "make sure that it is you"
        }
    }
}

/// Remembers that a keychain was seen unlocked.
final class UnlockObservation: Sendable {
    private let isSeen: Mutex<Bool>

    init(_ isSeen: Bool) {
        self.isSeen = Mutex(isSeen)
    }

    /// Whether nothing speaks of a lock since.
    func allows(_ state: LockState) -> Bool {
        isSeen.withLock { isSeen in
            if state == .unlocked { isSeen = true }
            return state == .unlocked || !isSeen
        }
    }
}
