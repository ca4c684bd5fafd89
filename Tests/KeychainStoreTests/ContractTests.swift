// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import KeychainTesting
import Testing

/// A correct store behind a wrapper that adds one fault.
struct BrokenStore: SyncStore {
    enum Fault: CaseIterable {
        case reversesRows, handsOutSecrets, passesOverStop, ignoresGroups, ignoresAttributes, ignoresKeybag, keepsFailedWrites
        case replacesTwins, losesKeptRows, countsTombstones, losesQuarantine
        case forgetsLocks, mixesUpLocks, countsNewestGeneration, beginsBatchesAnew, forgetsKeysOfQuarantine, losesGeneration
        case concealsExcludedRows
        case forgetsRecords, recordsResealing, keepsLedger
    }

    private let good: InMemoryItemStore
    private let fault: Fault?

    init(_ good: InMemoryItemStore, _ fault: Fault?) {
        self.good = good
        self.fault = fault
    }

    func read<Result>(_ body: (any ItemReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        try good.read { reading throws(KeychainFailure) in try body(BrokenReading(reading: reading, fault: fault)) }
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        var failure: KeychainFailure?
        let generation = fault == .ignoresKeybag ? ItemStoreContract.keybag.generation : generation
        if fault == .forgetsRecords, good.isSynchronizing() {
            return try good.writeLedger(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in try body(writing) }
        }
        let outcome = try good.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) -> Result? in
            do throws(KeychainFailure) {
                return try body(BrokenWriting(writing: writing, fault: fault))
            } catch {
                guard fault == .keepsFailedWrites else { throw error }
                failure = error
                return nil
            }
        }
        if let failure { throw failure }
        guard case .written(let result?) = outcome else { return .keybagChanged }
        return .written(result)
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        guard fault != .forgetsLocks else { return }
        good.advanceLockEpoch(fault == .mixesUpLocks ? .whenUnlocked : extent)
    }

    func isSynchronizing() throws(KeychainFailure) -> Bool { good.isSynchronizing() }
    func startSynchronizing() throws(KeychainFailure) { try good.startSynchronizing() }

    func stopSynchronizing() throws(KeychainFailure) {
        if fault != .keepsLedger { try good.stopSynchronizing() }
    }

    func readLedger<Result>(
        _ body: (any SyncStoreReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try good.readLedger(body)
    }

    func writeLedger<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any SyncStoreWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try good.writeLedger(ifKeybagGeneration: generation, body)
    }
}

private struct BrokenReading: ItemReading {
    let reading: any ItemReading
    let fault: BrokenStore.Fault?

    @discardableResult
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Bool {
        var query = query
        if fault == .ignoresGroups { query.accessGroupDigests = nil }
        if fault == .ignoresAttributes { query.attributeDigests = [] }
        var rows: [SealedRow] = []
        let hasExcludedRow = try reading.forEachRow(matching: query, includingSecrets: includingSecrets || fault == .handsOutSecrets) {
            row in
            rows.append(row)
            return .proceed
        }
        if fault == .reversesRows { rows.reverse() }
        for row in rows {
            guard try body(row) == .proceed || fault == .passesOverStop else { break }
        }
        return hasExcludedRow && fault != .concealsExcludedRows
    }

    func itemCount() throws(KeychainFailure) -> Int {
        guard fault == .countsTombstones else { return try reading.itemCount() }
        var count = 0
        try reading.forEachRow(matching: RowQuery(), includingSecrets: false) { _ in
            count += 1
            return .proceed
        }
        return count
    }

    func keybag() throws(KeychainFailure) -> StoredKeybag { try reading.keybag() }

    func quarantinedRows() throws(KeychainFailure) -> [QuarantinedRow] {
        fault == .losesQuarantine ? [] : try reading.quarantinedRows()
    }

    func lockEpoch() throws(KeychainFailure) -> LockEpoch { try reading.lockEpoch() }

    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int {
        try reading.rowCount(underPasscodeKeysBelow: fault == .countsNewestGeneration ? generation + 1 : generation)
    }

    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        try reading.forEachRow(underPasscodeKeysBelow: generation, after: fault == .beginsBatchesAnew ? 0 : number, body)
    }

    func classKeysInUse() throws(KeychainFailure) -> Set<ClassKeyID> {
        let keys = try reading.classKeysInUse()
        guard fault == .forgetsKeysOfQuarantine else { return keys }
        return keys.subtracting(
            try reading.quarantinedRows().map { ClassKeyID($0.row.header.accessibility, generation: $0.row.header.classKeyGeneration) })
    }
}

