// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import KeychainStore

@Suite("Turning synchronization on and off", .blocking)
struct SynchronizingTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func schema() throws -> String {
        let database = try RawDatabase(directory.storePath)
        let text = try database.blob("SELECT cast(group_concat(sql, ';') AS BLOB) FROM (SELECT sql FROM sqlite_schema ORDER BY rowid)")
        return "\(try database.integer("PRAGMA user_version")): " + String(decoding: text, as: UTF8.self)
    }

    /// The definitions of a store of format 2, as the first release wrote them.
    private static let plainSchema: String = {
        let columns = """
            class INTEGER NOT NULL,
            id BLOB NOT NULL CHECK (length(id) = 16),
            format_version INTEGER NOT NULL,
            accessibility INTEGER NOT NULL,
            class_key_generation INTEGER NOT NULL,
            is_synchronizable INTEGER NOT NULL,
            is_tombstone INTEGER NOT NULL,
            service_digest BLOB NOT NULL CHECK (length(service_digest) = 16),
            account_digest BLOB NOT NULL CHECK (length(account_digest) = 16),
            remaining_key_digest BLOB NOT NULL CHECK (length(remaining_key_digest) = 16),
            access_group_digest BLOB NOT NULL CHECK (length(access_group_digest) = 16),
            revision BLOB NOT NULL CHECK (length(revision) = 16),
            attribute_digests BLOB NOT NULL,
            constraints BLOB,
            wrapped_item_key BLOB NOT NULL,
            tag BLOB NOT NULL,
            sealed_attributes BLOB NOT NULL,
            sealed_secret BLOB NOT NULL
            """
        let names = """
            class, id, format_version, accessibility, class_key_generation, is_synchronizable, is_tombstone, service_digest, \
            account_digest, remaining_key_digest, access_group_digest, revision, attribute_digests, constraints, wrapped_item_key, tag, \
            sealed_attributes, sealed_secret
            """
        return """
            2: CREATE TABLE items (number INTEGER PRIMARY KEY, \(columns)) STRICT;\
            CREATE UNIQUE INDEX items_primary_key ON items (account_digest, service_digest, remaining_key_digest);\
            CREATE INDEX items_service ON items (service_digest);\
            CREATE UNIQUE INDEX items_id ON items (id);\
            CREATE TABLE item_attributes (
                attribute INTEGER NOT NULL, digest BLOB NOT NULL, item INTEGER NOT NULL,
                PRIMARY KEY (attribute, digest, item)
            ) STRICT, WITHOUT ROWID;\
            CREATE TABLE quarantine (number INTEGER PRIMARY KEY, seconds REAL NOT NULL, \(names));\
            CREATE TABLE keybag (number INTEGER PRIMARY KEY CHECK (number = 1), bytes BLOB NOT NULL) STRICT;\
            CREATE TABLE keybag_copy (number INTEGER PRIMARY KEY CHECK (number = 1), bytes BLOB NOT NULL) STRICT;\
            CREATE TABLE meta (
                number INTEGER PRIMARY KEY CHECK (number = 1),
                store_id BLOB NOT NULL CHECK (length(store_id) = 16),
                keybag_generation INTEGER NOT NULL,
                scrub_pending INTEGER NOT NULL,
                lock_epoch INTEGER NOT NULL,
                state BLOB
            ) STRICT
            """
    }()

    @Test("A store that never synchronized, and one that stopped, have the schema and the version of before")
    func plain() throws {
        do { try directory.makeStore().insert([SampleRows.row(account: 1, isSynchronizable: true)]) }
        #expect(try schema() == Self.plainSchema)
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            try store.startSynchronizing()
            try store.insert([SampleRows.row(account: 2, isSynchronizable: true)])
            #expect(try schema().hasPrefix("3: \(Self.plainSchema.dropFirst(3));CREATE TABLE sync_changes"))
            try store.stopSynchronizing()
        }
        #expect(try schema() == Self.plainSchema)
    }

    @Test("A stop writes little, however much the ledger has, and erases conflict copies")
    func cheapStop() throws {
        let store = try directory.makeStore()
        try store.startSynchronizing()
        let copy = SampleRows.row(account: 1, isSynchronizable: true)
        try store.writeLedger(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            for number in 0..<4_000 as Range<UInt64> {
                try writing.insert(SampleVersions.live(number, origin: SampleVersions.origin(1), name: number, item: .random()))
            }
            try writing.insert(OutgoingObject(name: "b/1", bytes: SampleVersions.bytes(1 << 20)))
            try writing.insertCopy(copy, of: VersionReference(id: SyncVersionID(.random()), origin: nil), at: 1)
        }.mustBeWritten()
        store.close()
        func isInFile(_ bytes: [UInt8]) throws -> Bool {
            try Data(contentsOf: URL(filePath: directory.storePath)).firstRange(of: bytes) != nil
        }
        #expect(try isInFile(copy.header.revision.bytes))
        let stopping = try SQLiteItemStore(openingAt: directory.storePath)
        try stopping.stopSynchronizing()
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.storePath + "-wal")
        #expect(try #require(attributes[.size] as? Int) < 200_000)
        // Afterwards, what is removed is overwritten again.
        let row = SampleRows.row(account: 2)
        try stopping.insert([row])
        try stopping.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            for row in try writing.rows() { try writing.remove(number: row.number ?? 0) }
        }.mustBeWritten()
        stopping.close()
        #expect(try !isInFile(copy.header.revision.bytes) && !isInFile(row.header.revision.bytes))
    }

    // MARK: Programs of other versions

    /// Emulates a program that does not know the ledger.
    private var older: StoreOptions {
        var options = StoreOptions()
        options.newestKnownFormat = 2
        return options
    }

    private func newerVersion(_ body: () throws(KeychainFailure) -> Void) -> Bool {
        failure(of: body)?.cause == .newerVersion
    }

    @Test("An older program that has the store open is refused at its next write, reads on, and writes again after the stop")
    func openProgram() throws {
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        let program = try SQLiteItemStore(openingAt: directory.storePath, options: older)
        let reader = try SQLiteItemStore(openingAt: directory.storePath, options: older)
        try program.insert([SampleRows.row(account: 2)])
        #expect(try reader.rows().count == 2)
        try store.startSynchronizing()
        for sharesFlush in [false, true] {
            #expect(
                newerVersion { () throws(KeychainFailure) in
                    _ = try program.write(ifKeybagGeneration: 7, sharesFlush: sharesFlush) { writing throws(KeychainFailure) in
                        try writing.insert(SampleRows.row(account: 3, isSynchronizable: true))
                    }
                })
        }
        #expect(newerVersion { () throws(KeychainFailure) in try program.advanceLockEpoch(.everything) })
        #expect(newerVersion { () throws(KeychainFailure) in try reader.insert([SampleRows.row(account: 3)]) })
        #expect(try program.rows().count == 2 && reader.rows().count == 2)
        #expect(newerVersion { () throws(KeychainFailure) in _ = try SQLiteItemStore(openingAt: directory.storePath, options: older) })
        try store.insert([SampleRows.row(account: 3, isSynchronizable: true)])
        try store.stopSynchronizing()
        try program.insert([SampleRows.row(account: 4)])
        let reopened = try SQLiteItemStore(openingAt: directory.storePath, options: older)
        #expect(try reopened.rows().count == 4)
    }

    @Test("A write that another process's start overtakes while it waits is refused")
    func overtaken() throws {
        let store = try directory.makeStore()
        let program = try SQLiteItemStore(openingAt: directory.storePath, options: older)
        let newer = try SQLiteItemStore(openingAt: directory.storePath)
        // The writers' connections exist, and the start is between two writes.
        for open in [store, program, newer] { try open.insert([SampleRows.row(account: .random(in: 0 ... .max))]) }
        try store.startSynchronizing()
        let row = SampleRows.row(account: 1, isSynchronizable: true)
        try newer.insert([row])
        #expect(newerVersion { () throws(KeychainFailure) in try program.insert([SampleRows.row(account: 2)]) })
        #expect(try store.recordedItems() == [row.header.reference.id])
    }

    // MARK: Groups

    @Test("A failed member of a group commit leaves no record, the others leave theirs")
    func groups() throws {
        var options = StoreOptions()
        options.groupNanosecondLimit = 10_000_000_000
        let store = try directory.makeStore(options: options)
        try store.startSynchronizing()
        let rows = (1...6).map { SampleRows.row(account: $0, isSynchronizable: true) }
        let failing = ConcurrentWrites.Write { writing throws(KeychainFailure) in
            try writing.insert(rows[4])
            throw KeychainFailure(.decode, "thrown by the body")
        }
        let twin = ConcurrentWrites.Write { writing throws(KeychainFailure) in
            try writing.insert(rows[5])
            try writing.insert(SampleRows.row(account: 1, isSynchronizable: true))
        }
        let outcomes = ConcurrentWrites(store: store).run(
            .inserting(rows[0]), [.inserting(rows[1]), failing, .inserting(rows[2]), twin, .inserting(rows[3])])
        #expect(outcomes.map { $0 == .written } == [true, true, false, true, false, true])
        #expect(try store.recordedItems() == Set(rows[...3].map(\.header.reference.id)))
    }

    // MARK: State, schema, and snapshots

    private func makeProtectedStore() throws -> SQLiteItemStore {
        let cipher = PlainStateCipher()
        let keybag = ItemStoreContract.keybag
        try SQLiteItemStore.create(
            at: directory.storePath, storeID: .random(), keybag: keybag.copies[0], generation: keybag.generation,
            state: cipher.seal(.initial(keybagDigest: cipher.digest(ofKeybag: keybag.copies[0])))
        ).mustBeCreated()
        return try openProtectedStore()
    }

    private func openProtectedStore() throws -> SQLiteItemStore {
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.protect(with: PlainStateCipher(), using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
        return store
    }

    @Test("The state counts a start and a stop, and changes of items, but nothing that concerns the ledger alone")
    func state() throws {
        let store = try makeProtectedStore()
        try store.insert([SampleRows.row(account: 1, isSynchronizable: true)])
        #expect(try store.changeCount() == 2)
        try store.startSynchronizing()
        #expect(try store.changeCount() == 3)
        try store.writeLedger(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            try writing.set(.waits, to: [1])
            try writing.insertCopy(SampleRows.row(account: 1), of: VersionReference(id: SyncVersionID(.random()), origin: nil), at: 1)
        }.mustBeWritten()
        #expect(try store.changeCount() == 3)
        try store.writeLedger(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
            try writing.insert(SampleRows.row(account: 2, isSynchronizable: true))
        }.mustBeWritten()
        #expect(try store.changeCount() == 4)
        #expect(try store.stateProblem(readingAllRows: true) == nil && store.integrityProblems() == [])
        try openProtectedStore().close()
        try store.stopSynchronizing()
        #expect(try store.changeCount() == 5)
        #expect(try openProtectedStore().stateProblem(readingAllRows: true) == nil)
    }

    @Test(
        "A ledger with other tables than those of the format is refused",
        arguments: [
            "DROP TABLE sync_pending", "PRAGMA user_version = 2", "CREATE TABLE sync_more (a)",
            "CREATE TRIGGER t AFTER INSERT ON items BEGIN SELECT 1; END",
        ])
    func alteredSchema(sql: String) throws {
        let store = try makeProtectedStore()
        try store.startSynchronizing()
        store.close()
        try RawDatabase(directory.storePath).execute(sql)
        #expect {
            try openProtectedStore()
        } throws: {
            ($0 as? KeychainFailure)?.cause == .unexpectedState(.schemaAltered)
        }
    }

    @Test("A snapshot contains the ledger")
    func snapshot() throws {
        let place = try TemporaryDirectory()
        let store = try directory.makeStore()
        try store.startSynchronizing()
        let row = SampleRows.row(account: 1, isSynchronizable: true)
        try store.insert([row])
        try store.snapshot(to: place.storePath)
        try store.stopSynchronizing()
        let copy = try SQLiteItemStore(openingAt: place.storePath)
        #expect(try copy.recordedItems() == [row.header.reference.id])
        copy.close()
        store.close()
        let restoration = SnapshotRestoration(directory.storePath)
        guard case .done = try restoration.run(from: place.storePath, originalSuffix: ".before", { _ in .replace() }) else {
            Issue.record("the snapshot was declined")
            return
        }
        #expect(try SQLiteItemStore(openingAt: directory.storePath).recordedItems() == [row.header.reference.id])
    }

    @Test("The ledger in a file gives the same answers as the one in memory, after any operations")
    func sameAsInMemory() throws {
        try LedgerComparison(seed: .random(in: 0 ... .max)).run(try directory.makeStore(), roundCount: Scale.pick(60, full: 1_000))
    }
}

extension SyncStore {
    /// The items of which a change is recorded.
    func recordedItems() throws(KeychainFailure) -> Set<ItemID> {
        try readLedger { reading throws(KeychainFailure) in
            var items: Set<ItemID> = []
            for kind in RecordedChange.Kind.allCases { items.formUnion(try reading.recordedChanges(kind, limit: .max).map(\.item)) }
            return items
        }
    }
}
