// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The name is Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// Asks a person to prove that they are there, and carries the answer to the calls that need it (Apple: LAContext).
///
///     let context = LAContext()
///     try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
///     let query = [kSecUseAuthenticationContext as String: context, …] as CFDictionary
///
/// Here somebody proves to be there by typing the keychain's passcode. What the answer released (no passcode, but keys) is in the
/// context alone and serves every call that is given the context: for one that asks for no more, nobody is asked again. It is
/// wiped when ``touchIDAuthenticationAllowableReuseDuration`` is over, when the keychain is locked, when its passcode is changed or removed, when
/// the context is invalidated, and with the last reference to the context.
///
/// A context can be used from any thread, and from many at once.
open class LAContext: NSObject, @unchecked Sendable {
    // Unchecked, since the class is open: what it keeps here is guarded, and a subclass answers for what it adds.

    /// What was released, and what the program set.
    let authentication = AuthenticationContext()

    /// The title of a button that no question here has.
    ///
    /// Its lock guards changes of the settings too, each of which reads all of them.
    private let fallbackTitle = Mutex<String?>(nil)

    /// Makes a context in which nobody was authenticated yet.
    public override init() {
        super.init()
    }

    // MARK: Settings

    /// What the person is asked for, in the program's own words, where a call says nothing of its own; empty: nothing.
    ///
    /// It is shown beside who asks and what for, which the program cannot change.
    open var localizedReason: String {
        get { authentication.settings.reason ?? "" }
        set { change { $0.reason = newValue.isEmpty ? nil : newValue } }
    }

    /// The program's word for the button that cancels; nil or empty: the usual one.
    open var localizedCancelTitle: String? {
        get { authentication.settings.cancelTitle }
        set { change { $0.cancelTitle = newValue } }
    }

    /// The program's word for the button that offers the passcode in place of biometry.
    ///
    /// Without effect: the passcode is what is asked for.
    open var localizedFallbackTitle: String? {
        get { fallbackTitle.withLock { $0 } }
        set { fallbackTitle.withLock { $0 = newValue } }
    }

    /// Whether nobody may be asked: what would have to ask fails with `LAError.notInteractive`, or `errSecInteractionNotAllowed`.
    ///
    /// What the context carries already serves all the same.
    open var interactionNotAllowed: Bool {
        get { !authentication.settings.isInteractionAllowed }
        set { change { $0.isInteractionAllowed = !newValue } }
    }

    /// How many seconds one answer serves, counted from when it was given.
    ///
    /// 0, the default: as long as the context lives and the keychain is neither locked nor loses its passcode. At most
    /// ``LATouchIDAuthenticationMaximumAllowableReuseDuration``; more counts as that. On Apple platforms the time is counted from when
    /// the device was unlocked with Touch ID, and serves in the place of a question; nothing here unlocks with biometry.
    open var touchIDAuthenticationAllowableReuseDuration: TimeInterval {
        get { authentication.settings.reuseSeconds ?? 0 }
        set { change { $0.reuseSeconds = newValue > 0 ? min(newValue, LATouchIDAuthenticationMaximumAllowableReuseDuration) : nil } }
    }

    private func change(_ body: (inout AuthenticationContext.Settings) -> Void) {
        fallbackTitle.withLock { _ in body(&authentication.settings) }
    }

    // MARK: Biometry

    /// The biometry there is: none.
    open var biometryType: LABiometryType { .none }

    /// What changes when somebody enrolls for biometry: nil, as nobody can.
    open var evaluatedPolicyDomainState: Data? { nil }

    // MARK: Credentials

    /// Gives the program's own password, so that nobody is asked for it.
    ///
    /// The bytes are copied into memory for keys; the caller may wipe its own.
    ///
    /// - Parameters:
    ///   - credential: The password, at least one byte; nil takes away the one that was given.
    ///   - type: `.applicationPassword`.
    /// - Returns: Whether it was taken. False for another type, for an empty password, and after ``invalidate()``.
    @discardableResult
    open func setCredential(_ credential: Data?, type: LACredentialType) -> Bool {
        guard type == .applicationPassword, !authentication.isInvalidated else { return false }
        guard let credential else {
            authentication.setApplicationPassword(nil)
            return true
        }
        // The bytes are copied within the closure.
        guard let password = unsafe credential.withUnsafeBytes({ unsafe ApplicationPassword(given: $0) }) else { return false }
        authentication.setApplicationPassword(password)
        return !authentication.isInvalidated
    }

    /// Whether the context has a credential.
    ///
    /// - Parameter type: The type.
    /// - Returns: Whether one of that type was given, and neither taken away nor found to be wrong.
    open func isCredentialSet(_ type: LACredentialType) -> Bool {
        type == .applicationPassword && authentication.applicationPassword != nil
    }

    // MARK: Evaluation

