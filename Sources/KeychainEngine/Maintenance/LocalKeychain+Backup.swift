// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// Backups: portable ones under a password of their own, and copies of the whole store for this device.
extension LocalKeychain {
    /// Writes every item that may migrate to another device into a new file, encrypted under `password` alone.
    ///
    /// The file is there whole or not at all. Throws `.itemNotFound` where there is no keychain, `.interactionNotAllowed` unless
    /// it is unlocked, `.parameter` for a password that is shorter than a passcode may be, and `.duplicateItem` when the file is there
    /// and `replacing` is not said.
    package func createBackup(
        atPath path: String, password: borrowing Passcode, replacing: Bool
    ) throws(KeychainFailure) -> BackupSummary {
        let rules = try configuration.passcodePolicy()
        guard password.characterCount >= rules.minimumLength else {
            throw KeychainFailure(.parameter, "the password is too short: it needs at least \(rules.minimumLength) characters")
        }
        let file = try newFile(atPath: path)
        return try naming(unlessAbout: file.directory) { () throws(KeychainFailure) in
            try access.performOnCurrentKeybag { opened throws(KeychainFailure) in
                try Self.requireUnlocked(opened)
                var summary = BackupSummary()
                let outcome = try file.write(replacingExisting: replacing) { writer throws(KeychainFailure) in
                    let backup = try BackupWriter(
                        password: password, cost: rules.cost, creationDate: SystemWallClock().now()
                    ) { bytes throws(KeychainFailure) in try writer.append(bytes) }
                    summary = try opened.keychain.forEachBackupItem { item throws(KeychainFailure) in try backup.append(item) }
                    try backup.finish(summary)
                }
                guard outcome == .created else { throw Self.alreadyThere(file.path) }
                return summary
            }
        }
    }

    /// Checks that there is a backup at a path, as far as that can be done without its password.
    ///
    /// Throws `.itemNotFound` when there is no file, `.decode` for a file that is no backup or is damaged, `.notAvailable` for one
    /// that cannot be read, or not by this version.
    package func checkBackup(atPath path: String) throws(KeychainFailure) {
        let file = try existingFile(atPath: path)
        _ = try BackupHeader { (offset, byteCount) throws(KeychainFailure) in try file.read(at: offset, byteCount: byteCount) }
    }

    /// Puts back what a backup holds, all of it or nothing; the first write makes a keychain if there is none.
    ///
    /// The whole file is checked before anything is written. Nothing is overwritten by something older. `dryRun` only tells what would
    /// be done. Throws as `checkBackup` does, `.authFailed` when the password is wrong, and `.interactionNotAllowed` unless the
    /// keychain is unlocked.
    package func restoreBackup(
        atPath path: String, password: borrowing Passcode, dryRun: Bool
    ) throws(KeychainFailure) -> RestoreSummary {
        let file = try existingFile(atPath: path)
        let reader = try BackupReader(password: password) { (offset, byteCount) throws(KeychainFailure) in
            try file.read(at: offset, byteCount: byteCount)
        }
        let itemCount = try reader.forEachItem { _ in }.savedCount
        guard itemCount > 0 else { return RestoreSummary() }
        do throws(KeychainFailure) {
            return try naming(unlessAbout: path) { () throws(KeychainFailure) in
                try access.perform(creating: !dryRun) { opened throws(KeychainFailure) in
                    if try opened.isOutdated() { throw SealedKeychain.keybagChanged }
                    try Self.requireUnlocked(opened)
                    return try Self.restore(from: reader, into: opened.keychain, dryRun: dryRun)
                }
            }
        } catch {
            guard dryRun, error.status == .itemNotFound else { throw error }
            var summary = RestoreSummary()
            summary.addedCount = itemCount
            return summary
        }
    }

    /// Copies the whole store, as it is at one moment and however it is locked, into a new file.
    ///
    /// It opens with this store's device secret alone. Throws as `SQLiteItemStore.snapshot` does, and `.itemNotFound` where there
    /// is no keychain.
    package func snapshot(toPath path: String, replacing: Bool) throws(KeychainFailure) {
        let file = try newFile(atPath: path)
        try naming(unlessAbout: file.directory) { () throws(KeychainFailure) in
            try access.perform(creating: false) { opened throws(KeychainFailure) in
                try opened.store.snapshot(to: file.path, replacingExisting: replacing)
            }
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

    /// Asked before a password is derived from: that takes a while.
    private static func requireUnlocked(_ opened: OpenKeychain<SQLiteItemStore>) throws(KeychainFailure) {
        guard try opened.keybag.lockState() == .unlocked else {
            throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: unlock it first")
        }
    }

    private func newFile(atPath path: String) throws(KeychainFailure) -> AtomicFile {
        try ReservedPaths(of: configuration).refuse(path)
        return try AtomicFile(path)
    }

    private func existingFile(atPath path: String) throws(KeychainFailure) -> BackupFile {
        try ReservedPaths(of: configuration).refuse(path)
        return try BackupFile(atPath: path)
    }

    private static func alreadyThere(_ path: String) -> KeychainFailure {
        KeychainFailure(.duplicateItem, "\(path) is there already, and is left as it is")
    }
}

/// A backup that is read through one descriptor, as often as need be: another file put in its place meanwhile is not looked at.
final class BackupFile {
    private let path: String
    private let file: OpenFile

    /// Throws `.itemNotFound` when there is no such file, `.notAvailable` when it cannot be read.
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

/// The files that a keychain consists of, which no backup may take the place of or be read from.
struct ReservedPaths {
    private let storePath: String
    private let keyDirectory: String

    init(of configuration: KeychainConfiguration) {
        storePath = FileSystem.resolveExistingPart(of: configuration.storePath)
        keyDirectory = FileSystem.resolveExistingPart(of: configuration.keyDirectory)
    }

    /// Throws `.parameter` for one of them.
    ///
    /// The store must not even be opened and closed: that would drop every lock that this process has on it.
    func refuse(_ path: String) throws(KeychainFailure) {
        let resolved = FileSystem.resolveExistingPart(of: path)
        let isPartOfStore = ["", "-wal", "-shm", "-journal"].contains { resolved == storePath + $0 }
        guard !isPartOfStore, !isStore(path), FileSystem.parent(of: resolved) != keyDirectory else {
            throw KeychainFailure(
                .parameter, "\(path) is a file of the keychain itself; choose another place", path: path, cause: .isKeychainFile)
        }
    }

    /// Also under another name.
    private func isStore(_ path: String) -> Bool {
        FileSystem.isSameFile(path, storePath, followsLinks: true)
    }
}
