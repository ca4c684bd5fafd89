// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// The file systems of a keychain's database and of its key file.
///
/// A container keeps what is on a volume and loses what is in its own layer. If only the database is on a volume, it is unreadable after the
/// container was created again.
package struct KeyPlacement: Sendable {
    /// A directory, which may not exist yet, and the file system that it is or would be on.
    package struct Place: Sendable {
        package let directory: String
        /// The name of the file system, such as "ext4"; nil if it cannot be determined.
        package let fileSystemName: String?
        /// Whether the content is lost at a restart or together with a container.
        package let isTemporary: Bool

        init(_ directory: String, _ fileSystem: FileSystemProbe) {
            self.directory = directory
            let existing = Self.nearestDirectory(of: directory)
            let temporaryName = fileSystem.temporaryFileSystemName(of: existing)
            isTemporary = temporaryName != nil
            fileSystemName = temporaryName ?? fileSystem.typeName(existing)
        }

        /// The directory itself, or the nearest one above it that exists.
        private static func nearestDirectory(of directory: String) -> String {
            var path = directory
            while path.hasPrefix("/"), path != "/", (try? FileStatus(of: path, followsLinks: true))?.kind != .directory {
                path = FileSystem.parent(of: path)
            }
            return path
        }

        var description: String { directory + (fileSystemName.map { " (\($0))" } ?? "") }
    }

    package let store: Place
    package let key: Place

    /// Whether the database remains when the key file is lost: an unreadable keychain.
    ///
    /// Both on temporary file systems is an intended use.
    package var losesKeyFirst: Bool { key.isTemporary && !store.isTemporary }

    /// Throws `.notAvailable` if `losesKeyFirst`.
    func requireEqualLifetimes() throws(KeychainFailure) {
        guard losesKeyFirst, let name = key.fileSystemName else { return }
        throw KeychainFailure(
            .notAvailable,
            "the keychain would be in \(store.description), but its key file in \(key.description), whose content is lost at a restart or "
                + "together with a container; nothing could be read afterwards",
            path: key.directory, subject: .keyFile, cause: .temporaryFileSystem(name: name), remedy: .useOneVolume)
    }
}

extension KeychainConfiguration {
    /// The file systems of the database and of the key file, determined now.
    var keyPlacement: KeyPlacement {
        KeyPlacement(
            store: .init(FileSystem.parent(of: storePath), storeOptions.fileSystem),
            key: .init(keyDirectory, storeOptions.fileSystem))
    }
}
