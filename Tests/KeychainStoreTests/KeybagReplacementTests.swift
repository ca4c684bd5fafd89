// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Contracts
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Testing

@Suite("Failures while a keybag is replaced")
struct KeybagReplacementTests {
    let directory: TemporaryDirectory
    let disk: FaultyDisk
    let store: SQLiteItemStore
    private let old = ItemStoreContract.keybag.copies

    init() throws {
        directory = try TemporaryDirectory()
        disk = FaultyDisk(under: directory.path)
        store = try directory.makeStore(options: StoreOptions(busyTimeoutMilliseconds: 500, vfsName: FaultyDisk.vfsName))
        try store.insert([SampleRows.row(account: 1)])
    }

    @Test("A process killed during the replacement leaves the old keybag and the old rows")
    func killed() throws {
        var left: DirectoryCopy?
        try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            try writing.replaceKeybag([9], generation: 8)
            // More than the cache holds, so a part of the change is in the -wal file.
            var large = SampleRows.row(account: 2)
            large.sealedSecret = Array(repeating: 5, count: 12_000_000)
            try writing.insert(large)
            left = try? DirectoryCopy(of: directory)
        }.mustBeWritten()
        let copies = try #require(left)
        let walByteCount = try #require(try copies.directory.contents["keychain.db-wal"]).count
        #expect(walByteCount > 1_000_000, "nothing of the change was in the files yet")
        let opened = try SQLiteItemStore(openingAt: copies.directory.storePath)
        let keybag = try opened.keybag()
        #expect(keybag.generation == 7 && keybag.copies == old)
        #expect(try opened.rows().count == 1)
        #expect(try opened.integrityProblems() == [])
    }

    @Test("A full or failing disk before the commit leaves the old keybag", arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8])
    func failed(code: Int32) throws {
        disk.fail(.wal, .write, with: code)
        let failure = failure { () throws(KeychainFailure) in try store.replaceKeybag([9], generation: 8) }
        #expect(failure?.status == (code == SQLITE_FULL ? .notAvailable : .inputOutput))
        disk.heal()
        let keybag = try store.keybag()
        #expect(keybag.generation == 7 && keybag.copies == old)
        #expect(try !store.isScrubPending())
        try store.replaceKeybag([9], generation: 8)
        #expect(try store.keybag().copies == [[9], [9]])
    }

    @Test("After an unknown outcome the keybag is either the old or the new one, never a mixture")
    func unknownOutcome() throws {
        disk.fail(.wal, .sync, with: SQLITE_IOERR | 4 << 8)
        let failure = failure { () throws(KeychainFailure) in try store.replaceKeybag([9], generation: 8) }
        #expect(failure?.status == .inputOutput)
        #expect(failure?.cause == .outcomeUnknown)
        disk.heal()
        let keybag = try store.keybag()
        #expect(keybag.generation == 8 ? keybag.copies == [[9], [9]] : keybag.generation == 7 && keybag.copies == old)
        #expect(try store.integrityProblems() == [])
        try store.replaceKeybag([10], generation: 9)
        #expect(try store.keybag().copies == [[10], [10]])
        #expect(try !store.isScrubPending())
    }

    @Test("A replacement restores a lost copy of the keybag")
    func lostCopy() throws {
        store.close()
        let database = try RawDatabase(directory.storePath)
        try database.execute("DELETE FROM keybag_copy")
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.replaceKeybag([9], generation: 8)
        #expect(try store.keybag().copies == [[9], [9]])
    }

    @Test("A lock is counted while another process replaces the keybag, and by every process")
    func lockEpoch() throws {
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        try other.replaceKeybag([9], generation: 8)
        try store.advanceLockEpoch(.whenUnlocked)
        try other.advanceLockEpoch(.everything)
        let expected = LockEpoch(rawValue: 0).advanced(by: .whenUnlocked).advanced(by: .everything)
        for store in [store, other] {
            #expect(try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() } == expected)
        }
    }

    @Test("A lock fails and is not counted if the disk fails")
    func lockNotCounted() throws {
        disk.fail(.wal, .write, with: SQLITE_FULL)
        #expect(failure { () throws(KeychainFailure) in try store.advanceLockEpoch(.everything) }?.status == .notAvailable)
        disk.heal()
        #expect(try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() } == LockEpoch(rawValue: 0))
    }

    @Test("A row with an invalid class keeps every class key of its generation in use")
    func damagedClass() throws {
        store.close()
        try RawDatabase(directory.storePath).execute("UPDATE items SET accessibility = 99")
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        let inUse = try store.read { reading throws(KeychainFailure) in try reading.classKeysInUse() }
        #expect(inUse == Set(ItemAccessibility.allCases.map { ClassKeyID($0, generation: 3) }))
    }
}

