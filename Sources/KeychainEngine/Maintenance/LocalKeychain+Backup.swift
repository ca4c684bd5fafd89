// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// Portable backups under a password of their own, and snapshots of the whole store for this device.
extension LocalKeychain {
    /// Writes every item that may migrate to another device to a new file, encrypted under `password`.
    ///
    /// The file is created atomically; an incomplete backup does not replace a file, also if `replacing` is true. Throws `.itemNotFound` if there is no keychain, `.interactionNotAllowed` unless it is
    /// unlocked, `.parameter` for a password that is too short for a passcode, `.duplicateItem` if the file exists and `replacing` is
    /// false, and `.unimplemented` for a keychain in memory.
    package func createBackup(
        atPath path: String, password: borrowing Passcode, replacing: Bool
    ) throws(KeychainFailure) -> BackupSummary {
        let (file, cost) = try newBackup(atPath: path, password: password)
        return try performOnCurrentKeybag { opened throws(KeychainFailure) in
            // Checked before the slow key derivation.
            try opened.requireUnlocked()
            return try Self.write(to: file, replacing: replacing, password: password, cost) { body throws(KeychainFailure) in
                try opened.keychain.forEachBackupItem(body)
            }
        }
    }

    /// Whether the passcode is needed to back up a keychain whose content is refused.
    ///
    /// Throws the errors of opening the file and its keybag.
    package func backupOfRefusedContentNeedsPasscode() throws(KeychainFailure) -> Bool {
        try withRefusedContent { opened throws(KeychainFailure) in opened.keybag.isPasscodeSet }
    }

    /// Writes what can be read of a keychain whose content is refused to a new file, as `createBackup` does, and changes nothing in the keychain.
    ///
    /// The content may be older than the newest one, or altered. If it is damaged as well, it can never be accepted, and this is the only way
    /// to save it. Pages with wrong checksums are read too, because each item is authenticated by itself. Of a file with unreachable changes in its
    /// -wal file, the content before these changes is saved. `passcode` is that of the keybag in the file; nil if it has none. Also throws
    /// `.authFailed` for a wrong passcode.
    package func createBackupOfRefusedContent(
        atPath path: String, password: borrowing Passcode, replacing: Bool, passcode: borrowing Passcode?
    ) throws(KeychainFailure) -> BackupSummary {
        let (file, cost) = try newBackup(atPath: path, password: password)
        var round = 1
        while true {
            do throws(KeychainFailure) {
                return try writeRefusedContent(to: file, replacing: replacing, password: password, cost, passcode: passcode)
            } catch {
                // Another process changed the keys meanwhile.
                guard error.requiresReopening, round < 5 else { throw error }
                round += 1
            }
        }
    }

    private func writeRefusedContent(
        to file: AtomicFile, replacing: Bool, password: borrowing Passcode, _ cost: PasscodeCost, passcode: borrowing Passcode?
    ) throws(KeychainFailure) -> BackupSummary {
        try withRefusedContent { opened throws(KeychainFailure) in
            let keys = try unlockedKeys(of: opened, passcode)
            let keychain = try keys.map { keys throws(KeychainFailure) in try opened.keychain(openingWith: keys) } ?? opened.keychain
            return try Self.write(to: file, replacing: replacing, password: password, cost) { body throws(KeychainFailure) in
                try keychain.forEachBackupItem(under: opened.keybag.usedCopy, body)
            }
        }
    }

    private func withRefusedContent<Result>(
        _ body: (OpenKeychain) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard let backend = backend as? FileKeychainBackend else { throw KeychainFailure.requiresFile() }
        return try addingContext { () throws(KeychainFailure) in
            close()
            let opened = try backend.openToSave()
            defer { backend.close(opened) }
            return try body(opened)
        }
    }

    private func newBackup(
        atPath path: String, password: borrowing Passcode
    ) throws(KeychainFailure) -> (file: AtomicFile, cost: PasscodeCost) {
        let policy = try backend.passcodePolicy()
        guard password.characterCount >= policy.minimumLength else {
            throw KeychainFailure(.parameter, "the password is too short: it needs at least \(policy.minimumLength) characters")
        }
        return (try newFile(atPath: path), policy.cost)
    }

