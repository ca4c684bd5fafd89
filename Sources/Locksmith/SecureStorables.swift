// SPDX-License-Identifier: Apache-2.0
public import Foundation

// The attributes of passwords, and the two kinds of passwords.

/// An item with an account.
public protocol AccountBasedSecureStorable: SecureStorable {
    /// The account, a part of the primary key.
    var account: String { get }
}

/// An item with a description.
public protocol DescribableSecureStorable: SecureStorable {
    /// The kind of the item, for people.
    var description: String? { get }
}

/// An item with a comment.
public protocol CommentableSecureStorable: SecureStorable {
    /// A comment for people.
    var comment: String? { get }
}

/// An item with a creator.
public protocol CreatorDesignatableSecureStorable: SecureStorable {
    /// The number of the creator, for example the four characters "aCrt" as a number.
    var creator: UInt? { get }
}

/// An item with a label.
public protocol LabellableSecureStorable: SecureStorable {
    /// The name that users see.
    var label: String? { get }
}

/// An item with a type.
public protocol TypeDesignatableSecureStorable: SecureStorable {
    /// The number of the type, for example the four characters "aTyp" as a number.
    var type: UInt? { get }
}

/// An item that can be invisible.
public protocol IsInvisibleAssignableSecureStorable: SecureStorable {
    /// Whether the item should be hidden from users.
    var isInvisible: Bool? { get }
}

/// An item that can be a placeholder for a password that is not stored.
public protocol IsNegativeAssignableSecureStorable: SecureStorable {
    /// Whether the item is a placeholder for a password that the user enters each time.
    var isNegative: Bool? { get }
}

/// An item whose generic attribute has the type that it had in Locksmith 4.0.
///
/// ``GenericPasswordSecureStorable`` inherits the requirement, so a type can declare `generic` as `NSData?` or as `Data?`. The requirement
/// is in a protocol of its own because one protocol cannot declare the same property with two types.
public protocol NSDataGenericSecureStorable: SecureStorable {
    /// Bytes that the program defines, stored as an attribute and not as a secret.
    ///
    /// Optional.
    var generic: NSData? { get }
}

/// A generic password: one without a server.
public protocol GenericPasswordSecureStorable: AccountBasedSecureStorable, DescribableSecureStorable, CommentableSecureStorable,
    CreatorDesignatableSecureStorable, LabellableSecureStorable, TypeDesignatableSecureStorable, IsInvisibleAssignableSecureStorable,
    IsNegativeAssignableSecureStorable, NSDataGenericSecureStorable
{
    /// The service, which with the account forms the primary key.
    var service: String { get }
    /// Bytes that the program defines, stored as an attribute and not as a secret.
    ///
    /// Optional. A type can declare it as `Data?`, or as `NSData?` as in Locksmith 4.0.
    var generic: Data? { get }
}

/// An internet password: one for a server.
public protocol InternetPasswordSecureStorable: AccountBasedSecureStorable, DescribableSecureStorable, CommentableSecureStorable,
    CreatorDesignatableSecureStorable, TypeDesignatableSecureStorable, IsInvisibleAssignableSecureStorable,
    IsNegativeAssignableSecureStorable
{
    /// The authentication type of the server.
    var authenticationType: LocksmithInternetAuthenticationType { get }
    /// The protocol of the server.
    var internetProtocol: LocksmithInternetProtocol { get }
    /// The port of the server.
    var port: Int { get }
    /// The name or address of the server.
    var server: String { get }
    /// The path on the server.
    ///
    /// Optional.
    var path: String? { get }
    /// The security domain on the server.
    ///
    /// Optional.
    var securityDomain: String? { get }
}

// MARK: Defaults

extension DescribableSecureStorable {
    /// Nil: none.
    public var description: String? { nil }
}

extension CommentableSecureStorable {
    /// Nil: none.
    public var comment: String? { nil }
}

extension CreatorDesignatableSecureStorable {
    /// Nil: none.
    public var creator: UInt? { nil }
}

extension LabellableSecureStorable {
    /// Nil: none.
    public var label: String? { nil }
}

extension TypeDesignatableSecureStorable {
    /// Nil: none.
    public var type: UInt? { nil }
}

extension IsInvisibleAssignableSecureStorable {
    /// Nil: not set.
    public var isInvisible: Bool? { nil }
}

extension IsNegativeAssignableSecureStorable {
    /// Nil: not set.
    public var isNegative: Bool? { nil }
}

extension NSDataGenericSecureStorable {
    /// Nil: none, or declared as `Data?`.
    public var generic: NSData? { nil }
}

extension GenericPasswordSecureStorable {
    /// The bytes of a property `generic` that is declared as `NSData?`; nil if there is none.
    public var generic: Data? { (generic as NSData?).map { Data(referencing: $0) } }
}

extension InternetPasswordSecureStorable {
    /// Nil: no path.
    ///
    /// If no item without a path exists, reading and deleting find an item with any path.
    public var path: String? { nil }
    /// Nil: no security domain.
    ///
    /// If no item without one exists, reading and deleting find an item with any security domain.
    public var securityDomain: String? { nil }
}

// MARK: Not supported

/// A certificate: not supported.
///
/// The protocol exists because Locksmith 4.0 has it. Creating, reading and deleting a conforming item throws
/// ``LocksmithError/unimplemented``, and `readFromSecureStore()` returns nil. If the platform stores certificates, use Keychain Services.
public protocol CertificateSecureStorable: SecureStorable {}

/// A cryptographic key: not supported.
///
/// The protocol exists because Locksmith 4.0 has it. Creating, reading and deleting a conforming item throws
/// ``LocksmithError/unimplemented``, and `readFromSecureStore()` returns nil. The bytes of a key can be stored in a generic password.
public protocol KeySecureStorable: SecureStorable {}