@Suite("Removal of a replaced keybag from the files")
struct ScrubTests {
    let directory: TemporaryDirectory
    /// Random bytes, which occur nowhere else.
    let oldKeybag = Self.randomBytes(1_400)
    let store: SQLiteItemStore

    init() throws {
        directory = try TemporaryDirectory()
        try SQLiteItemStore.create(at: directory.storePath, storeID: .random(), keybag: oldKeybag, generation: 7).mustBeCreated()
        store = try SQLiteItemStore(openingAt: directory.storePath)
    }

    private static func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: .min ... .max) } }

    private func oldPieces(_ secret: [UInt8]? = nil) throws -> Int { try DirectoryCopy(of: directory).pieces(of: secret ?? oldKeybag) }

    @Test("Neither the database nor the -wal file contains a piece of the old keybag", arguments: [300, 1_400, 9_000])
    func scrubbed(newByteCount: Int) throws {
        // Both copies are found, so the search works.
        #expect(try oldPieces() >= 2 * (oldKeybag.count - 7))
        let newKeybag = Self.randomBytes(newByteCount)
        try store.replaceKeybag(newKeybag, generation: 8)
        #expect(try oldPieces() == 0)
        #expect(try oldPieces(newKeybag) > 0)
        #expect(try !store.isScrubPending())
        #expect(try store.keybag().copies == [newKeybag, newKeybag])
        // From the next replacement on, the old keybag was in the -wal file.
        let thirdKeybag = Self.randomBytes(700)
        try store.replaceKeybag(thirdKeybag, generation: 9)
        #expect(try oldPieces(newKeybag) == 0)
        #expect(try store.keybag().copies == [thirdKeybag, thirdKeybag])
    }

    @Test("Neither file contains a piece of a row that the same write replaced")
    func rowScrubbed() throws {
        let row = SampleRows.row(account: 1, secretByteCount: 6_000)
        try store.insert([row])
        let old = row.wrappedItemKey + row.sealedSecret
        #expect(try oldPieces(old) > 0)
        let outcome = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            var rewrapped = SampleRows.row(account: 1, secretByteCount: 100)
            rewrapped.header.reference = row.header.reference
            try writing.replace(number: 1, with: rewrapped)
            try writing.replaceKeybag([1], generation: 8)
        }
        guard case .written = outcome else { throw KeychainFailure(.internal, "the write was refused") }
        #expect(try oldPieces(old) == 0)
    }

    @Test("While a reader uses the old state the keybag remains, the mark is set, and the next write after the reader removes it")
    func blockedByReader() throws {
        try store.read { reading throws(KeychainFailure) in
            _ = try reading.itemCount()
            try store.replaceKeybag([1, 2, 3], generation: 8)
            #expect(try reading.keybag().generation == 7)
            #expect(try store.isScrubPending())
        }
        #expect(try oldPieces() > 0)
        #expect(try store.keybag().copies == [[1, 2, 3], [1, 2, 3]])
        try store.write(ifKeybagGeneration: 8) { writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 1))
        }.mustBeWritten()
        #expect(try oldPieces() == 0)
        #expect(try !store.isScrubPending())
    }

    @Test("The next opening removes an old keybag left by a process that ended early")
    func laterOpening() throws {
        var left: DirectoryCopy?
        let reader = try RawDatabase(directory.storePath)
        try reader.execute("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM items")
        try store.replaceKeybag([1, 2, 3], generation: 8)
        left = try DirectoryCopy(of: directory)
        let copies = try #require(left)
        #expect(try copies.pieces(of: oldKeybag) > 0)
        let opened = try SQLiteItemStore(openingAt: copies.directory.storePath)
        #expect(try DirectoryCopy(of: copies.directory).pieces(of: oldKeybag) == 0)
        #expect(try !opened.isScrubPending())
        try reader.execute("COMMIT")
    }

    @Test(
        "A disk failure during the removal does not undo the replacement, and the next write removes the old keybag",
        arguments: [true, false])
    func failingDisk(whileWriting: Bool) throws {
        let directory = try TemporaryDirectory()
        let disk = FaultyDisk(under: directory.path)
        try SQLiteItemStore.create(at: directory.storePath, storeID: .random(), keybag: oldKeybag, generation: 7).mustBeCreated()
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
        disk.fail(.database, whileWriting ? .write : .sync, with: SQLITE_IOERR | (whileWriting ? 3 : 4) << 8)
        try store.replaceKeybag([1, 2, 3], generation: 8)
        #expect(try DirectoryCopy(of: directory).pieces(of: oldKeybag) > 0 || !whileWriting)
        disk.heal()
        #expect(try store.keybag().copies == [[1, 2, 3], [1, 2, 3]])
        #expect(try store.isScrubPending())
        try store.write(ifKeybagGeneration: 8) { _ in }.mustBeWritten()
        #expect(try DirectoryCopy(of: directory).pieces(of: oldKeybag) == 0)
        #expect(try !store.isScrubPending())
    }
}
