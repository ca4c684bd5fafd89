// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// A store's anchor: a small file in another directory, with the last state that was committed.
///
/// It is written with one call after a commit, and never flushed. So it may lag behind the store, but is never ahead of it. Writing is best
/// effort.
final class AnchorFile: Sendable {
    private enum Access {
        case none
        case open(Handle)
        /// The file exists and cannot be used; nothing replaces it.
        case refused(String)
    }

    /// An open anchor, shared by the threads of a process.
    private final class Handle: Sendable {
        let file: OpenFile
        let inode: UInt64
        let isWritable: Bool

        init(_ file: consuming OpenFile, inode: UInt64, isWritable: Bool) {
            self.file = file
            self.inode = inode
            self.isWritable = isWritable
        }
    }

    private let path: String
    private let storeID: StoreID
    private let acceptsCopy: Bool
    private let access: Mutex<Access>

    /// Opens the anchor, if it exists.
    ///
    /// `acceptsCopy` is for tests: a record counts in another file, too.
    init(_ path: String, storeID: StoreID, acceptsCopy: Bool = false) {
        self.acceptsCopy = acceptsCopy
        self.path = path
        self.storeID = storeID
        access = Mutex(Self.open(path))
    }

    /// Why the anchor cannot be used; nil if it can, or does not exist.
    var refusal: String? {
        access.withLock { if case .refused(let reason) = $0 { reason } else { nil } }
    }

    /// Returns the record; nil if there is none, or it is not one of this file.
    func read() -> AnchorRecord? {
        guard let handle = handle() else { return nil }
        // A writer may be replacing the record.
        for _ in 1...3 {
            var bytes = [UInt8](repeating: 0, count: AnchorRecord.byteCount)
            guard (try? handle.file.descriptor.read(into: &bytes, at: 0)) == bytes.count else { return nil }
            if let record = AnchorRecord(bytes, storeID: storeID, inode: acceptsCopy ? nil : handle.inode) { return record }
        }
        return nil
    }

    /// Writes the record, and creates the file if it does not exist; best effort.
    func write(_ record: AnchorRecord) {
        guard let handle = handle() ?? create(), handle.isWritable else { return }
        _ = try? handle.file.descriptor.write(record.encoded(storeID: storeID, inode: handle.inode), at: 0)
    }

    private func handle() -> Handle? {
        access.withLock { if case .open(let handle) = $0 { handle } else { nil } }
    }

    private func create() -> Handle? {
        access.withLock { access in
            guard case .none = access else { return nil }
            guard (try? PrivateDirectory.make(FileSystem.parent(of: path))) != nil else { return nil }
            // Another process may create it at the same time.
            try? FileSystem.createPrivateFile(path)
            access = Self.open(path)
            if case .open(let handle) = access { return handle }
            return nil
        }
    }

    private static func open(_ path: String) -> Access {
        do throws(Errno) {
            return try open(path, .readWrite)
        } catch .notFound {
            return .none
        } catch {
            guard error.isWriteDenied else { return .refused("\(path) cannot be opened: \(error)") }
        }
        do throws(Errno) { return try open(path, .read) } catch { return .refused("\(path) cannot be opened: \(error)") }
    }

    private static func open(_ path: String, _ mode: OpenFile.Access) throws(Errno) -> Access {
        let file = try OpenFile(path, mode)
        let status = try file.descriptor.status()
        guard status.kind == .regularFile, status.owner == CurrentProcess.effectiveUserID, status.permissions & 0o022 == 0 else {
            return .refused("\(path) is not a private file of this user")
        }
        return .open(Handle(file, inode: status.identity.inode, isWritable: mode == .readWrite))
    }
}

extension SQLiteItemStore {
    /// Removes an anchor, after a person has replaced the store's file on purpose.
    ///
    /// Call it while no process has the store open. The next opening creates another one.
    package static func removeAnchor(at path: String) {
        FileSystem.tryUnlink(path)
    }
}
