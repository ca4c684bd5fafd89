// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

/// The error of the typed calls of a valet: a reason for the program, and a text for the person.
///
/// No text contains a key or a value. ``KeychainError`` has fewer cases; ``init(_:)`` is the way from it to a reason.
public struct ValetFailure: LocalizedError, Sendable, CustomStringConvertible, CustomReflectable {
    /// Why a call failed.
    public enum Reason: Hashable, Sendable {
        /// The key is the empty string.
        case emptyKey
        /// The value has no bytes; nothing was stored.
        case emptyValue
        /// There is no value under the key. This is certain, also while the keychain is locked.
        case notFound
        /// There is a value under the key already, and the call may not replace it.
        ///
        /// An explicitly named valet cannot replace the value of one with another accessibility; ``ValetFailure/failureReason`` then says so.
        case alreadyExists
        /// The stored bytes are not UTF-8.
        case notText
        /// The stored bytes are not a value of the requested type. The path leads to the part that does not fit; empty if it is the whole.
        case notDecodable(codingPath: [String])
        /// The coder cannot encode the value. The path leads to the part that it does not accept; empty if it is the whole.
        case notEncodable(codingPath: [String])
        /// The keychain is locked for this value.
        case locked
        /// The user canceled the prompt.
        case canceled
        /// The user did not authenticate: the passcode or the password was wrong, or prompts timed out.
        case notAuthenticated
        /// The value requires a passcode, and none is set.
        case passcodeNotSet
        /// A prompt is necessary and cannot be shown.
        case cannotPrompt
        /// The value or the keychain is damaged. Nothing was changed.
        case damaged
        /// The keychain cannot be written.
        case readOnly
        /// The disk is full. Nothing was changed.
        case diskFull
        /// The keychain has as much as keychaind keeps for one user. Nothing was changed.
        case full
        /// The environment names no place for the keychain.
        case noPlace
        /// The key file, the credential, or the TPM does not release the key of the keychain.
        case protectorUnavailable
        /// The entitlements of the program do not list the access group of the valet.
        case missingEntitlement
        /// The disk failed while the change was flushed: it may or may not have taken effect.
        case outcomeUnknown
        /// Other threads or processes were writing for five seconds; nothing was changed.
        case busy
        /// The keychain cannot be used for another reason; ``ValetFailure/failureReason`` has it.
        case unavailable
    }

    /// Why the call failed.
    public let reason: Reason
    /// The status of Keychain Services, one of the `errSec…` constants; nil if the failure does not come from the keychain.
    public let status: Int32?
    /// What the keychain reports, for people, in English; nil if there is nothing to add to ``errorDescription``.
    ///
    /// It can name files and access groups.
    public let failureReason: String?
    /// What to do next; nil if there is nothing that holds in general.
    public let recoverySuggestion: String?
    /// The error that the coder threw; nil except with the reasons ``Reason/notDecodable(codingPath:)`` and ``Reason/notEncodable(codingPath:)``.
    ///
    /// It can quote the value, so do not show or log it. It appears neither in the texts of the failure nor in its mirror.
    public let underlyingError: (any Error)?

    /// One sentence about the problem and, if there is one, the next step.
    ///
    /// With the reasons ``Reason/unavailable``, ``Reason/readOnly``, ``Reason/protectorUnavailable``, ``Reason/missingEntitlement``, and
    /// ``Reason/alreadyExists``, which have several causes, the sentence contains ``failureReason``.
    public var errorDescription: String? { [problem, recoverySuggestion].compactMap(\.self).joined(separator: " ") }

    /// ``errorDescription``, ``failureReason``, and ``status``.
    public var description: String {
        let facts = [problemNamesCause ? nil : failureReason, status.map { "status \($0)" }].compactMap(\.self).joined(separator: "; ")
        return (errorDescription ?? "") + (facts.isEmpty ? "" : " (\(facts))")
    }

    /// ``reason`` and ``status`` only: what `dump` prints quotes no value.
    public var customMirror: Mirror { Mirror(self, children: ["reason": reason, "status": status as Any]) }

    /// Creates the failure of a call that does not come from the keychain.
    init(reason: Reason, underlyingError: (any Error)? = nil) {
        self.reason = reason
        status = nil
        failureReason = nil
        recoverySuggestion = reason.advice
        self.underlyingError = underlyingError
    }

    private init(_ reason: CallFailure.Reason, _ failure: CallFailure?) {
        self.reason = Reason(reason)
        status = failure?.status
        failureReason = failure?.detail
        recoverySuggestion = reason.advice
        underlyingError = nil
    }

    /// There is no value under the key.
    static let notFound = ValetFailure(
        .notFound, CallFailure(status: errSecItemNotFound, reason: .notFound, detail: nil))
    /// There is a value under the key already.
    static let alreadyExists = ValetFailure(
        .alreadyExists, CallFailure(status: errSecDuplicateItem, reason: .alreadyExists, detail: nil))

    /// Runs calls that throw ``KeychainError``, and throws their error with its reason.
    ///
    /// ``KeychainError/couldNotAccessKeychain`` stands for a locked, a damaged, and a full keychain, and more; this tells them apart.
    ///
    ///     let token = try ValetFailure.explaining { () throws(KeychainError) in try valet.string(forKey: "token") }
    ///
    /// - Parameter body: The calls, which run once, on the caller's thread.
    /// - Returns: The result of `body`.
    /// - Throws: The failure of the call that threw.
    public static func explaining<Result>(_ body: () throws(KeychainError) -> Result) throws(ValetFailure) -> Result {
        try translating(body)
    }

