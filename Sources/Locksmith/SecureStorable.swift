// SPDX-License-Identifier: Apache-2.0

/// An item of the keychain.
///
/// A type also conforms to ``GenericPasswordSecureStorable`` or ``InternetPasswordSecureStorable``, which determine the class of the item,
/// and to ``CreateableSecureStorable``, ``ReadableSecureStorable`` and ``DeleteableSecureStorable`` for the operations that it supports.
///
/// Optional properties have defaults. A type that implements one must spell its type exactly: `let label: String? = "Work"`, since a
/// property of type `String` is a different one. Properties that are not nil are stored with a new item. Reading and deleting find only
/// items with equal values.
public protocol SecureStorable {
    /// The lock states in which the item can be read and written.
    ///
    /// Optional: nil is the keychain's default, while the device is unlocked.
    var accessible: LocksmithAccessibleOption? { get }
    /// The access group, which determines the programs that can use the item.
    ///
    /// Optional: nil is the program's first group for a new item, and all of its groups for other operations.
    var accessGroup: String? { get }
}

extension SecureStorable {
    /// Nil: the keychain's default.
    public var accessible: LocksmithAccessibleOption? { nil }
    /// Nil: the program's own groups.
    public var accessGroup: String? { nil }
}

// MARK: Creating

/// An item that can be stored.
public protocol CreateableSecureStorable: SecureStorable {
    /// The data to store.
    ///
    /// Values are strings, numbers, Booleans, dates, data, URLs, UUIDs, `NSNull`, and arrays, sets, and dictionaries of these, nested at
    /// most 100 deep. Elements of sets and keys of dictionaries must not be containers, and no two of them may be equal numbers. At most
    /// 1,000 of them may be numbers or data. The total number of values is at most 100,000.
    var data: [String: Any] { get }
    /// The closure that performs the request to add the item.
    ///
    /// Optional: the default is `SecItemAdd`.
    var performCreateRequestClosure: PerformRequestClosureType { get }
    /// The closure that performs the request to update the item.
    ///
    /// Optional: the default is `SecItemUpdate`.
    var performUpdateRequestClosure: PerformUpdateRequestClosureType { get }
    /// Stores a new item.
    ///
    /// Optional: the default adds the item with ``performCreateRequestClosure``.
    ///
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/duplicate`` if the item exists or ``LocksmithError/unarchivable`` for
    ///   data that cannot be stored.
    func createInSecureStore() throws
    /// Stores the item, or replaces it if it exists.
    ///
    /// Optional: the default uses ``performUpdateRequestClosure``, and ``performCreateRequestClosure`` if there is no item to update.
    ///
    /// - Throws: A ``LocksmithError``. The previous item is then still stored, except after a disk error while the change was flushed: then
    ///   the outcome is unknown.
    func updateInSecureStore() throws
}

extension CreateableSecureStorable {
    /// Calls `SecItemAdd`.
    public var performCreateRequestClosure: PerformRequestClosureType { RequestPerformer.add }

    /// Calls `SecItemUpdate`.
    public var performUpdateRequestClosure: PerformUpdateRequestClosureType { RequestPerformer.update }

    /// Stores a new item.
    ///
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/duplicate`` if the item exists or ``LocksmithError/unarchivable`` for
    ///   data that cannot be stored.
    public func createInSecureStore() throws {
        try ItemDescription(of: self).create(KeyedArchiveWriter.write(data), with: performCreateRequestClosure)
    }

    /// Stores the item, or replaces it if it exists.
    ///
    /// Replaces an existing item atomically; readers see either the old or the new data. The existing item is the one with the same primary
    /// key: account and service, or account, server, port, protocol, authentication type, path and security domain. Attributes that are nil
    /// do not change. ``performUpdateRequestClosure`` updates the item; if there is none, ``performCreateRequestClosure`` adds it. Without
    /// an ``accessGroup``, the items with this key in all of the program's groups are updated.
    ///
    /// - Throws: A ``LocksmithError``. The previous item is then still stored, except after a disk error while the change was flushed: then
    ///   the outcome is unknown.
    public func updateInSecureStore() throws {
        try ItemDescription(of: self).update(
            KeyedArchiveWriter.write(data), with: performUpdateRequestClosure, orAddingWith: performCreateRequestClosure)
    }

    /// The dictionary of the request that adds the item.
    ///
    /// Does not contain the value if the data cannot be archived. Empty for a type that conforms to neither password protocol.
    public var asCreateableSecureStoragePropertyDictionary: [String: Any] {
        guard let item = try? ItemDescription(of: self) else { return [:] }
        return item.additionRequest(try? KeyedArchiveWriter.write(data))
    }
}

// MARK: Reading

/// An item that can be read.
public protocol ReadableSecureStorable: SecureStorable {
    /// The closure that performs the request to read the item.
    ///
    /// Optional: the default is `SecItemCopyMatching`. The result is a dictionary of attributes with the value.
    var performReadRequestClosure: PerformRequestClosureType { get }
    /// Reads the item; returns nil if it is missing or cannot be read.
    ///
    /// Optional: the default calls ``tryReadFromSecureStore()``, which distinguishes the two.
    ///
    /// - Returns: The item, or nil.
    func readFromSecureStore() -> (any SecureStorableResultType)?
    /// Reads the item, and throws if it cannot be read.
    ///
    /// Optional: the default uses ``performReadRequestClosure``.
    ///
    /// - Returns: The item; nil if there is none.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/interactionNotAllowed`` if the item is locked, or
    ///   ``LocksmithError/decode`` if it is damaged or its value is not an archive of a dictionary.
    func tryReadFromSecureStore() throws -> (any SecureStorableResultType)?
}

