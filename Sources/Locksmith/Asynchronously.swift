// SPDX-License-Identifier: Apache-2.0

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
