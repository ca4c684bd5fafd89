// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Synchronization
import Testing

@Suite("A snapshot of a store", .blocking, .timeLimit(.minutes(10)))
struct SnapshotTests {
    let directory: TemporaryDirectory
    let place: TemporaryDirectory
    let store: SQLiteItemStore
    private var path: String { place.path + "/keychain.db" }

    init() throws {
        directory = try TemporaryDirectory()
        place = try TemporaryDirectory()
        store = try directory.makeStore()
    }

    private func snapshotFailure(_ path: String, replacingExisting: Bool = false) -> KeychainFailure? {
        failure { () throws(KeychainFailure) in try store.snapshot(to: path, replacingExisting: replacingExisting) }
    }

    @Test("A snapshot contains the keybag, rows, quarantine, lock epoch, and settings of the file")
    func opens() throws {
        try store.insert((1...50).map { SampleRows.row(account: $0, secretByteCount: 9_000) })
        try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in try writing.quarantine(number: 3, at: 1) }
            .mustBeWritten()
        try store.advanceLockEpoch(.everything)
        try store.replaceKeybag([4, 5, 6], generation: 8)
        try store.snapshot(to: path)
        #expect(try place.names == ["keychain.db"])
        let header = try #require(FileManager.default.contents(atPath: path)).prefix(100)
        #expect(header[18] == 2 && header[19] == 2, "it is not a database with a -wal file")
        #expect(header[20] == 16, "the room for checksums is lost")

        let copy = try SQLiteItemStore(openingAt: path)
        #expect(copy.storeID == store.storeID)
        #expect(try copy.rows() == store.rows())
        #expect(try copy.keybag().copies == [[4, 5, 6], [4, 5, 6]])
        try copy.read { reading throws(KeychainFailure) in
            let (quarantined, epoch) = (try reading.quarantinedRows(), try reading.lockEpoch())
            #expect(quarantined.count == 1)
            #expect(epoch == LockEpoch(rawValue: 0).advanced(by: .everything))
        }
        #expect(try copy.integrityProblems() == [])
        try copy.write(ifKeybagGeneration: 8) { writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 99))
        }.mustBeWritten()
        #expect(try store.rows().count == 49, "the store and its snapshot are one")
        #expect(header.count == 100)
    }

    @Test("A snapshot is accessible only to its owner")
    func mode() throws {
        try store.snapshot(to: path)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    }

    @Test("A snapshot of a store that is larger than SQLite's page cache has valid checksums")
    func largerThanPageCache() throws {
        // SQLite writes pages of the copy before its first page, and copies pages from the -wal file, where they have no checksums.
        for service in 1...10 {
            try store.insert((1...60).map { SampleRows.row(service: UInt64(service), account: UInt64($0), secretByteCount: 5_000) })
        }
        try store.snapshot(to: path)
        let copy = try SQLiteItemStore(openingAt: path)
        #expect(try copy.rows().count == 600)
        let problems = try copy.integrityProblems()
        #expect(problems == [])
    }

    @Test("A snapshot is a consistent state while other threads write")
    func consistent() async throws {
        // Each write adds one row of every account, so a consistent state has the same number of rows for each.
        let done = Mutex(false)
        let writer = try SQLiteItemStore(openingAt: directory.storePath)
        let writing = Task.detached {
            var number: UInt64 = 0
            while !done.withLock({ $0 }) {
                await Task.yield()
                number += 1
                try writer.insert((1...4).map { SampleRows.row(service: number, account: $0, secretByteCount: 5_000) })
            }
        }
        defer { done.withLock { $0 = true } }
        var counts: Set<Int> = []
        var last = 0
        while counts.count < 8 {
            let path = place.path + "/\(counts.count)"
            try store.snapshot(to: path, replacingExisting: true)
            do {
                let copy = try SQLiteItemStore(openingAt: path)
                let count = try copy.rows().count
                #expect(count % 4 == 0 && count >= last)
                let problems = try copy.integrityProblems()
                #expect(problems == [])
                last = count
                counts.insert(count)
            }
            await Task.yield()
        }
        done.withLock { $0 = true }
        try await writing.value
    }

    @Test("An existing file is not changed without replacingExisting")
    func replacing() throws {
        try store.snapshot(to: path)
        try store.insert([SampleRows.row(account: 1)])
        #expect(snapshotFailure(path)?.status == .duplicateItem)
        #expect(try place.contents.count == 1)
        #expect(try SQLiteItemStore(openingAt: path).rows().isEmpty)
        try store.snapshot(to: path, replacingExisting: true)
        #expect(try SQLiteItemStore(openingAt: path).rows().count == 1)
    }

    @Test("A snapshot never replaces the store itself, whatever the path", arguments: ["", "-wal", "-shm", "-journal"])
    func storeItself(suffix: String) throws {
        try store.insert([SampleRows.row(account: 1)])
        let before = try directory.names
        for directory in [directory.path, directory.path + "/.", directory.path + "/../" + (directory.path as NSString).lastPathComponent] {
            for replacingExisting in [true, false] {
                let failure = snapshotFailure(directory + "/keychain.db" + suffix, replacingExisting: replacingExisting)
                #expect(failure?.status == .notAvailable)
                #expect(failure?.cause == .isKeychainFile)
            }
        }
        #expect(try directory.names == before)
        #expect(try store.rows().count == 1)
    }

    @Test("A snapshot never replaces a hard link to the store")
    func secondName() throws {
        try FileManager.default.linkItem(atPath: directory.storePath, toPath: path)
        #expect(snapshotFailure(path, replacingExisting: true)?.cause == .isKeychainFile)
    }

    @Test("A snapshot never replaces another database that is in use")
    func otherStore() throws {
        let other = try place.makeStore()
        try other.insert([SampleRows.row(account: 1)])
        #expect(snapshotFailure(path, replacingExisting: true)?.status == .notAvailable)
        #expect(try other.rows().count == 1)
    }

    @Test("A full or failing disk leaves no file and does not change the store", arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8])
    func failingDisk(code: Int32) throws {
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
        try store.insert([SampleRows.row(account: 1)])
        let disk = FaultyDisk(under: place.path)
        disk.fail(.database, .write, with: code)
        let failure = failure { () throws(KeychainFailure) in try store.snapshot(to: path) }
        #expect(failure?.status == (code == SQLITE_FULL ? .notAvailable : .inputOutput))
        #expect(try place.names == [])
        disk.heal()
        try store.snapshot(to: path)
        #expect(try store.rows().count == 1)
    }

    @Test("With an unreadable page the snapshot fails")
    func unreadable() throws {
        try store.insert([SampleRows.row(account: 1)])
        store.close()
        let disk = FaultyDisk(under: directory.path)
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
        disk.fail(.database, .read, with: SQLITE_IOERR | 1 << 8)
        #expect(failure { () throws(KeychainFailure) in try store.snapshot(to: path) }?.status == .inputOutput)
        #expect(try place.names == [])
    }

    @Test("A snapshot does not contain removed rows, even if the store's files still do")
    func noTraces() throws {
        let secret = (0..<800).map { _ in UInt8.random(in: .min ... .max) }
        try store.replaceKeybag(secret, generation: 8)
        try store.read { reading throws(KeychainFailure) in
            _ = try reading.itemCount()
            try store.replaceKeybag([1], generation: 9)
        }
        #expect(try DirectoryCopy(of: directory).pieces(of: secret) > 0)
        try store.snapshot(to: path)
        #expect(try DirectoryCopy(of: place).pieces(of: secret) == 0)
    }
}

