// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// The asynchronous forms of the functions of an item.
///
///     try await account.asynchronously.createInSecureStore()
///
/// The functions wait for the disk, or for another process that is writing the keychain, on threads for blocking calls. They block
/// neither the main actor nor other tasks. Results and errors are those of the synchronous functions. If the task is canceled, the wait ends
/// with a `CancellationError`; a call that has begun completes nevertheless. The functions belong to a type of their own because asynchronous overloads would hide the synchronous
/// functions from asynchronous code.
public struct Asynchronously<Storable: Sendable>: Sendable {
    let storable: Storable
}

extension SecureStorable where Self: Sendable {
    /// The asynchronous forms of the functions of this item.
    public var asynchronously: Asynchronously<Self> { Asynchronously(storable: self) }
}

extension Asynchronously where Storable: CreateableSecureStorable {
    /// Stores a new item.
    ///
    /// - Throws: The errors of ``CreateableSecureStorable/createInSecureStore()``.
    @concurrent public func createInSecureStore() async throws {
        try await withBlockingCalls { try storable.createInSecureStore() }
    }

    /// Stores the item, or replaces it if it exists.
    ///
    /// - Throws: The errors of ``CreateableSecureStorable/updateInSecureStore()``.
    @concurrent public func updateInSecureStore() async throws {
        try await withBlockingCalls { try storable.updateInSecureStore() }
    }
}

extension Asynchronously where Storable: ReadableSecureStorable & GenericPasswordSecureStorable {
    /// Reads the item; returns nil if it is missing or cannot be read.
    ///
    /// - Returns: The generic password, or nil.
    @concurrent public func readFromSecureStore() async -> (any GenericPasswordSecureStorableResultType)? {
        try? await tryReadFromSecureStore()
    }

    /// Reads the item, and throws if it cannot be read.
    ///
    /// - Returns: The generic password; nil if there is none.
    /// - Throws: The errors of ``ReadableSecureStorable/tryReadFromSecureStore()``.
    @concurrent public func tryReadFromSecureStore() async throws -> (any GenericPasswordSecureStorableResultType)? {
        try await withBlockingCalls { try storable.tryReadFromSecureStore() }
    }
}

extension Asynchronously where Storable: ReadableSecureStorable & InternetPasswordSecureStorable {
    /// Reads the item; returns nil if it is missing or cannot be read.
    ///
    /// - Returns: The internet password, or nil.
    @concurrent public func readFromSecureStore() async -> (any InternetPasswordSecureStorableResultType)? {
        try? await tryReadFromSecureStore()
    }

    /// Reads the item, and throws if it cannot be read.
    ///
    /// - Returns: The internet password; nil if there is none.
    /// - Throws: The errors of ``ReadableSecureStorable/tryReadFromSecureStore()``.
    @concurrent public func tryReadFromSecureStore() async throws -> (any InternetPasswordSecureStorableResultType)? {
        try await withBlockingCalls { try storable.tryReadFromSecureStore() }
    }
}

extension Asynchronously where Storable: DeleteableSecureStorable {
    /// Deletes the item.
    ///
    /// - Throws: The errors of ``DeleteableSecureStorable/deleteFromSecureStore()``.
    @concurrent public func deleteFromSecureStore() async throws {
        try await withBlockingCalls { try storable.deleteFromSecureStore() }
    }
}

extension Asynchronously where Storable: CodableSecureStorable, Storable.Payload: Sendable {
    /// Stores a value in a new item.
    ///
    /// - Parameter payload: The value.
    /// - Throws: The errors of ``CodableSecureStorable/createInSecureStore(payload:)``.
    @concurrent public func createInSecureStore(payload: Storable.Payload) async throws {
        try await withBlockingCalls { try storable.createInSecureStore(payload: payload) }
    }

    /// Stores a value in the item, and adds the item if it does not exist.
    ///
    /// - Parameter payload: The value.
    /// - Throws: The errors of ``CodableSecureStorable/updateInSecureStore(payload:)``.
    @concurrent public func updateInSecureStore(payload: Storable.Payload) async throws {
        try await withBlockingCalls { try storable.updateInSecureStore(payload: payload) }
    }

    /// Reads the value of the item.
    ///
    /// - Returns: The value; nil if the item does not exist.
    /// - Throws: The errors of ``CodableSecureStorable/readPayloadFromSecureStore()``.
    @concurrent public func readPayloadFromSecureStore() async throws -> Storable.Payload? {
        try await withBlockingCalls { try storable.readPayloadFromSecureStore() }
    }
}

extension Locksmith {
    /// The asynchronous forms of the functions: `try await Locksmith.asynchronously.saveData(data, forUserAccount: "me")`.
    public static var asynchronously: AsynchronousLocksmith { AsynchronousLocksmith() }
}

/// The asynchronous forms of the functions of ``Locksmith``; see ``Asynchronously``.
public struct AsynchronousLocksmith: Sendable {
    /// Stores data for an account that has no data yet.
    ///
    /// - Parameters:
    ///   - data: The data.
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: The errors of ``Locksmith/saveData(_:forUserAccount:inService:)``.
    nonisolated(nonsending) public func saveData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws {
        let item = StoredAccount(account: userAccount, service: service)
        let value = try KeyedArchiveWriter.write(data)
        try await withBlockingCalls { try ItemDescription(of: item).create(value, with: RequestPerformer.add) }
    }

    /// Reads the data of an account; returns nil if it is missing or cannot be read.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Returns: The data, or nil.
    nonisolated(nonsending) public func loadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) async -> [String: Any]? {
        try? await tryLoadDataForUserAccount(userAccount, inService: service)
    }

    /// Reads the data of an account, and throws if it cannot be read.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Returns: The data; nil if there is none.
    /// - Throws: The errors of ``Locksmith/tryLoadDataForUserAccount(_:inService:)``.
    nonisolated(nonsending) public func tryLoadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws -> [String: Any]? {
        let item = StoredAccount(account: userAccount, service: service)
        guard let result = try await item.asynchronously.tryReadFromSecureStore() else { return nil }
        guard let data = result.data else { throw LocksmithError.unreadableValue }
        return data
    }

    /// Stores data for an account, or replaces its data.
    ///
    /// - Parameters:
    ///   - data: The data.
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: The errors of ``Locksmith/updateData(_:forUserAccount:inService:)``.
    nonisolated(nonsending) public func updateData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws {
        let item = StoredAccount(account: userAccount, service: service)
        let value = try KeyedArchiveWriter.write(data)
        try await withBlockingCalls {
            try ItemDescription(of: item).update(value, with: RequestPerformer.update, orAddingWith: RequestPerformer.add)
        }
    }

    /// Deletes the data of an account.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: The errors of ``Locksmith/deleteDataForUserAccount(_:inService:)``.
    @concurrent public func deleteDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws {
        try await StoredAccount(account: userAccount, service: service).asynchronously.deleteFromSecureStore()
    }

    /// Returns the accounts of all generic passwords of a service, including those that other programs stored.
    ///
    /// - Parameter service: The service.
    /// - Returns: The accounts.
    /// - Throws: The errors of ``Locksmith/userAccounts(inService:)``.
    @concurrent public func userAccounts(inService service: String = LocksmithDefaultService) async throws -> [String] {
        try await withBlockingCalls { try Locksmith.userAccounts(inService: service) }
    }
}

/// An account without its data.
///
/// The caller's task archives the data, because a dictionary of `Any` is not `Sendable`.
private struct StoredAccount: GenericPasswordSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, Sendable {
    let account: String
    let service: String
}
