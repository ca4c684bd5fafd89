// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The capitalized names are those of Locksmith for Swift 2.

public import Foundation
internal import KeychainServices

/// The error of a call of this library.
///
/// Two errors are equal if they have the same message, so `catch LocksmithError.undefined` catches every status without an error of its
/// own. It is a structure and not an enumeration because an error can carry a status or a key.
public struct LocksmithError: Error, RawRepresentable, CaseIterable, Sendable {
    /// The message.
    public let rawValue: String
    /// The status of Keychain Services, one of the `errSec…` constants; nil if the error does not come from the keychain.
    public let status: Int32?
    /// The path of the value in the data that cannot be archived or read, for example `profile.photos[2]`; nil if it is not known.
    public let key: String?

    private init(_ message: String, status: Int32? = nil, key: String? = nil) {
        rawValue = message
        self.status = status
        self.key = key
    }

    // MARK: The errors

    /// There was not enough memory.
    public static let allocate = LocksmithError("Failed to allocate memory.", status: errSecAllocate)
    /// Authentication failed, or the item requires a passcode and none is set.
    public static let authFailed = LocksmithError("Authorization/Authentication failed.", status: errSecAuthFailed)
    /// The item is damaged, or this library did not store it.
    ///
    /// The item exists. If the keychain reported damage, the error has a ``status``. If the value is not an archive of a dictionary, or not
    /// of the requested type, it has none.
    public static let decode = LocksmithError("Unable to decode the provided data.", status: errSecDecode)
    /// The item already exists.
    ///
    /// To replace its data, update it instead. The text is that of Locksmith 4.0, without a next step.
    public static let duplicate = LocksmithError("The item already exists.", status: errSecDuplicateItem)
    /// The item is locked.
    public static let interactionNotAllowed = LocksmithError(
        "Interaction with the Security Server is not allowed.", status: errSecInteractionNotAllowed)
    /// No error; it is never thrown.
    public static let noError = LocksmithError("No error.", status: errSecSuccess)
    /// The keychain cannot be used.
    public static let notAvailable = LocksmithError("No trust results are available.", status: errSecNotAvailable)
    /// The item does not exist.
    public static let notFound = LocksmithError("The item cannot be found.", status: errSecItemNotFound)
    /// An attribute has a value that the keychain does not accept.
    public static let param = LocksmithError("One or more parameters passed to the function were not valid.", status: errSecParam)
    /// Part of Locksmith 4.0; it is never thrown.
    public static let requestNotSet = LocksmithError("The request was not set")
    /// The type conforms to neither of the password protocols, so the class of its items is not known.
    public static let typeNotFound = LocksmithError("The type was not found")
    /// Part of Locksmith 4.0; it is never thrown.
    public static let unableToClear = LocksmithError("Unable to clear the keychain")
    /// A status of the keychain that has no error of its own; see ``status``.
    public static let undefined = LocksmithError("An undefined error occurred")
    /// The keychain or this library does not support the operation.
    ///
    /// The text is that of Apple's status of this name.
    public static let unimplemented = LocksmithError("Function or operation not implemented.", status: errSecUnimplemented)
    /// A value in the data cannot be archived, so nothing was stored; ``key`` is its path.
    public static let unarchivable = LocksmithError("A value cannot be archived.")

    /// Every error.
    public static let allCases: [LocksmithError] = [
        .allocate, .authFailed, .decode, .duplicate, .interactionNotAllowed,
        .noError, .notAvailable, .notFound, .param, .requestNotSet,
        .typeNotFound, .unableToClear, .undefined, .unimplemented, .unarchivable,
    ]

    // MARK: Initializers

    /// Creates the error with a message.
    ///
    /// - Parameter rawValue: The message. For any other text the initializer returns nil.
    public init?(rawValue: String) {
        guard let match = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = match
    }

    /// Creates the error for a status.
    ///
    /// - Parameter statusCode: A status of Keychain Services. For a status without an error of its own the initializer returns nil.
    public init?(fromStatusCode statusCode: Int) {
        guard let match = Self.allCases.first(where: { $0.status.map(Int.init) == statusCode }) else { return nil }
        self = match
    }

    /// Creates the error for a status: ``undefined`` with that status if it has no error of its own.
    init(status: Int32) {
        self = Self(fromStatusCode: Int(status)) ?? Self(Self.undefined.rawValue, status: status)
    }

    /// Returns the error for a value that cannot be archived.
    static func unarchivable(key: String) -> LocksmithError {
        LocksmithError(unarchivable.rawValue, key: key)
    }

    /// The error for a value that this library did not store.
    static let unreadableValue = LocksmithError(decode.rawValue)

    /// Returns the error for a value that is not of the requested type.
    static func decode(key: String) -> LocksmithError {
        LocksmithError(decode.rawValue, key: key)
    }
}

extension LocksmithError: Hashable {
    /// Returns whether two errors have the same message.
    ///
    /// - Parameters:
    ///   - lhs: An error.
    ///   - rhs: Another error.
    /// - Returns: True if the messages are equal, regardless of status and key.
    public static func == (lhs: LocksmithError, rhs: LocksmithError) -> Bool {
        lhs.rawValue == rhs.rawValue
    }

    /// Hashes the message.
    ///
    /// - Parameter hasher: The hasher to use.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(rawValue)
    }

    /// Returns whether an error matches a pattern, so that `catch` and `case` can name errors like cases of an enumeration.
    ///
    /// - Parameters:
    ///   - pattern: The error in the pattern.
    ///   - error: The error to match.
    /// - Returns: True if they are equal.
    public static func ~= (pattern: LocksmithError, error: any Error) -> Bool {
        (error as? LocksmithError) == pattern
    }
}

extension LocksmithError: LocalizedError, CustomStringConvertible {
    /// The message, with the key or the status if there is one that adds information.
    public var description: String {
        if let key { return "\(rawValue) Key: \(key)" }
        if self == .undefined, let status { return "\(rawValue): status \(status)" }
        return rawValue
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}

/// The spellings of Swift 2.
extension LocksmithError {
    /// The same as `allocate`.
    public static let Allocate = Self.allocate
    /// The same as `authFailed`.
    public static let AuthFailed = Self.authFailed
    /// The same as `decode`.
    public static let Decode = Self.decode
    /// The same as `duplicate`.
    public static let Duplicate = Self.duplicate
    /// The same as `interactionNotAllowed`.
    public static let InteractionNotAllowed = Self.interactionNotAllowed
    /// The same as `noError`.
    public static let NoError = Self.noError
    /// The same as `notAvailable`.
    public static let NotAvailable = Self.notAvailable
    /// The same as `notFound`.
    public static let NotFound = Self.notFound
    /// The same as `param`.
    public static let Param = Self.param
    /// The same as `requestNotSet`.
    public static let RequestNotSet = Self.requestNotSet
    /// The same as `typeNotFound`.
    public static let TypeNotFound = Self.typeNotFound
    /// The same as `unableToClear`.
    public static let UnableToClear = Self.unableToClear
    /// The same as `undefined`.
    public static let Undefined = Self.undefined
    /// The same as `unimplemented`.
    public static let Unimplemented = Self.unimplemented
}