@Suite("A snapshot that replaces a store", .blocking, .timeLimit(.minutes(10)))
struct SnapshotRestorationTests {
    let directory: TemporaryDirectory
    let place: TemporaryDirectory
    private var snapshotPath: String { place.path + "/snapshot" }

    /// A store with one item, and a snapshot of it.
    init() throws {
        directory = try TemporaryDirectory()
        place = try TemporaryDirectory()
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        try store.snapshot(to: snapshotPath)
    }

    private func restore(
        _ decide: (String) throws(KeychainFailure) -> SnapshotRestoration.Decision = { _ in .replace() }
    ) throws(KeychainFailure)
        -> SnapshotRestoration.Outcome
    {
        let options = StoreOptions(busyTimeoutMilliseconds: 200)
        return try SnapshotRestoration(directory.storePath, options: options).run(
            from: snapshotPath, originalSuffix: ".before", decide)
    }

    /// Its -wal file could not be emptied, so a kill at the wrong moment would lose changes.
    @Test("A reader that does not end is an error, and nothing is replaced")
    func reader() throws {
        let reader = try RawDatabase(directory.storePath)
        try reader.execute("BEGIN")
        #expect(try reader.integer("SELECT count(*) FROM items") == 1)
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.insert([SampleRows.row(account: 2)])
        let failure = failure { () throws(KeychainFailure) in _ = try restore() }
        #expect(failure?.status == .notAvailable && failure?.remedy == .closeElsewhere)
        #expect(try store.rows().count == 2)
        #expect(try directory.names.allSatisfy { !$0.contains("before") })
        try reader.execute("COMMIT")
        #expect(try restore() != .declined)
        #expect(try SQLiteItemStore(openingAt: directory.storePath).rows().count == 1)
    }

    @Test("A change of the keybag after the snapshot was accepted is an error")
    func keybagChanged() throws {
        let failure = failure { () throws(KeychainFailure) in
            _ = try restore { _ throws(KeychainFailure) in
                try SQLiteItemStore(openingAt: directory.storePath).replaceKeybag([4, 5, 6], generation: 8)
                return .replace()
            }
        }
        #expect(failure?.status == .notAvailable && failure?.cause == .unexpectedState(.keybagReplaced))
        #expect(try SQLiteItemStore(openingAt: directory.storePath).keybag().generation == 8)
    }