extension ReadableSecureStorable {
    /// Calls `SecItemCopyMatching`.
    public var performReadRequestClosure: PerformRequestClosureType { RequestPerformer.copyMatching }

    /// Reads the item; returns nil if it is missing or cannot be read.
    ///
    /// ``tryReadFromSecureStore()`` distinguishes the two.
    ///
    /// - Returns: The item. Nil if there is none, if it is locked or damaged, if its value is not an archive of a dictionary, or if the
    ///   keychain cannot be used.
    public func readFromSecureStore() -> (any SecureStorableResultType)? {
        try? tryReadFromSecureStore()
    }

    /// Reads the item, and throws if it cannot be read.
    ///
    /// - Returns: The item; nil if there is none.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/interactionNotAllowed`` if the item is locked,
    ///   ``LocksmithError/decode`` if it is damaged or its value is not an archive of a dictionary, or ``LocksmithError/unimplemented``
    ///   for certificates and keys.
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
    /// Reads the item; returns nil if it is missing or cannot be read.
    ///
    /// - Returns: The generic password, or nil.
    public func readFromSecureStore() -> (any GenericPasswordSecureStorableResultType)? {
        try? tryReadFromSecureStore()
    }

    /// Reads the item, and throws if it cannot be read.
    ///
    /// - Returns: The generic password; nil if there is none.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/interactionNotAllowed`` if the item is locked, or
    ///   ``LocksmithError/decode`` if it is damaged or its value is not an archive of a dictionary.
    public func tryReadFromSecureStore() throws -> (any GenericPasswordSecureStorableResultType)? {
        guard let found = try ItemDescription(of: self).read(with: performReadRequestClosure) else { return nil }
        return try GenericPasswordResult(of: self, found)
    }
}

extension ReadableSecureStorable where Self: InternetPasswordSecureStorable {
    /// Reads the item; returns nil if it is missing or cannot be read.
    ///
    /// - Returns: The internet password, or nil.
    public func readFromSecureStore() -> (any InternetPasswordSecureStorableResultType)? {
        try? tryReadFromSecureStore()
    }

    /// Reads the item, and throws if it cannot be read.
    ///
    /// - Returns: The internet password; nil if there is none.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/interactionNotAllowed`` if the item is locked, or
    ///   ``LocksmithError/decode`` if it is damaged or its value is not an archive of a dictionary.
    public func tryReadFromSecureStore() throws -> (any InternetPasswordSecureStorableResultType)? {
        guard let found = try ItemDescription(of: self).read(with: performReadRequestClosure) else { return nil }
        return try InternetPasswordResult(of: self, found)
    }
}

// MARK: Deleting

/// An item that can be deleted.
public protocol DeleteableSecureStorable: SecureStorable {
    /// The closure that performs the request to delete the item.
    ///
    /// Optional: the default is `SecItemDelete`.
    var performDeleteRequestClosure: PerformRequestClosureType { get }
    /// Deletes the item.
    ///
    /// Optional: the default uses ``performDeleteRequestClosure``.
    ///
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/notFound`` if there is none.
    func deleteFromSecureStore() throws
}

extension DeleteableSecureStorable {
    /// Calls `SecItemDelete`.
    public var performDeleteRequestClosure: PerformRequestClosureType { RequestPerformer.delete }

    /// Deletes the item.
    ///
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/notFound`` if there is none.
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

/// A closure that performs a request.
///
/// It receives the dictionary of the request and a variable for the result, and returns a status of Keychain Services. A type can implement
/// its own, to observe requests or to handle them without a keychain. It must not change an object that it has stored in the result.
public typealias PerformRequestClosureType = (_ requestReference: CFDictionary, _ result: inout AnyObject?) -> OSStatus

/// A closure that performs a request to update an item.
///
/// It receives the query that finds the item and the attributes to set, and returns a status of Keychain Services.
public typealias PerformUpdateRequestClosureType = (_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus
#else
/// A closure that performs a request.
///
/// It receives the dictionary of the request and a variable for the result, and returns a status of Keychain Services. A type can implement
/// its own, to observe requests or to handle them without a keychain. It must not change an object that it has stored in the result.
///
/// The types are the definitions of `CFDictionary` and `OSStatus` in the module KeychainServices.
public typealias PerformRequestClosureType = (_ requestReference: [String: Any], _ result: inout AnyObject?) -> Int32

/// A closure that performs a request to update an item.
///
/// It receives the query that finds the item and the attributes to set, and returns a status of Keychain Services.
///
/// The types are the definitions of `CFDictionary` and `OSStatus` in the module KeychainServices.
public typealias PerformUpdateRequestClosureType = (_ query: [String: Any], _ attributesToUpdate: [String: Any]) -> Int32
#endif
