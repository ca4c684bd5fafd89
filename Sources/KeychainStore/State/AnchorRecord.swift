// SPDX-License-Identifier: Apache-2.0
internal import CSQLiteShims
internal import KeychainCore
internal import KeychainSystem

/// What a process remembers of a store outside of its files (On-disk-format.md, "Anchor").
struct AnchorRecord: Equatable {
    /// The last state that is known to be durable; nil if none is.
    ///
    /// It is never ahead of the disk, so a store with fewer changes has lost some.
    var lastState: StateName?
    /// The last state whose rows were compared with it, and the files at that moment; nil if none was.
    var verified: Verified?

    /// What identifies a state.
    struct StateName: Equatable {
        let changeCount: UInt64
        let id: Identifier128
        /// The first 64 bits of the keyed digest of the keybag.
        let keybag: UInt64

        init(changeCount: UInt64, id: Identifier128, keybag: UInt64) {
            self.changeCount = changeCount
            self.id = id
            self.keybag = keybag
        }

        init(_ state: StoreState) {
            self.init(changeCount: state.changeCount, id: state.id, keybag: state.keybagDigest.leastSignificantWord)
        }

        /// Why a store with this state has lost the named one; nil if it may be the same or a later state.
        func problem(of state: StoreState) -> StateProblem? {
            if state.changeCount < changeCount {
                guard changeCount >> 32 == state.changeCount >> 32 else { return .superseded }
                return .rolledBack(missingChangeCount: changeCount - state.changeCount)
            }
            return state.changeCount == changeCount && state.id != id ? .diverged : nil
        }
    }

    struct Verified: Equatable {
        let stateID: Identifier128
        let files: FileStamps
    }

    private static let magic = Array("KANC".utf8)
    private static let version: UInt8 = 1
    static let byteCount = 4 + 1 + 16 + 8 + 1 + 32 + 1 + 16 + 2 * FileStamps.Stamp.byteCount + 16

    /// Encodes the record for a file with this inode number.
    func encoded(storeID: StoreID, inode: UInt64) -> [UInt8] {
        var bytes = Self.magic
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(Self.version)
        bytes.append(storeID)
        bytes.append(littleEndian: inode)
        let zero = Identifier128(high: 0, low: 0)
        bytes.append(lastState == nil ? 0 : 1)
        bytes.append(littleEndian: lastState?.changeCount ?? 0)
        bytes.append(lastState?.id ?? zero)
        bytes.append(littleEndian: lastState?.keybag ?? 0)
        bytes.append(verified == nil ? 0 : 1)
        bytes.append(verified?.stateID ?? zero)
        for stamp in [verified?.files.database, verified?.files.log] { (stamp ?? FileStamps.Stamp.none).append(to: &bytes) }
        let sums = Self.sums(bytes)
        bytes.append(littleEndian: sums.0)
        bytes.append(littleEndian: sums.1)
        return bytes
    }

    /// Decodes a record of this store.
    ///
    /// Returns nil for other bytes, and for a record of a file with another inode number: a copy of an anchor says nothing about the
    /// store beside it, because a backup copies the two at different moments.
    init?(_ bytes: [UInt8], storeID: StoreID, inode: UInt64?) {
        guard bytes.count == Self.byteCount else { return nil }
        var reader = ByteReader(bytes)
        guard reader.readBytes(4).map(Array.init) == Self.magic, reader.readByte() == Self.version,
            reader.readIdentifier() == storeID, let recordedInode = reader.readUInt64(), inode == nil || recordedInode == inode,
            let hasLast = reader.readByte(), let changeCount = reader.readUInt64(), let lastID = reader.readIdentifier(),
            let lastKeybag = reader.readUInt64(),
            let hasVerified = reader.readByte(), let verifiedID = reader.readIdentifier(),
            let database = FileStamps.Stamp(&reader), let log = FileStamps.Stamp(&reader),
            let first = reader.readUInt64(), let second = reader.readUInt64(), (first, second) == Self.sums(bytes.dropLast(16))
        else { return nil }
        lastState = hasLast == 1 ? StateName(changeCount: changeCount, id: lastID, keybag: lastKeybag) : nil
        verified = hasVerified == 1 ? Verified(stateID: verifiedID, files: FileStamps(database: database, log: log)) : nil
    }

