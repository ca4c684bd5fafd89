// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// Where a backup is or will be.
enum BackupPath {
    static func absolute(_ path: String) throws(CommandFailure) -> String {
        guard !path.isEmpty else { throw CommandFailure(.usage, "the name of the file is empty", advice: "Name a file.") }
        if path.hasPrefix("/") { return path }
        let directory = FileManager.default.currentDirectoryPath
        // Of one that was deleted, the system has no path.
        guard directory.hasPrefix("/") else {
            throw CommandFailure(
                .usage, "the working directory is not there any more, so \(ItemListing.printable(path)) is nowhere",
                advice: "Change to another one, or name the file with its whole path.")
        }
        return directory + "/" + path
    }

    /// Throws if no file can be written there, before anybody is asked for a password.
    ///
    /// Where that cannot be seen, writing will tell.
    static func requireWritable(_ path: String, replacing: Bool) throws(CommandFailure) {
        let kind = (try? FileStatus(of: path))?.kind
        if path.hasSuffix("/") || kind == .directory { throw unsuitablePath(path, "a directory") }
        guard let kind else { return }
        if kind == .symbolicLink { throw unsuitablePath(path, "a symbolic link") }
        guard kind == .regularFile else { throw unsuitablePath(path, "not a regular file") }
        guard replacing else { throw BackupFailure.alreadyThere(path) }
    }

    /// Throws for a pipe and the like.
    static func requireReadable(_ path: String) throws(CommandFailure) {
        guard let status = try? FileStatus(of: path, followsLinks: true), status.kind != .regularFile else { return }
        throw CommandFailure(
            .usage, "\(ItemListing.printable(path)) is not a regular file",
            advice: "Nothing was restored. A backup is read more than once: save what comes from a pipe in a file first.")
    }

    private static func unsuitablePath(_ path: String, _ what: String) -> CommandFailure {
        CommandFailure(.usage, "\(ItemListing.printable(path)) is \(what), and nothing was written", advice: "Choose the name of a file.")
    }
}

/// What the statuses of a keychain mean where a backup is concerned.
enum BackupFailure {
    /// While a backup is written.
    static func translated<Result>(
        to path: String, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            switch error.status {
            case .itemNotFound:
                throw CommandFailure(
                    .notFound, "there is no keychain yet, so there is nothing to save", advice: "The first secret that is stored makes it.")
            case .duplicateItem: throw alreadyThere(path)
            case .parameter: throw CommandFailure(.usage, error.reason, advice: "Nothing was written.")
            default: throw CommandFailure(error)
            }
        }
    }

    /// While a backup is read.
    static func translated<Result>(
        from path: String, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            switch error.status {
            case .itemNotFound:
                throw CommandFailure(.notFound, "there is no file \(ItemListing.printable(path))", advice: "Check the name.")
            case .authFailed:
                throw CommandFailure(.unavailable, error.reason, advice: "Nothing was restored. Run the command again with the right one.")
            case .decode where !error.isDamage:
                throw CommandFailure(.damaged, error.reason, advice: "Nothing was restored. Take another copy of the backup.")
            case .parameter: throw CommandFailure(.usage, error.reason, advice: "Nothing was restored.")
            case .notAvailable where error.remedy == nil && error.reason.contains(path):
                throw CommandFailure(.unavailable, error.reason, advice: "Nothing was restored. Check that the file can be read.")
            default: throw CommandFailure(error)
            }
        }
    }

    static func alreadyThere(_ path: String) -> CommandFailure {
        CommandFailure(
            .alreadyThere, "\(ItemListing.printable(path)) is there already, and nothing was written",
            advice: "Choose another name, or replace it with --force.")
    }
}

extension CommandSession {
    /// Throws while not every secret can be read or written.
    func requireUnlocked() throws(CommandFailure) {
        let state = try performSessionCall { keychain throws(KeychainFailure) in try keychain.sessionStatus() }.state
        guard state == .unlocked else { throw CommandFailure(KeychainFailure(.interactionNotAllowed, "the keychain is locked")) }
    }
}
