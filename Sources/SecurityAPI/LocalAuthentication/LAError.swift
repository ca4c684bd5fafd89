// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NoLeadingUnderscores
// The names are those of Apple and Swift.

public import Foundation

/// Why somebody was not authenticated (Apple: LAError).
///
/// It is caught by its code or by its type, and is an `NSError` of ``LAErrorDomain`` for whoever wants one:
///
///     do {
///         try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
///     } catch LAError.userCancel {
///         …
///     } catch let error as LAError where error.code == .passcodeNotSet {
///         …
///     }
public struct LAError: Error, CustomNSError, LocalizedError, Hashable {
    /// The domain and code, and what else the error says, as Foundation knows it.
    public let _nsError: NSError

    /// Takes an error of ``LAErrorDomain``.
    ///
    /// - Parameter _nsError: The error. A code that ``Code`` does not have counts as `authenticationFailed`.
    public init(_nsError: NSError) {
        self._nsError = _nsError
    }

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - userInfo: What else to say. Without a description it gets that of the code.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        let described = userInfo.merging([NSLocalizedDescriptionKey: code.message]) { given, _ in given }
        self.init(_nsError: NSError(domain: LAErrorDomain, code: code.rawValue, userInfo: described))
    }

    /// The code: what to switch over.
    public var code: Code { Code(rawValue: _nsError.code) ?? .authenticationFailed }

    /// The code as a number.
    public var errorCode: Int { _nsError.code }

    /// What else the error says, by Foundation's keys.
    public var userInfo: [String: Any] { _nsError.userInfo }

    /// The same as ``userInfo``.
    public var errorUserInfo: [String: Any] { _nsError.userInfo }

    /// The error as a sentence for a person to read; never a secret.
    public var errorDescription: String? { _nsError.localizedDescription }

    /// The same as ``LAErrorDomain``.
    public static var errorDomain: String { LAErrorDomain }

    /// Whether both have the same code; what else they say does not count.
    ///
    /// - Parameters:
    ///   - left: An error.
    ///   - right: Another.
    /// - Returns: Whether they are equal.
    public static func == (left: LAError, right: LAError) -> Bool { left.errorCode == right.errorCode }

    /// Hashes the code.
    ///
    /// - Parameter hasher: What takes it.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(errorCode)
    }
}
