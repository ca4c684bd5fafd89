// SPDX-License-Identifier: Apache-2.0
public import Foundation

// The parts that passwords are described with, and the two sorts of passwords.

/// Something that belongs to an account.
public protocol AccountBasedSecureStorable: SecureStorable {
    /// The account, part of what tells items apart.
    var account: String { get }
}

/// Something with a description.
public protocol DescribableSecureStorable: SecureStorable {
    /// What sort of item it is, for a person to read.
    var description: String? { get }
}

/// Something with a comment.
public protocol CommentableSecureStorable: SecureStorable {
    /// A comment for a person to read.
    var comment: String? { get }
}

/// Something that knows what created it.
public protocol CreatorDesignatableSecureStorable: SecureStorable {
    /// The number of what created it, for example the four characters "aCrt" as a number.
    var creator: UInt? { get }
}

/// Something with a label.
public protocol LabellableSecureStorable: SecureStorable {
    /// The name that a person sees.
    var label: String? { get }
}

/// Something with a type.
public protocol TypeDesignatableSecureStorable: SecureStorable {
    /// The number of its type, for example the four characters "aTyp" as a number.
    var type: UInt? { get }
}

/// Something that may be shown or not.
public protocol IsInvisibleAssignableSecureStorable: SecureStorable {
    /// Whether it should not be shown to a person.
    var isInvisible: Bool? { get }
}

/// Something that may stand for a password that is not stored.
public protocol IsNegativeAssignableSecureStorable: SecureStorable {
    /// Whether there is a password that must be asked for each time.
    var isNegative: Bool? { get }
}

/// A password that is not for a server.
public protocol GenericPasswordSecureStorable: AccountBasedSecureStorable, DescribableSecureStorable, CommentableSecureStorable,
    CreatorDesignatableSecureStorable, LabellableSecureStorable, TypeDesignatableSecureStorable, IsInvisibleAssignableSecureStorable,
    IsNegativeAssignableSecureStorable
{
    /// What the password is for, with the account what tells items apart.
    var service: String { get }
    /// Bytes that mean something to the program; they are stored as an attribute, not as a secret.
    ///
    /// Optional.
    var generic: Data? { get }
}

/// A password for a server.
public protocol InternetPasswordSecureStorable: AccountBasedSecureStorable, DescribableSecureStorable, CommentableSecureStorable,
    CreatorDesignatableSecureStorable, TypeDesignatableSecureStorable, IsInvisibleAssignableSecureStorable,
    IsNegativeAssignableSecureStorable
{
    /// How the server lets people authenticate.
    var authenticationType: LocksmithInternetAuthenticationType { get }
    /// The protocol that the server speaks.
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

// MARK: What is optional

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
    /// Nil: nothing is said.
    public var isInvisible: Bool? { nil }
}

extension IsNegativeAssignableSecureStorable {
    /// Nil: nothing is said.
    public var isNegative: Bool? { nil }
}

extension GenericPasswordSecureStorable {
    /// Nil: none.
    public var generic: Data? { nil }
}

extension InternetPasswordSecureStorable {
    /// Nil: none, and any path when reading and deleting where there is no item without one.
    public var path: String? { nil }
    /// Nil: none, and any domain when reading and deleting where there is no item without one.
    public var securityDomain: String? { nil }
}

// MARK: What is not supported

/// A certificate: not supported.
///
/// The protocol is there because Locksmith 4.0 has it. Creating, reading and deleting what conforms to it throws
/// ``LocksmithError/unimplemented``, and `readFromSecureStore()` gives nil. Where the platform stores certificates, use Keychain Services.
public protocol CertificateSecureStorable: SecureStorable {}

/// A cryptographic key: not supported.
///
/// The protocol is there because Locksmith 4.0 has it. Creating, reading and deleting what conforms to it throws
/// ``LocksmithError/unimplemented``, and `readFromSecureStore()` gives nil. The bytes of a key can be stored in a generic password.
public protocol KeySecureStorable: SecureStorable {}
