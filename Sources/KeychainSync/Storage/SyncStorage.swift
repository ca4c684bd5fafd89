// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)

/// A place through which the devices of a circle exchange objects, such as a shared folder.
///
/// An object is a name with bytes that never change. A device creates objects, reads those of other devices, and removes its own when they
/// are no longer needed. The objects are encrypted and signed, so a storage is trusted for availability alone: it can read nothing, and
/// objects that it changes are ignored.
///
/// Synchronization is correct with every storage in which an object that was created becomes visible to the other devices some day.
/// Nothing else is assumed: listings may be old, incomplete, or unordered, reads may return a part of an object, and an object
/// that is missing is never taken for a deleted item. Each call may be repeated, and calls may overlap.
///
/// Names consist of lower-case hexadecimal digits, "-", and "/", below one of the folders `m`, `b`, `c`, `p`, and `j`, so they are valid
/// in every file system and database; for example, a batch of changes is `b/<device>/<log>/<number>-<hash>`. A directory with the 32 digits
/// of a circle may come first. Every call checks its name, and throws ``SyncStorageError/Code/failed`` for another one before it
/// accesses the storage.
public protocol SyncStorage: Sendable {
    /// Where the storage is, for people and for programs that open it again: the absolute path of a folder, or the address of a server.
    ///
    /// It contains no secret. The keychain remembers the location of the circle's storage.
    var location: String { get }

    /// Lists the names of the objects in a folder and below it, in any order.
    ///
    /// A name may be returned that is gone when it is read, and a new one may be missing. Names that are not those of objects, which other
    /// programs leave in shared folders, are left out.
    ///
    /// - Parameter folder: A folder such as `b`, or a part of one such as `b/<device>`. The empty string lists all objects.
    /// - Returns: Complete names, such as `b/<device>/<log>/<number>-<hash>`; empty if the folder does not exist.
    /// - Throws: The reason why nothing is known about the objects.
    func list(_ folder: String) async throws(SyncStorageError) -> [String]

    /// Reads an object.
    ///
    /// - Parameters:
    ///   - name: A complete name, as `list` returns it.
    ///   - byteCount: The largest object that is accepted, which limits the memory that a foreign object can cost.
    /// - Returns: The bytes, which may be a part of the object where the storage does not publish objects atomically. Nil if no object can
    ///   be read under the name now: it is not there (yet), it is larger, or something else has the name.
    /// - Throws: The reason why it is not known whether the object is there.
    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]?

    /// Creates an object, durably, without replacing one.
    ///
    /// If this throws, the object may have been created, or may still be. Call again with the same bytes to find out.
    ///
    /// - Parameters:
    ///   - name: A complete name, which contains the hash of the bytes.
    ///   - bytes: The content of the object.
    /// - Returns: Whether the object is new. ``SyncCreation/alreadyThere`` is returned only if the storage has the same bytes under
    ///   the name.
    /// - Throws: ``SyncStorageError/Code/failed`` if the storage has other bytes under the name. After any error, the outcome is
    ///   unknown.
    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation

    /// Removes an object; succeeds if it does not exist.
    ///
    /// The removal may be lost in a power cut. Call again if the object is listed later.
    ///
    /// - Parameter name: A complete name.
    /// - Throws: The reason; whether the object was removed is then unknown.
    func remove(_ name: String) async throws(SyncStorageError)

    /// Returns a new stream with an element whenever the objects may have changed.
    ///
    /// An element that names what is new saves every agent a listing of all objects. A storage that does not know the names reports
    /// ``SyncStorageChange/unknown``.
    ///
    /// Elements are hints. They may be lost, late, or repeated, and several changes may give one. A first one may come without a change. A
    /// program that must not miss a change also lists from time to time. The stream ends only when its task is canceled, and never because
    /// the storage is unavailable.
    func changes() -> AsyncStream<SyncStorageChange>
}

/// What a storage tells of a change.
public enum SyncStorageChange: Hashable, Sendable {
    /// Objects with these complete names may be new; nothing else has changed.
    case created([String])
    /// Any objects may have been created or removed.
    case unknown
    /// The storage is another one, or went back to an earlier state, for example because a backup of it was restored.
    ///
    /// Nothing is lost by it: devices send again what is missing.
    case replaced
}

extension SyncStorageChange {
    /// A listing is faster than so many names, and takes no more memory.
    static var largestNameCount: Int { 1_000 }

    /// What stands for this change and another one.
    package func merged(with other: SyncStorageChange) -> SyncStorageChange {
        switch (self, other) {
        case (.replaced, _), (_, .replaced): .replaced
        case (.created(let names), .created(let others)) where names.count + others.count <= Self.largestNameCount: .created(names + others)
        default: .unknown
        }
    }
}

extension AsyncStream<SyncStorageChange> {
    /// A stream of changes for a consumer that may be late.
    ///
    /// Of very many waiting elements, the first are dropped, and the last one then stands for them. `begin` starts to report, and returns
    /// what ends it.
    package static func reporting(
        _ begin: (_ report: @escaping @Sendable (SyncStorageChange) -> Void) -> @Sendable () -> Void
    ) -> AsyncStream {
        AsyncStream(bufferingPolicy: .bufferingNewest(256)) { continuation in
            let end = begin { change in
                if case .dropped(let dropped) = continuation.yield(change) {
                    continuation.yield(dropped.merged(with: .unknown))
                }
            }
            continuation.onTermination = { _ in end() }
        }
    }
}

/// The result of creating an object.
public enum SyncCreation: Hashable, Sendable {
    /// The object did not exist and was created.
    case created
    /// The storage has an object of this name with the same bytes.
    case alreadyThere
}

/// The reason why a storage could not perform a call.
public struct SyncStorageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons, by what a person can do about them.
    public enum Code: Hashable, Sendable {
        /// The folder or server is gone or does not answer, for example because a disk is not mounted.
        ///
        /// Nothing is known about its objects.
        case unavailable
        /// The storage or the quota of this user is full.
        case full
        /// The storage cannot be written.
        case readOnly
        /// This user may not access the object or its folder.
        case notPermitted
        /// Anything else, for example a failing disk, a wrong name, or other bytes under the name of an object.
        case failed
    }

    /// The kind of reason.
    public let code: Code
    /// A sentence for people, without a full stop: what failed, where, and why.
    ///
    /// It never contains a part of an object.
    public let reason: String

    /// Creates an error, for storages of other packages.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// The reason.
    public var description: String { reason }
}
#endif
