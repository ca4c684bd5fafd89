// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import Keybag
internal import KeychainCore
internal import KeychainStore
internal import KeychainTestSupport
internal import SyncCore

/// The store of the product, in a directory of its own, with the production path of programs' calls and of the agent's transactions.
final class StoreDisk: SimulatedDisk {
    static let entitlements = Entitlements(applicationIdentifier: "SyncStorm")

    private let directory: TemporaryDirectory
    private var store: SQLiteItemStore
    private let keybag: OpenKeybag
    private let keys: LockableKeys
    private let clock = SimulatedClock()
    private var itemNames: [Int: ItemName] = [:]
    private var path: String { directory.path + "/keychain.db" }

    var lockedLanes: Set<Lane> {
        get { keys.lockedLanes }
        set { keys.lockedLanes = newValue }
    }

    /// Creates a store that synchronizes.
    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/keychain.db"
        let storeID = StoreID.random()
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: secret, protector: KeybagDocument.ProtectorRecord(kind: .keyFile))
        keybag = try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: secret)
        let state = StoreState.initial(keybagDigest: keybag.stateCipher.digest(ofKeybag: document.encoded))
        _ = try SQLiteItemStore.create(
            at: path, storeID: storeID, keybag: document.encoded, generation: document.generation, state: keybag.stateCipher.seal(state))
        keys = LockableKeys(keybag)
        store = try Self.open(path, keybag)
        try store.startSynchronizing()
    }

    /// Copies a store, as a backup or a clone of the machine does.
    private init(copying original: StoreDisk) throws {
        directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/keychain.db"
        // SQLite's locks would be lost if a file was opened and closed beside its connections. Closing the last one empties the -wal file.
        original.store.close()
        try FileManager.default.copyItem(atPath: original.path, toPath: path)
        original.store = try Self.open(original.path, original.keybag)
        keybag = original.keybag
        keys = LockableKeys(keybag)
        keys.lockedLanes = original.lockedLanes
        itemNames = original.itemNames
        store = try Self.open(path, keybag)
    }

    deinit { store.close() }

    func leaveCircle() throws(KeychainFailure) {
        try store.stopSynchronizing()
        try store.startSynchronizing()
    }

    func copied() throws -> any SimulatedDisk { try StoreDisk(copying: self) }

    private static func open(_ path: String, _ keybag: OpenKeybag) throws(KeychainFailure) -> SQLiteItemStore {
        let store = try SQLiteItemStore(openingAt: path)
        try store.protect(with: keybag.stateCipher, rowCipher: keybag.cipher, using: keybag.usedCopy, anchorPaths: [])
        return store
    }

    // MARK: The agent

    /// Returns the keychain as programs and the agent see it, or, for the oracle, as if it was unlocked.
    private func keychain(unlocked isUnlocked: Bool = false) -> SealedKeychain {
        SealedKeychain(
            store: store, keys: isUnlocked ? keybag : keys, cipher: keybag.cipher, clock: clock, entitlements: Self.entitlements,
            log: { _ in })
    }

    func transaction(
        rollsBack: Bool, _ body: (SyncTransaction) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        var isRolledBack = false
        do throws(KeychainFailure) {
            try keychain().synchronize { ledger, items throws(KeychainFailure) in
                try body(SyncTransaction(ledger: ledger, items: items))
                guard rollsBack else { return }
                isRolledBack = true
                throw KeychainFailure(.internal, "the process ended before the commit")
            }
        } catch {
            guard isRolledBack else { throw error }
        }
    }

    func read<Result>(_ body: (any SyncReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        try store.readLedger { reading throws(KeychainFailure) in try body(reading) }
    }

    func snapshot<Result>(
        _ body: (any SyncReading, any SyncItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result { try keychain().readSynchronized(body) }

    // MARK: Programs

    func itemName(of name: Int) throws(KeychainFailure) -> ItemName {
        if let known = itemNames[name] { return known }
        let content = ProductionParts().encoded(SimulatedContent(name: name, accessibility: .always, date: 0, value: 0))
        let summary = try keychain().synchronize { _, items throws(KeychainFailure) in try items.summary(of: content) }
        guard let summary else { throw KeychainFailure(.internal, "a simulated item may not synchronize") }
        itemNames[name] = summary.name
        return summary.name
    }

    func row(named name: Int) throws(KeychainFailure) -> SimulatedRow? {
        do throws(KeychainFailure) {
            return try rows(matching: query(name)).first
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }

    func put(
        _ content: SimulatedContent, over row: SimulatedRow?, revision: SyncVersionID
    ) throws(KeychainFailure) -> SyncVersionID {
        clock.seconds = content.date
        let secret = Data(ProductionParts.secret(of: content.value))
        if let row {
            let isMoved = content.name != row.content.name
            try keychain().update(
                UpdateRequest(
                    query: query(row.content.name),
                    changes: isMoved ? ItemAttributes([.account: .string(String(content.name))]) : ItemAttributes(),
                    secret: isMoved ? nil : secret, accessibility: content.accessibility))
            if isMoved { try plantMissedRename(of: row.item) }
        } else {
            var attributes = ProductionParts.primaryKey(of: content.name)
            attributes[.synchronizable] = .number(1)
            attributes[.tombstone] = .number(0)
            _ = try keychain().add(
                AddRequest(
                    itemClass: .genericPassword, attributes: attributes, secret: secret,
                    accessControl: AccessControl(content.accessibility)))
        }
        guard let written = try self.row(named: content.name), written.content == content else {
            throw KeychainFailure(.internal, "an item is not what a program has just written")
        }
        return written.revision
    }

    func delete(_ row: SimulatedRow) throws(KeychainFailure) { try keychain().delete(DeleteRequest(query: query(row.content.name))) }

    private func query(_ name: Int?) -> ItemQuery {
        ItemQuery(
            itemClass: .genericPassword, attributes: name.map { ProductionParts.primaryKey(of: $0) } ?? ItemAttributes(),
            synchronizability: .synchronizable)
    }

    /// Returns the items and their revisions, which no call of a program shows.
    private func rows(matching query: ItemQuery) throws(KeychainFailure) -> [SimulatedRow] {
        let items = try keychain(unlocked: true).copyMatching(MatchRequest(query: query, limit: nil, includesSecrets: true))
        return try store.read { reading throws(KeychainFailure) in
            var rows: [SimulatedRow] = []
            for item in items {
                let content = ProductionParts.content(item.attributes, item.accessControl.accessibility, item.secret.map { Array($0) })
                guard let content else { throw KeychainFailure(.internal, "an item is not one of the simulation") }
                let id = item.reference.id
                try reading.forEachRow(matching: RowQuery(id: id), includingSecrets: false) { row in
                    rows.append(SimulatedRow(item: id, content: content, revision: SyncVersionID(row.header.revision)))
                    return .proceed
                }
            }
            return rows
        }
    }

    /// A planted fault: the store has not recorded that an item was renamed.
    private func plantMissedRename(of item: ItemID) throws(KeychainFailure) {
        guard PlantedFaults.isPlanted(.captureMissesRename) else { return }
        try keychain().synchronize { ledger, _ throws(KeychainFailure) in try ledger.eraseRecordedChange(item) }
    }

    // MARK: The oracle

    func isStored(_ statement: StatementHash) throws(KeychainFailure) -> Bool {
        try read { ledger throws(KeychainFailure) in try ledger.statements().contains { $0.hash == statement } }
    }

    func progress() throws(KeychainFailure) -> Int {
        try read { ledger throws(KeychainFailure) in
            var count = try ledger.statements().count
            for log in try ledger.logs() { count += try ledger.readBatches(of: log).count }
            return count
        }
    }

    func restingState() throws -> RestingState {
        var state = try read { ledger throws(KeychainFailure) in
            var state = RestingState()
            state.live = Set(try ledger.liveVersions(after: nil, limit: .max).map(\.reference))
            state.awaited = Set(try ledger.awaitedVersions(after: nil, limit: .max))
            for log in try ledger.logs() { state.read.formUnion(try ledger.readBatches(of: log).map(\.origin)) }
            for lane in Lane.allCases { state.pendingCount += try ledger.pendingVersions(in: lane, limit: .max).count }
            for kind in RecordedChange.Kind.allCases where try !ledger.recordedChanges(kind, limit: 1).isEmpty {
                state.hasChanges = true
            }
            return state
        }
        do throws(KeychainFailure) {
            state.rows = try rows(matching: query(nil)).filter { !$0.content.accessibility.isThisDeviceOnly }
        } catch {
            guard error.status == .itemNotFound else { throw error }
        }
        // Nothing is written; only the agent's transactions open contents.
        try keychain(unlocked: true).synchronize { ledger, items throws(KeychainFailure) in
            for version in try ledger.liveVersions(after: nil, limit: .max) where version.reference.origin == nil {
                let content = try items.content(of: version).flatMap { ProductionParts().decoded($0) }
                state.unshared[version.reference.id] = (content, version.item == nil)
            }
        }
        // Also copies of versions that are not live, which the ledger would never show.
        state.copyCount = try RawDatabase(path).integer("SELECT count(*) FROM sync_copies")
        state.problem = try store.stateProblem(using: keybag.usedCopy, readingAllRows: true).map { "\($0)" }
        return state
    }
}

/// The time of a machine, for dates of items.
// A simulation has a single thread.
private final class SimulatedClock: WallClock, @unchecked Sendable {
    var seconds = 0.0

    func now() -> Double { seconds }
}

/// The keys of a keybag without those of locked lanes, in place of a passcode.
// A simulation has a single thread.
private final class LockableKeys: KeyProvider, @unchecked Sendable {
    private let keybag: OpenKeybag
    var lockedLanes: Set<Lane> = []

    init(_ keybag: OpenKeybag) { self.keybag = keybag }

    var keybagGeneration: UInt64 { keybag.keybagGeneration }

    func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32 {
        try keybag.currentGeneration(for: accessibility)
    }

    func availability(of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading) -> KeyAvailability {
        isLocked(accessibility) ? .locked : keybag.availability(of: accessibility, generation: generation, lockEpoch: lockEpoch)
    }

    func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard !isLocked(accessibility) else { throw KeychainFailure(.interactionNotAllowed, "the class is locked", cause: .locked) }
        return try keybag.withClassKey(for: accessibility, generation: generation, lockEpoch: lockEpoch, body)
    }

    func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider { self }

    /// The classes of the lanes alone: `always` is never locked.
    private func isLocked(_ accessibility: ItemAccessibility) -> Bool {
        accessibility == .whenUnlocked && lockedLanes.contains(.whenUnlocked)
            || accessibility == .afterFirstUnlock && lockedLanes.contains(.afterFirstUnlock)
    }
}