private struct BrokenWriting: ItemWriting {
    let writing: any ItemWriting
    let fault: BrokenStore.Fault?

    private var broken: BrokenReading { BrokenReading(reading: writing, fault: fault) }

    @discardableResult
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Bool {
        try broken.forEachRow(matching: query, includingSecrets: includingSecrets, body)
    }

    func itemCount() throws(KeychainFailure) -> Int { try broken.itemCount() }
    func keybag() throws(KeychainFailure) -> StoredKeybag { try broken.keybag() }
    func quarantinedRows() throws(KeychainFailure) -> [QuarantinedRow] { try broken.quarantinedRows() }

    func lockEpoch() throws(KeychainFailure) -> LockEpoch { try broken.lockEpoch() }

    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int {
        try broken.rowCount(underPasscodeKeysBelow: generation)
    }

    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        try broken.forEachRow(underPasscodeKeysBelow: generation, after: number, body)
    }

    func classKeysInUse() throws(KeychainFailure) -> Set<ClassKeyID> { try broken.classKeysInUse() }

    func insert(_ row: SealedRow) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try writing.insert(row)
        } catch {
            guard fault == .replacesTwins, error.status == .duplicateItem else { throw error }
        }
    }

    func replace(number: Int64, with row: SealedRow) throws(KeychainFailure) {
        var row = row
        if fault == .recordsResealing { row.header.revision = .random() }
        try writing.replace(number: number, with: row)
        if fault == .losesKeptRows { try writing.remove(number: number) }
    }

    func remove(number: Int64) throws(KeychainFailure) { try writing.remove(number: number) }
    func quarantine(number: Int64, at seconds: Double) throws(KeychainFailure) { try writing.quarantine(number: number, at: seconds) }
    func purgeQuarantine() throws(KeychainFailure) { try writing.purgeQuarantine() }

    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure) {
        try writing.replaceKeybag(bytes, generation: fault == .losesGeneration ? generation + 1 : generation)
    }
}

@Suite("The ledger of every store satisfies the contract of SyncLedger", .blocking)
struct SyncLedgerContractTests {
    @Test("SQLite store", arguments: SyncLedgerContract.rules)
    func fileStore(rule: SyncLedgerContract) throws {
        let directory = try TemporaryDirectory()
        #expect(rule.violations(of: try directory.makeStore()) == [])
    }

    @Test("In-memory store", arguments: SyncLedgerContract.rules)
    func memoryStore(rule: SyncLedgerContract) {
        #expect(rule.violations(of: InMemoryItemStore(keybag: ItemStoreContract.keybag)) == [])
    }
}

@Suite("Every store satisfies the contract of ItemStore", .blocking)
struct ContractTests {
    @Test("SQLite store", arguments: ItemStoreContract.rules)
    func fileStore(rule: ItemStoreContract) throws {
        let directory = try TemporaryDirectory()
        #expect(rule.violations(of: try directory.makeStore()) == [])
    }

    @Test("In-memory store", arguments: ItemStoreContract.rules)
    func memoryStore(rule: ItemStoreContract) {
        #expect(rule.violations(of: InMemoryItemStore(keybag: ItemStoreContract.keybag)) == [])
    }

    @Test("Planted fault: a store that violates a rule fails", arguments: BrokenStore.Fault.allCases)
    func brokenStore(fault: BrokenStore.Fault) {
        #expect(
            ItemStoreContract.rules.contains { rule in
                rule.violations(of: BrokenStore(InMemoryItemStore(keybag: ItemStoreContract.keybag), fault)) != []
            })
    }

    @Test("The same wrapper without a fault passes")
    func wrappedStore() {
        for rule in ItemStoreContract.rules {
            #expect(rule.violations(of: BrokenStore(InMemoryItemStore(keybag: ItemStoreContract.keybag), nil)) == [])
        }
    }
}