    /// Whether ``evaluatePolicy(_:localizedReason:reply:)`` could succeed, without asking anybody.
    ///
    /// - Parameters:
    ///   - policy: What is to be proved.
    ///   - error: Where the reason for a no goes, an error of ``LAErrorDomain``: `passcodeNotSet`, `notInteractive` where there is
    ///     nobody to ask, `biometryNotAvailable`, `companionNotAvailable`, `invalidContext`; `authenticationFailed` when the keychain
    ///     cannot be used.
    /// - Returns: Whether it could.
    @discardableResult
    open func canEvaluatePolicy(_ policy: LAPolicy, error: NSErrorPointer) -> Bool {
        do throws(LAError) {
            try PolicyEvaluation(policy, in: self).requirePossible()
            return true
        } catch let failure {
            // The pointer is the caller's, and valid during the call: the contract of Apple's method.
            unsafe error?.pointee = failure._nsError
            return false
        }
    }

    /// Asks the person, unless the context carries the answer already.
    ///
    /// It returns at once; the question is asked, and `reply` called, on a thread of its own.
    ///
    /// - Parameters:
    ///   - policy: What is to be proved.
    ///   - localizedReason: What for, in the program's own words. An empty one is refused with `authenticationFailed`, where Apple's
    ///     raises an exception.
    ///   - reply: Gets true and nil, or false and an ``LAError``: `userCancel`, `systemCancel` when nobody answered in time,
    ///     `authenticationFailed` after wrong answers, `appCancel` when the context was invalidated meanwhile, and what
    ///     ``canEvaluatePolicy(_:error:)`` would tell.
    open func evaluatePolicy(
        _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        start({ context throws(LAError) in try PolicyEvaluation(policy, in: context) }, localizedReason, reply)
    }

    /// Asks the person, unless the context carries the answer already.
    ///
    /// No thread of Swift's own waits for the answer. A task that is cancelled does not withdraw the question; ``invalidate()`` makes its
    /// answer void.
    ///
    /// - Parameters:
    ///   - policy: What is to be proved.
    ///   - localizedReason: What for, in the program's own words; not empty.
    /// - Returns: True.
    /// - Throws: ``LAError``, as ``evaluatePolicy(_:localizedReason:reply:)`` replies.
    @discardableResult
    open func evaluatePolicy(_ policy: LAPolicy, localizedReason: String) async throws -> Bool {
        try await FirstReply.wait { evaluatePolicy(policy, localizedReason: localizedReason, reply: $0) }
    }

    /// Asks for what an item with this access control needs, unless the context carries it already.
    ///
    /// It returns at once; the question is asked, and `reply` called, on a thread of its own.
    ///
    /// - Parameters:
    ///   - accessControl: The access control. One without constraints is granted without a question.
    ///   - operation: `.useItem` asks for everything. `.createItem` asks for the program's own password alone: adding needs
    ///     nobody to be there, only a passcode to be set. The others are refused with `authenticationFailed`.
    ///   - localizedReason: What for, in the program's own words; not empty.
    ///   - reply: As for ``evaluatePolicy(_:localizedReason:reply:)``.
    open func evaluateAccessControl(
        _ accessControl: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String,
        reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        start({ context throws(LAError) in try PolicyEvaluation(accessControl, operation, in: context) }, localizedReason, reply)
    }

    /// Asks for what an item with this access control needs, unless the context carries it already.
    ///
    /// - Parameters:
    ///   - accessControl: The access control.
    ///   - operation: What is to be done, as for ``evaluateAccessControl(_:operation:localizedReason:reply:)``.
    ///   - localizedReason: What for, in the program's own words; not empty.
    /// - Returns: True.
    /// - Throws: ``LAError``, as for ``evaluatePolicy(_:localizedReason:reply:)``.
    @discardableResult
    open func evaluateAccessControl(
        _ accessControl: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String
    ) async throws -> Bool {
        try await FirstReply.wait {
            evaluateAccessControl(accessControl, operation: operation, localizedReason: localizedReason, reply: $0)
        }
    }

    private func start(
        _ make: (LAContext) throws(LAError) -> PolicyEvaluation, _ localizedReason: String,
        _ reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        let evaluation = Result { () throws(LAError) in
            guard !localizedReason.isEmpty else { throw LAError(mistake: "localizedReason is empty") }
            return try make(self)
        }
        PolicyEvaluation.run(evaluation, reason: localizedReason, reply)
    }

    /// Wipes what the context carries, and makes it useless for good.
    ///
    /// A question that a person is being asked stays until it is answered; the answer is void, and the evaluation fails with
    /// `LAError.appCancel`. A later one fails with `LAError.invalidContext`; a `SecItem…` call with the context is answered
    /// `errSecAuthFailed`.
    open func invalidate() {
        authentication.invalidate()
    }
}

/// The longest time, in seconds, that ``LAContext/touchIDAuthenticationAllowableReuseDuration`` can stand for: 300.
public let LATouchIDAuthenticationMaximumAllowableReuseDuration: TimeInterval = 300

/// Where a function that answers yes or no puts the reason for a no: `&error` of a variable of type `NSError?`, or nil.
///
/// Apple's Foundation has it; elsewhere Foundation does not.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
