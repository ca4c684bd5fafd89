// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainSystem

/// How an object gets its name: complete and flushed, in one step, without replacing another file.
///
/// 1. A file without a name is written, flushed, and linked. If the process is killed, nothing is left of it.
/// 2. Where that is impossible, for example on FAT and most network file systems: a temporary file, and a rename that does not replace.
/// 3. Where that is impossible too: a plain rename. Two devices that create one name at the same moment write the same bytes, because a
///    name contains the hash of the content.
///
/// A network file system repeats a request whose answer was lost, and then reports an error although the first one succeeded. So after
/// every error of a link or rename, what has the name decides.
extension FolderObjects {
    /// What a name stands for, compared with the bytes of an object.
    private enum Presence { case absent, equal, different }

    func create(_ name: String, _ bytes: [UInt8]) throws(SyncStorageError) -> SyncCreation {
        try StorageName.requireObject(name)
        let (directories, file) = split(name)
        let directory = try openMaking(directories)
        let path = root + "/" + name
        if try isThere(file, bytes, in: directory, path) { return .alreadyThere }
        if options.hasUnnamedFiles, let outcome = try createUnnamed(file, bytes, in: directory, path) { return outcome }
        return try createNamed(file, bytes, in: directory, path)
    }

    /// Opens a directory below the root, and creates what is missing.
    private func openMaking(_ parts: [Substring]) throws(SyncStorageError) -> OpenDirectory {
        var directory = try openRoot()
        var path = root
        for part in parts {
            path += "/" + part
            do throws(Errno) {
                directory = try opened(String(part), in: directory)
            } catch .notDirectory {
                throw SyncStorageError(.failed, "\(path) is not a directory, so no object can be created in it")
            } catch {
                throw failure(error, "create", path)
            }
        }
        return directory
    }

    private func opened(_ name: String, in parent: OpenDirectory) throws(Errno) -> OpenDirectory {
        do throws(Errno) {
            return try OpenDirectory(name, in: parent)
        } catch .notFound {
            _ = try parent.makeDirectory(name)
            // Also if another process was faster, because it may not have flushed the name yet.
            try parent.flush()
            return try OpenDirectory(name, in: parent)
        }
    }

    // MARK: Comparison

    /// Whether the object is there already, durably.
    ///
    /// Throws `.failed` if something else has its name.
    private func isThere(
        _ file: String, _ bytes: [UInt8], in directory: OpenDirectory, _ path: String
    ) throws(SyncStorageError) -> Bool {
        let presence: Presence
        do throws(Errno) {
            presence = try self.presence(of: file, bytes, in: directory)
            if presence == .equal {
                // Another program may have written it, and this one may have failed to flush it.
                let opened = try directory.open(file)
                try opened.descriptor.flush()
                try directory.flush()
            }
        } catch {
            throw failure(error, "create", path)
        }
        guard presence != .different else {
            throw SyncStorageError(.failed, "\(path) has another content than this device gives it: it is damaged or foreign")
        }
        return presence == .equal
    }

    private func presence(of file: String, _ bytes: [UInt8], in directory: OpenDirectory) throws(Errno) -> Presence {
        for _ in 0..<10 {
            guard let status = try directory.status(of: file) else { return .absent }
            guard status.kind == .regularFile, status.byteCount == bytes.count else { return .different }
            // Nil: it was removed or replaced meanwhile.
            guard let found = try contents(of: file, in: directory, atMost: bytes.count) else { continue }
            return found == bytes ? .equal : .different
        }
        return .different
    }

    // MARK: Creation

    /// Returns nil if the file system has no files without names, or cannot link them.
    private func createUnnamed(
        _ file: String, _ bytes: [UInt8], in directory: OpenDirectory, _ path: String
    ) throws(SyncStorageError) -> SyncCreation? {
        guard let unnamed = try? directory.createUnnamed() else { return nil }
        do throws(Errno) {
            try unnamed.descriptor.writeAll(bytes)
            try unnamed.descriptor.flush()
        } catch {
            throw failure(error, "create", path)
        }
        do throws(Errno) {
            try directory.link(unnamed, as: file)
        } catch {
            return try isThere(file, bytes, in: directory, path) ? .alreadyThere : nil
        }
        do throws(Errno) { try directory.flush() } catch { throw failure(error, "create", path) }
        return .created
    }

    private func createNamed(
        _ file: String, _ bytes: [UInt8], in directory: OpenDirectory, _ path: String
    ) throws(SyncStorageError) -> SyncCreation {
        let temporary = TemporaryName.make(for: file)
        // Best effort; after the rename, there is nothing to remove.
        defer { try? directory.unlink(temporary) }
        do throws(Errno) {
            let opened = try directory.create(temporary)
            try opened.descriptor.writeAll(bytes)
            try opened.descriptor.flush()
            // Network file systems report some errors only here.
            try opened.close()
        } catch {
            throw failure(error, "create", path)
        }
        do throws(Errno) {
            try publish(temporary, as: file, in: directory)
        } catch {
            guard try isThere(file, bytes, in: directory, path) else { throw failure(error, "create", path) }
            return .alreadyThere
        }
        do throws(Errno) { try directory.flush() } catch { throw failure(error, "create", path) }
        return .created
    }

    private func publish(_ temporary: String, as file: String, in directory: OpenDirectory) throws(Errno) {
        do throws(Errno) {
            guard options.renamesWithoutReplacing else { throw .invalidArgument }
            try directory.renameWithoutReplacing(temporary, to: file)
        } catch  where [.invalidArgument, .notImplemented, .notSupported].contains(error) {
            guard try directory.status(of: file) == nil else { throw .exists }
            try directory.rename(temporary, to: file)
        }
    }
}
#endif
