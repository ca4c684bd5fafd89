// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem

/// The path of a backup on the command line.
enum BackupPath {
    /// Returns the path of a file from the root directory.
    ///
    /// `alternative` is what to do instead of the path `-`, by which other programs mean standard output or input.
    static func absolute(_ path: String, alternative: String = "give the path of a file") throws(CommandFailure) -> String {
        guard path != "-" else {
            throw CommandFailure(
                .usage, "- is not the path of a file here", advice: "For a file with this name use ./-, otherwise \(alternative).")
        }
        return try absolute(path, of: "file")
    }

    /// Returns the path of a file or a folder from the root directory.
    static func absolute(_ path: String, of kind: String) throws(CommandFailure) -> String {
        guard !path.isEmpty else { throw CommandFailure(.usage, "the path is empty", advice: "Give the path of a \(kind).") }
        if path.hasPrefix("/") { return path }
        // The system has no path for a deleted directory.
        guard let directory = try? FileSystem.currentDirectory(), directory.hasPrefix("/") else {
            throw CommandFailure(
                .usage, "the current directory no longer exists; cannot resolve \(ItemListing.escapingUnprintable(path))",
                advice: "Change to another directory, or give an absolute path.")
        }
        return directory + "/" + path
    }

    /// Throws if the file cannot be written, before the password is prompted for.
    ///
    /// A problem that cannot be detected here is reported when the file is written.
    static func requireWritable(_ path: String, replacing: Bool) throws(CommandFailure) {
        let kind = (try? FileStatus(of: path))?.kind
        if path.hasSuffix("/") || kind == .directory { throw unsuitablePath(path, "a directory") }
        guard let kind else { return }
        if kind == .symbolicLink { throw unsuitablePath(path, "a symbolic link") }
        guard kind == .regularFile else { throw unsuitablePath(path, "not a regular file") }
        guard replacing else { throw BackupFailure.alreadyExists(path) }
    }

    /// Throws if the file is not a regular file.
    static func requireReadable(_ path: String) throws(CommandFailure) {
        guard let status = try? FileStatus(of: path, followsLinks: true), status.kind != .regularFile else { return }
        throw CommandFailure(
            .usage, "\(ItemListing.escapingUnprintable(path)) is not a regular file",
            advice: "Nothing was restored. A backup is read more than once: write the output of a pipe to a file first.")
    }

    private static func unsuitablePath(_ path: String, _ kind: String) -> CommandFailure {
        CommandFailure(
            .usage, "\(ItemListing.escapingUnprintable(path)) is \(kind); nothing was written",
            advice: "Give the path of a new or regular file.")
    }
}

