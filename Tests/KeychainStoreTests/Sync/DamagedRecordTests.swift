// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import KeychainStore

@Suite("Damaged records of changes", .blocking)
struct DamagedRecordTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let pageByteCount = 4_096

    private var cipher: PlainStateCipher { PlainStateCipher() }

    private func open() throws -> SQLiteItemStore {
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.protect(with: cipher, using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
        return store
    }

    /// Makes a closed store with records of this many items.
    private func make(recordCount: Int) throws {
        let keybag = ItemStoreContract.keybag
        try SQLiteItemStore.create(
            at: directory.storePath, storeID: .random(), keybag: keybag.copies[0], generation: keybag.generation,
            state: cipher.seal(.initial(keybagDigest: cipher.digest(ofKeybag: keybag.copies[0])))
        ).mustBeCreated()
        let store = try open()
        try store.startSynchronizing()
        try store.insert((0..<UInt64(recordCount)).map { SampleRows.row(account: $0, isSynchronizable: true, secretByteCount: 100) })
        store.close()
    }

    enum Place: CaseIterable {
        case onlyPage, root, leaf

        /// So many records that the table has the page.
        var recordCount: Int { self == .onlyPage ? 20 : 1_000 }
    }

    /// Overwrites a page of the table.
    private func damage(_ place: Place) throws {
        var page = try RawDatabase(directory.storePath).integer("SELECT rootpage FROM sqlite_schema WHERE name = 'sync_changes'")
        let handle = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
        if place == .leaf {
            // The root has interior cells only, and the number of its last child at offset 8.
            try handle.seek(toOffset: UInt64((page - 1) * Self.pageByteCount))
            let root = try #require(try handle.read(upToCount: 12))
            #expect(root[0] == 2)
            page = root.suffix(4).reduce(0) { $0 << 8 | Int($1) }
        }
        try handle.seek(toOffset: UInt64((page - 1) * Self.pageByteCount))
        try handle.write(contentsOf: Data(repeating: 0x5A, count: 2_000))
        try handle.close()
    }

    @Test(
        "The next write of a synchronizable item discards the records, and says that they are missing",
        arguments: Place.allCases, [false, true])
    func healed(_ place: Place, isOpen: Bool) throws {
        try make(recordCount: place.recordCount)
        // A store that is open does not look at the page before it writes to it.
        let early = isOpen ? try open() : nil
        try damage(place)
        let store = try early ?? open()
        var row = SampleRows.row(account: 5_000, isSynchronizable: true)
        // Its record belongs at the end, on the page that is damaged.
        row.header.reference = PersistentReference(itemClass: .genericPassword, id: Identifier128(high: .max, low: .max))
        try store.insert([row])
        #expect(try store.rows().count == place.recordCount + 1)
        #expect(try store.recordedItems() == [row.header.reference.id])
        #expect(try store.readLedger { reading throws(KeychainFailure) in try reading.mayLackRecords() })
        #expect(try store.integrityProblems() == [])
        #expect(try store.stateProblem(readingAllRows: true) == nil)
        store.close()
        let reopened = try open()
        #expect(try reopened.integrityProblems() == [])
        // The ledger knows no version, so every row was written by a program.
        var count = 0
        try reopened.writeLedger(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in count = try writing.recordUnknownRows() }
            .mustBeWritten()
        #expect(count == place.recordCount)
        #expect(try reopened.recordedItems().count == place.recordCount + 1)
        #expect(try !reopened.readLedger { reading throws(KeychainFailure) in try reading.mayLackRecords() })
        reopened.close()
        #expect(try PageChecksumTests.wrongPages(directory.storePath) == [])
    }

    @Test("If a page of another table is damaged too, nothing is discarded")
    func otherDamage() throws {
        try make(recordCount: 20)
        try damage(.onlyPage)
        let page = try RawDatabase(directory.storePath).integer("SELECT rootpage FROM sqlite_schema WHERE name = 'sync_statements'")
        let handle = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
        try handle.seek(toOffset: UInt64((page - 1) * Self.pageByteCount))
        try handle.write(contentsOf: Data(repeating: 0x5A, count: 2_000))
        try handle.close()
        let before = try Data(contentsOf: URL(filePath: directory.storePath))
        let store = try open()
        let refusal = failure { () throws(KeychainFailure) in
            try store.insert([SampleRows.row(account: 5_000, isSynchronizable: true)])
        }
        #expect(refusal?.isDamage == true)
        #expect(try store.rows().count == 20)
        store.close()
        #expect(try Data(contentsOf: URL(filePath: directory.storePath)) == before)
    }

    @Test("A repair keeps the ledger, restores a format that a flipped bit has changed, and says that records may be missing")
    func repair() throws {
        try make(recordCount: 20)
        let handle = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
        // The last byte of the user version.
        try handle.seek(toOffset: 63)
        try handle.write(contentsOf: [2])
        try handle.close()
        let outcome = try StoreRepair(directory.storePath).run(originalSuffix: ".before") { copy throws(KeychainFailure) in
            let store = try SQLiteItemStore(openingAt: copy.path)
            defer { store.close() }
            return try store.stateProblem(in: PlainStateCipher(), using: ItemStoreContract.keybag) == nil
        }
        #expect(outcome == .done(original: directory.storePath + ".before"))
        let store = try open()
        #expect(try store.recordedItems().count == 20)
        #expect(try store.readLedger { reading throws(KeychainFailure) in try reading.mayLackRecords() })
        try store.insert([SampleRows.row(account: 5_000, isSynchronizable: true)])
        #expect(try store.recordedItems().count == 21)
    }
}