    /// Writes the items that `forEachItem` passes to its argument.
    private static func write(
        to file: AtomicFile, replacing: Bool, password: borrowing Passcode, _ cost: PasscodeCost,
        _ forEachItem: ((BackupItem) throws(KeychainFailure) -> Void) throws(KeychainFailure) -> BackupSummary
    ) throws(KeychainFailure) -> BackupSummary {
        var summary = BackupSummary()
        let outcome = try file.write(replacingExisting: replacing) { writer throws(KeychainFailure) in
            let backup = try BackupWriter(
                password: password, cost: cost, creationDate: SystemWallClock().now()
            ) { bytes throws(KeychainFailure) in try writer.append(bytes) }
            summary = try forEachItem { item throws(KeychainFailure) in try backup.append(item) }
            try backup.finish(summary)
            // It may be the only file that still contains an item.
            if !summary.isComplete, try FileStatus.ifPresent(at: file.path) != nil {
                throw KeychainFailure(
                    .decode, "the new backup would be incomplete, so \(file.path) was not replaced", path: file.path, subject: .backup,
                    cause: .incompleteBackup)
            }
        }
        guard outcome == .created else { throw alreadyThere(file.path) }
        return summary
    }

    /// Checks that there is a backup at a path, as far as that is possible without its password.
    ///
    /// The cost of verifying the password is in the file and is not authenticated before the password was verified. A cost above the usual
    /// one, which is the standard cost or that of the policy, is refused unless `acceptingCost` is true.
    ///
    /// Throws `.itemNotFound` if there is no file, `.decode` for a file that is not a backup or is damaged, `.notAvailable` for a file
    /// that cannot be read, has a newer version, or has a cost that is not accepted, and `.unimplemented` for a keychain in memory.
    package func checkBackup(atPath path: String, acceptingCost: Bool = false) throws(KeychainFailure) {
        _ = try header(of: try existingFile(atPath: path), acceptingCost: acceptingCost)
    }

    private func header(of file: BackupFile, acceptingCost: Bool) throws(KeychainFailure) -> BackupHeader {
        let header = try BackupHeader(from: file.read)
        let cost = header.cost
        guard !acceptingCost, cost.exceeds(.standard) else { return header }
        let usual = try backend.passcodePolicy().usualCost
        guard cost.exceeds(usual) else { return header }
        let times = cost.parallelism == 1 ? "" : ", \(cost.parallelism) times"
        throw KeychainFailure(
            .notAvailable,
            "checking the password of the backup needs \(cost.memoryByteCount >> 20) MiB of memory\(times), more than the usual "
                + "\(usual.memoryByteCount >> 20) MiB",
            subject: .backup, cause: .costRefused, remedy: .acceptCost)
    }

    /// Restores all items of a backup in one transaction; creates the keychain if there is none.
    ///
    /// The whole file is checked before anything is written. Older items never replace newer ones. With `dryRun` nothing is written.
    /// `acceptingCost` and the errors are those of `checkBackup`. Also throws `.authFailed` if the password is wrong, and `.interactionNotAllowed` unless the keychain is
    /// unlocked.
    package func restoreBackup(
        atPath path: String, password: borrowing Passcode, dryRun: Bool, acceptingCost: Bool = false
    ) throws(KeychainFailure) -> RestoreSummary {
        let file = try existingFile(atPath: path)
        let header = try header(of: file, acceptingCost: acceptingCost)
        let reader = try BackupReader(header, password: password, source: file.read)
        let itemCount = try reader.forEachItem { _ in }.savedCount
        guard itemCount > 0 else { return RestoreSummary() }
        do throws(KeychainFailure) {
            return try perform(creating: !dryRun) { opened throws(KeychainFailure) in
                if try opened.isOutdated() { throw SealedKeychain.keybagChanged }
                try opened.requireUnlocked()
                return try Self.restore(from: reader, into: opened.keychain, dryRun: dryRun)
            }
        } catch {
            guard dryRun, error.status == .itemNotFound else { throw error }
            var summary = RestoreSummary()
            summary.addedCount = itemCount
            return summary
        }
    }

    /// Copies a consistent snapshot of the whole store to a new file.
    ///
    /// The keychain may be locked. The copy opens with this store's device secret only. Throws as `SQLiteItemStore.snapshot` does,
    /// `.itemNotFound` if there is no keychain, and `.unimplemented` for a keychain in memory.
    package func snapshot(toPath path: String, replacing: Bool) throws(KeychainFailure) {
        let file = try newFile(atPath: path)
        try perform(creating: false) { opened throws(KeychainFailure) in
            try opened.fileStore().snapshot(to: file.path, replacingExisting: replacing)
        }
    }

