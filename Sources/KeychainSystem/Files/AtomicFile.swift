// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A file that is published atomically: written without a name or under a random temporary one, flushed, and then given its own name.
package struct AtomicFile {
    private let location: FileLocation
    private let acceptsFixedMode: Bool
    private let supportsHardLinks: Bool
    private let companionSuffixes: [String]

    /// A file in any directory, also in one that others can use or on a memory stick.
    ///
    /// So the content must be encrypted, or the directory trusted. The mode is 0600 where the file system has modes.
    /// `supportsHardLinks: false` is for tests: the file system then appears to have no hard links. Throws `.notAvailable` unless `path`
    /// is absolute and its directory exists.
    package init(_ path: String, supportsHardLinks: Bool = true, companionSuffixes: [String] = []) throws(KeychainFailure) {
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) does not exist", remedy: .writeElsewhere)
        }
        self.init(location, acceptsFixedMode: true, supportsHardLinks: supportsHardLinks, companionSuffixes: companionSuffixes)
    }

    /// A file in a directory that the caller has checked.
    ///
    /// `companionSuffixes` are the suffixes of files that `publish` may leave beside the temporary file, such as SQLite's.
    package init(_ location: FileLocation, acceptsFixedMode: Bool, supportsHardLinks: Bool = true, companionSuffixes: [String] = []) {
        self.location = location
        self.acceptsFixedMode = acceptsFixedMode
        self.supportsHardLinks = supportsHardLinks
        self.companionSuffixes = companionSuffixes
    }

    /// The path without symbolic links.
    package var path: String { location.path }
    package var directory: String { location.directory }

    /// Publishes a file whose content `fill` writes into an empty file at a temporary path.
    ///
    /// An existing file is replaced only if `replacingExisting`; otherwise it stays, and the result is `.alreadyExists`. The file is
    /// durable when this returns. When this throws, the temporary file is gone.
    package func publish(
        replacingExisting: Bool = false, _ fill: (_ temporaryPath: String) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> CreationOutcome {
        guard try isAvailable(replacingExisting) else { return .alreadyExists }
        let temporary = newTemporaryPath()
        try addingLocation { () throws(Errno) in try FileSystem.createPrivateFile(temporary, acceptsFixedMode: acceptsFixedMode) }
        defer { for suffix in [""] + companionSuffixes { FileSystem.tryUnlink(temporary + suffix) } }
        try fill(temporary)
        try addingLocation { () throws(Errno) in try FileSystem.flush(temporary) }
        guard try moveIntoPlace(from: temporary, replacingExisting: replacingExisting) else { return .alreadyExists }
        FileSystem.tryUnlink(temporary)
        try addingLocation { () throws(Errno) in try FileSystem.flush(location.directory) }
        return .created
    }

    /// Publishes a file whose content `body` writes through a writer.
    ///
    /// Where the file system can, the file has no name before it is complete: a secret does not remain if the process is killed.
    package func write(
        replacingExisting: Bool = false, _ body: (Writer) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> CreationOutcome {
        guard supportsHardLinks, let unnamed = try? Writer(OpenFile(unnamedIn: location.directory), in: location.directory) else {
            return try publish(replacingExisting: replacingExisting) { temporary throws(KeychainFailure) in
                let writer = try Writer(appendingTo: temporary, in: location.directory)
                try body(writer)
                try writer.flush()
            }
        }
        guard try isAvailable(replacingExisting) else { return .alreadyExists }
        try body(unnamed)
        try unnamed.flush()
        do throws(Errno) {
            try unnamed.file.link(as: path)
        } catch .exists {
            guard replacingExisting else { return .alreadyExists }
            let temporary = newTemporaryPath()
            try addingLocation { () throws(Errno) in try unnamed.file.link(as: temporary) }
            defer { FileSystem.tryUnlink(temporary) }
            guard try moveIntoPlace(from: temporary, replacingExisting: true) else { return .alreadyExists }
        } catch {
            throw failure(error)
        }
        try addingLocation { () throws(Errno) in try FileSystem.flush(location.directory) }
        return .created
    }

    /// Returns false if the name is taken by a file that may not be replaced.
    private func isAvailable(_ replacingExisting: Bool) throws(KeychainFailure) -> Bool {
        guard let status = try FileStatus.ifPresent(at: path) else { return true }
        guard replacingExisting else { return false }
        guard status.kind == .regularFile else {
            throw KeychainFailure(.notAvailable, "\(path) is not a regular file; choose another name")
        }
        return true
    }

    /// A random path, which cannot be guessed and cannot be left over from another attempt.
    private func newTemporaryPath() -> String {
        location.directory + "/." + location.name + "." + Identifier128.random().hexadecimal + ".new"
    }

    /// Returns false if the name is taken.
    private func moveIntoPlace(from temporary: String, replacingExisting: Bool) throws(KeychainFailure) -> Bool {
        do throws(Errno) {
            if replacingExisting { try FileSystem.rename(temporary, to: path) } else { try link(temporary) }
            return true
        } catch .exists {
            return false
        } catch {
            throw failure(error)
        }
    }

    /// Gives the file its name with a link, which never replaces a file, as a rename would.
    private func link(_ temporary: String) throws(Errno) {
        do throws(Errno) {
            guard supportsHardLinks else { throw .notPermitted }
            try FileSystem.link(temporary, as: path)
        } catch  where error == .notPermitted || error == .notSupported {
            // Without hard links, an empty file reserves the name, if it is free, and the rename replaces only that file.
            try FileSystem.createPrivateFile(path, acceptsFixedMode: acceptsFixedMode)
            do throws(Errno) {
                try FileSystem.rename(temporary, to: path)
            } catch {
                FileSystem.tryUnlink(path)
                throw error
            }
        }
    }

    private func addingLocation(_ body: () throws(Errno) -> Void) throws(KeychainFailure) {
        do throws(Errno) { try body() } catch { throw failure(error) }
    }

    /// A file that may be in any directory can be written to another one.
    private func failure(_ error: Errno) -> KeychainFailure {
        let failure = FileSystem.creationFailure(error, in: location.directory)
        return acceptsFixedMode ? failure.withRemedy(.writeElsewhere) : failure
    }

    /// Appends to the file that is not published yet.
    package final class Writer {
        fileprivate let file: OpenFile
        private let directory: String

        fileprivate init(_ file: consuming OpenFile, in directory: String) {
            self.file = file
            self.directory = directory
        }

        fileprivate convenience init(appendingTo path: String, in directory: String) throws(KeychainFailure) {
            do throws(Errno) {
                self.init(try OpenFile(path, .append), in: directory)
            } catch {
                throw Self.failure(error, directory)
            }
        }

        /// Writes all of the bytes.
        ///
        /// Throws `.notAvailable` if the disk is full, `.inputOutput` if it failed.
        package func append(_ bytes: some Collection<UInt8>) throws(KeychainFailure) {
            do throws(Errno) {
                try file.descriptor.writeAll(bytes)
            } catch {
                throw Self.failure(error, directory)
            }
        }

        /// Flushes through the descriptor that wrote, which reports every earlier error of writing.
        fileprivate func flush() throws(KeychainFailure) {
            do throws(Errno) {
                try file.descriptor.flush()
            } catch {
                throw Self.failure(error, directory)
            }
        }

        private static func failure(_ error: Errno, _ directory: String) -> KeychainFailure {
            FileSystem.creationFailure(error, in: directory).withRemedy(.writeElsewhere)
        }
    }
}

/// The result of an attempt to create a file.
package enum CreationOutcome: Equatable, Sendable {
    case created
    /// The file existed before, or another process created it first.
    case alreadyExists
}
