// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Where a store, or a copy of one, is or would be: a directory that exists, without symbolic links, and a name in it.
package struct FileLocation: Equatable, Sendable {
    package let directory: String
    package let name: String

    package var path: String { directory == "/" ? "/" + name : directory + "/" + name }

    /// Splits an absolute path into directory and name.
    package static func split(_ path: String) throws(KeychainFailure) -> (directory: String, name: String) {
        let (directory, name) = try parentAndName(of: path)
        guard !name.isEmpty, name != ".", name != ".." else {
            throw KeychainFailure(.notAvailable, "the path must end in a file's name")
        }
        return (directory, name)
    }

    /// The directory that an absolute path is in; of the root, the root.
    package static func parent(of path: String) throws(KeychainFailure) -> String { try parentAndName(of: path).parent }

    private static func parentAndName(of path: String) throws(KeychainFailure) -> (parent: String, name: String) {
        guard path.hasPrefix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/") else {
            throw KeychainFailure(.notAvailable, "the path must be absolute")
        }
        let parent = path[..<slash]
        return (parent.isEmpty ? "/" : String(parent), String(path[path.index(after: slash)...]))
    }

    /// Nil when the directory does not exist.
    package init?(_ path: String) throws(KeychainFailure) {
        let (directory, name) = try Self.split(path)
        do throws(POSIX.SystemError) {
            self.directory = try POSIX.resolvedPath(of: directory)
            self.name = name
        } catch .noEntry {
            try Self.refuseDanglingLink(above: directory)
            return nil
        } catch {
            throw KeychainFailure(.notAvailable, "cannot look into \(directory): \(error.message)")
        }
    }

    /// What a link leads to may only be away for now, such as a disk that is not mounted: then nobody can say that there is no store.
    private static func refuseDanglingLink(above directory: String) throws(KeychainFailure) {
        var path = directory
        while path != "/" {
            guard let facts = try POSIX.factsIfPresent(of: path) else {
                path = try parent(of: path)
                continue
            }
            guard facts.kind == .symbolicLink, (try? POSIX.resolvedPath(of: path)) == nil else { return }
            throw KeychainFailure(.notAvailable, "\(path) is a symbolic link that leads nowhere; is a disk not mounted?", path: path)
        }
    }
}

/// Directories that only their owner can use, made so that they survive a power cut.
package enum PrivateDirectory {
    /// Makes what is missing of the directory, from the top.
    ///
    /// Each new name is flushed before something is put below it.
    ///
    /// Throws `.readOnly` where nothing can be written, `.notAvailable` when the disk is full.
    package static func make(_ directory: String) throws(KeychainFailure) {
        guard directory != "/" else { return }
        let parent = try FileLocation.parent(of: directory)
        if try POSIX.factsIfPresent(of: directory) == nil {
            try make(parent)
            do throws(POSIX.SystemError) {
                try POSIX.makeDirectory(directory)
            } catch .exists {
                // Another process was faster.
            } catch {
                throw failure(error, directory)
            }
        }
        // Also for a directory that was there: another process may have made it a moment ago and not have come this far.
        do throws(POSIX.SystemError) {
            try POSIX.flush(POSIX.resolvedPath(of: parent))
        } catch  where error.isPermissionError {
            // Who may not look into the parent has made nothing there.
        } catch {
            throw failure(error, directory)
        }
    }

    /// What an error number means to whoever wanted to put something into a directory.
    package static func failure(_ error: POSIX.SystemError, _ directory: String) -> KeychainFailure {
        if error.isOutOfSpace {
            return KeychainFailure(.notAvailable, "the disk is full: nothing was made in \(directory)", path: directory, cause: .diskFull)
        }
        let status: KeychainStatus = error.isPermissionError ? .readOnly : error.isIOError ? .inputOutput : .notAvailable
        return KeychainFailure(status, "nothing can be made in \(directory): \(error.message)", path: directory)
    }
}
