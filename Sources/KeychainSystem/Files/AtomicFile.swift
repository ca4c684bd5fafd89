// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A file that comes into being whole or not at all: filled under a name nobody knows, flushed, and only then given its own.
package struct AtomicFile {
    private let location: FileLocation
    private let allowsFixedMode: Bool
    private let supportsHardLinks: Bool
    /// Suffixes of files that `fill` may leave beside the temporary file, such as SQLite's.
    private let companionSuffixes: [String]

    /// A file beside which nothing is checked: it may lie on a memory stick, and in a directory of others.
    ///
    /// So what is written must be sealed. Its mode is 0600 where files have modes. `supportsHardLinks: false` is for tests: as on a file
    /// system without hard links.
    ///
    /// Throws `.notAvailable` unless `path` is absolute and its directory exists.
    package init(_ path: String, supportsHardLinks: Bool = true, companionSuffixes: [String] = []) throws(KeychainFailure) {
        guard let location = try FileLocation(path) else {
            throw KeychainFailure(.notAvailable, "the directory of \(path) does not exist", remedy: .writeElsewhere)
        }
        self.init(location, allowsFixedMode: true, supportsHardLinks: supportsHardLinks, companionSuffixes: companionSuffixes)
    }

    package init(_ location: FileLocation, allowsFixedMode: Bool, supportsHardLinks: Bool = true, companionSuffixes: [String] = []) {
        self.location = location
        self.allowsFixedMode = allowsFixedMode
        self.supportsHardLinks = supportsHardLinks
        self.companionSuffixes = companionSuffixes
    }

    /// The path without symbolic links.
    package var path: String { location.path }
    package var directory: String { location.directory }

    /// Lets `fill` write the file that is at a temporary path, empty, and publishes it.
    ///
    /// A file that is there is replaced only if `replacingExisting`; else it stays, and `.alreadyThere` is the answer. Durable when
    /// this returns; when it throws, nothing of the temporary file is left.
    package func publish(
        replacingExisting: Bool = false, _ fill: (_ temporaryPath: String) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> CreationOutcome {
        if let facts = try POSIX.factsIfPresent(of: path) {
            guard replacingExisting else { return .alreadyThere }
            guard facts.kind == .regularFile else {
                throw KeychainFailure(.notAvailable, "\(path) is not a regular file; choose another name")
            }
        }
        // A name that nobody can guess or have left behind.
        let temporary = location.directory + "/." + location.name + "." + Identifier128.random().hexadecimal + ".new"
        try naming { () throws(POSIX.SystemError) in try POSIX.makeFile(temporary, allowsFixedMode: allowsFixedMode) }
        defer { for suffix in [""] + companionSuffixes { POSIX.removeFile(temporary + suffix) } }
        try fill(temporary)
        try naming { () throws(POSIX.SystemError) in try POSIX.flush(temporary) }
        guard try moveIntoPlace(to: temporary, replacingExisting: replacingExisting) else { return .alreadyThere }
        POSIX.removeFile(temporary)
        try naming { () throws(POSIX.SystemError) in try POSIX.flush(location.directory) }
        return .created
    }

    /// The same, with a writer instead of a path.
    package func write(
        replacingExisting: Bool = false, _ body: (AtomicFileWriter) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> CreationOutcome {
        try publish(replacingExisting: replacingExisting) { temporary throws(KeychainFailure) in
            let writer = try AtomicFileWriter(appendingTo: temporary, in: location.directory)
            try body(writer)
            try writer.flush()
        }
    }

    /// False: the name is taken.
    private func moveIntoPlace(to temporary: String, replacingExisting: Bool) throws(KeychainFailure) -> Bool {
        do throws(POSIX.SystemError) {
            if replacingExisting { try POSIX.rename(temporary, to: path) } else { try link(temporary) }
            return true
        } catch .exists {
            return false
        } catch {
            throw failure(error)
        }
    }

    /// Unlike a rename, a link never takes the place of what is there.
    private func link(_ temporary: String) throws(POSIX.SystemError) {
        do throws(POSIX.SystemError) {
            guard supportsHardLinks else { throw .notPermitted }
            try POSIX.link(temporary, as: path)
        } catch  where error == .notPermitted || error == .notSupported {
            // No links here: an empty file takes the name, if it is free, and the rename replaces nothing but that.
            try POSIX.makeFile(path, allowsFixedMode: allowsFixedMode)
            do throws(POSIX.SystemError) {
                try POSIX.rename(temporary, to: path)
            } catch {
                POSIX.removeFile(path)
                throw error
            }
        }
    }

    private func naming(_ body: () throws(POSIX.SystemError) -> Void) throws(KeychainFailure) {
        do throws(POSIX.SystemError) { try body() } catch { throw failure(error) }
    }

    /// A file that may lie anywhere can lie elsewhere.
    private func failure(_ error: POSIX.SystemError) -> KeychainFailure {
        let failure = PrivateDirectory.failure(error, location.directory)
        return allowsFixedMode ? failure.withRemedy(.writeElsewhere) : failure
    }
}

/// The result of an attempt to create a file.
package enum CreationOutcome: Equatable, Sendable {
    case created
    /// Somebody else was faster, or it was there before: open that one.
    case alreadyThere
}

/// Writes to the end of a file that may lie anywhere.
package final class AtomicFileWriter {
    private let descriptor: Int32
    private let directory: String

    package init(appendingTo path: String, in directory: String) throws(KeychainFailure) {
        do throws(POSIX.SystemError) {
            descriptor = try POSIX.openForAppending(path)
        } catch {
            throw PrivateDirectory.failure(error, directory).withRemedy(.writeElsewhere)
        }
        self.directory = directory
    }

    deinit { POSIX.closeDescriptor(descriptor) }

    /// Writes all of the bytes, or throws: `.notAvailable` when the disk is full, `.inputOutput` when it failed.
    package func append(_ bytes: [UInt8]) throws(KeychainFailure) {
        do throws(POSIX.SystemError) {
            try POSIX.write(bytes, to: descriptor)
        } catch {
            throw PrivateDirectory.failure(error, directory).withRemedy(.writeElsewhere)
        }
    }

    /// Through the descriptor that wrote: it hears of every error.
    package func flush() throws(KeychainFailure) {
        do throws(POSIX.SystemError) {
            try POSIX.flush(descriptor)
        } catch {
            throw PrivateDirectory.failure(error, directory).withRemedy(.writeElsewhere)
        }
    }
}
