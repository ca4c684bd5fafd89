// SPDX-License-Identifier: Apache-2.0

// Keychain Services come from Apple's frameworks on Apple platforms, and from SecurityAPI elsewhere.
//
// The condition is not `canImport(Security)`: on Linux all modules of a build share one folder, so it would be true as soon as this
// package's own module of that name is built. .ci/apple-branch compiles this branch on Linux and sets the flag.

#if canImport(Darwin) || KEYCHAIN_APPLE_BRANCH
@_exported public import Security
#if canImport(LocalAuthentication)
@_exported public import LocalAuthentication
#endif

/// False: Apple's frameworks do not support processes that were forked without exec.
package var isForkedChild: Bool { false }

/// Returns `.unsupported`: Apple's keychain has no transactions.
package func withTransaction(_ body: () -> Bool) -> TransactionOutcome { .unsupported }

/// Returns nil: Apple's keychain does not report changes.
package func keychainChanges() -> AsyncStream<Void>? { nil }

extension CallFailure {
    /// Creates the failure of a call with this status; nil for success.
    package init?(status: OSStatus) {
        let reason: Reason
        switch status {
        case errSecSuccess: return nil
        case errSecItemNotFound: reason = .notFound
        case errSecDuplicateItem: reason = .alreadyExists
        case errSecInteractionNotAllowed: reason = .locked
        case errSecUserCanceled: reason = .canceled
        case errSecAuthFailed: reason = .notAuthenticated
        case errSecDecode: reason = .damaged
        case errSecReadOnly: reason = .readOnly
        case errSecDiskFull: reason = .diskFull
        case errSecMissingEntitlement: reason = .missingEntitlement
        default: reason = .unavailable
        }
        self.init(status: status, reason: reason, detail: nil)
    }
}

extension CallFailure.Reason {
    /// What to do next; nil if there is nothing that holds in general.
    package var advice: String? {
        switch self {
        case .notFound: "Store one."
        case .alreadyExists: "Replace it, or remove it first."
        case .locked: "Unlock the device."
        case .passcodeNotSet: "Set a passcode for the device."
        case .canceled, .notAuthenticated: "Try again."
        case .diskFull: "Free space on the device."
        case .missingEntitlement: "Add the access group to the entitlements of the program."
        case .outcomeUnknown: "Read the value again."
        case .busy: "Try again."
        case .cannotPrompt: "Try again while the device is unlocked and the app can show a prompt."
        case .damaged: "Store the value again."
        case .otherAccessibility: CallFailure.moveAdvice(where: "")
        case .unavailable: "`SecCopyErrorMessageString` describes the status."
        case .readOnly: nil
        // Not reported on Apple platforms.
        case .noPlace, .protectorUnavailable, .full: nil
        }
    }
}

/// The failure of the last call of Keychain Services in this task.
package enum LastCall {
    @TaskLocal private static var observer: (@Sendable (CallFailure?) -> Void)?

    /// Passes the status of a call to the observer, and returns it.
    package static func note(_ status: OSStatus) -> OSStatus {
        observer?(CallFailure(status: status))
        return status
    }

    /// Reports, as the failure of the last call, that the new item would have the primary key of one with another accessibility.
    package static func noteOtherAccessibility() {
        observer?(CallFailure(status: errSecDuplicateItem, reason: .otherAccessibility, detail: CallFailure.otherAccessibility))
    }

    /// Runs `body`, and passes the failure of each call, or nil, to `observer`.
    package static func observing<Result>(_ observer: @escaping @Sendable (CallFailure?) -> Void, _ body: () -> Result) -> Result {
        $observer.withValue(observer, operation: body)
    }
}
#else
internal import KeychainCore
@_exported public import SecurityAPI

extension CallFailure {
    fileprivate init(_ failure: KeychainFailure) {
        self.init(status: failure.status.rawValue, reason: Self.reason(of: failure), detail: failure.reason)
    }

