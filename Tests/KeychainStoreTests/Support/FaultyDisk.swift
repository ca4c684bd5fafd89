// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc
import Synchronization
import Testing

/// A VFS for the files in one directory that injects failures, and counts flushes and refused write locks.
final class FaultyDisk: Sendable {
    enum File: Sendable {
        case database, wal, other
    }

    enum Operation: Sendable {
        case read, write, sync
    }

    struct State {
        var failures: [(File, Operation, Int32)] = []
        var syncCounts: [File: Int] = [:]
        var refusedWriteLockCount = 0
        var beforeCopying: (@Sendable () -> Void)?
        var beforeOperation: (File, Operation, @Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Creates a disk for the files in `directory`.
    ///
    /// Open the store with `FaultyDisk.vfsName`.
    init(under directory: String) {
        _ = Self.registration
        Self.disks.withLock { $0[directory] = self }
    }

    func fail(_ file: File, _ operation: Operation, with code: Int32) {
        state.withLock { $0.failures.append((file, operation, code)) }
    }

    func heal() { state.withLock { $0.failures = [] } }

    func syncCount(of file: File) -> Int { state.withLock { $0.syncCounts[file] ?? 0 } }

    /// How often a connection did not get the write lock because another one holds it.
    var refusedWriteLockCount: Int { state.withLock { $0.refusedWriteLockCount } }

    /// Runs `body` once, when the next checkpoint has read the index and is about to copy frames.
    func beforeCopying(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.beforeCopying = body } }

    /// Runs `body` once, before the next operation of this kind.
    func before(_ file: File, _ operation: Operation, _ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.beforeOperation = (file, operation, body) }
    }

    fileprivate func beginCopying() {
        let body = state.withLock { state in
            defer { state.beforeCopying = nil }
            return state.beforeCopying
        }
        body?()
    }

    fileprivate func noteRefusedWriteLock() { state.withLock { $0.refusedWriteLockCount += 1 } }

    fileprivate func ask(_ file: File, _ operation: Operation) -> Int32? {
        let body = state.withLock { state -> (@Sendable () -> Void)? in
            guard let (awaitedFile, awaited, body) = state.beforeOperation, (awaitedFile, awaited) == (file, operation) else { return nil }
            state.beforeOperation = nil
            return body
        }
        body?()
        return state.withLock { state in
            if operation == .sync { state.syncCounts[file, default: 0] += 1 }
            return state.failures.first { $0.0 == file && $0.1 == operation }?.2
        }
    }

    // MARK: The VFS

    /// The name of the VFS, which is registered on first use.
    static var vfsName: String {
        _ = registration
        return registeredName
    }

    private static let registeredName = "keychain-faulty-disk"

    private static let disks = Mutex<[String: FaultyDisk]>([:])

    fileprivate static func disk(of path: String) -> FaultyDisk? {
        disks.withLock { disks in disks.first { path.hasPrefix($0.key + "/") }?.value }
    }

    private static let registration: Bool = {
        guard let system = unsafe sqlite3_vfs_find(nil) else { return false }
        let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        unsafe vfs.initialize(to: system.pointee)
        // Neither is ever freed: SQLite keeps the pointers.
        unsafe vfs.pointee.zName = UnsafePointer(strdup(registeredName))
        unsafe vfs.pointee.szOsFile = Int32(headByteCount) + system.pointee.szOsFile
        unsafe vfs.pointee.xOpen = { _, name, file, flags, outFlags in unsafe open(name, file, flags, outFlags) }
        return unsafe sqlite3_vfs_register(vfs, 0) == SQLITE_OK
    }()
}

/// Our part of a file, which precedes the default VFS's part: its methods and its disk.
@unsafe private struct Head {
    var base: sqlite3_file
    var file: FaultyDisk.File
    var disk: Unmanaged<FaultyDisk>?
}

private let headByteCount = unsafe (MemoryLayout<Head>.size + 15) / 16 * 16

private typealias FilePointer = UnsafeMutablePointer<sqlite3_file>

private func head(_ file: FilePointer?) -> UnsafeMutablePointer<Head>? {
    unsafe UnsafeMutableRawPointer(file)?.assumingMemoryBound(to: Head.self)
}