/// The failures of backup commands.
enum BackupFailure {
    /// Runs `body`, which writes a backup or a snapshot to `path`.
    static func translatingWriteFailures<Result>(
        _ path: String, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            switch error.status {
            case .itemNotFound: throw CommandFailure.noKeychain
            case .duplicateItem: throw alreadyExists(path)
            case .decode where error.cause == .incompleteBackup:
                throw CommandFailure(
                    .damaged, error.reason,
                    advice: "Give the name of a new file to save what can be read. `valet verify` shows what is damaged.")
            case .parameter where error.cause == .isKeychainFile:
                throw CommandFailure(
                    .usage, error.reason, advice: "Nothing was written. Give a path outside the directory of the keychain.")
            case .parameter:
                throw CommandFailure(.usage, error.reason, advice: "No backup was written. Run the command again with a longer password.")
            default: throw CommandFailure(error)
            }
        }
    }

    /// Runs `body`, which saves what can be read of a refused content to `path`.
    ///
    /// The remedies for damage are to save what can be read, and that is what has failed.
    static func translatingSaveFailures<Result>(
        _ path: String, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        try translatingWriteFailures(path) { () throws(KeychainFailure) in
            do throws(KeychainFailure) { return try body() } catch { throw error.isDamage ? error.withRemedy(nil) : error }
        }
    }

    /// Runs `body`, which reads the backup at `path` for `keychain`.
    static func translatingReadFailures<Result>(
        _ path: String, into keychain: LocalKeychain, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            if let failure = unusableKeychain(error, keychain) { throw failure }
            switch error.status {
            case .itemNotFound:
                throw CommandFailure(
                    .notFound, "the backup file \(ItemListing.escapingUnprintable(path)) does not exist", advice: "Check the path.")
            case .authFailed where error.refusal == .wrongPassword:
                throw CommandFailure(
                    .unavailable, error.reason, advice: "Nothing was restored. Run the command again with the backup's password.")
            case .decode where isDatabase(path):
                throw CommandFailure(
                    .usage, "\(ItemListing.escapingUnprintable(path)) is not a portable backup, but a snapshot or another database",
                    advice: "Nothing was restored. `valet backup restore-snapshot` puts a snapshot back.")
            case .decode where !error.isDamage:
                throw CommandFailure(.damaged, error.reason, advice: "Nothing was restored. Use another copy of the backup.")
            case .parameter:
                throw CommandFailure(
                    .usage, error.reason, advice: "Nothing was restored. Give a path outside the directory of the keychain.")
            case .notAvailable where error.remedy == nil && error.subject == .backup:
                throw CommandFailure(
                    .unavailable, error.reason,
                    advice: "Nothing was restored. Check the permissions of the file and its directories.")
            default: throw CommandFailure(error)
            }
        }
    }

    /// Throws if the keychain is damaged or gone, in which case nothing can be restored into it.
    static func requireUsableKeychain() throws(CommandFailure) {
        let keychain = try CommandSession.forWholeKeychain().keychain
        do throws(KeychainFailure) {
            _ = try keychain.sessionStatus()
        } catch {
            throw unusableKeychain(error, keychain) ?? CommandFailure(passcode: error)
        }
    }

    /// Throws if pages of the keychain file are damaged, although the items that were stored can be read.
    ///
    /// Nothing can be written to such a file, and a restoration that finds every item unchanged would not notice.
    static func requireSoundFile(_ keychain: LocalKeychain) throws(CommandFailure) {
        do throws(KeychainFailure) {
            guard try keychain.structuralProblems().isEmpty else {
                throw KeychainFailure(.notAvailable, "the keychain file is damaged", subject: .store, isDamage: true)
            }
        } catch {
            // There is no keychain yet.
            if error.status == .itemNotFound { return }
            throw unusableKeychain(error, keychain) ?? CommandFailure(error)
        }
    }

    /// The failure to restore a backup into a keychain that is damaged or gone; nil for another failure.
    ///
    /// Other commands advise to restore a backup then. Nothing is created in the place of a keychain that may only be missing for now, so a person has to
    /// move what is left of it.
    private static func unusableKeychain(_ failure: KeychainFailure, _ keychain: LocalKeychain) -> CommandFailure? {
        let isLost =
            failure.isDamage || failure.cause == .missing || failure.cause == .foreignFile || failure.remedy == .saveRefused
            || failure.remedy == .restoreCopy
        guard failure.isDeviceSecretUnusable || (isLost && (failure.subject == .store || failure.subject == .keybag)),
            let configuration = try? keychain.configuration(),
            let keyFiles = try? configuration.filesOfEarlierKeychain(
                including: failure.subject == .keyFile ? failure.path : nil)
        else { return nil }
        if failure.isCredentialUnusable {
            return CommandFailure(.unavailable, failure.reason, advice: "Nothing was restored. \(CommandFailure.credentialAdvice)")
        }
        let directory = FileSystem.parent(of: configuration.storePath)
        let files = [configuration.storePath].filter(FileSystem.exists) + keyFiles
        // Either file may go when this command ends.
        let companions = ["-wal", "-shm", "-journal"].map { configuration.storePath + $0 }.filter(FileSystem.exists).map(
            SourceFile.quotedForShell)
        let names = (["lost"] + (2...99).map { "lost-\($0)" }).map { "\(directory)/\($0)" }
        guard !files.isEmpty || !companions.isEmpty, let place = names.first(where: { !FileSystem.exists($0) }) else { return nil }
        let quotedPlace = SourceFile.quotedForShell(place)
        let steps =
            ["mkdir -m 700 -- \(quotedPlace)"]
            + (files.isEmpty ? [] : ["mv -- \(files.map(SourceFile.quotedForShell).joined(separator: " ")) \(quotedPlace)"])
            + (companions.isEmpty ? [] : ["{ mv -- \(companions.joined(separator: " ")) \(quotedPlace) 2>/dev/null; true; }"])
        let condition =
            failure.isDeviceSecretUnusable
            ? "the right one cannot be put back, and there is no recovery key (`valet recovery use`), move the files of the keychain"
            : "the keychain cannot be repaired (`valet repair`) or put back, move its files"
        return CommandFailure(
            failure.isDamage ? .damaged : .unavailable, failure.reason,
            advice: "Nothing was restored. If \(condition) away and run the command again: \(steps.joined(separator: " && "))")
    }

    private static func isDatabase(_ path: String) -> Bool {
        let header = Array("SQLite format 3\0".utf8)
        var bytes = [UInt8](repeating: 0, count: header.count)
        guard let file = try? OpenFile(path, .read, followsLinks: true) else { return false }
        return (try? file.descriptor.read(into: &bytes, at: 0)) == header.count && bytes == header
    }

    /// Runs `body`, which reads the snapshot at `path` for `keychain`.
    static func translatingSnapshotFailures<Result>(
        _ path: String, into keychain: LocalKeychain, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            switch error.status {
            case .itemNotFound:
                throw CommandFailure(
                    .notFound, "the snapshot \(ItemListing.escapingUnprintable(path)) does not exist", advice: "Check the path.")
            case .decode where error.cause == .malformed:
                throw CommandFailure(
                    .usage, error.reason,
                    advice: "Nothing was changed. Give a file from `valet backup snapshot`; `valet backup restore` reads portable backups.")
            case .decode where error.subject == .snapshot:
                throw CommandFailure(.damaged, error.reason, advice: "Nothing was changed. Use another snapshot, or a portable backup.")
            case .parameter where error.cause == .isKeychainFile:
                throw CommandFailure(.usage, error.reason, advice: "Nothing was changed. Give the path of a snapshot.")
            case .parameter where error.subject == .snapshot:
                throw CommandFailure(
                    .usage, error.reason,
                    advice: "Nothing was changed. `valet status` shows which keychain is used; KEYCHAIN_HOME selects another one.")
            case .notAvailable where (error.subject == .keyFile || error.subject == .keybag) && error.remedy == nil:
                throw CommandFailure(
                    .unavailable, error.reason,
                    advice: snapshotKeyAdvice(path, keychain))
            default: throw CommandFailure(error)
            }
        }
    }

    /// The recovery key opens a keychain, so without the protector a snapshot has to be put in its place first.
    private static func snapshotKeyAdvice(_ path: String, _ keychain: LocalKeychain) -> String {
        let need = "Nothing was changed. A snapshot opens only with the key of the keychain that it was taken of."
        guard let store = try? keychain.configuration().storePath, !FileSystem.exists(store) else { return need }
        let place = SourceFile.quotedForShell(store)
        let directory = SourceFile.quotedForShell(FileSystem.parent(of: store))
        return """
            \(need) If you have only its recovery key, copy it, then run `valet recovery use`: \
            (umask 077 && mkdir -p -- \(directory) && cp -- \(SourceFile.quotedForShell(path)) \(place))
            """
    }

    static func alreadyExists(_ path: String) -> CommandFailure {
        CommandFailure(
            .alreadyExists, "\(ItemListing.escapingUnprintable(path)) already exists; nothing was written",
            advice: "Choose another path, or add --force to replace the file.")
    }
}