    private static func reason(of failure: KeychainFailure) -> Reason {
        switch failure.cause {
        case .outcomeUnknown: return .outcomeUnknown
        case .busy,
            .timedOut where failure.subject == .store:
            return .busy
        case .diskFull: return .diskFull
        case .quota: return .full
        case .otherAccessibility: return .otherAccessibility
        case .environmentVariable("KEYCHAIN_HOME"): return .noPlace
        default: break
        }
        if failure.isDamage { return .damaged }
        switch failure.status {
        case .itemNotFound: return .notFound
        case .duplicateItem: return .alreadyExists
        case .userCanceled: return .canceled
        case .missingEntitlement: return .missingEntitlement
        case .readOnly: return .readOnly
        case .authFailed: return failure.refusal == .passcodeNotSet ? .passcodeNotSet : .notAuthenticated
        case .interactionNotAllowed:
            switch failure.refusal {
            case .notInteractive: return .cannotPrompt
            case .timedOut: return .notAuthenticated
            default: return .locked
            }
        case .decode: return .damaged
        default: break
        }
        switch failure.subject {
        case .keyFile, .credential, .tpm: return .protectorUnavailable
        default: return .unavailable
        }
    }
}

extension CallFailure.Reason {
    /// What to do next; nil if there is nothing that holds in general.
    package var advice: String? {
        switch self {
        case .notFound: "Store one, or run `valet apps` to see which programs have values."
        case .alreadyExists: "Replace it, or remove it first."
        case .locked: "Run `valet unlock`."
        case .passcodeNotSet: "Set a passcode with `valet passcode set`."
        case .canceled, .notAuthenticated: "Try again."
        case .cannotPrompt:
            """
            Run the program in a terminal, set KEYCHAIN_PINENTRY to the path of a pinentry program, or use `valet get --passcode-fd`. \
            `valet unlock` does not release values that require a prompt.
            """
        case .damaged: "Run `valet verify` to see what is damaged."
        case .readOnly: "Make the directory of the keychain writable, or set KEYCHAIN_HOME to another one."
        case .diskFull: "Free space on the disk of the keychain."
        case .full: "Remove values that are no longer needed, or let the administrator raise the limits of keychaind."
        case .noPlace: "Set KEYCHAIN_HOME to an absolute path, or set HOME."
        case .protectorUnavailable: "Run `valet status` to see which key is missing."
        case .missingEntitlement: "Correct the entitlements file of the program, or add the access group to it."
        case .outcomeUnknown: "Read the value again."
        case .busy: "Try again."
        case .otherAccessibility: CallFailure.moveAdvice(where: ", which `valet apps` shows")
        case .unavailable: "Run `valet status` to see its state."
        }
    }
}

/// Runs `body`, whose calls are parts of one transaction, and commits it if `body` returns true.
///
/// `body` may run again after a rollback, and must be short: other processes cannot write meanwhile. Its calls do not prompt the user.
package func withTransaction(_ body: () -> Bool) -> TransactionOutcome {
    guard let outcome = performTransaction(body) else { return .unsupported }
    guard outcome.status == errSecSuccess else { return .failed(outcome.status) }
    return outcome.isCommitted ? .committed : .rolledBack
}

/// Returns a stream with an element soon after any process has changed the keychain, from now on.
///
/// Several changes before the next iteration are one element. The stream has no elements if the keychain cannot be observed.
package func keychainChanges() -> AsyncStream<Void>? {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    guard let observation = observeKeychainChanges({ continuation.yield() }) else { return stream }
    continuation.onTermination = { _ in observation.cancel() }
    return stream
}

/// The failure of the last call of Keychain Services in this task.
package enum LastCall {
    /// Returns the status: here the keychain itself reports failures to the observer.
    package static func note(_ status: OSStatus) -> OSStatus { status }

    /// Reports, as the failure of the last call, that the new item would have the primary key of one with another accessibility.
    package static func noteOtherAccessibility() {
        reportFailure(KeychainFailure(.duplicateItem, CallFailure.otherAccessibility, cause: .otherAccessibility))
    }

    /// Runs `body`, and passes the failure of each call, or nil, to `observer`.
    package static func observing<Result>(_ observer: @escaping @Sendable (CallFailure?) -> Void, _ body: () -> Result) -> Result {
        CurrentKeychain.$listener.withValue({ failure in observer(failure.map { CallFailure($0) }) }, operation: body)
    }
}
#endif
