// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Where a store is or would be: a directory that exists, without symbolic links, and a name in it.
struct StoreLocation: Equatable {
    let directory: String
    let name: String

    var path: String { directory == "/" ? "/" + name : directory + "/" + name }
    var walPath: String { path + "-wal" }

    /// Splits an absolute path into directory and name.
    static func split(_ path: String) throws(KeychainFailure) -> (directory: String, name: String) {
        guard path.hasPrefix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/") else {
            throw KeychainFailure(.notAvailable, "the store's path must be absolute")
        }
        let name = String(path[path.index(after: slash)...])
        guard !name.isEmpty, name != ".", name != ".." else {
            throw KeychainFailure(.notAvailable, "the store's path must end in a file's name")
        }
        let directory = path[..<slash]
        return (directory.isEmpty ? "/" : String(directory), name)
    }

    /// Nil when the directory does not exist.
    init?(_ path: String) throws(KeychainFailure) {
        let (directory, name) = try Self.split(path)
        do throws(POSIX.ErrorNumber) {
            self.directory = try POSIX.resolvedPath(of: directory)
            self.name = name
        } catch .noEntry {
            return nil
        } catch {
            throw KeychainFailure(.notAvailable, "cannot look into \(directory): \(error.message)")
        }
    }
}
