// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The name is Apple's.

public import Foundation
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// A context that authenticates the user and passes the result to the calls that require it (Apple: LAContext).
///
///     let context = LAContext()
///     try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
///     let query = [kSecUseAuthenticationContext as String: context, …] as CFDictionary
///
/// On this platform the user authenticates by entering the keychain's passcode. The context then holds the released keys, not the
/// passcode. All calls with the same context use these keys; a call that requires no others does not prompt again. The keys are wiped when
/// ``touchIDAuthenticationAllowableReuseDuration`` ends, when the keychain is locked, when its passcode is changed or removed, when the
/// context is invalidated, and when the last reference to the context is released.
///
/// A context can be used from any thread, and from many at once. If a process that uses the keychain forks, every context is invalid in
/// the child until it calls exec.
open class LAContext: NSObject, @unchecked Sendable {
    // Unchecked, since the class is open: its own variables are guarded, and a subclass is responsible for those that it adds.

    /// The released keys and the program's settings.
    let authentication = AuthenticationContext()

    /// The title of a button that no prompt on this platform has.
    ///
    /// Its lock also serializes changes of the settings, each of which reads and writes all of them.
    private let fallbackTitle = Mutex<String?>(nil)
    private let domainState = Mutex<Data?>(nil)

    /// Creates a context without an authentication.
    public override init() {
        super.init()
    }

    // MARK: Settings

    /// The reason that a prompt shows if the call sets none of its own; the default is empty.
    ///
    /// The prompt also shows the program and the operation, which the program cannot change.
    open var localizedReason: String {
        get { authentication.settings.reason ?? "" }
        set { change { $0.reason = newValue.isEmpty ? nil : newValue } }
    }

    /// The title of the Cancel button; nil or empty for the default.
    open var localizedCancelTitle: String? {
        get { authentication.settings.cancelTitle }
        set { change { $0.cancelTitle = newValue } }
    }

    /// The title of the button that offers the passcode instead of biometric authentication.
    ///
    /// Has no effect: prompts always ask for the passcode.
    open var localizedFallbackTitle: String? {
        get { ForkDetection.isForkedChild ? nil : fallbackTitle.withLock { $0 } }
        set {
            guard !ForkDetection.isForkedChild else { return }
            fallbackTitle.withLock { $0 = newValue }
        }
    }

    /// Whether prompts are forbidden.
    ///
    /// If true, an evaluation that requires a prompt fails with `LAError.notInteractive`, and a SecItem call with
    /// `errSecInteractionNotAllowed`. Calls still use the keys that the context already holds.
    open var interactionNotAllowed: Bool {
        get { !authentication.settings.isInteractionAllowed }
        set { change { $0.isInteractionAllowed = !newValue } }
    }

    /// The number of seconds during which an authentication can be reused, counted from the authentication.
    ///
    /// With 0, the default, it can be reused until the context is released, the keychain is locked, or its passcode is changed or
    /// removed. Values above ``LATouchIDAuthenticationMaximumAllowableReuseDuration`` count as that value. On Apple platforms the time is
    /// counted from the unlock of the device with Touch ID, which replaces a prompt; no device unlocks with biometry on this platform.
    open var touchIDAuthenticationAllowableReuseDuration: TimeInterval {
        get { authentication.settings.reuseSeconds ?? 0 }
        set { change { $0.reuseSeconds = newValue > 0 ? min(newValue, LATouchIDAuthenticationMaximumAllowableReuseDuration) : nil } }
    }

    private func change(_ body: (inout AuthenticationContext.Settings) -> Void) {
        guard !ForkDetection.isForkedChild else { return }
        fallbackTitle.withLock { _ in body(&authentication.settings) }
    }

    // MARK: Biometry

    /// The available biometry: ``LABiometryType/touchID`` where keychaind keeps the keychain and there is a fingerprint reader, otherwise
    /// none.
    open var biometryType: LABiometryType { PolicyEvaluation.biometryStatus.hasReader ? .touchID : .none }

    /// A value that changes when the set of enrolled fingers changes.
    ///
    /// Nil until an evaluation of this context, or a check whether it could succeed, has succeeded, and without biometry.
    open var evaluatedPolicyDomainState: Data? { ForkDetection.isForkedChild ? nil : domainState.withLock { $0 } }

    // MARK: Credentials

    /// Sets the application password, so that no prompt asks for it.
    ///
    /// The bytes are copied into memory for keys; the caller may wipe its own copy.
    ///
    /// - Parameters:
    ///   - credential: The password, at least one byte; nil removes the password.
    ///   - type: The type of the credential: `.applicationPassword`.
    /// - Returns: True if the credential was set or removed; false for another type, for an empty password, and after ``invalidate()``.
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

    /// Returns whether the context has a credential.
    ///
    /// - Parameter type: The type of the credential.
    /// - Returns: True if a credential of that type was set, and neither removed nor rejected since.
    open func isCredentialSet(_ type: LACredentialType) -> Bool {
        type == .applicationPassword && authentication.isApplicationPasswordSet
    }

