// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The place of a file that exists or is to be created: an existing directory, without symbolic links, and a name in it.
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

    /// The directory that an absolute path is in; the root for the root.
    package static func parent(of path: String) throws(KeychainFailure) -> String { try parentAndName(of: path).parent }

    static func parentAndName(of path: String) throws(KeychainFailure) -> (parent: String, name: String) {
        guard path.hasPrefix("/"), !path.utf8.contains(0), let slash = path.lastIndex(of: "/") else {
            throw KeychainFailure(.notAvailable, "the path must be absolute")
        }
        let parent = path[..<slash]
        return (parent.isEmpty ? "/" : String(parent), String(path[path.index(after: slash)...]))
    }

    /// Resolves the directory of an absolute path; nil if the directory does not exist.
    package init?(_ path: String) throws(KeychainFailure) {
        let (directory, name) = try Self.split(path)
        do throws(Errno) {
            self.directory = try FileSystem.resolve(directory)
            self.name = name
        } catch .notFound {
            try Self.refuseDanglingLink(above: directory)
            return nil
        } catch {
            throw KeychainFailure(.notAvailable, "cannot examine \(directory): \(error)\(FileSystem.denial(error, of: directory))")
        }
    }

    /// Throws `.notAvailable` if a symbolic link on the way is dangling.
    ///
    /// Its target may only be missing for now, such as a disk that is not mounted, so absence is not proved.
    private static func refuseDanglingLink(above directory: String) throws(KeychainFailure) {
        var path = directory
        while path != "/" {
            guard let status = try FileStatus.ifPresent(at: path) else {
                path = try parent(of: path)
                continue
            }
            guard status.kind == .symbolicLink, (try? FileSystem.resolve(path)) == nil else { return }
            throw KeychainFailure(
                .notAvailable, "\(path) is a dangling symbolic link; is a disk not mounted?", path: path, cause: .symbolicLink)
        }
    }
}
