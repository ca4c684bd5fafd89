// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The capitalised names are those of Locksmith for Swift 2.

public import Foundation
internal import KeychainServices

/// Why the keychain did not do what it was asked.
///
/// Two errors are equal if they have the same message, so `catch LocksmithError.undefined` catches every status without an error of its own.
/// Not an enumeration, so that an error can say more than its name does.
public struct LocksmithError: Error, RawRepresentable, CaseIterable, Sendable {
    /// The message.
    public let rawValue: String
    /// The status of Keychain Services, of the `errSec…` constants; nil if the error is not the keychain's.
    public let status: Int32?
    /// Where in the data the value stands that cannot be archived or read, for example `profile.photos[2]`; nil if that is not known.
    public let key: String?

    private init(_ message: String, status: Int32? = nil, key: String? = nil) {
        rawValue = message
        self.status = status
        self.key = key
    }

    // MARK: The errors

    /// There was not enough memory.
    public static let allocate = LocksmithError("Failed to allocate memory.", status: errSecAllocate)
    /// Nobody could show to be the person asked for, or the item needs a passcode and none is set.
    public static let authFailed = LocksmithError("Authorization/Authentication failed.", status: errSecAuthFailed)
    /// What is stored is damaged, or is not what this library stores.
    ///
    /// It does not mean that there is nothing. Damage that the keychain found has a ``status``; what it delivered and is no archive of a
    /// dictionary, or no value of the type it is read as, has none.
    public static let decode = LocksmithError("Unable to decode the provided data.", status: errSecDecode)
    /// There is such an item already.
    public static let duplicate = LocksmithError("The item already exists.", status: errSecDuplicateItem)
    /// The item is locked.
    ///
    /// It does not mean that there is none.
    public static let interactionNotAllowed = LocksmithError(
        "Interaction with the Security Server is not allowed.", status: errSecInteractionNotAllowed)
    /// Nothing went wrong; it is never thrown.
    public static let noError = LocksmithError("No error.", status: errSecSuccess)
    /// The keychain cannot be used.
    public static let notAvailable = LocksmithError("No trust results are available.", status: errSecNotAvailable)
    /// There is no such item.
    public static let notFound = LocksmithError("The item cannot be found.", status: errSecItemNotFound)
    /// An attribute has a value that the keychain does not take.
    public static let param = LocksmithError("One or more parameters passed to the function were not valid.", status: errSecParam)
    /// Part of Locksmith 4.0; it is never thrown.
    public static let requestNotSet = LocksmithError("The request was not set")
    /// The type says not which class of items it describes: it conforms to neither of the password protocols.
    public static let typeNotFound = LocksmithError("The type was not found")
    /// Part of Locksmith 4.0; it is never thrown.
    public static let unableToClear = LocksmithError("Unable to clear the keychain")
    /// A status of the keychain for which there is no other error; ``status`` tells which.
    public static let undefined = LocksmithError("An undefined error occurred")
    /// Neither the keychain nor this library does that.
    public static let unimplemented = LocksmithError("Function or operation not implemented.", status: errSecUnimplemented)
    /// A value in the data has no form in an archive, so nothing was stored; ``key`` tells which value it is.
    public static let unarchivable = LocksmithError("A value cannot be archived.")

    /// Every error.
    public static let allCases: [LocksmithError] = [
        .allocate, .authFailed, .decode, .duplicate, .interactionNotAllowed,
        .noError, .notAvailable, .notFound, .param, .requestNotSet,
        .typeNotFound, .unableToClear, .undefined, .unimplemented, .unarchivable,
    ]

    // MARK: Making

    /// The error with a message.
    ///
    /// - Parameter rawValue: The message; nil is made of any other.
    public init?(rawValue: String) {
        guard let match = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = match
    }

    /// The error for a status, if there is one of its own.
    ///
    /// - Parameter statusCode: A status of Keychain Services; nil is made of those without an error of their own.
    public init?(fromStatusCode statusCode: Int) {
        guard let match = Self.allCases.first(where: { $0.status.map(Int.init) == statusCode }) else { return nil }
        self = match
    }

    /// The error for a status: ``undefined`` with that status if there is none of its own.
    init(status: Int32) {
        self = Self(fromStatusCode: Int(status)) ?? Self(Self.undefined.rawValue, status: status)
    }

    /// The error for a value that has no form in an archive.
    static func unarchivable(key: String) -> LocksmithError {
        LocksmithError(unarchivable.rawValue, key: key)
    }

    /// The error for what the keychain delivered and this library did not store.
    static let unreadableValue = LocksmithError(decode.rawValue)

    /// The error for a value that is not of the type it is read as.
    static func decode(key: String) -> LocksmithError {
        LocksmithError(decode.rawValue, key: key)
    }
}

extension LocksmithError: Hashable {
    /// Whether two errors have the same message.
    ///
    /// - Parameters:
    ///   - lhs: An error.
    ///   - rhs: Another error.
    /// - Returns: True if so, whatever their status and key.
    public static func == (lhs: LocksmithError, rhs: LocksmithError) -> Bool {
        lhs.rawValue == rhs.rawValue
    }

    /// Hashes what decides equality.
    ///
    /// - Parameter hasher: The hasher to feed.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(rawValue)
    }

    /// Lets `catch` and `case` name an error as they name a case of an enumeration.
    ///
    /// - Parameters:
    ///   - pattern: The error that is named.
    ///   - error: The error that is there.
    /// - Returns: Whether they are equal.
    public static func ~= (pattern: LocksmithError, error: any Error) -> Bool {
        (error as? LocksmithError) == pattern
    }
}

extension LocksmithError: LocalizedError, CustomStringConvertible {
    /// The message, and the status or the key if that says more.
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
