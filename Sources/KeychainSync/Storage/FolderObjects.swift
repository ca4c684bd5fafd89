// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// The objects in a folder, accessed with calls that may block.
///
/// Directories below the root are opened one by one without following symbolic links, so that no name leads out of the folder.
struct FolderObjects: Sendable {
    /// The directory of the objects, an absolute path.
    let root: String
    let options: FolderOptions

    /// What a listing may cost: an attacker, or a mistake, can fill a shared folder with files.
    static let nameLimit = 1_000_000

    // MARK: Directories

    /// Opens the directory of the objects, which is never created here: if it is missing, its disk may not be mounted.
    func openRoot() throws(SyncStorageError) -> OpenDirectory {
        guard root.hasPrefix("/") else { throw SyncStorageError(.failed, "the path of the folder must be absolute: \(root)") }
        do throws(Errno) {
            return try OpenDirectory(root)
        } catch  where error == .notFound || error == .notDirectory {
            throw SyncStorageError(.unavailable, "\(root) is gone: is the disk mounted?")
        } catch {
            throw failure(error, "open", root)
        }
    }

    /// Opens a directory below the root; nil if it is missing, or if something else has its name.
    func open(_ parts: some Sequence<Substring>, in root: OpenDirectory) throws(SyncStorageError) -> OpenDirectory? {
        var directory = root
        var path = self.root
        for part in parts {
            path += "/" + part
            do throws(Errno) {
                directory = try OpenDirectory(String(part), in: directory)
            } catch  where [.notFound, .notDirectory, .symbolicLinkLoop].contains(error) {
                return nil
            } catch {
                throw failure(error, "open", path)
            }
        }
        return directory
    }

    /// Splits the name of an object into its directories and the name of its file.
    func split(_ name: String) -> (directories: [Substring], file: String) {
        var parts = name.split(separator: "/")
        let file = parts.popLast() ?? ""
        return (parts, String(file))
    }

    // MARK: Listing

    /// Lists the objects below a folder, at most `nameLimit`; removes temporary files of processes that have died.
    func list(_ folder: String) throws(SyncStorageError) -> [String] {
        try StorageName.requireFolder(folder)
        var names: [String] = []
        var entryCount = 0
        var rest = [folder]
        let root = try openRoot()
        while let path = rest.popLast() {
            guard let directory = try open(path.split(separator: "/"), in: root) else { continue }
            let prefix = path.isEmpty ? "" : path + "/"
            let files = StorageName.Files(in: path)
            do throws(Errno) {
                try directory.forEachEntry { entry in
                    entryCount += 1
                    if files.contains(entry.name) {
                        let kind = entry.kind ?? (try? directory.status(of: entry.name))?.kind
                        if kind == .regularFile { names.append(prefix + entry.name) }
                    } else if entry.kind != .regularFile, StorageName.isFolder(prefix + entry.name) {
                        // Something else that has the name cannot be opened as a directory.
                        rest.append(prefix + entry.name)
                    } else if TemporaryName.isOwn(entry.name) {
                        removeIfLeftOver(entry.name, in: directory)
                    }
                    return names.count < Self.nameLimit && entryCount < 2 * Self.nameLimit
                }
            } catch {
                throw failure(error, "list", self.root + "/" + path)
            }
            if names.count >= Self.nameLimit || entryCount >= 2 * Self.nameLimit { break }
        }
        return names
    }

    /// Removes a temporary file that no process writes any more; best effort.
    private func removeIfLeftOver(_ name: String, in directory: OpenDirectory) {
        guard let status = (try? directory.status(of: name)) ?? nil, status.kind == .regularFile,
            status.owner == CurrentProcess.effectiveUserID
        else { return }
        let secondsSince1970 = options.clock.now() + 978_307_200
        guard secondsSince1970 - Double(status.modificationNanoseconds) / 1e9 > 86_400 else { return }
        try? directory.unlink(name)
    }

    // MARK: Single objects

    func read(_ name: String, atMost byteCount: Int) throws(SyncStorageError) -> [UInt8]? {
        try StorageName.requireObject(name)
        let (directories, file) = split(name)
        guard let directory = try open(directories, in: openRoot()) else { return nil }
        do throws(Errno) {
            return try contents(of: file, in: directory, atMost: byteCount)
        } catch {
            throw failure(error, "read", root + "/" + name)
        }
    }

    /// Reads a regular file; nil if there is none, or if it is larger.
    func contents(of file: String, in directory: OpenDirectory, atMost byteCount: Int) throws(Errno) -> [UInt8]? {
        // Examined before it is opened, because opening a device can have effects.
        guard let status = try directory.status(of: file), status.kind == .regularFile, status.byteCount <= max(0, byteCount) else {
            return nil
        }
        do throws(Errno) {
            let opened = try directory.open(file)
            guard try opened.descriptor.status().kind == .regularFile else { return nil }
            return try opened.descriptor.readToEnd(byteLimit: max(0, byteCount))
        } catch  where [.notFound, .symbolicLinkLoop, .isDirectory].contains(error) {
            // It was removed or replaced meanwhile.
            return nil
        }
    }

    func remove(_ name: String) throws(SyncStorageError) {
        try StorageName.requireObject(name)
        let (directories, file) = split(name)
        guard let directory = try open(directories, in: openRoot()) else { return }
        do throws(Errno) { try directory.unlink(file) } catch { throw failure(error, "remove", root + "/" + name) }
    }

    // MARK: Errors

    /// The error of a call on `path`; `action` is a verb.
    func failure(_ error: Errno, _ action: String, _ path: String) -> SyncStorageError {
        if error.isDiskFull { return SyncStorageError(.full, "cannot \(action) \(path): the disk or the quota of this user is full") }
        if error.isFileSystemGone { return SyncStorageError(.unavailable, "cannot \(action) \(path): \(error); is the disk mounted?") }
        let code: SyncStorageError.Code =
            switch error {
            case .readOnlyFileSystem: .readOnly
            case .accessDenied, .notPermitted: .notPermitted
            default: .failed
            }
        return SyncStorageError(code, "cannot \(action) \(path): \(error)\(FileSystem.denial(error, of: path))")
    }
}

/// The names of files whose content is not complete yet, where a file system has no files without names.
enum TemporaryName {
    // Syncthing neither sends nor indexes files with these names.
    private static let prefix = ".syncthing."
    private static let suffix = ".tmp"

    /// Returns a new name for the file that is to become `file`.
    ///
    /// Random, so that a file that a killed process left is not in the way.
    static func make(for file: String) -> String { prefix + file + "." + Identifier128.random().hexadecimal + suffix }

    /// Whether `make` returns such names; those of Syncthing itself are others.
    static func isOwn(_ name: String) -> Bool {
        guard name.hasPrefix(prefix), name.hasSuffix(suffix) else { return false }
        let parts = name.dropFirst(prefix.count).dropLast(suffix.count).split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 2 && StorageName.mayBePart(String(parts[0])) && StorageName.mayBePart(String(parts[1]))
            && parts[1].utf8.count == 32
    }
}
#endif
