// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import KeychainEngine
package import KeychainSystem

/// A storage in a folder that another program or a network file system shares between devices, such as Syncthing, Dropbox, or NFS.
///
/// ```swift
/// let storage = FolderStorage(path: "/srv/sync/keychain")
/// ```
///
/// The objects are in the directory `keychain-sync-1` of the folder, one file each. Other files are neither read nor changed. A file
/// appears under its name complete and flushed to the disk, in one step. Files and directories that are created belong to this user, and
/// only this user can use them.
///
/// A folder without the directory `keychain-sync-1` is taken for a disk that is not mounted: every call throws
/// ``SyncStorageError/Code/unavailable``, and nothing is created. ``make(path:)`` creates the directory. The path itself may
/// be a symbolic link. Links inside of the folder are not followed.
///
/// Calls run on a few threads of the storage. A call that takes longer than 30 seconds, for example because a server is dead, throws
/// ``SyncStorageError/Code/unavailable``, although it may still succeed later. An object that is larger than a reader accepts, or is not a
/// regular file, is read as if it were missing. A listing ends after 1,000,000 names.
///
/// Changes are reported at once where the kernel knows them, and otherwise found within a minute: in network file systems and FUSE.
public struct FolderStorage: SyncStorage {
    /// The path of the shared folder.
    public let path: String
    /// The path.
    public var location: String { path }
    private let objects: FolderObjects
    private let calls: BlockingCalls

    /// The directory of the objects in the shared folder, named after the version of the formats.
    package static let directoryName = "keychain-sync-1"

    /// Creates a storage in a folder, without accessing it.
    ///
    /// - Parameter path: The absolute path of the folder that is shared.
    public init(path: String) {
        self.init(path: path, options: FolderOptions())
    }

    /// Creates a storage with options for tests.
    package init(path: String, options: FolderOptions, calls: BlockingCalls = BlockingCalls()) {
        var path = path
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        self.path = path
        objects = FolderObjects(root: path + "/" + Self.directoryName, options: options)
        self.calls = calls
    }

    /// Prepares a folder as a storage, once for all devices, and returns the storage.
    ///
    /// Creates the folder, if its parent exists, and the directory of the objects. Existing objects stay.
    ///
    /// - Parameter path: The absolute path of the folder that is shared.
    /// - Returns: A storage in the folder.
    /// - Throws: ``SyncStorageError/Code/failed`` if the folder is in the directory of the keychain itself, which must not be
    ///   shared, and ``SyncStorageError/Code/unavailable`` if its parent does not exist.
    public static func make(path: String) async throws(SyncStorageError) -> FolderStorage {
        let keychain: KeychainConfiguration
        do throws(KeychainFailure) {
            keychain = try .fromEnvironment()
        } catch {
            throw SyncStorageError(.failed, "the keychain of this user cannot be determined: \(error)")
        }
        return try await make(
            path: path, outside: [FileSystem.parent(of: keychain.storePath), keychain.keyDirectory], options: FolderOptions())
    }

    /// Prepares a folder outside of `directories`.
    package static func make(
        path: String, outside directories: [String], options: FolderOptions
    ) async throws(SyncStorageError) -> FolderStorage {
        let storage = FolderStorage(path: path, options: options)
        let (objects, folder) = (storage.objects, storage.path)
        try await storage.calls.run(at: folder) { () throws(SyncStorageError) in
            try objects.makeRoot(in: folder, outside: directories)
        }
        return storage
    }

