// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// Opens connections to a store: checks the file, then the format, then applies the settings.
struct StoreOpener {
    let path: String
    let options: StoreOptions

    enum Role { case reader, writer }

    func openSession(_ role: Role, poolGeneration: UInt64, deadlineNanoseconds: UInt64?) throws(KeychainFailure) -> StoreSession {
        do throws(KeychainFailure) {
            return try openCheckedSession(role, poolGeneration: poolGeneration, deadlineNanoseconds: deadlineNanoseconds)
        } catch {
            // keychaind may have taken the keychain over meanwhile.
            throw signpostFailure ?? UnopenableStore.explain(error, of: path)
        }
    }

    /// The failure of opening a store that keychaind keeps; nil if there is no signpost.
    var signpostFailure: KeychainFailure? {
        do throws(KeychainFailure) {
            try requireStore()
            return nil
        } catch {
            if case .keptByDaemon = error.cause { return error }
            return nil
        }
    }

    private func openCheckedSession(
        _ role: Role, poolGeneration: UInt64, deadlineNanoseconds: UInt64?
    ) throws(KeychainFailure) -> StoreSession {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem) else {
            throw KeychainFailure(.notAvailable, "the store at \(path) is gone", path: path, subject: .store, cause: .missing)
        }
        try file.requireOwnCompanions()
        let immutableFile = try ImmutableFile(file)
        if role == .writer, immutableFile != nil || !options.verifiesContent {
            let directory = file.location.directory
            throw KeychainFailure(.readOnly, "\(directory) is read-only: nothing can be stored there", path: directory, subject: .store)
        }
        // Without verification SQLite ignores unreachable changes.
        let lacksChanges = options.verifiesContent ? false : try findDamage().wal != nil
        let connection = try openConnection(file, immutableFile == nil ? .readWrite : .immutable)
        if let deadlineNanoseconds { connection.busyHandler.setDeadline(atNanoseconds: deadlineNanoseconds) }
        if !options.verifiesContent { try connection.ignorePageChecksums() }
        // Then the index of the -wal file is in the memory of this connection, and no other can be open. In a -shm file, others would find an
        // index that ends before the unreachable changes, and overwrite them.
        if lacksChanges {
            guard !connection.isReadOnly else {
                throw KeychainFailure(
                    .readOnly, "\(file.location.path) is read-only, and its damaged -wal file can be read only by a process that may write",
                    path: file.location.path, subject: .store)
            }
            try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        }
        try connection.applySafetySettings()
        try checkHeader(of: connection, path: file.location.path)
        if options.verifiesContent { try connection.enablePageVerification() }
        try connection.apply(options.synchronous)
        switch role {
        case .reader: try connection.execute("PRAGMA query_only = ON")
        case .writer:
            guard !connection.isReadOnly else {
                let path = file.location.path
                throw KeychainFailure(.readOnly, "\(path) is read-only: nothing can be stored in it", path: path, subject: .store)
            }
            try connection.switchToWAL()
            connection.disableCheckpointsInCommits()
        }
        // If the path leads to the same file before and after opening, that file was opened. Other connections of this process may still
        // use a -shm file that was removed, and share it with new ones until all are closed.
        guard try FileStatus.ifPresent(at: file.location.path)?.identity == file.facts.identity, connection.lostFiles.isEmpty else {
            throw KeychainFailure(
                .notAvailable, "\(file.location.path) was replaced while it was being opened", path: file.location.path, subject: .store,
                requiresReopening: true)
        }
        let turn =
            role == .writer
            ? WriterTurn(directory: file.location.directory, yieldNanosecondLimit: options.yieldNanosecondLimit) : nil
        return StoreSession(
            connection: connection, file: file, poolGeneration: poolGeneration, immutableFile: immutableFile, turn: turn,
            lacksChanges: lacksChanges, newestKnownFormat: options.newestKnownFormat)
    }

    /// Throws unless the file at the path is a store of a supported format.
    ///
    /// Reads only the header, without a lock and without creating files: the file may belong to another program.
    func requireStore() throws(KeychainFailure) {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem) else {
            throw KeychainFailure(.notAvailable, "there is no store at \(path)", path: path, subject: .store, cause: .missing)
        }
        // Not with SQL: SQLite would compare the header with the rest of the file, which another process may be changing.
        let connection = try openConnection(file, .immutable)
        let header = try connection.firstBytes(StoreFileHeader.byteCount)
        if let failure = Signpost.failure(forFileBeginningWith: header, path: file.location.path) { throw failure }
        do throws(KeychainFailure) {
            try check(StoreFileHeader(header), path: file.location.path)
        } catch {
            // A flipped bit can make it look like a later format, or another program's file.
            guard try connection.isFirstPageDamaged() else { throw error }
            throw KeychainFailure(
                .notAvailable, "\(file.location.path) is damaged: its header has a wrong checksum",
                path: file.location.path, subject: .store, isDamage: true, remedy: .repair)
        }
    }

    /// Verifies the checksums of all pages, without SQL: SQLite may not be able to read a damaged file.
    func findDamage() throws(KeychainFailure) -> FileDamage {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem) else { return FileDamage() }
        try file.requireOwnCompanions()
        let connection = try openConnection(file, try ImmutableFile(file) == nil ? .readWrite : .immutable)
        let header = StoreFileHeader(try connection.firstBytes(StoreFileHeader.byteCount))
        let isStore = header?.applicationID == StoreSchema.applicationID
        let format = header?.formatVersion ?? 0
        let isExpected = isStore && (StoreSchema.firstFormatWithPageChecksums...options.newestKnownFormat).contains(format)
        let isDamagedStore = isExpected ? false : try connection.isFirstPageDamaged()
        guard isStore || isDamagedStore else { return FileDamage() }
        if isDamagedStore || format >= StoreSchema.firstFormatWithPageChecksums { try connection.enablePageVerification() }
        // Begins a read transaction if possible: it makes SQLite read the -wal file.
        _ = try? connection.execute("BEGIN; PRAGMA user_version")
        return FileDamage(pages: try connection.damagedPages(), wal: try connection.walDamage())
    }

    private func openConnection(_ file: StoreFile, _ access: SQLiteConnection.Access) throws(KeychainFailure) -> SQLiteConnection {
        do throws(KeychainFailure) {
            return try SQLiteConnection(
                path: file.location.path, access: access, vfsName: options.vfsName,
                busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        } catch {
            throw UnopenableStore.explain(error, of: path)
        }
    }

    /// Throws unless the database is a store of a supported format.
    ///
    /// Unlike `requireStore`, also reads the -wal file.
    private func checkHeader(of connection: SQLiteConnection, path: String) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            let applicationID = try connection.integer(of: "PRAGMA application_id")
            let version = try connection.integer(of: "PRAGMA user_version")
            try check(StoreFileHeader(applicationID: applicationID ?? 0, formatVersion: version ?? 0), path: path)
        } catch {
            if connection.health.transactionFailure?.isNotADatabase == true { throw Self.foreign(path) }
            throw error
        }
    }

    private func check(_ header: StoreFileHeader?, path: String) throws(KeychainFailure) {
        guard let header, header.applicationID == StoreSchema.applicationID else { throw Self.foreign(path) }
        let format = header.formatVersion
        guard format <= options.newestKnownFormat else { throw Self.newer(format, than: options.newestKnownFormat, path: path) }
        guard format != StoreSchema.unreleasedFormat else {
            throw Self.unsupported(path, "has format \(StoreSchema.unreleasedFormat)")
        }
        guard format >= StoreSchema.firstFormatWithPageChecksums else { throw Self.foreign(path) }
    }

    /// The failure for a store of a later format, whose rules this version does not know.
    static func newer(_ format: Int64, than known: Int64, path: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "\(path) was written by a newer version (format \(format), this version supports format \(known)); "
                + "update this program",
            path: path, subject: .store, cause: .newerVersion)
    }

    static func unsupported(_ path: String, _ reason: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "\(path) \(reason), which is not supported: move it away, or set KEYCHAIN_HOME to another directory",
            path: path, subject: .store, cause: .unsupportedVersion)
    }

    private static func foreign(_ path: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "\(path) is not a keychain store: move it away, or set KEYCHAIN_HOME to another directory", path: path,
            subject: .store, cause: .foreignFile)
    }
}