    /// Creates the failure for an error of a valet, which has less detail than the failures that the typed calls throw.
    ///
    /// To get the reason of ``KeychainError/couldNotAccessKeychain``, use ``explaining(_:)``.
    ///
    /// - Parameter error: The error of a call such as ``Valet/object(forKey:)``.
    public init(_ error: KeychainError) {
        self.init(error, after: nil)
    }

    /// `failure` is that of the last call of Keychain Services.
    init(_ error: KeychainError, after failure: CallFailure?) {
        switch error {
        case .emptyKey: self.init(reason: .emptyKey)
        case .emptyValue: self.init(reason: .emptyValue)
        case .itemNotFound: self.init(.notFound, failure)
        case .userCancelled: self.init(failure?.reason ?? .canceled, failure)
        case .missingEntitlement: self.init(.missingEntitlement, failure)
        case .couldNotAccessKeychain: self.init(failure?.reason ?? .unavailable, failure)
        }
    }

    /// Runs calls of a valet that throw `KeychainError`, and throws the failure of the last one.
    static func translating<Result>(_ body: () throws(KeychainError) -> Result) throws(ValetFailure) -> Result {
        let last = LastFailure()
        let result = LastCall.observing(last.note) { Swift.Result { () throws(KeychainError) in try body() } }
        do throws(KeychainError) { return try result.get() } catch { throw ValetFailure(error, after: last.failure) }
    }

    /// Runs calls of a valet, and returns with their result what the keychain reported about the last call of Keychain Services; nil if it succeeded.
    package static func observingReason<Result>(_ body: () -> Result) -> (result: Result, reason: String?) {
        let last = LastFailure()
        let result = LastCall.observing(last.note, body)
        return (result, last.failure?.detail)
    }

    /// Whether ``errorDescription`` contains ``failureReason``.
    private var problemNamesCause: Bool {
        [.unavailable, .readOnly, .protectorUnavailable, .missingEntitlement, .alreadyExists].contains(reason)
    }

    private var problem: String {
        guard problemNamesCause, let failureReason else { return plainProblem + "." }
        return "\(plainProblem): \(failureReason)."
    }

    /// The sentence about the problem, without its end.
    private var plainProblem: String {
        switch reason {
        case .emptyKey: "The key is empty"
        case .emptyValue: "The value is empty"
        case .notFound: "There is no value under this key"
        case .alreadyExists: "There is a value under this key already"
        case .notText: "The stored value is not text"
        case .notDecodable: "The stored value is not of the expected type"
        case .notEncodable: "The value cannot be encoded"
        case .locked: "The keychain is locked"
        case .canceled: "The prompt was canceled"
        case .notAuthenticated: "Authentication failed"
        case .passcodeNotSet: "No passcode is set"
        case .cannotPrompt: "A prompt is necessary and cannot be shown"
        case .damaged: "The keychain or the stored value is damaged"
        case .readOnly: "The keychain is read-only"
        case .diskFull: "The disk is full"
        case .full: "The keychain is full"
        case .noPlace: "There is no place for the keychain"
        case .protectorUnavailable: "The key of the keychain is not available"
        case .missingEntitlement: "The program is not entitled to the access group"
        case .outcomeUnknown: "The disk failed, and the change may or may not have taken effect"
        case .busy: "Another program is writing to the keychain"
        case .unavailable: "The keychain is not available"
        }
    }
}

extension ValetFailure.Reason {
    /// What to do next about a failure that does not come from the keychain.
    fileprivate var advice: String? {
        switch self {
        case .emptyKey: "Use a key of at least one character."
        case .emptyValue: "To delete a value, remove it."
        case .notText: "Read it as data."
        case .notDecodable: "Compare the type with that of the program that stored the value, or store the value again."
        case .notEncodable: "Compare the value with what its coder accepts."
        default: nil
        }
    }

    fileprivate init(_ reason: CallFailure.Reason) {
        self =
            switch reason {
            case .notFound: .notFound
            case .alreadyExists, .otherAccessibility: .alreadyExists
            case .locked: .locked
            case .canceled: .canceled
            case .notAuthenticated: .notAuthenticated
            case .passcodeNotSet: .passcodeNotSet
            case .cannotPrompt: .cannotPrompt
            case .damaged: .damaged
            case .readOnly: .readOnly
            case .diskFull: .diskFull
            case .full: .full
            case .noPlace: .noPlace
            case .protectorUnavailable: .protectorUnavailable
            case .missingEntitlement: .missingEntitlement
            case .outcomeUnknown: .outcomeUnknown
            case .busy: .busy
            case .unavailable: .unavailable
            }
    }
}

/// The failure of the last call of Keychain Services.
///
/// `@unchecked Sendable`: the lock guards the variable.
private final class LastFailure: @unchecked Sendable {
    private let lock = NSLock()
    private var last: CallFailure?

    var failure: CallFailure? { lock.withLock { last } }

    @Sendable func note(_ failure: CallFailure?) { lock.withLock { last = failure } }
}