    // MARK: Evaluation

    /// Returns whether ``evaluatePolicy(_:localizedReason:reply:)`` could succeed, without prompting the user.
    ///
    /// - Parameters:
    ///   - policy: The policy.
    ///   - error: Receives an error of ``LAErrorDomain`` if the result is false: `passcodeNotSet`, `notInteractive` if no prompt can be
    ///     shown, `biometryNotAvailable`, `companionNotAvailable`, `invalidContext`, or `authenticationFailed` if the keychain cannot be
    ///     used. May be nil.
    /// - Returns: True if the evaluation could succeed.
    @discardableResult
    open func canEvaluatePolicy(_ policy: LAPolicy, error: NSErrorPointer) -> Bool {
        do throws(LAError) {
            try PolicyEvaluation(policy, in: self).requirePossible()
            noteDomainState()
            return true
        } catch let failure {
            // The pointer is the caller's, and valid during the call: the contract of Apple's method.
            unsafe error?.pointee = failure._nsError
            return false
        }
    }

    private func noteDomainState() {
        let state = PolicyEvaluation.biometryStatus.domainState
        domainState.withLock { $0 = state.map { Data($0) } }
    }

    /// Prompts the user to authenticate, unless the context already holds the authentication.
    ///
    /// Returns immediately. The prompt runs, and `reply` is called, on another thread.
    ///
    /// - Parameters:
    ///   - policy: The policy.
    ///   - localizedReason: The reason that the prompt shows. An empty reason fails with `authenticationFailed`; Apple's method raises an
    ///     exception.
    ///   - reply: A closure that receives true and nil, or false and an ``LAError``: `userCancel`, `systemCancel` after a timeout,
    ///     `authenticationFailed` after wrong answers, `appCancel` if the context was invalidated in the meantime, or an error of
    ///     ``canEvaluatePolicy(_:error:)``.
    open func evaluatePolicy(
        _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        let noting: @Sendable (Bool, (any Error)?) -> Void = { [weak self] isSuccess, error in
            if isSuccess { self?.noteDomainState() }
            reply(isSuccess, error)
        }
        start({ context throws(LAError) in try PolicyEvaluation(policy, in: context) }, localizedReason, noting)
    }

    /// Prompts the user to authenticate, unless the context already holds the authentication.
    ///
    /// Does not block a thread of the cooperative thread pool. Canceling the task does not dismiss the prompt; after ``invalidate()`` its
    /// answer has no effect.
    ///
    /// - Parameters:
    ///   - policy: The policy.
    ///   - localizedReason: The reason that the prompt shows; not empty.
    /// - Returns: True.
    /// - Throws: The ``LAError`` that ``evaluatePolicy(_:localizedReason:reply:)`` replies with.
    @discardableResult
    open func evaluatePolicy(_ policy: LAPolicy, localizedReason: String) async throws -> Bool {
        try await FirstReply.wait { evaluatePolicy(policy, localizedReason: localizedReason, reply: $0) }
    }

    /// Prompts for the authentication that an item with this access control requires, unless the context already holds it.
    ///
    /// Returns immediately. The prompt runs, and `reply` is called, on another thread.
    ///
    /// - Parameters:
    ///   - accessControl: The access control. One without constraints succeeds without a prompt.
    ///   - operation: The operation. `.useItem` prompts for all constraints. `.createItem` prompts for the application password only:
    ///     adding an item requires that a passcode is set, but not that the user enters it. All others fail with `authenticationFailed`.
    ///   - localizedReason: The reason that the prompt shows; not empty.
    ///   - reply: A closure as for ``evaluatePolicy(_:localizedReason:reply:)``.
    open func evaluateAccessControl(
        _ accessControl: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String,
        reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        start({ context throws(LAError) in try PolicyEvaluation(accessControl, operation, in: context) }, localizedReason, reply)
    }

    /// Prompts for the authentication that an item with this access control requires, unless the context already holds it.
    ///
    /// - Parameters:
    ///   - accessControl: The access control.
    ///   - operation: The operation, as for ``evaluateAccessControl(_:operation:localizedReason:reply:)``.
    ///   - localizedReason: The reason that the prompt shows; not empty.
    /// - Returns: True.
    /// - Throws: An ``LAError``, as for ``evaluatePolicy(_:localizedReason:reply:)``.
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

    /// Wipes the keys of the context and invalidates it permanently.
    ///
    /// A prompt that is already shown stays until the user responds. The response has no effect, and the evaluation fails with
    /// `LAError.appCancel`. Later evaluations fail with `LAError.invalidContext`, and SecItem calls with the context return
    /// `errSecAuthFailed`.
    open func invalidate() {
        authentication.invalidate()
    }
}

/// The maximum of ``LAContext/touchIDAuthenticationAllowableReuseDuration``: 300 seconds.
public let LATouchIDAuthenticationMaximumAllowableReuseDuration: TimeInterval = 300

/// A pointer through which a function returns an error: `&error` of a variable of type `NSError?`, or nil.
///
/// Part of Foundation on Apple platforms only.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