/// The fields of a database file's header that identify a store and its format.
///
/// They are written once, before the file is published under its name.
///
/// Source: SQLite, "Database File Format", section 1.3.
struct StoreFileHeader {
    static let byteCount = 100

    let applicationID: Int64
    let formatVersion: Int64

    init(applicationID: Int64, formatVersion: Int64) {
        self.applicationID = applicationID
        self.formatVersion = formatVersion
    }

    private static let magic = Array("SQLite format 3\0".utf8)

    /// Returns nil if these are not the first bytes of a database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.byteCount, bytes.starts(with: Self.magic) else { return nil }
        formatVersion = Self.number(bytes[60..<64])
        applicationID = Self.number(bytes[68..<72])
    }

    /// Replaces the fields in the first page of a damaged store that are the same in every store, except for the format.
    ///
    /// They are the identification, and what SQLite needs to read and write the file. An impossible format is replaced by that of new stores;
    /// `RepairCopy.restoreFormat` corrects a wrong one. A number of pages beyond the end of the file is replaced by that of its pages.
    ///
    /// `pageCount` is the number of pages that the file has. Does nothing if the checksum is right: then the file was cut off.
    static func restoreConstants(in page: inout [UInt8], pageCount: Int64) {
        var unchanged = page
        PageChecksums.writeChecksum(into: &unchanged, number: 1)
        guard page.count >= byteCount, unchanged != page else { return }
        page.replaceSubrange(0..<magic.count, with: magic)
        page.replaceSubrange(16..<24, with: pageLayout)
        let stored = number(page[60..<64])
        let format = stored == StoreSchema.synchronizingFormat ? stored : StoreSchema.formatOfNewStores
        let fields = [
            (28, min(number(page[28..<32]) & 0xFFFF_FFFF, pageCount)), (44, schemaFormat), (52, 0), (56, utf8), (60, format), (64, 0),
            (68, StoreSchema.applicationID),
        ]
        for (offset, number) in fields {
            for byte in 0..<4 { page[offset + byte] = UInt8(truncatingIfNeeded: number >> (24 - 8 * byte)) }
        }
    }

    /// The page size, the versions for writing and reading (2: with a -wal file), the reserved bytes of a page, and three fixed fractions.
    private static let pageLayout: [UInt8] = [
        UInt8(truncatingIfNeeded: StoreSchema.pageByteCount >> 8), UInt8(truncatingIfNeeded: StoreSchema.pageByteCount), 2, 2,
        UInt8(truncatingIfNeeded: StoreSchema.reservedByteCountPerPage), 64, 32, 32,
    ]
    private static let schemaFormat: Int64 = 4
    private static let utf8: Int64 = 1

    /// Decodes a signed big-endian number of four bytes.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
        Int64(Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) }))
    }
}
