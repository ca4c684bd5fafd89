// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Where a store, or a copy of one, is or would be: a directory that exists, without symbolic links, and a name in it.
struct StoreLocation: Equatable {
    let directory: String
    let name: String

    var path: String { directory == "/" ? "/" + name : directory + "/" + name }
    var walPath: String { path + "-wal" }

    /// What SQLite puts behind a database's name for the files beside it.
    static let companionSuffixes = ["-wal", "-shm", "-journal"]

    /// Splits an absolute path into directory and name.
    static func split(_ path: String) throws(KeychainFailure) -> (directory: String, name: String) {
        let (directory, name) = try parentAndName(of: path)
        guard !name.isEmpty, name != ".", name != ".." else {
            throw KeychainFailure(.notAvailable, "the path must end in a file's name")
        }
        return (directory, name)
    }

    /// The directory that an absolute path is in; of the root, the root.
    static func parent(of path: String) throws(KeychainFailure) -> String { try parentAndName(of: path).parent }

    private static func parentAndName(of path: String) throws(KeychainFailure) -> (parent: String, name: String) {
        guard path.hasPrefix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/") else {
            throw KeychainFailure(.notAvailable, "the path must be absolute")
        }
        let parent = path[..<slash]
        return (parent.isEmpty ? "/" : String(parent), String(path[path.index(after: slash)...]))
    }

    /// Nil when the directory does not exist.
    init?(_ path: String) throws(KeychainFailure) {
        let (directory, name) = try Self.split(path)
        do throws(POSIX.ErrorNumber) {
            self.directory = try POSIX.resolvedPath(of: directory)
            self.name = name
        } catch .noEntry {
            try Self.refuseLinkToNowhere(above: directory)
            return nil
        } catch {
            throw KeychainFailure(.notAvailable, "cannot look into \(directory): \(error.message)")
        }
    }

    /// What a link leads to may only be away for now, such as a disk that is not mounted: then nobody can say that there is no store.
    private static func refuseLinkToNowhere(above directory: String) throws(KeychainFailure) {
        var path = directory
        while path != "/" {
            guard let facts = try StoreFile.facts(of: path) else {
                path = try parent(of: path)
                continue
            }
            guard facts.kind == .symbolicLink, (try? POSIX.resolvedPath(of: path)) == nil else { return }
            throw KeychainFailure(.notAvailable, "\(path) is a symbolic link that leads nowhere; is a disk not mounted?")
        }
    }
}
