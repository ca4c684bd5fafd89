// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A device secret in a file of the user, apart from the store.
///
/// The file contains the store's identifier and is never overwritten.
///
/// Layout: "KCDEVKEY" ‖ version 1 ‖ store id (16) ‖ device secret (32) ‖ path byte count (2, little-endian) ‖ the store's path.
/// The path distinguishes a key file whose store is gone from the key file of a store elsewhere.
///
/// A new key file is named `<id>.key.new` until its store is published, and then `<id>.key`. A provisional file that a crash leaves
/// behind is therefore never mistaken for the key of a lost store.
package struct KeyFile: DeviceProtector {
    private static let magic = Array("KCDEVKEY".utf8)
    private static let version: UInt8 = 1
    private static let fixedByteCount = 8 + 1 + 16 + DeviceSecret.byteCount + 2
    private static let byteLimit = fixedByteCount + 4_096
    private static let subject = "the key file"

    private let directory: String
    private let storePath: String

    package init(directory: String, storePath: String) {
        self.directory = directory
        self.storePath = storePath
    }

    package var kind: DeviceProtectorKind { .keyFile }

    package func location(for storeID: StoreID) -> String { path(for: storeID) }

    package func path(for storeID: StoreID) -> String { "\(directory)/\(storeID.hexadecimal).key" }

    private func newPath(for storeID: StoreID) -> String { path(for: storeID) + ".new" }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        let path = path(for: storeID)
        do throws(KeychainFailure) {
            return try storedSecret(for: storeID, path)
        } catch {
            throw error.located(at: path, subject: .keyFile)
        }
    }

    private func storedSecret(for storeID: StoreID, _ path: String) throws(KeychainFailure) -> SecretBytes {
        if !FileSystem.exists(path), FileSystem.exists(newPath(for: storeID)) {
            do throws(KeychainFailure) {
                // The creating process died between publishing the store and renaming the key file. Rename it now.
                let secret = try contents(atPath: newPath(for: storeID)).secret(of: storeID)
                // Flush the store's name first: after a power cut, a final key file name must not exist without its store.
                if (try? PrivateFile.flushDirectory(of: storePath, subject: "the keychain")) != nil {
                    try? PrivateFile.renameWithoutReplacing(newPath(for: storeID), to: path, subject: Self.subject)
                }
                return secret
            } catch {
                // The creating process may have renamed it in the meantime.
                guard FileSystem.exists(path) else { throw error }
            }
        }
        let secret = try contents(atPath: path).secret(of: storeID)
        // An interrupted rename leaves a second name of the file.
        try? PrivateFile.removeSecondName(newPath(for: storeID), of: path, subject: Self.subject)
        return secret
    }

    /// Creates the directory of key files, if necessary.
    func createDirectory() throws(KeychainFailure) {
        do throws(KeychainFailure) { try PrivateDirectory.make(directory) } catch { throw error.located(at: directory, subject: .keyFile) }
    }

    /// Writes the secret of a store that is about to be published, under the provisional name.
    ///
    /// Call `confirm` or `discard` afterwards.
    package func prepare(_ secret: borrowing SecretBytes, for storeID: StoreID) throws(KeychainFailure) {
        let record = try Self.encode(secret, storeID: storeID, storePath: storePath)
        let path = newPath(for: storeID)
        do throws(KeychainFailure) {
            try PrivateFile.create(path, contents: record, subject: Self.subject)
            try PrivateFile.flushDirectory(of: path, subject: Self.subject)
        } catch {
            throw error.located(at: path, subject: .keyFile)
        }
    }

    /// Gives the key file its final name after its store was published.
    package func confirm(for storeID: StoreID) throws(KeychainFailure) {
        guard !FileSystem.exists(path(for: storeID)) else { return }
        do throws(KeychainFailure) {
            try PrivateFile.renameWithoutReplacing(newPath(for: storeID), to: path(for: storeID), subject: Self.subject)
        } catch {
            // A reader of the new store may have renamed it first.
            guard FileSystem.exists(path(for: storeID)) else { throw error.located(at: path(for: storeID), subject: .keyFile) }
        }
    }

    /// Removes the provisional key file of a store that was not published: the secret never protected anything.
    package func discard(for storeID: StoreID) {
        FileSystem.tryUnlink(newPath(for: storeID))
    }

    /// Writes the secret of a store that is about to move to this protector.
    ///
    /// Call `confirm` after the move.
    ///
    /// Call it only while no other process can move the store. Files of an earlier attempt are removed: they open nothing.
    /// With `keepsUnusableFile` the store's protector is a key file that is unusable; it is kept under another name.
    package func prepareMove(_ secret: borrowing SecretBytes, for storeID: StoreID, keepsUnusableFile: Bool) throws(KeychainFailure) {
        discard(for: storeID)
        if FileSystem.exists(path(for: storeID)) {
            if keepsUnusableFile { try renameUnusable(storeID) } else { try remove(for: storeID) }
        }
        try prepare(secret, for: storeID)
    }

    private func renameUnusable(_ storeID: StoreID) throws(KeychainFailure) {
        let path = path(for: storeID)
        for number in 1...99 {
            let name = "\(path).unusable\(number)"
            guard !FileSystem.exists(name) else { continue }
            do throws(KeychainFailure) {
                return try PrivateFile.renameWithoutReplacing(path, to: name, subject: Self.subject)
            } catch {
                throw error.located(at: name, subject: .keyFile)
            }
        }
        throw KeychainFailure(
            .notAvailable, "too many unusable key files beside \(path): move them away", path: path, subject: .keyFile)
    }

    /// Removes the key file of a store that has another protector now, and the provisional file of an interrupted move.
    ///
    /// Succeeds if there is none.
    package func remove(for storeID: StoreID) throws(KeychainFailure) {
        discard(for: storeID)
        let path = path(for: storeID)
        guard FileSystem.exists(path) else { return }
        do throws(KeychainFailure) {
            try PrivateFile.remove(path, subject: Self.subject)
        } catch {
            throw error.located(at: path, subject: .keyFile)
        }
    }

    /// Returns the path of a key file that remained although the store has another protector; nil if there is none.
    package func leftoverPath(of storeID: StoreID) -> String? {
        [path(for: storeID), newPath(for: storeID)].first(where: FileSystem.exists)
    }

    /// Returns the path of the key file of a store that was at `storePath` and is gone; nil if there is none.
    ///
    /// A directory of key files within the store's directory moves with it. So a key file there also counts if the store for which it was
    /// made is at the path of that time no longer.
    ///
    /// Throws `.notAvailable` if the directory or a key file in it cannot be read.
    package func orphanPath() throws(KeychainFailure) -> String? {
        let movesWithStore = directory.hasPrefix(FileSystem.parent(of: storePath) + "/")
        let names: [String]
        do throws(Errno) {
            names = try FileSystem.names(in: directory)
        } catch .notFound {
            return nil
        } catch {
            throw PrivateFile.readFailure(error, "the directory of key files", directory).located(at: directory, subject: .keyFile)
        }
        for name in names {
            let path = "\(directory)/\(name)"
            guard name.hasSuffix(".key") else { continue }
            let contents = try contents(atPath: path)
            if contents.isFor(storePath: storePath) || movesWithStore && contents.isForMissingStore { return path }
        }
        return nil
    }

    private func contents(atPath path: String) throws(KeychainFailure) -> Contents {
        do throws(KeychainFailure) {
            return Contents(bytes: try PrivateFile.read(path, byteLimit: Self.byteLimit, subject: Self.subject), path: path)
        } catch {
            throw error.located(at: path, subject: .keyFile)
        }
    }

    private static func encode(
        _ secret: borrowing SecretBytes, storeID: StoreID, storePath: String
    ) throws(KeychainFailure) -> SecretBytes {
        let storePathBytes = Array(storePath.utf8)
        guard storePathBytes.count <= byteLimit - fixedByteCount else {
            throw KeychainFailure(.notAvailable, "the path of the keychain is too long", path: storePath, subject: .store)
        }
        var head = magic
        head.append(version)
        head.append(contentsOf: storeID.bytes)
        var tail: [UInt8] = []
        tail.append(littleEndian: UInt16(storePathBytes.count))
        tail.append(contentsOf: storePathBytes)
        // Three copies into a region whose size is the sum of the three.
        return try unsafe secret.withBytes { (secretBytes) throws(KeychainFailure) in
            try unsafe SecretBytes(byteCount: head.count + secretBytes.count + tail.count) { buffer in
                unsafe buffer.copyBytes(from: head)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[head.count...]).copyMemory(from: secretBytes)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[(head.count + secretBytes.count)...]).copyBytes(from: tail)
            }
        }
    }

    /// The bytes of a key file, in key memory.
    private struct Contents: ~Copyable {
        let bytes: SecretBytes
        let path: String

        func secret(of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
            // Not a method: a closure cannot capture a value that cannot be copied.
            let failure = { [path] (reason: String, cause: KeychainFailure.Cause) in
                KeychainFailure(.notAvailable, "\(path) \(reason)", path: path, subject: .keyFile, cause: cause)
            }
            // Every offset is below the byte count that is checked first.
            return try unsafe bytes.withBytes { (bytes) throws(KeychainFailure) in
                guard bytes.count >= KeyFile.fixedByteCount, unsafe bytes.prefix(8).elementsEqual(KeyFile.magic) else {
                    throw failure("is not a key file", .malformed)
                }
                guard unsafe bytes[8] == KeyFile.version else {
                    throw failure("was written by a newer version of this library", .newerVersion)
                }
                guard unsafe bytes[9..<25].elementsEqual(storeID.bytes) else {
                    throw failure("belongs to another store", .otherStore)
                }
                return try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[25..<57]))
            }
        }

        /// Whether the key file was created for the store at that path, also through symbolic links.
        func isFor(storePath: String) -> Bool {
            guard let recordedPath else { return false }
            return recordedPath.hasSameBytes(as: storePath)
                || FileSystem.resolveExistingPart(of: recordedPath).hasSameBytes(as: FileSystem.resolveExistingPart(of: storePath))
        }

        /// Whether there is no file at the path of the store for which the key file was created.
        var isForMissingStore: Bool { recordedPath.map { !FileSystem.exists($0) } ?? false }

        /// The store's path; nil if this is not a key file.
        private var recordedPath: String? {
            unsafe bytes.withBytes { bytes in
                guard bytes.count >= KeyFile.fixedByteCount, unsafe bytes.prefix(8).elementsEqual(KeyFile.magic) else { return nil }
                return unsafe String(decoding: bytes[KeyFile.fixedByteCount...], as: UTF8.self)
            }
        }
    }
}
