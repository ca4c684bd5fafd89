// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainSystem

extension SQLiteItemStore {
    /// Whether there is a store at an absolute path.
    ///
    /// Looks, and opens nothing.
    ///
    /// Throws `.notAvailable` for a file or directory that must not be used (not private, not this user's, a symbolic link, empty,
    /// on a network file system); the reason names it and says what to do.
    package static func inspect(
        _ path: String, fileSystem: FileSystemProbe = .system
    ) throws(KeychainFailure) -> StorePresence {
        try StoreFile.find(path, fileSystem: fileSystem) == nil ? .absent : .present
    }

    /// Makes a store with nothing in it but its keybag, and the directories it needs.
    ///
    /// Never touches a file that is there.
    ///
    /// Throws `.readOnly` where nothing can be written, `.notAvailable` when the disk is full or the place must not be used.
    package static func create(
        at path: String, storeID: StoreID, keybag: [UInt8], generation: UInt64, options: StoreOptions = StoreOptions()
    ) throws(KeychainFailure) -> CreationOutcome {
        try StoreCreator(path: path, storeID: storeID, keybag: keybag, keybagGeneration: generation, options: options).run()
    }
}

/// Makes a store: complete under a name nobody knows, flushed, and then published under its own name or not at all.
struct StoreCreator {
    let path: String
    let storeID: StoreID
    let keybag: [UInt8]
    let keybagGeneration: UInt64
    let options: StoreOptions

    func run() throws(KeychainFailure) -> CreationOutcome {
        try CurrentProcess.requireNotForked()
        let (directory, _) = try FileLocation.split(path)
        try FileSystem.createPrivateDirectories(directory)
        guard let location = try FileLocation(path) else { throw KeychainFailure(.notAvailable, "\(directory) is gone") }
        try StoreFile.checkDirectory(location.directory, fileSystem: options.fileSystem)
        return try AtomicFile(location, acceptsFixedMode: false).publish { temporary throws(KeychainFailure) in
            try build(temporary)
        }
    }

    /// Fills the temporary file.
    ///
    /// It needs no journal and no flush before it is whole: until then nobody knows it.
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
        try meta.run()
        try connection.execute("COMMIT")
        // Last, so that the file is complete without a -wal beside it.
        try connection.switchToWAL()
    }
}
