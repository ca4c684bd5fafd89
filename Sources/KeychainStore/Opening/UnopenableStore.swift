// SPDX-License-Identifier: Apache-2.0
internal import CSQLite
internal import KeychainCore
internal import KeychainSystem

/// The reason why SQLite cannot open a store or a file beside it.
///
/// SQLite has one code for all reasons, and tries several ways to open a file, so the error number of its last attempt is often that of another
/// problem. Nothing here opens the database, which would drop the locks of this process.
enum UnopenableStore {
    /// Returns the failure with its reason, if it is SQLite's code for a file that cannot be opened and the reason can be found.
    static func explain(_ failure: KeychainFailure, of path: String) -> KeychainFailure {
        guard case .sqlite(let code) = failure.cause, code & 0xFF == SQLITE_CANTOPEN, let location = try? FileLocation(path) else {
            return failure
        }
        return reason(location) ?? failure
    }

    private static func reason(_ location: FileLocation) -> KeychainFailure? {
        let (path, directory) = (location.path, location.directory)
        guard FileSystem.canRead(path) else {
            return unavailable("\(path) cannot be read by this user; if it is meant to be, run: chmod 600 \(path)", path)
        }
        if let error = shortage() { return unavailable("\(path) cannot be opened: \(error)", path, .system(errno: error.rawValue)) }
        guard FileSystem.canCreateFiles(in: directory) else {
            guard FileSystem.exists(location.walPath), !FileSystem.exists(location.path + "-shm") else { return nil }
            return unavailable(
                "\(directory) is read-only and has no -shm file, without which the changes in the -wal file cannot be read; "
                    + "copy the directory to a writable place, and set KEYCHAIN_HOME to the copy", path)
        }
        let probe = "\(path)-probe-\(UInt32.random(in: 0 ... .max))"
        do throws(Errno) {
            try FileSystem.createPrivateFile(probe)
            FileSystem.tryUnlink(probe)
            return nil
        } catch {
            guard error.isDiskFull else { return FileSystem.creationFailure(error, in: directory) }
            return unavailable(
                "the disk is full, or its file system has no free inodes: the -shm file cannot be created in \(directory)", path, .diskFull)
        }
    }

    /// Returns the error if this process cannot open as many files as a connection has: the database, its -wal and -shm
    /// files, and those that its locks need.
    private static func shortage() -> Errno? {
        do throws(Errno) {
            try openAtOnce(5)
            return nil
        } catch {
            return error.isShortage ? error : nil
        }
    }

    private static func openAtOnce(_ count: Int) throws(Errno) {
        guard count > 0 else { return }
        let file = try OpenFile("/dev/null", .read)
        try openAtOnce(count - 1)
        try file.close()
    }

    private static func unavailable(_ reason: String, _ path: String, _ cause: KeychainFailure.Cause? = nil) -> KeychainFailure {
        KeychainFailure(.notAvailable, reason, path: path, subject: .store, cause: cause)
    }
}
