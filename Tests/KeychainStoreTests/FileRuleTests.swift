// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("Rules for files that are opened as a store", .blocking)
struct FileRuleTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Opening must fail with `cause`, and leave every file unchanged.
    private func expectRefusal(
        _ cause: KeychainFailure.Cause?, path: String? = nil,
        options: StoreOptions = StoreOptions(), location: SourceLocation = #_sourceLocation
    ) throws {
        let before = try directory.contents
        let failure = failure { () throws(KeychainFailure) in
            _ = try SQLiteItemStore(openingAt: directory.storePath, options: options)
        }
        #expect(failure?.status == .notAvailable, sourceLocation: location)
        #expect(failure?.path == path ?? directory.storePath, sourceLocation: location)
        #expect(failure?.cause == cause, sourceLocation: location)
        #expect(failure?.subject == .store, sourceLocation: location)
        #expect(try directory.contents == before, "a refused file was touched", sourceLocation: location)
    }

    @Test("Without a file, inspecting returns absent, opening fails, and neither creates a file")
    func absent() throws {
        #expect(try SQLiteItemStore.inspect(directory.storePath) == .absent)
        #expect(try SQLiteItemStore.inspect(directory.path + "/deeper/still/keychain.db") == .absent)
        try expectRefusal(.missing)
        #expect(try directory.names == [])
    }

    @Test("A created store is present and can be opened repeatedly")
    func present() throws {
        let id = StoreID.random()
        #expect(try directory.create(storeID: id) == .created)
        #expect(try SQLiteItemStore.inspect(directory.storePath) == .present)
        for _ in 1...3 { #expect(try SQLiteItemStore(openingAt: directory.storePath).storeID == id) }
        #expect(try directory.names == ["keychain.db"], "a closed store leaves nothing beside it")
    }

    @Test("A file beside the store that is not a regular file is refused, and does not block", arguments: ["-wal", "-shm", "-journal"])
    func companionKind(suffix: String) throws {
        #expect(try directory.create() == .created)
        let path = directory.storePath + suffix
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let failure = failure { () throws(KeychainFailure) in _ = try SQLiteItemStore(openingAt: directory.storePath) }
        #expect(failure?.cause == .notRegularFile && failure?.path == path)
        #expect(throws: KeychainFailure.self) { try SQLiteItemStore.damage(at: directory.storePath) }
    }

    @Test("Files that SQLite created while the store was read-only become writable again with it", arguments: ["-wal", "-shm"])
    func readOnlyCompanion(suffix: String) throws {
        #expect(try directory.create() == .created)
        let path = directory.storePath + suffix
        #expect(FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o400]))
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.insert([SampleRows.row(account: 1)])
        #expect(try FileStatus(of: path).permissions & 0o777 == 0o600)
    }

    /// A journal without pages that names a file, which SQLite deletes when it has applied the journal.
    private func journal(naming victim: String, pageCount: Int) -> Data {
        func bigEndian(_ number: Int) -> [UInt8] { (0..<4).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
        let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        let name = Array(victim.utf8)
        var bytes = magic + [0, 12_345, pageCount, 512, 4_096].flatMap(bigEndian)
        bytes += [UInt8](repeating: 0, count: 512 - bytes.count) + bigEndian(0x4000_0000 / 4_096 + 1) + name
        bytes += bigEndian(name.count) + bigEndian(name.reduce(0) { $0 + Int($1) }) + magic
        return Data(bytes)
    }

    /// The check before opening can come too early.
    ///
    /// The planted fault: SQLite without the VFS deletes the file.
    @Test("The VFS hides a rollback journal from SQLite", arguments: [true, false])
    func hiddenJournal(usesVFS: Bool) throws {
        #expect(try directory.create() == .created)
        let victim = directory.path + "/precious"
        try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
        let pageCount = Int(try FileStatus(of: directory.storePath).byteCount) / 4_096
        try journal(naming: victim, pageCount: pageCount).write(to: URL(fileURLWithPath: directory.storePath + "-journal"))
        _ = try? RawDatabase(directory.storePath, stamps: usesVFS).integer("SELECT count(*) FROM items")
        #expect(FileManager.default.fileExists(atPath: victim) == usesVFS)
    }

    @Test("A rollback journal of another program is not applied to the store")
    func foreignJournal() throws {
        #expect(try directory.create() == .created)
        let journal = directory.storePath + "-journal"
        try Data(repeating: 0xD9, count: 512).write(to: URL(fileURLWithPath: journal))
        try expectRefusal(.foreignFile, path: journal)
        #expect(throws: KeychainFailure.self) { try SQLiteItemStore.damage(at: directory.storePath) }
        try Data().write(to: URL(fileURLWithPath: journal))
        _ = try SQLiteItemStore(openingAt: directory.storePath)
    }

    /// Each directory would have a -wal and a -shm file of its own.
    @Test("A file that has a name in another directory is refused until that name is gone")
    func hardLinkElsewhere() throws {
        #expect(try directory.create() == .created)
        let other = try TemporaryDirectory()
        #expect(unsafe link(directory.storePath, other.storePath) == 0)
        try expectRefusal(.hardLinks)
        #expect(throws: KeychainFailure.self) { try SQLiteItemStore(openingAt: other.storePath) }
        #expect(unsafe link(directory.storePath, directory.path + "/left by a repair") == 0)
        try expectRefusal(.hardLinks)
        #expect(unsafe unlink(other.storePath) == 0)
        _ = try SQLiteItemStore(openingAt: directory.storePath)
    }

    @Test("An empty file is not treated as a new store")
    func empty() throws {
        try Data().write(to: URL(fileURLWithPath: directory.storePath))
        try setMode(0o600, of: directory.storePath)
        try expectRefusal(.empty)
        #expect(throws: KeychainFailure.self) { try SQLiteItemStore.inspect(directory.storePath) }
        #expect(try directory.create() == .alreadyExists)
    }

    @Test("A file that is not a SQLite database is refused", arguments: [1, 100, 512, 4_096, 100_000])
    func noDatabase(byteCount: Int) throws {
        try Data(repeating: 0x41, count: byteCount).write(to: URL(fileURLWithPath: directory.storePath))
        try setMode(0o600, of: directory.storePath)
        try expectRefusal(.foreignFile)
    }

    @Test("Another program's database is refused and not changed", arguments: ["DELETE", "WAL"])
    func foreign(journalMode: String) throws {
        do {
            let database = try RawDatabase(directory.storePath, stamps: false)
            try database.execute("PRAGMA journal_mode = \(journalMode); CREATE TABLE items (number); INSERT INTO items VALUES (1)")
        }
        try setMode(0o600, of: directory.storePath)
        try expectRefusal(.foreignFile)
    }

    @Test("The -wal file of another program's database is not recovered", arguments: [0, 0x4B43_484E])
    func foreignWithLog(applicationID: Int) throws {
        let other = try TemporaryDirectory()
        let database = try RawDatabase(other.storePath, stamps: false)
        // With the application ID of a store it is a store of a newer version.
        try database.execute("PRAGMA application_id = \(applicationID); PRAGMA user_version = 4; CREATE TABLE items (number)")
        try database.execute("PRAGMA journal_mode = WAL; INSERT INTO items VALUES (1)")
        for name in ["keychain.db", "keychain.db-wal"] {
            try FileManager.default.copyItem(atPath: other.path + "/" + name, toPath: directory.path + "/" + name)
            try setMode(0o600, of: directory.path + "/" + name)
        }
        try expectRefusal(applicationID == 0 ? .foreignFile : .newerVersion)
        #expect(try directory.names == ["keychain.db", "keychain.db-wal"])
    }

    @Test("A store of a newer version is refused and not changed")
    func newer() throws {
        try directory.create()
        try RawDatabase(directory.storePath).execute("PRAGMA user_version = 4")
        try expectRefusal(.newerVersion)
    }

    /// Makes a store of format 1, without page checksums and with that many reserved bytes per page.
    private func makeFormat1(reservedByteCount: UInt8) throws {
        do { try directory.makeStore().insert((1...100).map { SampleRows.row(account: $0) }) }
        try RawDatabase(directory.storePath, stamps: false).execute("PRAGMA user_version = 1")
        var bytes = try #require(FileManager.default.contents(atPath: directory.storePath))
        for end in stride(from: 4_096, through: bytes.count, by: 4_096) { bytes.replaceSubrange(end - 16..<end, with: Data(count: 16)) }
        bytes[20] = reservedByteCount
        try bytes.write(to: URL(fileURLWithPath: directory.storePath))
    }

    @Test("A store of the unreleased format 1 is refused as unsupported and not changed", arguments: [16, 0] as [UInt8])
    func format1(reservedByteCount: UInt8) throws {
        try makeFormat1(reservedByteCount: reservedByteCount)
        try expectRefusal(.unsupportedVersion)
        #expect(try SQLiteItemStore.inspect(directory.storePath) == .present)
        #expect(try directory.create() == .alreadyExists)
        let before = try directory.contents
        #expect(
            failure { () throws(KeychainFailure) in
                _ = try StoreRepair(directory.storePath).run(originalSuffix: ".before") { _ in true }
            }?.cause == .unsupportedVersion)
        #expect(try directory.contents == before)
    }

    @Test("A database with a store's application ID and an invalid version is not a store", arguments: [0, -1])
    func impossibleVersion(version: Int) throws {
        try directory.create()
        try RawDatabase(directory.storePath).execute("PRAGMA user_version = \(version)")
        try expectRefusal(.foreignFile)
    }

    @Test("A store whose format becomes newer while it is open refuses writes")
    func newerMeanwhile() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        try RawDatabase(directory.storePath).execute("PRAGMA user_version = 4")
        let failure = failure { () throws(KeychainFailure) in try store.insert([SampleRows.row(account: 2)]) }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.cause == .newerVersion)
    }

    @Test("A truncated store is never opened as an empty one", arguments: [1, 50, 100, 4_096, 8_192, 20_000])
    func truncated(byteCount: Int) throws {
        do {
            let store = try directory.makeStore()
            try store.insert((1...100).map { SampleRows.row(account: $0) })
        }
        let url = URL(fileURLWithPath: directory.storePath)
        try Data(contentsOf: url).prefix(byteCount).write(to: url)
        try setMode(0o600, of: directory.storePath)
        let failure = failure { () throws(KeychainFailure) in
            _ = try SQLiteItemStore(openingAt: directory.storePath).rows()
        }
        #expect(failure?.status == .notAvailable)
        #expect(try Data(contentsOf: url).count == byteCount)
    }

    @Test(
        "A file mode that allows others access is refused",
        arguments: [0o644, 0o640, 0o660, 0o604, 0o601, 0o700, 0o4600])
    func fileMode(mode: Int) throws {
        try directory.create()
        try setMode(mode, of: directory.storePath)
        try expectRefusal(.accessibleToOthers)
    }

    @Test("A directory that allows others access is refused", arguments: [0o755, 0o750, 0o701, 0o777])
    func directoryMode(mode: Int) throws {
        try directory.create()
        try setMode(mode, of: directory.path)
        try expectRefusal(.accessibleToOthers, path: directory.path)
        #expect(throws: KeychainFailure.self) { try directory.create() }
    }

    @Test("A symbolic link to a store is refused")
    func symbolicLink() throws {
        let other = try TemporaryDirectory()
        try other.create()
        try FileManager.default.createSymbolicLink(atPath: directory.storePath, withDestinationPath: other.storePath)
        try expectRefusal(.symbolicLink)
        #expect(try directory.create() == .alreadyExists)
    }

    @Test("A path through a dangling symbolic link is refused: the disk with the store may not be mounted")
    func danglingLink() throws {
        let other = try TemporaryDirectory()
        try FileManager.default.createSymbolicLink(atPath: other.path + "/link", withDestinationPath: directory.path + "/unmounted")
        for path in ["/link/keychain.db", "/link/keychain/keychain.db"] {
            let failure = failure { () throws(KeychainFailure) in _ = try SQLiteItemStore.inspect(other.path + path) }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.path == other.path + "/link")
        }
        try FileManager.default.createDirectory(atPath: directory.path + "/unmounted", withIntermediateDirectories: false)
        #expect(try SQLiteItemStore.inspect(other.path + "/link/keychain/keychain.db") == .absent)
    }

    @Test("A symbolic link above the directory is followed, because home directories are often symbolic links")
    func symbolicLinkAbove() throws {
        try directory.create()
        let other = try TemporaryDirectory()
        try FileManager.default.createSymbolicLink(atPath: other.path + "/link", withDestinationPath: directory.path)
        let store = try SQLiteItemStore(openingAt: other.path + "/link/keychain.db")
        try store.insert([SampleRows.row(account: 1)])
        #expect(try store.rows().count == 1)
    }

    @Test("A directory in the store's place is refused")
    func directoryInPlace() throws {
        try FileManager.default.createDirectory(atPath: directory.storePath, withIntermediateDirectories: false)
        #expect(failure { () throws(KeychainFailure) in _ = try SQLiteItemStore.inspect(directory.storePath) }?.status == .notAvailable)
    }

    @Test("A file of another owner is refused", .requiresRoot)
    func owner() throws {
        try directory.create()
        try FileManager.default.setAttributes([.ownerAccountID: 12_345], ofItemAtPath: directory.storePath)
        try expectRefusal(.wrongOwner)
        try FileManager.default.setAttributes([.ownerAccountID: 0], ofItemAtPath: directory.storePath)
        try FileManager.default.setAttributes([.ownerAccountID: 12_345], ofItemAtPath: directory.path)
        try expectRefusal(.wrongOwner, path: directory.path)
    }

    @Test(
        "A network file system is rejected, and the cause contains its name",
        arguments: [
            (0x6969, "nfs"), (0xFF53_4D42, "cifs"), (0xFE53_4D42, "smb2"), (0x517B, "smb"), (0x0102_1997, "9p"), (0x5346_414F, "afs"),
            (0x6B41_4653, "afs"), (0x00C3_6400, "ceph"), (0x0BD0_0BD0, "lustre"), (0x4750_4653, "gpfs"), (0x1983_0326, "beegfs"),
            (0x786F_4256, "vboxsf"),
        ] as [(UInt32, String)])
    func networkFileSystem(type: UInt32, name: String) throws {
        try directory.create()
        let options = StoreOptions(fileSystem: FileSystemProbe { _ in type })
        try expectRefusal(.networkFileSystem(name: name), path: directory.path, options: options)
        let empty = try TemporaryDirectory()
        #expect(
            failure { () throws(KeychainFailure) in
                _ = try SQLiteItemStore.create(
                    at: empty.storePath, storeID: .random(), keybag: [1], generation: 1, options: options)
            }?.status == .notAvailable)
        #expect(try empty.names == [])
    }

    @Test(
        "A FUSE file system is refused if it is a network file system",
        arguments: [
            ("fuse.sshfs", "sshfs"), ("fuse.glusterfs", "glusterfs"), ("fuse.fuse-overlayfs", nil), ("fuse.gocryptfs", nil),
            ("fuseblk", nil), (nil, nil),
        ] as [(String?, String?)])
    func fuse(type: String?, refusedAs name: String?) throws {
        try directory.create()
        let options = StoreOptions(fileSystem: FileSystemProbe(typeNumber: { _ in 0x6573_5546 }, typeName: { _ in type }))
        guard let name else {
            #expect(try SQLiteItemStore(openingAt: directory.storePath, options: options).rows().isEmpty)
            return
        }
        try expectRefusal(.networkFileSystem(name: name), path: directory.path, options: options)
    }

    @Test("The type of the file system in use is found in the mount table", arguments: ["/proc", "/dev"])
    func mountedType(directory: String) throws {
        let found = try #require(FileSystemProbe.system.typeName(directory))
        #expect(["proc", "devtmpfs", "tmpfs"].contains(found))
    }

    @Test("A private file is renamed without replacing another one, also if the file system has hard links only", arguments: [true, false])
    func renamed(isAtomic: Bool) throws {
        let (old, new) = (directory.path + "/old", directory.path + "/new")
        func rename() throws(KeychainFailure) {
            try PrivateFile.renameWithoutReplacing(old, to: new, subject: "the file", isAtomic: isAtomic)
        }
        try Data("one".utf8).write(to: URL(filePath: old))
        try rename()
        #expect(try directory.names == ["new"])
        try Data("two".utf8).write(to: URL(filePath: old))
        #expect(throws: KeychainFailure.self) { try rename() }
        #expect(try Data(contentsOf: URL(filePath: new)) == Data("one".utf8))
        #expect(try directory.names == ["new", "old"])
    }

    @Test("An unknown file system is refused")
    func unknownFileSystem() throws {
        try directory.create()
        try expectRefusal(.unknownFileSystem, path: directory.path, options: StoreOptions(fileSystem: FileSystemProbe { _ in nil }))
    }

    @Test("An invalid path is refused", arguments: ["", "keychain.db", "/", "/tmp/", "/tmp/..", "/tmp/\u{0}/keychain.db"])
    func path(path: String) {
        #expect(failure { () throws(KeychainFailure) in _ = try SQLiteItemStore.inspect(path) }?.status == .notAvailable)
        #expect(failure { () throws(KeychainFailure) in _ = try SQLiteItemStore(openingAt: path) }?.status == .notAvailable)
    }

    @Test("A store can have any file name", arguments: ["a b.db", "100%.db", "what?.db", "#1.db", "é'\"\\\n.db", "file:x.db", ":memory:"])
    func name(name: String) throws {
        let path = directory.path + "/" + name
        #expect(try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 7) == .created)
        let store = try SQLiteItemStore(openingAt: path)
        try store.insert([SampleRows.row(account: 1)])
        #expect(try store.rows().count == 1)
        #expect(try directory.names.contains(name))
    }

    @Test("All files of a store are accessible only to their owner")
    func modes() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        #expect(try directory.names == ["keychain.db", "keychain.db-shm", "keychain.db-wal"])
        for name in try directory.names {
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
    }
}
