// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
package import KeychainCore
internal import KeychainSystem

extension SQLiteItemStore {
    /// Copies the whole store, as it is at one moment, into a new file that opens as this store does.
    ///
    /// Others may go on writing. Damaged rows are copied as they are; with a damaged page there is no copy, for in the copy it would
    /// look sound. The copy is published whole or not at all, and durable when
    /// this returns.
    ///
    /// Throws `.duplicateItem` when the file is there and `replacingExisting` is not said, `.readOnly` or `.notAvailable` where
    /// nothing can be written, and `.notAvailable` for a path that belongs to a store in use.
    package func snapshot(to path: String, replacingExisting: Bool = false) throws(KeychainFailure) {
        let file = try AtomicFile(path)
        let outcome = try withReader { session throws(KeychainFailure) in
            guard session.pathStillMatchesFile else {
                session.health.markBroken()
                throw KeychainFailure(
                    .notAvailable, "the store's file was removed or replaced while it was open", requiresReopening: true)
            }
            try refusePlaceOfStore(file.path, sourceFile: session.file)
            return try file.publish(replacingExisting: replacingExisting) { temporary throws(KeychainFailure) in
                try copy(session.connection, to: temporary, in: file.directory)
            }
        }
        if outcome == .alreadyExists {
            throw KeychainFailure(.duplicateItem, "\(file.path) is there already, and is left as it is")
        }
    }

    /// A snapshot in the place of the store would take from it what was written since; beside a -wal file of another state SQLite
    /// would mix the two.
    private func refusePlaceOfStore(_ path: String, sourceFile: StoreFile) throws(KeychainFailure) {
        let source = sourceFile.location.path
        let isSource = try FileStatus.ifPresent(at: path)?.identity == sourceFile.facts.identity
        if isSource || FileLocation.companionSuffixes.contains(where: { path == source + $0 }) || path == source {
            throw KeychainFailure(.notAvailable, "\(path) is the store itself; choose another place for the snapshot")
        }
        for suffix in FileLocation.companionSuffixes where try FileStatus.ifPresent(at: path + suffix) != nil {
            throw KeychainFailure(
                .notAvailable, "there is \(path)\(suffix): a database in use, or what is left of one; choose another place")
        }
    }

    /// Until the copy is whole nobody knows it, so it needs no journal and no flush.
    private func copy(_ source: SQLiteConnection, to temporary: String, in directory: String) throws(KeychainFailure) {
        let copy = try SQLiteConnection(
            path: temporary, access: .readWrite, vfsName: options.vfsName, busyTimeoutMilliseconds: options.busyTimeoutMilliseconds)
        try copy.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE")
        do throws(KeychainFailure) {
            try source.copyDatabase(to: copy)
        } catch {
            // A reader must not take the store for what is full.
            throw error.remedy == .writeElsewhere ? error.prefixed(by: "nothing was made in \(directory)") : error
        }
    }
}

extension SQLiteConnection {
    /// Copies the whole database as it is at one moment into that of another connection, in the place of what is there.
    ///
    /// All pages go in one step, within one read: others may write meanwhile, and the copy need not begin again.
    func copyDatabase(to other: SQLiteConnection) throws(KeychainFailure) {
        // Both connections outlive the copy, and the one thread here uses them for nothing else until it is finished.
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
            // Only the copy is written.
            guard !failure.isWriteFailure else { throw failure.keychainFailure.withRemedy(.writeElsewhere) }
            throw health.record(failure)
        }
    }
}
