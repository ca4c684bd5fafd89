// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
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
        let identity: FileStatus.Identity
        let isWritable: Bool

        init(_ file: consuming OpenFile, identity: FileStatus.Identity, isWritable: Bool) {
            self.file = file
            self.identity = identity
            self.isWritable = isWritable
        }

        /// Whether the descriptor still leads to the anchor: programs close descriptors that they do not know.
        var isOpen: Bool { (try? file.descriptor.status())?.identity == identity }
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
            if let record = AnchorRecord(bytes, storeID: storeID, inode: acceptsCopy ? nil : handle.identity.inode) { return record }
        }
        return nil
    }

    /// Writes the record, and creates the file if it does not exist; best effort.
    func write(_ record: AnchorRecord) {
        guard let handle = handle() ?? create(), handle.isWritable else { return }
        _ = try? handle.file.descriptor.write(record.encoded(storeID: storeID, inode: handle.identity.inode), at: 0)
    }

    private func handle() -> Handle? {
        access.withLock { access in
            guard case .open(let handle) = access else { return nil }
            guard !handle.isOpen else { return handle }
            // The number may belong to a file of the program, so it is not closed.
            Self.lostHandles.withLock { $0.append(handle) }
            access = Self.open(path)
            if case .open(let handle) = access { return handle }
            return nil
        }
    }

    /// Handles whose descriptors this process has closed elsewhere.
    private static let lostHandles = Mutex<[Handle]>([])

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
        return .open(Handle(file, identity: status.identity, isWritable: mode == .readWrite))
    }
}

extension SQLiteItemStore {
    /// Returns the greatest change count in the anchors of a directory that belong to this store, whatever its path; 0 if there is none.
    package static func greatestAnchoredChangeCount(of storeID: StoreID, in directory: String) -> UInt64 {
        newestAnchoredState(of: storeID, in: directory)?.changeCount ?? 0
    }

    /// Whether this anchor shows that changes of a store were acknowledged.
    ///
    /// The first state of a store does not: a power cut can undo its creation and leave the anchor.
    package static func hasAcknowledgedChanges(inAnchorAt path: String, of storeID: StoreID) -> Bool {
        guard let state = AnchorFile(path, storeID: storeID).read()?.lastState else { return false }
        return StoreState.changes(in: state.changeCount) > 1
    }

    /// Whether a copy of a store is the newest state in the anchors of a directory, or a later one, except for this number of changes.
    ///
    /// True if there is no anchor.
    package func isNewest(
        except missingChangeCount: Int, with cipher: any StateCipher, anchorsIn directory: String
    ) throws(KeychainFailure) -> Bool {
        guard let newest = Self.newestAnchoredState(of: storeID, in: directory) else { return true }
        guard let count = try changeCount(in: cipher) else { return false }
        return count + UInt64(missingChangeCount) >= newest.changeCount
    }

    /// Whether a copy of a store has the keybag of the newest state in the anchors of a directory, or a later one; true if there is no anchor.
    package func hasNewestKeybag(
        _ keybag: [UInt8], with cipher: any StateCipher, anchorsIn directory: String
    ) throws(KeychainFailure) -> Bool {
        guard let newest = Self.newestAnchoredState(of: storeID, in: directory) else { return true }
        if let count = try changeCount(in: cipher), count >= newest.changeCount { return true }
        return newest.keybag == cipher.digest(ofKeybag: keybag).leastSignificantWord
    }

    private static func newestAnchoredState(of storeID: StoreID, in directory: String) -> AnchorRecord.StateName? {
        let names = (try? FileSystem.names(in: directory)) ?? []
        return names.lazy.filter { $0.hasPrefix(storeID.hexadecimal + ".") && $0.hasSuffix(".anchor") }
            .compactMap { AnchorFile("\(directory)/\($0)", storeID: storeID).read()?.lastState }.max { $0.changeCount < $1.changeCount }
    }
}
