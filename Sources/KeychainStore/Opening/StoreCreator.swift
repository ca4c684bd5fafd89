// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

extension SQLiteItemStore {
    /// Returns whether there is a store at an absolute path, without opening the file.
    ///
    /// Throws `.notAvailable` for a file or directory that must not be used: one that is empty, a symbolic link, accessible to others, owned
    /// by another user, or on a network file system. The reason names it and says what to do.
    package static func inspect(
        _ path: String, fileSystem: FileSystemProbe = .system
    ) throws(KeychainFailure) -> StorePresence {
        try StoreFile.find(path, fileSystem: fileSystem) == nil ? .absent : .present
    }

    /// Returns the failure of opening a store that keychaind keeps by now; nil if there is no signpost at the path.
    package static func signpostFailure(at path: String, options: StoreOptions) -> KeychainFailure? {
        StoreOpener(path: path, options: options).signpostFailure
    }

    /// Returns the path of the -wal file of a store that is gone; nil if there is none.
    ///
    /// A new store must not be created beside it, because SQLite would apply its changes to the new one. An empty one may remain of a creation
    /// that a power cut has undone.
    package static func orphanedLogPath(ofStoreAt path: String) throws(KeychainFailure) -> String? {
        guard let location = try FileLocation(path), let status = try FileStatus.ifPresent(at: location.walPath) else { return nil }
        return status.byteCount > 0 ? location.walPath : nil
    }

    /// Creates a store that contains only a keybag, and its missing parent directories.
    ///
    /// `state` is the sealed initial state. Tests of the store alone omit it.
    ///
    /// Never changes an existing file.
    ///
    /// Throws `.readOnly` if the directory is read-only, `.notAvailable` if the disk is full or the directory must not be used.
    package static func create(
        at path: String, storeID: StoreID, keybag: [UInt8], generation: UInt64, state: [UInt8]? = nil,
        options: StoreOptions = StoreOptions()
    ) throws(KeychainFailure) -> CreationOutcome {
        try StoreCreator(
            path: path, storeID: storeID, keybag: keybag, keybagGeneration: generation, state: state, options: options
        ).run()
    }
}

/// Creates a store under a random temporary name, flushes it, and then atomically publishes it under its own name.
struct StoreCreator {
    let path: String
    let storeID: StoreID
    let keybag: [UInt8]
    let keybagGeneration: UInt64
    let state: [UInt8]?
    let options: StoreOptions

    func run() throws(KeychainFailure) -> CreationOutcome {
        try ForkDetection.requireNotForked()
        let (directory, _) = try FileLocation.split(path)
        try PrivateDirectory.make(directory)
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "\(directory) is gone", path: directory, subject: .store)
        }
        try StoreFile.checkDirectory(location.directory, fileSystem: options.fileSystem)
        return try AtomicFile(location, acceptsFixedMode: false, companionSuffixes: FileLocation.companionSuffixes).publish {
            temporary throws(KeychainFailure) in
            try build(temporary)
        }
    }

    /// Writes the content of the temporary file.
    ///
    /// Needs neither a rollback journal nor flushes: no other process opens the file before it is complete.
    private func build(_ temporary: String) throws(KeychainFailure) {
        let connection = try SQLiteConnection(
            path: temporary, access: .readWrite, vfsName: options.vfsName,
            busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try connection.applySafetySettings()
        try connection.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA page_size = \(StoreSchema.pageByteCount)")
        try connection.reserveBytesPerPage(StoreSchema.reservedByteCountPerPage)
        try connection.execute("BEGIN IMMEDIATE; \(StoreSchema.statements)")
        for name in [StoreStatement.insertKeybag, .insertKeybagCopy] {
            let statement = try connection.statement(name)
            try statement.withBound([SQLiteStatement.Blob(index: 1, bytes: keybag)]) { () throws(KeychainFailure) in
                try statement.run()
            }
        }
        let meta = try connection.statement(.insertMeta)
        meta.bind(storeID, at: 1)
        meta.bind(Int64(bitPattern: keybagGeneration), at: 2)
        try meta.withBound([SQLiteStatement.Blob(index: 3, bytes: state)]) { () throws(KeychainFailure) in try meta.run() }
        try connection.execute("COMMIT")
        // Last, so that no content is in a -wal file.
        try connection.switchToWAL()
    }
}
