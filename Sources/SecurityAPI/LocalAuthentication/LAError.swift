// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NoLeadingUnderscores
// The names are those of Apple and Swift.
// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The name is Apple's.

public import Foundation
internal import KeychainCore

/// The reason why an authentication failed (Apple: LAError).
///
/// Catch it by its code or by its type. It bridges to an `NSError` of ``LAErrorDomain``.
///
///     do {
///         try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
///     } catch LAError.userCancel {
///         …
///     } catch let error as LAError where error.code == .passcodeNotSet {
///         …
///     }
public struct LAError: Error, CustomNSError, LocalizedError, Hashable {
    /// The Foundation error with the domain, the code, and the user info.
    public let _nsError: NSError

    /// Creates an error from an `NSError` of ``LAErrorDomain``.
    ///
    /// - Parameter _nsError: The error. A code that is not in ``Code`` counts as `authenticationFailed`.
    public init(_nsError: NSError) {
        self._nsError = _nsError
    }

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - userInfo: Additional information. If it contains no description, the description of the code is added.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        let described = userInfo.merging([NSLocalizedDescriptionKey: code.message]) { given, _ in given }
        self.init(_nsError: NSError(domain: LAErrorDomain, code: code.rawValue, userInfo: described))
    }

    /// The code.
    public var code: Code { Code(rawValue: _nsError.code) ?? .authenticationFailed }

    /// The code as a number.
    public var errorCode: Int { _nsError.code }

    /// Additional information, under Foundation's keys.
    public var userInfo: [String: Any] { _nsError.userInfo }

    /// The same as ``userInfo``.
    public var errorUserInfo: [String: Any] { _nsError.userInfo }

    /// A description for people; never contains a secret.
    public var errorDescription: String? { _nsError.localizedDescription }

    /// The same as ``LAErrorDomain``.
    public static var errorDomain: String { LAErrorDomain }

    /// Returns whether two errors have the same code.
    ///
    /// The user info is ignored.
    ///
    /// - Parameters:
    ///   - left: An error.
    ///   - right: Another error.
    /// - Returns: Whether they are equal.
    public static func == (left: LAError, right: LAError) -> Bool { left.errorCode == right.errorCode }

    /// Hashes the code.
    ///
    /// - Parameter hasher: The hasher to use.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(errorCode)
    }
}

/// The domain of the errors of LocalAuthentication.
public let LAErrorDomain: String = "com.apple.LocalAuthentication"

/// The conversions behind casts: `error as NSError`, and `nsError as? LAError` for an error of ``LAErrorDomain``.
extension LAError: _ObjectiveCBridgeable {
    /// Returns the error as an `NSError`.
    ///
    /// - Returns: The error.
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    /// Converts an error of ``LAErrorDomain``; the result stays nil for any other.
    ///
    /// - Parameters:
    ///   - source: The error.
    ///   - result: Receives the converted error.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout LAError?) {
        result = source.domain == LAErrorDomain ? LAError(_nsError: source) : nil
    }

    /// Converts an error of ``LAErrorDomain``.
    ///
    /// - Parameters:
    ///   - source: The error.
    ///   - result: Receives the converted error; nil for an error of another domain.
    /// - Returns: True if the error was converted.
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout LAError?) -> Bool {
        _forceBridgeFromObjectiveC(source, result: &result)
        return result != nil
    }

    /// Converts an error of any domain.
    ///
    /// - Parameter source: The error; nil counts as `authenticationFailed`.
    /// - Returns: The error.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> LAError {
        source.map { LAError(_nsError: $0) } ?? LAError(.authenticationFailed)
    }
}

extension LAError {
    /// A failure of the keychain as an `LAError`.
    ///
    /// A failure without a code of its own becomes `authenticationFailed` with a description. The failure is the underlying error.
    init(_ failure: KeychainFailure) {
        var userInfo: [String: Any] = [NSUnderlyingErrorKey: NSError(failure)]
        let code = Code(failure)
        if code == nil { userInfo[NSLocalizedDescriptionKey] = failure.reason }
        self.init(code ?? .authenticationFailed, userInfo: userInfo)
    }

    /// A mistake of the caller: `authenticationFailed` with a description of the mistake.
    init(mistake: String) {
        self.init(.authenticationFailed, userInfo: [NSLocalizedDescriptionKey: mistake])
    }
}

extension LAError.Code {
    fileprivate init?(_ failure: KeychainFailure) {
        switch (failure.refusal, failure.status) {
        case (.passcodeNotSet, _): self = .passcodeNotSet
        case (.wrongPasscode, _), (.wrongPassword, _), (.wrongRecoveryKey, _), (.notSatisfied, _): self = .authenticationFailed
        case (.lockedOut, _): self = .biometryLockout
        case (.timedOut, _): self = .systemCancel
        case (.biometryNotAvailable, _): self = .biometryNotAvailable
        case (.biometryNotEnrolled, _): self = .biometryNotEnrolled
        case (.biometryLockedOut, _): self = .biometryLockout
        case (.biometryNotRecognized, _): self = .authenticationFailed
        case (.notInteractive, _): self = .notInteractive
        case (.invalidContext, _): self = .invalidContext
        case (nil, .userCanceled): self = .userCancel
        case (nil, .interactionNotAllowed): self = .notInteractive
        case (nil, _): return nil
        }
    }
}
