// SPDX-License-Identifier: Apache-2.0
import CSQLite
import KeychainCore
import KeychainStore
import KeychainTesting
import Testing

@Suite("A replaced keybag leaves nothing behind in the files")
struct ScrubTests {
    let directory: TemporaryDirectory
    /// Nothing like it is anywhere else.
    let oldKeybag = Self.randomBytes(1_400)
    let store: SQLiteItemStore

    init() throws {
        directory = try TemporaryDirectory()
        try SQLiteItemStore.create(at: directory.storePath, storeID: .random(), keybag: oldKeybag, generation: 7).mustBeCreated()
        store = try SQLiteItemStore(openingAt: directory.storePath)
    }

    private static func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: .min ... .max) } }

    private func oldPieces(_ secret: [UInt8]? = nil) throws -> Int { try FileCopies(of: directory).pieces(of: secret ?? oldKeybag) }

    @Test("Neither the database nor the -wal file holds a piece of it", arguments: [300, 1_400, 9_000])
    func scrubbed(newByteCount: Int) throws {
        // Both copies, whole: the search finds what is there.
        #expect(try oldPieces() >= 2 * (oldKeybag.count - 7))
        let newKeybag = Self.randomBytes(newByteCount)
        try store.replaceKeybag(newKeybag, generation: 8)
        #expect(try oldPieces() == 0)
        #expect(try oldPieces(newKeybag) > 0)
        #expect(try !store.isScrubPending())
        #expect(try store.keybag().copies == [newKeybag, newKeybag])
        // From the next one on, the old keybag lay in the -wal file before.
        let thirdKeybag = Self.randomBytes(700)
        try store.replaceKeybag(thirdKeybag, generation: 9)
        #expect(try oldPieces(newKeybag) == 0)
        #expect(try store.keybag().copies == [thirdKeybag, thirdKeybag])
    }

    @Test("Nor of a row that the same write replaced")
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

    @Test("A reader of the state before keeps it in the files, the mark says so, and the next write after the reader removes it")
    func readerInTheWay() throws {
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

    @Test("What a process that ended too early left there is removed at the next opening")
    func laterOpening() throws {
        var left: FileCopies?
        let reader = try RawDatabase(directory.storePath)
        try reader.run("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM items")
        try store.replaceKeybag([1, 2, 3], generation: 8)
        left = try FileCopies(of: directory)
        let copies = try #require(left)
        #expect(try copies.pieces(of: oldKeybag) > 0)
        let opened = try SQLiteItemStore(openingAt: copies.directory.storePath)
        #expect(try FileCopies(of: copies.directory).pieces(of: oldKeybag) == 0)
        #expect(try !opened.isScrubPending())
        try reader.run("COMMIT")
    }

    @Test(
        "A disk that fails while the old keybag is removed does not undo the change, and the next write removes it",
        arguments: [true, false])
    func failingDisk(whileWriting: Bool) throws {
        let directory = try TemporaryDirectory()
        let disk = FaultyDisk(under: directory.path)
        try SQLiteItemStore.create(at: directory.storePath, storeID: .random(), keybag: oldKeybag, generation: 7).mustBeCreated()
        let store = try SQLiteItemStore(openingAt: directory.storePath, options: StoreOptions(vfsName: FaultyDisk.vfsName))
        disk.fail(.database, whileWriting ? .write : .sync, with: SQLITE_IOERR | (whileWriting ? 3 : 4) << 8)
        try store.replaceKeybag([1, 2, 3], generation: 8)
        #expect(try FileCopies(of: directory).pieces(of: oldKeybag) > 0 || !whileWriting)
        disk.heal()
        #expect(try store.keybag().copies == [[1, 2, 3], [1, 2, 3]])
        #expect(try store.isScrubPending())
        try store.write(ifKeybagGeneration: 8) { _ in }.mustBeWritten()
        #expect(try FileCopies(of: directory).pieces(of: oldKeybag) == 0)
        #expect(try !store.isScrubPending())
    }
}
