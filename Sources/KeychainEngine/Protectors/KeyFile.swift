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
    /// The file that has opened the store, if it is not the one named as the key file.
    private let usedPath: String?

    package init(directory: String, storePath: String) {
        self.init(directory: directory, storePath: storePath, usedPath: nil)
    }

    private init(directory: String, storePath: String, usedPath: String?) {
        self.directory = directory
        self.storePath = storePath
        self.usedPath = usedPath
    }

    package var kind: DeviceProtectorKind { .keyFile }

    package func location(for storeID: StoreID) -> String { usedPath ?? path(for: storeID) }

    package func path(for storeID: StoreID) -> String { "\(directory)/\(storeID.hexadecimal).key" }

    private func newPath(for storeID: StoreID) -> String { path(for: storeID) + ".new" }

    /// The secret in the key file, or in the provisional one if there is no other.
    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        if let usedPath, FileSystem.exists(usedPath) { return try secret(atPath: usedPath, of: storeID) }
        let path = path(for: storeID)
        if !FileSystem.exists(path), FileSystem.exists(newPath(for: storeID)) {
            do throws(KeychainFailure) {
                return try secret(atPath: newPath(for: storeID), of: storeID)
            } catch {
                // The creating process may have renamed it in the meantime.
                guard FileSystem.exists(path) else { throw error }
            }
        }
        return try secret(atPath: path, of: storeID)
    }

    private func secret(atPath path: String, of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        do throws(KeychainFailure) {
            return try contents(atPath: path).secret(of: storeID)
        } catch {
            throw error.located(at: path, subject: .keyFile)
        }
    }

    /// Opens the store with the secret in the key file, or in another file of the same store.
    ///
    /// Another file has the right secret if a move to this protector was interrupted, or if an older or newer copy of the store was put
    /// back. It is used where it is: many processes may open the store while one moves it, so only the move renames or removes files.
    ///
    /// Throws the error of the key file if no file opens the store.
    package func opening<Result>(
        _ storeID: StoreID, _ open: (borrowing SecretBytes) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> (Result, KeyFile) {
        let (result, path) = try openingWithAnyFile(of: storeID, open)
        if let path { return (result, KeyFile(directory: directory, storePath: storePath, usedPath: path)) }
        settle(storeID)
        return (result, self)
    }

    /// As `opening`, for a copy of the store, which does not name a provisional key file.
    func openingCopy<Result>(
        of storeID: StoreID, _ open: (borrowing SecretBytes) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try openingWithAnyFile(of: storeID, open).0
    }

    /// Returns the path of the file that has the secret if it is not the key file.
    private func openingWithAnyFile<Result>(
        of storeID: StoreID, _ open: (borrowing SecretBytes) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> (Result, otherPath: String?) {
        do throws(KeychainFailure) {
            return (try open(try deviceSecret(for: storeID)), nil)
        } catch {
            for path in otherPaths(for: storeID) {
                guard let secret = try? SharedSecretBytes(secret(atPath: path, of: storeID)), let result = try? open(secret.secret) else {
                    continue
                }
                return (result, path)
            }
            // The provisional file of a move that failed opens nothing. What is missing is the key file.
            if !FileSystem.exists(path(for: storeID)) { _ = try secret(atPath: path(for: storeID), of: storeID) }
            throw error
        }
    }

    /// Completes a creation that has published a store and has not named its key file yet.
    private func settle(_ storeID: StoreID) {
        let (path, newPath) = (path(for: storeID), newPath(for: storeID))
        guard !FileSystem.exists(path), FileSystem.exists(newPath) else { return }
        // Flush the store's name first: after a power cut, a final key file name must not exist without its store.
        guard (try? PrivateFile.flushDirectory(of: storePath, subject: "the keychain")) != nil else { return }
        // A rename, which unlike a link and an unlink cannot remove a file that a move gives this name meanwhile.
        guard (try? FileSystem.renameWithoutReplacing(newPath, to: path)) != nil else { return }
        try? PrivateFile.flushDirectory(of: path, subject: Self.subject)
    }

    /// The provisional key file and those that were set aside, if the key file does not open the store.
    private func otherPaths(for storeID: StoreID) -> [String] {
        let prefix = storeID.hexadecimal + ".key."
        return ((try? FileSystem.names(in: directory)) ?? []).filter { $0.hasPrefix(prefix) }.sorted().map { "\(directory)/\($0)" }
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

    /// Gives the key file its final name after its store was published, or moved to it.
    ///
    /// A file that has this name is of an earlier state of the store, and is set aside.
    package func confirm(for storeID: StoreID) throws(KeychainFailure) {
        let (path, newPath) = (path(for: storeID), newPath(for: storeID))
        // A reader of the new store may rename the provisional file at any time. So the file to set aside is the one that was there while the
        // provisional one had its name.
        let earlier = try? FileStatus(of: path).identity
        guard let new = try? FileStatus(of: newPath).identity else { return }
        if let earlier, earlier != new, (try? FileStatus(of: path).identity) == earlier { try setAside(for: storeID) }
        do throws(KeychainFailure) {
            try PrivateFile.renameWithoutReplacing(newPath, to: path, subject: Self.subject)
        } catch {
            guard !FileSystem.exists(newPath) || FileSystem.exists(path) else { throw error.located(at: path, subject: .keyFile) }
        }
    }

    /// Removes the provisional key file of a store that was not published: the secret never protected anything.
    package func discard(for storeID: StoreID) {
        FileSystem.tryUnlink(newPath(for: storeID))
    }

    /// Writes the secret of a store that is about to move to this protector.
    ///
    /// Call `confirm` after the move. The key file is not touched before, because the move may fail; then the provisional file opens nothing.
    ///
    /// Call it only while no other process can move the store. The provisional file of an earlier attempt is set aside.
    package func prepareMove(_ secret: borrowing SecretBytes, for storeID: StoreID) throws(KeychainFailure) {
        let newPath = newPath(for: storeID)
        // An interrupted rename leaves a second name of the key file. Another provisional file may be the one that opens the store.
        if FileSystem.isSameFile(newPath, path(for: storeID)) { discard(for: storeID) } else { try setAside(newPath, for: storeID) }
        try prepare(secret, for: storeID)
    }

    /// Keeps the key file under another name; succeeds if there is none.
    ///
    /// It may open another copy of the store.
    package func setAside(for storeID: StoreID) throws(KeychainFailure) { try setAside(path(for: storeID), for: storeID) }

    private func setAside(_ present: String, for storeID: StoreID) throws(KeychainFailure) {
        guard FileSystem.exists(present) else { return }
        let path = path(for: storeID)
        for number in 1...99 {
            let name = "\(path).unusable\(number)"
            guard !FileSystem.exists(name) else { continue }
            do throws(KeychainFailure) {
                return try PrivateFile.renameWithoutReplacing(present, to: name, subject: Self.subject)
            } catch {
                throw error.located(at: name, subject: .keyFile)
            }
        }
        throw KeychainFailure(
            .notAvailable, "too many unusable key files beside \(path): move them away", path: path, subject: .keyFile)
    }

    /// Removes the key file of a store that has another protector now, and the provisional file of an interrupted move.
    ///
    /// Call it only while no other process can move the store.
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
    package func orphanPath() throws(KeychainFailure) -> String? { try orphanNames().first.map { "\(directory)/\($0)" } }

    /// Returns the paths of all such key files, and `unusable`, which is not read, if it is in the directory.
    func orphanPaths(including unusable: String?) throws(KeychainFailure) -> [String] {
        try orphanNames(including: unusable).map { "\(directory)/\($0)" }
    }

    /// Returns the identifiers of the stores that have such key files.
    func orphanIDs() throws(KeychainFailure) -> [StoreID] {
        try orphanNames().compactMap { StoreID(hexadecimal: $0.prefix { $0 != "." }) }
    }

    private func orphanNames(including unusable: String? = nil) throws(KeychainFailure) -> [String] {
        let movesWithStore = directory.hasPrefix(FileSystem.parent(of: storePath) + "/")
        let names: [String]
        do throws(Errno) {
            names = try FileSystem.names(in: directory)
        } catch .notFound {
            return []
        } catch {
            throw PrivateFile.readFailure(error, "the directory of key files", directory).located(at: directory, subject: .keyFile)
        }
        var found: [String] = []
        for name in names where name.hasSuffix(".key") {
            guard "\(directory)/\(name)" != unusable else {
                found.append(name)
                continue
            }
            do throws(KeychainFailure) {
                let contents = try contents(atPath: "\(directory)/\(name)")
                if contents.isFor(storePath: storePath) || movesWithStore && contents.isForMissingStore { found.append(name) }
            } catch {
                // Like a file with other content, it is no key file and names no store.
                guard error.cause == .malformed || error.cause == .notRegularFile else { throw error }
            }
        }
        return found
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
                    throw failure("is not a key file: put a copy of it back, or use the recovery key if one was made", .malformed)
                }
                guard unsafe bytes[8] == KeyFile.version else {
                    throw failure("was written by a newer version of this library", .newerVersion)
                }
                guard unsafe bytes[9..<25].elementsEqual(storeID.bytes) else {
                    throw failure(
                        "belongs to another store: put the right file there, or use the recovery key if one was made", .otherStore)
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