    /// Lists the names of the objects in a folder and below it; see ``SyncStorage/list(_:)``.
    ///
    /// Removes temporary files that processes of this user left behind more than a day ago.
    ///
    /// - Parameter folder: A folder such as `b`, or the empty string for all objects.
    /// - Returns: At most 1,000,000 complete names.
    /// - Throws: The reason why the folder or a directory in it cannot be listed.
    public func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try await calls.run(at: path) { [objects] () throws(SyncStorageError) in try objects.list(folder) }
    }

    /// Reads an object; see ``SyncStorage/read(_:atMost:)``.
    ///
    /// - Parameters:
    ///   - name: A complete name.
    ///   - byteCount: The largest object that is accepted.
    /// - Returns: The bytes; nil if there is no regular file of the name, or if it is larger.
    /// - Throws: The reason why it is not known whether the object is there.
    public func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await calls.run(at: path) { [objects] () throws(SyncStorageError) in try objects.read(name, atMost: byteCount) }
    }

    /// Creates an object; see ``SyncStorage/create(_:_:)``.
    ///
    /// When this returns, the file and its name are flushed to the disk.
    ///
    /// - Parameters:
    ///   - name: A complete name.
    ///   - bytes: The content of the object.
    /// - Returns: Whether the object is new.
    /// - Throws: ``SyncStorageError/Code/failed`` if something else has the name, and other errors of the file system.
    public func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        try await calls.run(at: path) { [objects] () throws(SyncStorageError) in try objects.create(name, bytes) }
    }

    /// Removes an object; see ``SyncStorage/remove(_:)``.
    ///
    /// Directories stay.
    ///
    /// - Parameter name: A complete name.
    /// - Throws: The reason why the object cannot be removed.
    public func remove(_ name: String) async throws(SyncStorageError) {
        try await calls.run(at: path) { [objects] () throws(SyncStorageError) in try objects.remove(name) }
    }

    /// Returns a new stream with an element whenever the objects may have changed; see ``SyncStorage/changes()``.
    ///
    /// The first element comes once the storage watches the folder, so no change after it is missed where the kernel reports changes. Another
    /// one comes at least once an hour.
    ///
    /// - Returns: A stream that ends when its task is canceled.
    public func changes() -> AsyncStream<SyncStorageChange> {
        .reporting { report in
            let task = Task { await reportChanges(report) }
            return { task.cancel() }
        }
    }

    /// Calls `hint` for each possible change, until the task is canceled.
    package func reportChanges(_ hint: @escaping @Sendable (SyncStorageChange) -> Void) async {
        await FolderHints(objects: objects, calls: calls).run(hint)
    }
}

/// What a folder's storage uses of the system, which tests replace.
package struct FolderOptions: Sendable {
    /// Whether files without names are used where the file system has them.
    package var hasUnnamedFiles = true
    /// Whether renames that do not replace are used where the file system has them.
    package var renamesWithoutReplacing = true
    package var probe = FileSystemProbe.system
    /// Tells the age of temporary files.
    package var clock: any WallClock = SystemWallClock()
    /// Waits between two looks at the folder.
    package var sleep: @Sendable (_ seconds: Double) async throws -> Void = { try await Task.sleep(for: .seconds($0)) }

    package init() {}
}

extension FolderObjects {
    /// Creates the root, in a folder that is created if its parent exists.
    fileprivate func makeRoot(in folder: String, outside directories: [String]) throws(SyncStorageError) {
        guard folder.hasPrefix("/") else { throw SyncStorageError(.failed, "the path of the folder must be absolute: \(folder)") }
        let resolved = FileSystem.resolveExistingPart(of: folder)
        for directory in directories.map(FileSystem.resolveExistingPart) {
            guard resolved != directory, !resolved.hasPrefix(directory + "/") else {
                throw SyncStorageError(
                    .failed, "\(folder) is in \(directory), which has the keychain itself and must not be shared; choose another folder")
            }
        }
        for path in [folder, root] {
            let parent = FileSystem.parent(of: path)
            do throws(Errno) {
                let directory = try OpenDirectory(parent)
                let name = String(path.dropFirst(parent == "/" ? 1 : parent.count + 1))
                guard !name.isEmpty, try directory.makeDirectory(name) else { continue }
                try directory.flush()
            } catch .notFound {
                throw SyncStorageError(.unavailable, "\(parent) does not exist: make it, or mount its disk")
            } catch {
                throw failure(error, "create", path)
            }
        }
        _ = try openRoot()
    }
}
#endif