private func real(_ file: FilePointer?) -> FilePointer? {
    unsafe (UnsafeMutableRawPointer(file).map { unsafe $0 + headByteCount })?.assumingMemoryBound(to: sqlite3_file.self)
}

private func methods(_ file: FilePointer?) -> sqlite3_io_methods? {
    unsafe real(file)?.pointee.pMethods?.pointee
}

private func disk(_ file: FilePointer?) -> FaultyDisk? {
    unsafe head(file)?.pointee.disk?.takeUnretainedValue()
}

private func failure(_ file: FilePointer?, _ operation: FaultyDisk.Operation) -> Int32? {
    guard let head = unsafe head(file) else { return nil }
    return unsafe disk(file)?.ask(head.pointee.file, operation)
}

private func open(
    _ name: UnsafePointer<CChar>?, _ file: FilePointer?, _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let system = unsafe sqlite3_vfs_find(nil), let file = unsafe file, let head = unsafe head(file) else { return SQLITE_MISUSE }
    let disk = unsafe name.flatMap { unsafe FaultyDisk.disk(of: String(cString: $0)) }
    let kind: FaultyDisk.File =
        if flags & SQLITE_OPEN_MAIN_DB != 0 { .database } else if flags & SQLITE_OPEN_WAL != 0 { .wal } else { .other }
    unsafe head.initialize(
        to: Head(base: sqlite3_file(pMethods: nil), file: kind, disk: disk.map { unsafe .passRetained($0) }))
    let code = unsafe system.pointee.xOpen(system, name, real(file), flags, outFlags)
    // SQLite closes only a file that has methods.
    if unsafe real(file)?.pointee.pMethods != nil {
        unsafe file.pointee.pMethods = UnsafePointer(faultyMethods)
    } else {
        unsafe head.pointee.disk?.release()
    }
    return code
}

// Initialized once, here, and only read afterwards.
nonisolated(unsafe) private let faultyMethods: UnsafeMutablePointer<sqlite3_io_methods> = {
    let faulty = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe faulty.initialize(to: sqlite3_io_methods())
    unsafe faulty.pointee.iVersion = 2
    unsafe faulty.pointee.xRead = { unsafe failure($0, .read) ?? methods($0)?.xRead(real($0), $1, $2, $3) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xWrite = { unsafe failure($0, .write) ?? methods($0)?.xWrite(real($0), $1, $2, $3) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xSync = { unsafe failure($0, .sync) ?? methods($0)?.xSync(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xTruncate = { unsafe methods($0)?.xTruncate(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xFileSize = { unsafe methods($0)?.xFileSize(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xLock = { unsafe methods($0)?.xLock(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xUnlock = { unsafe methods($0)?.xUnlock(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xCheckReservedLock = { unsafe methods($0)?.xCheckReservedLock(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xFileControl = { unsafe methods($0)?.xFileControl(real($0), $1, $2) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xSectorSize = { unsafe methods($0)?.xSectorSize(real($0)) ?? 4_096 }
    unsafe faulty.pointee.xDeviceCharacteristics = { unsafe methods($0)?.xDeviceCharacteristics(real($0)) ?? 0 }
    unsafe faulty.pointee.xShmMap = { unsafe methods($0)?.xShmMap(real($0), $1, $2, $3, $4) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xShmLock = { file, first, count, flags in
        // See the description of the locks in SQLite's "WAL-mode File Format", section 2.3.
        if first == 3, flags == SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE { unsafe disk(file)?.beginCopying() }
        let code = unsafe methods(file)?.xShmLock(real(file), first, count, flags) ?? SQLITE_MISUSE
        // The write lock.
        if first == 0, code == SQLITE_BUSY { unsafe disk(file)?.noteRefusedWriteLock() }
        return code
    }
    unsafe faulty.pointee.xShmBarrier = { unsafe methods($0)?.xShmBarrier(real($0)) }
    unsafe faulty.pointee.xShmUnmap = { unsafe methods($0)?.xShmUnmap(real($0), $1) ?? SQLITE_MISUSE }
    unsafe faulty.pointee.xClose = { file in
        let code = unsafe methods(file)?.xClose(real(file)) ?? SQLITE_MISUSE
        unsafe head(file)?.pointee.disk?.release()
        return code
    }
    return unsafe faulty
}()
