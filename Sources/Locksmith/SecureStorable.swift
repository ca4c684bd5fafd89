// SPDX-License-Identifier: Apache-2.0

/// Something that can be kept in the keychain.
///
/// A type says what it is with ``GenericPasswordSecureStorable`` or ``InternetPasswordSecureStorable``, and what can be done with it with
/// ``CreateableSecureStorable``, ``ReadableSecureStorable`` and ``DeleteableSecureStorable``.
///
/// What is optional has a default. A type that gives it must spell the property's type exactly: `let label: String? = "Work"`, since a
/// `String` is another property. What is not nil is stored with the item, and reading and deleting concern only an item that has it.
public protocol SecureStorable {
    /// When the item can be read and written.
    ///
    /// Optional: nil is the keychain's default, while the device is unlocked.
    var accessible: LocksmithAccessibleOption? { get }
    /// Which programs may use the item.
    ///
    /// Optional: nil is the program's first group for a new item, and all its groups for everything else.
    var accessGroup: String? { get }
}

extension SecureStorable {
    /// Nil: the keychain's default.
    public var accessible: LocksmithAccessibleOption? { nil }
    /// Nil: the program's own.
    public var accessGroup: String? { nil }
}

// MARK: Creating

/// Something that can be stored.
public protocol CreateableSecureStorable: SecureStorable {
    /// What to store.
    ///
    /// Strings, numbers, Booleans, dates, data, URLs, UUIDs, `NSNull`, and arrays and dictionaries of these, at most 100 deep. Elements of
    /// sets and keys of dictionaries contain nothing else, no two of them are equal numbers, and at most 1,000 in all are numbers or data.
    /// There are at most 100,000 values in all.
    var data: [String: Any] { get }
    /// Performs the request that adds the item.
    ///
    /// Optional: the default is `SecItemAdd`.
    var performCreateRequestClosure: PerformRequestClosureType { get }
    /// Performs the request that changes the item.
    ///
    /// Optional: the default is `SecItemUpdate`.
    var performUpdateRequestClosure: PerformUpdateRequestClosureType { get }
}

extension CreateableSecureStorable {
    /// Calls `SecItemAdd`.
    public var performCreateRequestClosure: PerformRequestClosureType { SecItemClient.add }

    /// Calls `SecItemUpdate`.
    public var performUpdateRequestClosure: PerformUpdateRequestClosureType { SecItemClient.update }

    /// Stores a new item.
    ///
    /// - Throws: A ``LocksmithError``: ``LocksmithError/duplicate`` if it is there already, ``LocksmithError/unarchivable`` for data that cannot be
    ///   stored, and others.
    public func createInSecureStore() throws {
        try ItemDescription(of: self).create(KeyedArchiveWriter.write(data), with: performCreateRequestClosure)
    }

    /// Stores the item, in place of the one that may be there.
    ///
    /// At no moment is there none. The one that is there is found by what tells items apart: its account and service, or its account, server,
    /// port, protocol, authentication type, path and security domain. Attributes that are nil stay as they are.
    /// ``performUpdateRequestClosure`` changes it; ``performCreateRequestClosure`` is called if there is none. Without an ``accessGroup``, every item
    /// is changed that is told apart by its group alone.
    ///
    /// - Throws: A ``LocksmithError``. The item that was there is then still there.
    public func updateInSecureStore() throws {
        try ItemDescription(of: self).update(
            KeyedArchiveWriter.write(data), with: performUpdateRequestClosure, orAddingWith: performCreateRequestClosure)
    }

    /// The dictionary of the request that adds the item.
    ///
    /// Without the value if the data cannot be archived, and empty for a type that conforms to neither password protocol.
    public var asCreateableSecureStoragePropertyDictionary: [String: Any] {
        guard let item = try? ItemDescription(of: self) else { return [:] }
        return item.additionRequest(try? KeyedArchiveWriter.write(data))
    }
}

// MARK: Reading

/// Something that can be read.
public protocol ReadableSecureStorable: SecureStorable {
    /// Performs the request that reads the item.
    ///
    /// Optional: the default is `SecItemCopyMatching`. The result is a dictionary of attributes with the value.
    var performReadRequestClosure: PerformRequestClosureType { get }
}

extension ReadableSecureStorable {
    /// Calls `SecItemCopyMatching`.
    public var performReadRequestClosure: PerformRequestClosureType { SecItemClient.copyMatching }

    /// Reads the item; nil tells not whether there is none or it cannot be read.
    ///
    /// ``tryReadFromSecureStore()`` does.
    ///
    /// - Returns: The item. Nil if there is none, it is locked or damaged, its value is no archive of a dictionary, or the keychain cannot be
    ///   used.
    public func readFromSecureStore() -> (any SecureStorableResultType)? {
        try? tryReadFromSecureStore()
    }

