// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// Does with an item what the functions of the same names do, away from the caller's actor.
///
///     try await account.asynchronously.createInSecureStore()
///
/// The disk, and a keychain that somebody else writes to, are waited for on threads that are there for this, so neither a main actor nor
/// other tasks are kept waiting. Results and errors are the same. Functions that differ from the others only by being asynchronous would hide
/// those from asynchronous code. What has begun is done, even if its task is cancelled meanwhile.
public struct Asynchronously<Storable: Sendable>: Sendable {
    let storable: Storable
}

extension SecureStorable where Self: Sendable {
    /// The asynchronous forms of what can be done with the item.
    public var asynchronously: Asynchronously<Self> { Asynchronously(storable: self) }
}

extension Asynchronously where Storable: CreateableSecureStorable {
    /// Stores a new item.
    ///
    /// - Throws: As ``CreateableSecureStorable/createInSecureStore()``.
    @concurrent public func createInSecureStore() async throws {
        try await withBlockingCalls { try storable.createInSecureStore() }
    }

    /// Stores the item, in place of the one that may be there.
    ///
    /// - Throws: As ``CreateableSecureStorable/updateInSecureStore()``.
    @concurrent public func updateInSecureStore() async throws {
        try await withBlockingCalls { try storable.updateInSecureStore() }
    }
}

extension Asynchronously where Storable: ReadableSecureStorable & GenericPasswordSecureStorable {
    /// Reads the item; nil tells not whether there is none or it cannot be read.
    ///
    /// - Returns: The generic password; nil if there is none that can be read.
    @concurrent public func readFromSecureStore() async -> (any GenericPasswordSecureStorableResultType)? {
        try? await tryReadFromSecureStore()
    }

    /// Reads the item, and tells one that cannot be read from none.
    ///
    /// - Returns: The generic password; nil if there is none.
    /// - Throws: As ``ReadableSecureStorable/tryReadFromSecureStore()``.
    @concurrent public func tryReadFromSecureStore() async throws -> (any GenericPasswordSecureStorableResultType)? {
        try await withBlockingCalls { try storable.tryReadFromSecureStore() }
    }
}

extension Asynchronously where Storable: ReadableSecureStorable & InternetPasswordSecureStorable {
    /// Reads the item; nil tells not whether there is none or it cannot be read.
    ///
    /// - Returns: The internet password; nil if there is none that can be read.
    @concurrent public func readFromSecureStore() async -> (any InternetPasswordSecureStorableResultType)? {
        try? await tryReadFromSecureStore()
    }

    /// Reads the item, and tells one that cannot be read from none.
    ///
    /// - Returns: The internet password; nil if there is none.
    /// - Throws: As ``ReadableSecureStorable/tryReadFromSecureStore()``.
    @concurrent public func tryReadFromSecureStore() async throws -> (any InternetPasswordSecureStorableResultType)? {
        try await withBlockingCalls { try storable.tryReadFromSecureStore() }
    }
}

extension Asynchronously where Storable: DeleteableSecureStorable {
    /// Deletes the item.
    ///
    /// - Throws: As ``DeleteableSecureStorable/deleteFromSecureStore()``.
    @concurrent public func deleteFromSecureStore() async throws {
        try await withBlockingCalls { try storable.deleteFromSecureStore() }
    }
}

extension Asynchronously where Storable: CodableSecureStorable, Storable.Payload: Sendable {
    /// Stores a value in a new item.
    ///
    /// - Parameter payload: The value.
    /// - Throws: As ``CodableSecureStorable/createInSecureStore(payload:)``.
    @concurrent public func createInSecureStore(payload: Storable.Payload) async throws {
        try await withBlockingCalls { try storable.createInSecureStore(payload: payload) }
    }

    /// Stores a value in the item, which is added if it is not there.
    ///
    /// - Parameter payload: The value.
    /// - Throws: As ``CodableSecureStorable/updateInSecureStore(payload:)``.
    @concurrent public func updateInSecureStore(payload: Storable.Payload) async throws {
        try await withBlockingCalls { try storable.updateInSecureStore(payload: payload) }
    }

    /// Reads the value of the item.
    ///
    /// - Returns: The value; nil if there is no such item.
    /// - Throws: As ``CodableSecureStorable/readPayloadFromSecureStore()``.
    @concurrent public func readPayloadFromSecureStore() async throws -> Storable.Payload? {
        try await withBlockingCalls { try storable.readPayloadFromSecureStore() }
    }
}

extension Locksmith {
    /// The asynchronous forms of the functions: `try await Locksmith.asynchronously.saveData(data, forUserAccount: "me")`.
    public static var asynchronously: AsynchronousLocksmith { AsynchronousLocksmith() }
}

/// Does what the functions of ``Locksmith`` do, away from the caller's actor; see ``Asynchronously``.
public struct AsynchronousLocksmith: Sendable {
    /// Stores data for an account that has none yet.
    ///
    /// - Parameters:
    ///   - data: What to store.
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: As ``Locksmith/saveData(_:forUserAccount:inService:)``.
    nonisolated(nonsending) public func saveData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws {
        let item = StoredAccount(account: userAccount, service: service)
        let value = try KeyedArchiveWriter.write(data)
        try await withBlockingCalls { try ItemDescription(of: item).create(value, with: SecItemClient.add) }
    }

    /// Reads the data of an account; nil tells not whether there is none or it cannot be read.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Returns: What was stored, or nil.
    nonisolated(nonsending) public func loadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) async -> [String: Any]? {
        try? await tryLoadDataForUserAccount(userAccount, inService: service)
    }

    /// Reads the data of an account, and tells what cannot be read from nothing.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Returns: What was stored; nil if there is nothing.
    /// - Throws: As ``Locksmith/tryLoadDataForUserAccount(_:inService:)``.
    nonisolated(nonsending) public func tryLoadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws -> [String: Any]? {
        let item = StoredAccount(account: userAccount, service: service)
        guard let result = try await item.asynchronously.tryReadFromSecureStore() else { return nil }
        guard let data = result.data else { throw LocksmithError.unreadableValue }
        return data
    }

    /// Stores data for an account, in place of what may be there.
    ///
    /// - Parameters:
    ///   - data: What to store.
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: As ``Locksmith/updateData(_:forUserAccount:inService:)``.
    nonisolated(nonsending) public func updateData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws {
        let item = StoredAccount(account: userAccount, service: service)
        let value = try KeyedArchiveWriter.write(data)
        try await withBlockingCalls {
            try ItemDescription(of: item).update(value, with: SecItemClient.update, orAddingWith: SecItemClient.add)
        }
    }

    /// Deletes the data of an account.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: As ``Locksmith/deleteDataForUserAccount(_:inService:)``.
    @concurrent public func deleteDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) async throws {
        try await StoredAccount(account: userAccount, service: service).asynchronously.deleteFromSecureStore()
    }

    /// The accounts of a service for which there are generic passwords, whoever stored them.
    ///
    /// - Parameter service: The service.
    /// - Returns: The accounts.
    /// - Throws: As ``Locksmith/userAccounts(inService:)``.
    @concurrent public func userAccounts(inService service: String = LocksmithDefaultService) async throws -> [String] {
        try await withBlockingCalls { try Locksmith.userAccounts(inService: service) }
    }
}

/// An account without its data, which is archived where it is, since a dictionary of `Any` cannot be sent.
private struct StoredAccount: GenericPasswordSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, Sendable {
    let account: String
    let service: String
}
