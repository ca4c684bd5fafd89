// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A device secret in a file of the user's, apart from the store.
///
/// It bears the store's id and is never overwritten.
///
/// Layout: "KCDEVKEY" ‖ version 1 ‖ store id (16) ‖ device secret (32) ‖ path byte count (2, little-endian) ‖ the store's path.
/// The path tells a key file whose store is gone from the key file of a store elsewhere.
///
/// A new key file is called `<id>.key.new` until its store is published, and only then `<id>.key`: what a crash in between
/// leaves never stands for a store that once held something.
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
        if !FileSystem.exists(path), FileSystem.exists(newPath(for: storeID)) {
            do throws(KeychainFailure) {
                // The store was published and its maker died before the last step; the store is there, so the step is due.
                let secret = try contents(atPath: newPath(for: storeID)).secret(of: storeID)
                // The store's name first: a power cut must not leave the final name of a key file whose store is not there.
                if (try? PrivateFile.flushDirectory(of: storePath, subject: "the keychain")) != nil {
                    try? PrivateFile.renameWithoutReplacing(newPath(for: storeID), to: path, subject: Self.subject)
                }
                return secret
            } catch {
                // Or its maker lives and has just taken the step.
                guard FileSystem.exists(path) else { throw error }
            }
        }
        let secret = try contents(atPath: path).secret(of: storeID)
        // The last step was cut off in its middle: the secret would stay behind under a name that nobody looks for.
        try? PrivateFile.removeSecondName(newPath(for: storeID), of: path, subject: Self.subject)
        return secret
    }

    /// Writes the secret of a store that is about to be published.
    ///
    /// Call `confirm` afterwards, or `discard`.
    package func prepare(_ secret: borrowing SecretBytes, for storeID: StoreID) throws(KeychainFailure) {
        let record = try Self.encode(secret, storeID: storeID, storePath: storePath)
        let path = newPath(for: storeID)
        try PrivateFile.create(path, contents: record, subject: Self.subject)
        try PrivateFile.flushDirectory(of: path, subject: Self.subject)
    }

    /// The store is published: the key file gets its name.
    package func confirm(for storeID: StoreID) throws(KeychainFailure) {
        guard !FileSystem.exists(path(for: storeID)) else { return }
        do throws(KeychainFailure) {
            try PrivateFile.renameWithoutReplacing(newPath(for: storeID), to: path(for: storeID), subject: Self.subject)
        } catch {
            // A reader of the new store may have taken this step for us.
            guard FileSystem.exists(path(for: storeID)) else { throw error }
        }
    }

    /// Another process published first: this secret never protected anything.
    package func discard(for storeID: StoreID) {
        FileSystem.tryUnlink(newPath(for: storeID))
    }

    /// Writes the secret of a store that is about to be moved to this protector; `confirm` it when it was.
    ///
    /// To be called while no other process can move the store. What an earlier attempt has left goes: it opens nothing. With
    /// `setsAside` the store's protector is a key file that is of no use; what stands under its name is kept under another.
    package func prepareMove(_ secret: borrowing SecretBytes, for storeID: StoreID, setsAside: Bool) throws(KeychainFailure) {
        discard(for: storeID)
        if FileSystem.exists(path(for: storeID)) {
            if setsAside { try setAside(storeID) } else { try remove(for: storeID) }
        }
        try prepare(secret, for: storeID)
    }

    private func setAside(_ storeID: StoreID) throws(KeychainFailure) {
        let path = path(for: storeID)
        for number in 1...99 {
            let name = "\(path).unusable\(number)"
            if !FileSystem.exists(name) { return try PrivateFile.renameWithoutReplacing(path, to: name, subject: Self.subject) }
        }
        throw KeychainFailure(.notAvailable, "too many unusable key files beside \(path): move them away")
    }

    /// Removes the key file of a store that has another protector now, and what an attempt to come back has left.
    ///
    /// None there is success.
    package func remove(for storeID: StoreID) throws(KeychainFailure) {
        discard(for: storeID)
        let path = path(for: storeID)
        guard FileSystem.exists(path) else { return }
        try PrivateFile.remove(path, subject: Self.subject)
    }

    /// The key file that is there though the store has another protector; nil when there is none.
    package func leftover(of storeID: StoreID) -> String? {
        [path(for: storeID), newPath(for: storeID)].first(where: FileSystem.exists)
    }

    /// The key file of a store that was once at `storePath` and is there no more.
    ///
    /// Throws `.notAvailable` when that cannot be said, because the directory or a key file in it cannot be read.
    package func orphanPath() throws(KeychainFailure) -> String? {
        let names: [String]
        do throws(Errno) {
            names = try FileSystem.names(in: directory)
        } catch .notFound {
            return nil
        } catch {
            throw PrivateFile.readFailure(error, "the directory of key files", directory)
        }
        for name in names {
            let path = "\(directory)/\(name)"
            if name.hasSuffix(".key"), try contents(atPath: path).isFor(storePath: storePath) { return path }
        }
        return nil
    }

    private func contents(atPath path: String) throws(KeychainFailure) -> Contents {
        Contents(bytes: try PrivateFile.read(path, byteLimit: Self.byteLimit, subject: Self.subject), path: path)
    }

    private static func encode(
        _ secret: borrowing SecretBytes, storeID: StoreID, storePath: String
    ) throws(KeychainFailure) -> SecretBytes {
        let storePathBytes = Array(storePath.utf8)
        guard storePathBytes.count <= byteLimit - fixedByteCount else {
            throw KeychainFailure(.notAvailable, "the path of the keychain is too long")
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

    /// A key file's bytes, in key memory.
    private struct Contents: ~Copyable {
        let bytes: SecretBytes
        let path: String

        func secret(of storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
            let path = path
            // Every offset is below the byte count that is checked first.
            return try unsafe bytes.withBytes { (bytes) throws(KeychainFailure) in
                guard bytes.count >= KeyFile.fixedByteCount, unsafe bytes.prefix(8).elementsEqual(KeyFile.magic) else {
                    throw KeychainFailure(.notAvailable, "\(path) is not a key file")
                }
                guard unsafe bytes[8] == KeyFile.version else {
                    throw KeychainFailure(.notAvailable, "\(path) was written by a newer version of this library")
                }
                guard unsafe bytes[9..<25].elementsEqual(storeID.bytes) else {
                    throw KeychainFailure(.notAvailable, "\(path) belongs to another store")
                }
                return try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[25..<57]))
            }
        }

        /// Whether the store it was made for is at that path, by whatever way the path leads there.
        func isFor(storePath: String) -> Bool {
            let recorded = unsafe bytes.withBytes { bytes -> String? in
                guard bytes.count >= KeyFile.fixedByteCount, unsafe bytes.prefix(8).elementsEqual(KeyFile.magic) else { return nil }
                return unsafe String(decoding: bytes[KeyFile.fixedByteCount...], as: UTF8.self)
            }
            guard let recorded else { return false }
            return recorded.hasSameBytes(as: storePath)
                || FileSystem.resolveExistingPart(of: recorded).hasSameBytes(as: FileSystem.resolveExistingPart(of: storePath))
        }
    }
}
