// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
package import KeychainCore
internal import KeychainSystem

extension SQLiteItemStore {
    /// Copies a consistent state of the whole store into a new file, which can be opened like this store.
    ///
    /// Other threads and processes may write meanwhile. Damaged rows are copied unchanged. A damaged page makes the copy fail: the copy's
    /// page would get a valid checksum, which would hide the damage. The copy is published atomically and is durable when this returns.
    ///
    /// Throws `.duplicateItem` if the file exists and `replacingExisting` is false, `.readOnly` or `.notAvailable` if the file cannot be
    /// written, and `.notAvailable` for a path that belongs to a store in use.
    package func snapshot(to path: String, replacingExisting: Bool = false) throws(KeychainFailure) {
        let file = try AtomicFile(path, companionSuffixes: FileLocation.companionSuffixes)
        let outcome = try withReader { session throws(KeychainFailure) in
            guard session.lostFiles.isEmpty else { throw abandonLostFiles(of: session) }
            try requireSafeSnapshotPath(file.path, sourceFile: session.file)
            return try file.publish(replacingExisting: replacingExisting) { temporary throws(KeychainFailure) in
                try copy(session.connection, to: temporary, in: file.directory)
            }
        }
        if outcome == .alreadyExists {
            throw KeychainFailure(
                .duplicateItem, "\(file.path) already exists; it was not changed", path: file.path, subject: .snapshot)
        }
    }

    /// Throws if a snapshot at the path would replace the store, or be combined by SQLite with a -wal file of another database.
    private func requireSafeSnapshotPath(_ path: String, sourceFile: StoreFile) throws(KeychainFailure) {
        let source = sourceFile.location.path
        let isSource = try FileStatus.ifPresent(at: path)?.identity == sourceFile.facts.identity
        if isSource || FileLocation.companionSuffixes.contains(where: { path == source + $0 }) || path == source {
            throw KeychainFailure(
                .notAvailable, "\(path) is the store itself; choose another place for the snapshot", path: path, subject: .snapshot,
                cause: .isKeychainFile)
        }
        for suffix in FileLocation.companionSuffixes where try FileStatus.ifPresent(at: path + suffix) != nil {
            throw KeychainFailure(
                .notAvailable, "\(path)\(suffix) exists: it belongs to a database in use, or was left by one; choose another place",
                path: path + suffix, subject: .snapshot)
        }
    }

    /// Needs neither a rollback journal nor flushes: no other process opens the copy before it is complete.
    private func copy(_ source: SQLiteConnection, to temporary: String, in directory: String) throws(KeychainFailure) {
        let copy = try SQLiteConnection(
            path: temporary, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try copy.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE")
        do throws(KeychainFailure) {
            try source.copyDatabase(to: copy)
        } catch {
            // The reason must say that the destination's disk is full, and not the store's.
            throw error.remedy == .writeElsewhere ? error.addingContext("nothing was created in \(directory)") : error
        }
    }
}

extension SQLiteConnection {
    /// Replaces the content of another connection's database with a consistent copy of this one.
    ///
    /// Copies all pages in one step within one read transaction, so writes by others do not restart the copy.
    func copyDatabase(to other: SQLiteConnection) throws(KeychainFailure) {
        // Both connections outlive the copy, and this thread uses them for nothing else until it is finished.
        guard let copy = unsafe sqlite3_backup_init(other.handle, "main", handle, "main") else {
            throw other.health.record(SQLiteFailure(code: SQLITE_ERROR, action: "copying the store"))
        }
        var attempt = 0
        var code: Int32
        repeat {
            code = unsafe sqlite3_backup_step(copy, -1)
            attempt += 1
        } while (code == SQLITE_BUSY || code == SQLITE_LOCKED) && busyHandler.wait(attempt: attempt)
        let finished = unsafe sqlite3_backup_finish(copy)
        guard code == SQLITE_DONE, finished == SQLITE_OK else {
            let failure = SQLiteFailure(code: code == SQLITE_DONE ? finished : code, action: "copying the store")
            // A write failure concerns the copy: the source is only read.
            guard !failure.isWriteFailure else { throw failure.keychainFailure.withRemedy(.writeElsewhere) }
            throw health.record(failure)
        }
    }
}
