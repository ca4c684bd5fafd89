// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// Opens connections to a store: file first, then what is in it, then the settings.
struct StoreOpener {
    let path: String
    let options: StoreOptions

    enum Role { case reader, writer }

    func openSession(_ role: Role, epoch: UInt64, deadlineNanoseconds: UInt64?) throws(KeychainFailure) -> StoreSession {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem) else {
            throw KeychainFailure(.notAvailable, "there is no store at \(path) any more")
        }
        let immutableFile = try ImmutableFile(file)
        if role == .writer, immutableFile != nil {
            throw KeychainFailure(.readOnly, "\(file.location.directory) is read-only: nothing can be stored there")
        }
        let connection = try openConnection(file, immutableFile == nil ? .readWrite : .immutable)
        if let deadlineNanoseconds { connection.busyHandler.setDeadline(atNanoseconds: deadlineNanoseconds) }
        try connection.applySafetySettings()
        let formatVersion = try checkHeader(of: connection, path: file.location.path)
        if formatVersion >= StoreSchema.formatVersion { try connection.enablePageVerification() }
        try connection.apply(options.synchronous)
        switch role {
        case .reader: try connection.execute("PRAGMA query_only = ON")
        case .writer:
            guard !connection.isReadOnly else {
                throw KeychainFailure(.readOnly, "\(file.location.path) is read-only: nothing can be stored in it")
            }
            try connection.switchToWAL()
        }
        // The same file before and after: so it is the one that was opened in between.
        guard try FileStatus.ifPresent(at: file.location.path)?.identity == file.facts.identity else {
            throw KeychainFailure(.notAvailable, "\(file.location.path) was replaced while it was being opened")
        }
        return StoreSession(
            connection: connection, file: file, epoch: epoch, immutableFile: immutableFile,
            isOldFormat: formatVersion < StoreSchema.formatVersion)
    }

    /// Makes a store of an older format one of the newest, if that can be done now: else later, for the old one serves too.
    ///
    /// The caller has no connection to it.
    func upgradeFormat() {
        _ = try? upgrade()
    }

    private func upgrade() throws(KeychainFailure) -> Bool {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem), try ImmutableFile(file) == nil else { return false }
        let connection = try openConnection(file, .readWrite)
        connection.busyHandler.neverWait()
        try connection.applySafetySettings()
        _ = try checkHeader(of: connection, path: file.location.path)
        try connection.apply(options.synchronous)
        return try FormatUpgrade(connection: connection, directory: file.location.directory).run()
    }

    /// Looks at a file that may be anybody's, without a lock and without leaving a trace.
    ///
    /// Throws unless it is a store of ours.
    func examine() throws(KeychainFailure) {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem) else {
            throw KeychainFailure(.notAvailable, "there is no store at \(path)")
        }
        // SQLite itself would compare the header with the rest of the file, which another process may be changing just now.
        let header = try openConnection(file, .immutable).firstBytes(StoreFileHeader.byteCount)
        try check(StoreFileHeader(header), path: file.location.path)
    }

    /// Looks at pages past SQLite, which may not understand a damaged file.
    func damage() throws(KeychainFailure) -> FileDamage {
        guard let file = try StoreFile.find(path, fileSystem: options.fileSystem) else { return FileDamage() }
        let connection = try openConnection(file, try ImmutableFile(file) == nil ? .readWrite : .immutable)
        guard let header = StoreFileHeader(try connection.firstBytes(StoreFileHeader.byteCount)),
            header.applicationID == StoreSchema.applicationID
        else { return FileDamage() }
        if header.formatVersion >= StoreSchema.formatVersion { try connection.enablePageVerification() }
        // A read transaction, if one can be begun: it tells what is in the -wal file.
        _ = try? connection.execute("BEGIN; PRAGMA user_version")
        return FileDamage(pages: try connection.damagedPages(), log: try connection.walDamage())
    }

    private func openConnection(_ file: StoreFile, _ access: SQLiteConnection.Access) throws(KeychainFailure) -> SQLiteConnection {
        try SQLiteConnection(
            path: file.location.path, access: access, vfsName: options.vfsName,
            busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
    }

    /// Gives the format's version.
    private func checkHeader(of connection: SQLiteConnection, path: String) throws(KeychainFailure) -> Int64 {
        do throws(KeychainFailure) {
            let applicationID = try connection.integer(of: "PRAGMA application_id")
            let version = try connection.integer(of: "PRAGMA user_version")
            let header = StoreFileHeader(applicationID: applicationID ?? 0, formatVersion: version ?? 0)
            try check(header, path: path)
            return header.formatVersion
        } catch {
            if connection.health.transactionFailure?.isNotADatabase == true { throw Self.foreign(path) }
            throw error
        }
    }

    private func check(_ header: StoreFileHeader?, path: String) throws(KeychainFailure) {
        guard let header, header.applicationID == StoreSchema.applicationID else { throw Self.foreign(path) }
        guard header.formatVersion <= StoreSchema.formatVersion else { throw Self.newer(header.formatVersion) }
        guard header.formatVersion >= StoreSchema.oldestFormatVersion else { throw Self.foreign(path) }
    }

    /// A newer version may have made rules that this one would break.
    static func newer(_ version: Int64) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "the store was written by a newer version (format \(version), this one knows \(StoreSchema.formatVersion)); update this program"
        )
    }

    private static func foreign(_ path: String) -> KeychainFailure {
        KeychainFailure(.notAvailable, "\(path) is not a keychain store; it is left as it is. Move it away, or choose another place")
    }
}

/// Whose database file it is and of which format: fields that are written once, before the file gets its name.
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

    /// Nil when these are not the first bytes of a database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.byteCount, bytes.starts(with: "SQLite format 3\0".utf8) else { return nil }
        formatVersion = Self.number(bytes[60..<64])
        applicationID = Self.number(bytes[68..<72])
    }

    /// Four bytes, big-endian and signed.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
        Int64(Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) }))
    }
}
