// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// An evaluation of an `LAContext`: the requirements and the keychain.
struct PolicyEvaluation: Sendable {
    private let context: AuthenticationContext
    private let authenticator: any KeychainAuthenticating
    /// Nil if the evaluation does not prompt.
    private let constraint: AccessControl.Constraint?
    /// The class of the items that are to be used; nil: any.
    private let accessibility: ItemAccessibility?
    /// Requirements that must be satisfiable, but do not prompt now.
    private let prerequisite: AccessControl.Constraint?

    /// Creates the evaluation of a policy for the caller's keychain.
    init(_ policy: LAPolicy, in context: LAContext) throws(LAError) {
        let constraint = try policy.constraint()
        try self.init(context, constraint: constraint)
    }

    /// Creates the evaluation of an operation on an item.
    init(_ accessControl: SecAccessControl, _ operation: LAAccessControlOperation, in context: LAContext) throws(LAError) {
        let control = accessControl.accessControl
        guard !control.allowsPrivateKeyUsageOnly else {
            throw LAError(mistake: "the access control is for private keys, which this keychain has none of")
        }
        switch operation {
        case .useItem: try self.init(context, constraint: control.constraint, accessibility: control.accessibility)
        case .createItem:
            let needsPassword = control.constraint?.needsApplicationPassword == true
            try self.init(
                context, constraint: needsPassword ? .applicationPassword : nil, accessibility: control.accessibility,
                prerequisite: control.constraint)
        case .createKey, .useKeySign, .useKeyDecrypt, .useKeyKeyExchange:
            throw LAError(mistake: "the operation is for keys, which this keychain has none of")
        }
    }

    private init(
        _ context: LAContext, constraint: AccessControl.Constraint?, accessibility: ItemAccessibility? = nil,
        prerequisite: AccessControl.Constraint? = nil
    ) throws(LAError) {
        self.context = context.authentication
        guard ForkDetection.beginUse(), !self.context.isInvalidated else { throw LAError(.invalidContext) }
        authenticator = try Self.authenticator()
        self.constraint = constraint
        self.accessibility = accessibility
        self.prerequisite = prerequisite
    }

    private static func authenticator() throws(LAError) -> any KeychainAuthenticating {
        let keychain: any Keychain
        do throws(KeychainFailure) {
            keychain = try DefaultKeychain.current()
        } catch {
            throw LAError(error)
        }
        guard let authenticator = keychain as? any KeychainAuthenticating else {
            throw LAError(mistake: "the keychain of this scope cannot show prompts")
        }
        return authenticator
    }

    /// What the caller's keychain says about biometry; nothing if it cannot be asked.
    static var biometryStatus: BiometryStatus {
        guard let authenticator = try? authenticator(), let status = try? authenticator.biometryStatus() else { return BiometryStatus() }
        return status
    }

    /// Throws if the evaluation would fail without a prompt.
    func requirePossible() throws(LAError) {
        do throws(KeychainFailure) {
            if let constraint { try authenticator.requireCanAuthenticate(constraint, in: context) }
        } catch {
            throw LAError(error)
        }
    }

    /// Storing an item requires no prompt, but its constraints must be satisfiable later.
    private func requireStorable(_ constraint: AccessControl.Constraint) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try authenticator.requireCanAuthenticate(constraint, in: context)
        } catch {
            guard error.refusal == .notInteractive else { throw error }
        }
    }

    /// Prompts the user and waits for the response.
    private func perform(reason: String) throws(LAError) {
        do throws(KeychainFailure) {
            if let prerequisite { try requireStorable(prerequisite) }
            if let constraint {
                try authenticator.authenticate(constraint, of: accessibility, Authentication(context: context, prompt: reason))
            }
        } catch {
            throw context.isInvalidated ? LAError(.appCancel) : LAError(error)
        }
        // It was valid when it began.
        guard !context.isInvalidated else { throw LAError(.appCancel) }
    }

    /// Performs an evaluation, if there is one, and replies, on a new thread: the user may take a minute to respond.
    ///
    /// The keychain of the caller's scope is that of `reply` too. In a forked child, replies on this thread.
    static func run(
        _ evaluation: Result<PolicyEvaluation, LAError>, reason: String, _ reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        guard !ForkDetection.isForkedChild else { return reply(false, LAError(.invalidContext)) }
        let scope = CurrentKeychain.bound
        Thread.detachNewThread {
            CurrentKeychain.$bound.withValue(scope) {
                do throws(LAError) {
                    try evaluation.get().perform(reason: reason)
                    reply(true, nil)
                } catch {
                    reply(false, error)
                }
            }
        }
    }
}

extension LAPolicy {
    fileprivate func constraint() throws(LAError) -> AccessControl.Constraint {
        switch self {
        case .deviceOwnerAuthentication: return .userPresence
        case .deviceOwnerAuthenticationWithBiometrics, .deviceOwnerAuthenticationWithBiometricsOrCompanion:
            return .biometryAny
        case .deviceOwnerAuthenticationWithCompanion: throw LAError(.companionNotAvailable)
        }
    }
}

/// A bridge from a call with a reply closure to async.
enum FirstReply {
    /// Starts `call` and waits for its first reply.
    ///
    /// Ignores a second reply: `LAContext` is open, and an error of a subclass must not terminate the program.
    static func wait(_ call: (@escaping @Sendable (Bool, (any Error)?) -> Void) -> Void) async throws -> Bool {
        try await withCheckedThrowingContinuation { continuation in
            let pending = Pending(continuation)
            call { isSuccess, error in
                pending.take()?.resume(with: error.map { .failure($0) } ?? .success(isSuccess))
            }
        }
    }

    private final class Pending: Sendable {
        private let continuation: Mutex<CheckedContinuation<Bool, any Error>?>

        init(_ continuation: CheckedContinuation<Bool, any Error>) {
            self.continuation = Mutex(continuation)
        }

        func take() -> CheckedContinuation<Bool, any Error>? {
            continuation.withLock { $0.take() }
        }
    }
}