    init(lastState: StateName? = nil, verified: Verified? = nil) {
        self.lastState = lastState
        self.verified = verified
    }

    /// Two sums that detect a record of which only a part was written.
    private static func sums(_ bytes: some Sequence<UInt8>) -> (UInt64, UInt64) {
        var (first, second): (UInt64, UInt64) = (0x4B43_414E_4348_4F52, 0)
        for byte in bytes {
            first = first &* 31 &+ UInt64(byte)
            second = second &+ first
        }
        return (first, second)
    }
}

/// The sizes and change times of a store's two files at one moment.
///
/// If they are unchanged, no program has written to the files since. A change time has the resolution of the kernel's clock, a few
/// milliseconds.
struct FileStamps: Equatable {
    let database: Stamp
    let log: Stamp

    /// The stamps of files that cannot be examined.
    static let unknown = FileStamps(database: .none, log: .none)

    struct Stamp: Equatable {
        var device: UInt64 = 0
        var inode: UInt64 = 0
        var byteCount: Int64 = 0
        var changeNanoseconds: Int64 = 0

        static let byteCount = 32
        static let none = Stamp()

        init() {}

        init(_ status: FileStatus) {
            device = status.identity.device
            inode = status.identity.inode
            byteCount = status.byteCount
            changeNanoseconds = status.changeNanoseconds
        }

        /// Examines a -wal file.
        ///
        /// An empty one counts as none: opening the store creates one. When root opens a -wal file, SQLite sets the owner of the file, which
        /// changes the change time. Only root can write files of root.
        init(log: FileStatus) {
            self.init()
            guard log.byteCount > 0 else { return }
            self = Stamp(log)
            if CurrentProcess.effectiveUserID == 0 { changeNanoseconds = log.modificationNanoseconds }
        }

        /// Examines a file that a connection has written; nil if it has written nothing.
        init?(_ stamp: keychain_file_stamp, isLog: Bool) {
            guard stamp.is_known else { return nil }
            guard !isLog || stamp.byte_count > 0 else { return }
            device = stamp.device
            inode = stamp.inode
            byteCount = stamp.byte_count
            let countsModifications = isLog && CurrentProcess.effectiveUserID == 0
            changeNanoseconds = countsModifications ? stamp.modification_nanoseconds : stamp.change_nanoseconds
        }

        init?(_ reader: inout ByteReader) {
            guard let device = reader.readUInt64(), let inode = reader.readUInt64(), let byteCount = reader.readUInt64(),
                let changeNanoseconds = reader.readUInt64()
            else { return nil }
            self.device = device
            self.inode = inode
            self.byteCount = Int64(bitPattern: byteCount)
            self.changeNanoseconds = Int64(bitPattern: changeNanoseconds)
        }

        func append(to bytes: inout [UInt8]) {
            bytes.append(littleEndian: device)
            bytes.append(littleEndian: inode)
            bytes.append(littleEndian: byteCount)
            bytes.append(littleEndian: changeNanoseconds)
        }
    }

    init(database: Stamp, log: Stamp) {
        self.database = database
        self.log = log
    }

    /// Examines the files; nil if that is not possible.
    init?(of location: FileLocation) {
        guard let database = try? FileStatus(of: location.path) else { return nil }
        self.database = Stamp(database)
        do throws(Errno) {
            let log = try FileStatus(of: location.walPath)
            self.log = Stamp(log: log)
        } catch {
            guard error == .notFound else { return nil }
            log = .none
        }
    }

    /// Whether everything that was committed is in the database file, and flushed.
    ///
    /// Only a process whose flushes succeeded empties the -wal file, after a flush of the database.
    var hasEmptyLog: Bool { log == .none }
}

extension ByteReader {
    mutating func readIdentifier() -> Identifier128? {
        readBytes(Identifier128.byteCount).flatMap { Identifier128($0) }
    }
}