    /// Reads the item, and tells one that cannot be read from none.
    ///
    /// - Returns: The item; nil if there is none.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/interactionNotAllowed`` if it is locked, ``LocksmithError/decode`` if it is damaged or its
    ///   value is no archive of a dictionary, ``LocksmithError/unimplemented`` for certificates and keys, and others.
    public func tryReadFromSecureStore() throws -> (any SecureStorableResultType)? {
        let item = try ItemDescription(of: self)
        guard let found = try item.read(with: performReadRequestClosure) else { return nil }
        switch item.owner {
        case .genericPassword(let password): return try GenericPasswordResult(of: password, found)
        case .internetPassword(let password): return try InternetPasswordResult(of: password, found)
        }
    }

    /// The dictionary of the request that reads the item.
    ///
    /// Empty for a type that conforms to neither password protocol.
    public var asReadableSecureStoragePropertyDictionary: [String: Any] {
        (try? ItemDescription(of: self))?.readingRequest ?? [:]
    }
}

extension ReadableSecureStorable where Self: GenericPasswordSecureStorable {
    /// Reads the item; nil tells not whether there is none or it cannot be read.
    ///
    /// - Returns: The generic password; nil if there is none that can be read.
    public func readFromSecureStore() -> (any GenericPasswordSecureStorableResultType)? {
        try? tryReadFromSecureStore()
    }

    /// Reads the item, and tells one that cannot be read from none.
    ///
    /// - Returns: The generic password; nil if there is none.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/interactionNotAllowed`` if it is locked, ``LocksmithError/decode`` if it is damaged or its
    ///   value is no archive of a dictionary, and others.
    public func tryReadFromSecureStore() throws -> (any GenericPasswordSecureStorableResultType)? {
        guard let found = try ItemDescription(of: self).read(with: performReadRequestClosure) else { return nil }
        return try GenericPasswordResult(of: self, found)
    }
}

extension ReadableSecureStorable where Self: InternetPasswordSecureStorable {
    /// Reads the item; nil tells not whether there is none or it cannot be read.
    ///
    /// - Returns: The internet password; nil if there is none that can be read.
    public func readFromSecureStore() -> (any InternetPasswordSecureStorableResultType)? {
        try? tryReadFromSecureStore()
    }

    /// Reads the item, and tells one that cannot be read from none.
    ///
    /// - Returns: The internet password; nil if there is none.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/interactionNotAllowed`` if it is locked, ``LocksmithError/decode`` if it is damaged or its
    ///   value is no archive of a dictionary, and others.
    public func tryReadFromSecureStore() throws -> (any InternetPasswordSecureStorableResultType)? {
        guard let found = try ItemDescription(of: self).read(with: performReadRequestClosure) else { return nil }
        return try InternetPasswordResult(of: self, found)
    }
}

// MARK: Deleting

/// Something that can be deleted.
public protocol DeleteableSecureStorable: SecureStorable {
    /// Performs the request that deletes the item.
    ///
    /// Optional: the default is `SecItemDelete`.
    var performDeleteRequestClosure: PerformRequestClosureType { get }
}

extension DeleteableSecureStorable {
    /// Calls `SecItemDelete`.
    public var performDeleteRequestClosure: PerformRequestClosureType { SecItemClient.delete }

    /// Deletes the item.
    ///
    /// - Throws: A ``LocksmithError``: ``LocksmithError/notFound`` if there is none, and others.
    public func deleteFromSecureStore() throws {
        try ItemDescription(of: self).delete(with: performDeleteRequestClosure)
    }

    /// The dictionary of the request that deletes the item.
    ///
    /// Empty for a type that conforms to neither password protocol.
    public var asDeleteableSecureStoragePropertyDictionary: [String: Any] {
        (try? ItemDescription(of: self))?.attributes ?? [:]
    }
}

#if canImport(Darwin)
public import Foundation

/// Performs a request.
///
/// It is called with the dictionary of the request and where to put the result, and returns a status of Keychain Services. A type can give
/// one of its own, to watch requests or to answer them without a keychain. What it puts into the result it must not change any more.
public typealias PerformRequestClosureType = (_ requestReference: CFDictionary, _ result: inout AnyObject?) -> OSStatus

/// Performs a request that changes an item.
///
/// It is called with what finds the item and with what to set, and returns a status of Keychain Services.
public typealias PerformUpdateRequestClosureType = (_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus
#else
/// Performs a request.
///
/// It is called with the dictionary of the request and where to put the result, and returns a status of Keychain Services. A type can give
/// one of its own, to watch requests or to answer them without a keychain. What it puts into the result it must not change any more.
///
/// The types are those that `CFDictionary` and `OSStatus` of the module KeychainServices stand for.
public typealias PerformRequestClosureType = (_ requestReference: [String: Any], _ result: inout AnyObject?) -> Int32

/// Performs a request that changes an item.
///
/// It is called with what finds the item and with what to set, and returns a status of Keychain Services.
///
/// The types are those that `CFDictionary` and `OSStatus` of the module KeychainServices stand for.
public typealias PerformUpdateRequestClosureType = (_ query: [String: Any], _ attributesToUpdate: [String: Any]) -> Int32
#endif
