// SPDX-License-Identifier: Apache-2.0
internal import Foundation

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
        try await withBlockingCalls { try ItemDescription(of: item).create(value, with: SecItem.add) }
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
        guard let data = result.data else { throw LocksmithError.foreign }
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
            try ItemDescription(of: item).update(value, with: SecItem.update, orAddingWith: SecItem.add)
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