    private static func restore(
        from reader: BackupReader, into keychain: SealedKeychain, dryRun: Bool
    ) throws(KeychainFailure) -> RestoreSummary {
        let items = { (body: (BackupItem) throws(KeychainFailure) -> Void) throws(KeychainFailure) in
            _ = try reader.forEachItem(body)
        }
        return dryRun ? try keychain.previewRestore(items) : try keychain.restore(items)
    }

    private func newFile(atPath path: String) throws(KeychainFailure) -> AtomicFile {
        try requireWritable(path)
        return try AtomicFile(path)
    }

    /// Throws `.parameter` if this absolute path is one of the keychain's own files, which no output may replace.
    package func requireWritable(_ path: String) throws(KeychainFailure) {
        let reserved = ReservedPaths(of: try configuration())
        try reserved.requireNotReserved(path)
        try reserved.requireNotKept(path)
    }

    private func existingFile(atPath path: String) throws(KeychainFailure) -> BackupFile {
        try ReservedPaths(of: try configuration()).requireNotReserved(path)
        return try BackupFile(atPath: path)
    }

    private static func alreadyThere(_ path: String) -> KeychainFailure {
        KeychainFailure(.duplicateItem, "\(path) already exists; it was not changed", path: path, subject: .backup)
    }
}

/// A backup that is read repeatedly through one descriptor.
///
/// A file that replaces it in the meantime is not read.
final class BackupFile {
    private let path: String
    private let file: OpenFile

    /// Throws `.itemNotFound` if there is no such file, `.notAvailable` if it cannot be read.
    init(atPath path: String) throws(KeychainFailure) {
        self.path = path
        do throws(Errno) {
            file = try OpenFile(path, .read, followsLinks: true)
        } catch {
            if error == .notFound || error == .notDirectory {
                throw KeychainFailure(.itemNotFound, "there is no backup \(path)", path: path, subject: .backup)
            }
            throw Self.readFailure(error, path)
        }
        guard (try? file.descriptor.status())?.kind == .regularFile else {
            throw KeychainFailure(.notAvailable, "the backup \(path) is not a regular file", path: path, subject: .backup)
        }
    }

    private static func readFailure(_ error: Errno, _ path: String) -> KeychainFailure {
        let failure = PrivateFile.readFailure(error, "the backup", path)
        return KeychainFailure(failure.status, failure.reason, path: path, subject: .backup, cause: failure.cause)
    }

    /// A `BackupSource`.
    func read(at offset: Int64, byteCount: Int) throws(KeychainFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        do throws(Errno) {
            bytes.removeLast(byteCount - (try file.descriptor.read(into: &bytes, at: offset)))
        } catch {
            throw Self.readFailure(error, path)
        }
        return bytes
    }
}

/// The paths of the keychain's own files.
///
/// Nothing may be written to them, and no backup read from them.
struct ReservedPaths {
    private let storePath: String
    private let keyDirectory: String

    init(of configuration: KeychainConfiguration) {
        storePath = FileSystem.resolveExistingPart(of: configuration.storePath)
        keyDirectory = FileSystem.resolveExistingPart(of: configuration.keyDirectory)
    }

    /// Throws `.parameter` if `path` is one of them.
    ///
    /// The store must not even be opened and closed: closing it would drop every lock that this process has on it.
    func requireNotReserved(_ path: String) throws(KeychainFailure) {
        let resolved = FileSystem.resolveExistingPart(of: path)
        let isPartOfStore = ["", "-wal", "-shm", "-journal"].contains { resolved == storePath + $0 }
        guard !isPartOfStore, !isStore(path), FileSystem.parent(of: resolved) != keyDirectory else {
            throw KeychainFailure(
                .parameter, "\(path) is a file of the keychain itself; choose another place", path: path, cause: .isKeychainFile)
        }
    }

    /// Throws `.parameter` if `path` is a file that was kept when the keychain was replaced.
    func requireNotKept(_ path: String) throws(KeychainFailure) {
        guard FileSystem.resolveExistingPart(of: path).hasPrefix(storePath + ".before-") else { return }
        throw KeychainFailure(
            .parameter, "\(path) is an earlier file of the keychain; choose another place", path: path, cause: .isKeychainFile)
    }

    /// Whether `path` is a name of the store's file, such as a hard link.
    private func isStore(_ path: String) -> Bool {
        FileSystem.isSameFile(path, storePath, followsLinks: true)
    }
}
