// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// The file in the place of a store that keychaind keeps.
///
/// Every opening of the store meets it, so no process creates a new store, or continues with an old copy. Two lines of text: the format with its
/// version, and the identifier of the store:
///
///     keychaind signpost 1
///     4f8e0c2a96d1b7358a1e5c7d3f902b64
///
/// No other file is a signpost. A file that begins like one and is none, or has another version, is an error, and only a release replaces it.
package struct Signpost: Equatable, Sendable {
    package let storeID: StoreID

    package init(storeID: StoreID) {
        self.storeID = storeID
    }

    private static let beginning = "keychaind signpost "
    private static let version = "1"

    package var encoded: [UInt8] { Array("\(Self.beginning)\(Self.version)\n\(storeID.hexadecimal)\n".utf8) }

    /// Parses the content of a file, which zeros may follow; nil for everything else.
    package init?(_ bytes: [UInt8]) {
        let content = Array(bytes.prefix { $0 != 0 })
        guard bytes.dropFirst(content.count).allSatisfy({ $0 == 0 }),
            let line = content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropFirst().first,
            let storeID = StoreID(hexadecimalDigits: line)
        else { return nil }
        self.init(storeID: storeID)
        guard content == encoded else { return nil }
    }

    /// Returns the failure of opening a file as a store; nil if the file does not begin as a signpost.
    ///
    /// `bytes` are the first ones of the file, and more than a signpost has.
    static func failure(forFileBeginningWith bytes: [UInt8], path: String) -> KeychainFailure? {
        guard bytes.starts(with: beginning.utf8) else { return nil }
        if let signpost = Signpost(bytes) { return signpost.failure(ofOpening: path) }
        let version = bytes.dropFirst(beginning.utf8.count).prefix { $0 != UInt8(ascii: "\n") }
        guard version.elementsEqual(Self.version.utf8) else {
            return KeychainFailure(
                .notAvailable, "keychaind keeps the keychain \(path), and the signpost there has another version; update this program",
                path: path, subject: .store, cause: .newerVersion)
        }
        return KeychainFailure(
            .notAvailable,
            "keychaind keeps the keychain \(path), and the signpost there is damaged: ask the administrator for `valet daemon release`",
            path: path, subject: .store, cause: .malformed)
    }
}

extension Signpost {
    /// The failure of opening the store, which keychaind keeps.
    ///
    /// `mark` is the path of the file that says so in place of the signpost; nil for the signpost.
    package func failure(ofOpening path: String, shownBy mark: String? = nil) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "keychaind keeps the keychain \(path)\(mark.map { ", says \($0)" } ?? "")", path: path, subject: .store,
            cause: .keptByDaemon(storeID))
    }

    /// Whether the file is a signpost, or begins like one; false if it cannot be read.
    ///
    /// Not for a store that this process has open: closing the file would drop its locks.
    package static func isPresent(at path: String) -> Bool {
        guard let file = try? OpenFile(path, .read), let content = try? file.descriptor.readToEnd(byteLimit: 4_096) else { return false }
        return content.starts(with: beginning.utf8)
    }

    /// Puts a signpost that is gone back, and removes the files of a former store beside it.
    package func restore(at path: String) throws(KeychainFailure) {
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) is gone", path: path, subject: .store)
        }
        _ = try AtomicFile(location, acceptsFixedMode: false).write(replacingExisting: false) { writer throws(KeychainFailure) in
            try writer.append(encoded)
        }
        if Self.isPresent(at: location.path) { Self.removeCompanions(of: location) }
        // An interrupted process may have put it in place. The key file is removed next, and must not be lost to a file that comes back.
        do throws(Errno) { try FileSystem.flush(location.directory) } catch {
            throw FileSystem.creationFailure(error, in: location.directory)
        }
    }

    /// Puts the signpost in the place of a store, atomically and durably, and removes the files beside the store.
    ///
    /// Call it within a write transaction of the store, so that no process has changes that are not acknowledged yet. Other processes notice
    /// that the file has lost its name before they acknowledge a write.
    ///
    /// Throws a failure with the cause `.outcomeUnknown` if the signpost is in place and its durability is unknown.
    package func replaceStore(at path: String) throws(KeychainFailure) {
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) is gone", path: path, subject: .store)
        }
        do throws(KeychainFailure) {
            _ = try AtomicFile(location, acceptsFixedMode: false).write(replacingExisting: true) { writer throws(KeychainFailure) in
                try writer.append(encoded)
            }
            // A connection that loses the name of the -wal file alone restores it. The database lost its name before.
            Self.removeCompanions(of: location)
            do throws(Errno) { try FileSystem.flush(location.directory) } catch {
                throw FileSystem.creationFailure(error, in: location.directory)
            }
        } catch {
            // A store is larger. Opening the file would drop the locks of this process.
            guard (try? FileStatus(of: location.path))?.byteCount == Int64(encoded.count) else { throw error }
            throw KeychainFailure(
                error.status, "\(error.reason); the signpost is in place, but a restart may undo that", path: path, subject: .store,
                cause: .outcomeUnknown)
        }
    }

    private static func removeCompanions(of location: FileLocation) {
        for suffix in FileLocation.companionSuffixes { FileSystem.tryUnlink(location.path + suffix) }
    }

    /// Puts a store in the place of its signpost, or of nothing.
    ///
    /// - Parameters:
    ///   - path: The place of the signpost.
    ///   - store: A closed store in the same file system.
    ///   - folder: A directory in the same file system for the signpost, until the store is in place.
    /// - Throws: `.duplicateItem` if there is something else by now, which stays.
    package static func replace(at path: String, with store: String, using folder: String) throws(KeychainFailure) {
        let former = folder + "/signpost"
        do throws(Errno) {
            var isPresent = true
            do throws(Errno) { try FileSystem.rename(path, to: former) } catch .notFound { isPresent = false }
            if isPresent {
                guard Self.isPresent(at: former) else {
                    try FileSystem.renameWithoutReplacing(former, to: path)
                    throw Errno.exists
                }
                // SQLite would take an old -wal file for that of the store.
                for suffix in FileLocation.companionSuffixes { FileSystem.tryUnlink(path + suffix) }
            }
            try FileSystem.renameWithoutReplacing(store, to: path)
            try FileSystem.flush(FileSystem.parent(of: path))
            FileSystem.tryUnlink(former)
        } catch .exists {
            throw KeychainFailure(.duplicateItem, "there is a keychain at \(path) by now: move it away", path: path, subject: .store)
        } catch {
            throw FileSystem.creationFailure(error, in: FileSystem.parent(of: path))
        }
    }
}