    /// Its changes may be all that is left of the newest content.
    @Test("The files of a store that does not have its newest content are kept as they are")
    func refusedStore() throws {
        try FileManager.default.removeItem(atPath: directory.storePath)
        let cipher = PlainStateCipher()
        try SQLiteItemStore.create(
            at: directory.storePath, storeID: .random(), keybag: ItemStoreContract.keybag.copies[0],
            generation: ItemStoreContract.keybag.generation,
            state: cipher.seal(.initial(keybagDigest: cipher.digest(ofKeybag: ItemStoreContract.keybag.copies[0])))
        ).mustBeCreated()
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.snapshot(to: snapshotPath, replacingExisting: true)
        let (anchors, id) = (directory.path + "/state", store.storeID)
        try store.protect(with: cipher, using: ItemStoreContract.keybag, anchorPaths: ["\(anchors)/\(id.hexadecimal).1.anchor"])
        try store.insert([SampleRows.row(account: 2)])
        let original = try ["", "-wal"].map { try #require(FileManager.default.contents(atPath: directory.storePath + $0)) }
        // To this cipher the state is not authentic.
        let check = SnapshotRestoration.NewestContentCheck(of: id, UnfitStateCipher(), anchorsIn: anchors, changeCountOfCopy: .max)
        let outcome = try SnapshotRestoration(directory.storePath).run(from: snapshotPath, originalSuffix: ".before") { _ in .replace(check)
        }
        let kept = directory.storePath + ".before"
        #expect(outcome == .done(original: kept))
        #expect(["", "-wal"].map { FileManager.default.contents(atPath: kept + $0) } == original)
        withExtendedLifetime(store) {}
    }

    @Test("Two restorations take turns")
    func turns() throws {
        let outcome = try restore { _ throws(KeychainFailure) in
            let failure = failure { () throws(KeychainFailure) in _ = try restore() }
            #expect(failure?.status == .notAvailable && failure?.remedy == .closeElsewhere)
            return .replace()
        }
        #expect(outcome != .declined)
        #expect(try restore() != .declined)
    }

    @Test("A store that appears in the place of one that was gone is left alone, with its -wal file")
    func appeared() throws {
        let elsewhere = try TemporaryDirectory()
        let path = elsewhere.path + "/home/keychain.db"
        try FileManager.default.createDirectory(
            atPath: elsewhere.path + "/home", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        var appeared: SQLiteItemStore?
        #expect(throws: KeychainFailure.self) {
            try SnapshotRestoration(path).run(from: snapshotPath, originalSuffix: ".before") { _ throws(KeychainFailure) in
                let keybag = ItemStoreContract.keybag
                _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: keybag.copies[0], generation: keybag.generation)
                let store = try SQLiteItemStore(openingAt: path)
                _ = try store.write(ifKeybagGeneration: keybag.generation) { writing throws(KeychainFailure) in
                    try writing.insert(SampleRows.row(account: 2))
                }
                appeared = store
                return .replace()
            }
        }
        let store = try #require(appeared)
        try store.insert([SampleRows.row(account: 3)])
        #expect(try store.rows().count == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path + "/home").allSatisfy { !$0.contains("before") })
    }

    @Test("The -wal file of a store that is gone is kept under another name")
    func orphanedLog() throws {
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.insert([SampleRows.row(account: 2)])
        let log = try #require(FileManager.default.contents(atPath: directory.storePath + "-wal"))
        try #require(!log.isEmpty)
        // As if the process had been killed: closing would remove the -wal file.
        let elsewhere = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: elsewhere.path + "/home", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let path = elsewhere.path + "/home/keychain.db"
        try log.write(to: URL(filePath: path + "-wal"))
        let outcome = try SnapshotRestoration(path).run(from: snapshotPath, originalSuffix: ".before") { _ throws(KeychainFailure) in
            .replace()
        }
        #expect(outcome == .done(original: path + ".before-wal"))
        #expect(FileManager.default.contents(atPath: path + ".before-wal") == log)
        #expect(try SQLiteItemStore(openingAt: path).rows().count == 1)
    }
}

/// A cipher that opens nothing.
private struct UnfitStateCipher: StateCipher {
    func element(ofRowTag tag: [UInt8]) -> UInt256 { PlainStateCipher().element(ofRowTag: tag) }
    func digest(ofKeybag bytes: [UInt8]) -> UInt256 { PlainStateCipher().digest(ofKeybag: bytes) }
    func seal(_ state: StoreState) -> [UInt8] { PlainStateCipher().seal(state) }
    func open(_ sealed: [UInt8]) -> StoreState? { nil }
}
