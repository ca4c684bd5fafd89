// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Foundation
package import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// A store in memory with the rules of the store in a file.
package final class InMemoryItemStore: ItemStore {
    struct Contents: Sendable {
        var keybag: StoredKeybag
        var lockEpoch = LockEpoch(rawValue: 0)
        /// In ascending order of number.
        var rows: [SealedRow] = []
        var quarantine: [QuarantinedRow] = []
        var lastNumber: Int64 = 0
        /// Nil while synchronization is off.
        var ledger: InMemoryLedger?
        /// New for each write.
        var change = Identifier128.random()
    }

    private let contents: Mutex<Contents>
    /// Admits one writer at a time.
    ///
    /// Readers see the state before or after a write.
    private let writerLock = NSLock()
    private let observers = Mutex<[ObjectIdentifier: @Sendable () -> Void]>([:])

    package init(keybag: StoredKeybag) {
        contents = Mutex(Contents(keybag: keybag))
    }

    package func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try body(InMemoryTransaction(currentContents))
    }

    var currentContents: Contents { contents.withLock { $0 } }

    package func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try transact(ifKeybagGeneration: generation) { transaction throws(KeychainFailure) in try body(transaction) }
    }

    func transact<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (InMemoryTransaction) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        let transaction: InMemoryTransaction
        let result: Result
        do {
            writerLock.lock()
            defer { writerLock.unlock() }
            transaction = InMemoryTransaction(currentContents)
            guard transaction.contents.keybag.generation == generation else { return .keybagChanged }
            result = try body(transaction)
            guard transaction.hasChanged else { return .written(result) }
            var written = transaction.contents
            written.change = .random()
            contents.withLock { $0 = written }
        }
        notifyObservers()
        return .written(result)
    }

    package func advanceLockEpoch(_ extent: LockExtent) {
        writerLock.withLock { contents.withLock { $0.lockEpoch = $0.lockEpoch.advanced(by: extent) } }
        notifyObservers()
    }

    /// Adds or removes the ledger.
    func changeLedger(_ change: (inout InMemoryLedger?) -> Void) {
        writerLock.withLock { contents.withLock { change(&$0.ledger) } }
    }

    // MARK: Changes

    func contentVersion() -> ContentVersion {
        contents.withLock { ContentVersion(change: $0.change, lockEpoch: $0.lockEpoch, syncEngine: $0.ledger?.settings[.engine]) }
    }

    /// Calls `onChange` after each write, on the thread of the writer, until the result is canceled.
    func observe(_ onChange: @escaping @Sendable () -> Void) -> any ContentWatch {
        let watch = Watch(store: self)
        observers.withLock { $0[ObjectIdentifier(watch)] = onChange }
        return watch
    }

    /// Calls the observers after a write, or after an unlock, which writes nothing.
    func notifyObservers() {
        for onChange in observers.withLock({ Array($0.values) }) { onChange() }
    }

    private final class Watch: ContentWatch {
        private let store: InMemoryItemStore

        init(store: InMemoryItemStore) {
            self.store = store
        }

        deinit { cancel() }

        func cancel() {
            _ = store.observers.withLock { $0.removeValue(forKey: ObjectIdentifier(self)) }
        }
    }
}

/// A private copy of the contents.
///
/// A write stores it if its body does not throw.
final class InMemoryTransaction: ItemWriting {
    var contents: InMemoryItemStore.Contents {
        didSet { hasChanged = true }
    }
    private(set) var hasChanged = false
    /// Whether the ledger records changes of rows; false for changes by synchronization itself.
    var recordsChanges: Bool

    init(_ contents: InMemoryItemStore.Contents) {
        self.contents = contents
        recordsChanges = contents.ledger != nil
    }

    @discardableResult
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Bool {
        // `body` may change the rows.
        let rows = contents.rows
        for var row in rows where query.matches(row.header) {
            if !includingSecrets { row.sealedSecret = [] }
            if try body(row) == .stop { break }
        }
        guard let key = query.searchKey else { return false }
        return rows.contains { key.matches($0.header) && !query.matches($0.header) }
    }

    func itemCount() -> Int { contents.rows.count { !$0.header.isTombstone } }

    func keybag() -> StoredKeybag { contents.keybag }

    func quarantinedRows() -> [QuarantinedRow] { contents.quarantine }

    func insert(_ row: SealedRow) throws(KeychainFailure) {
        try requireUnique(row, exceptNumber: nil)
        contents.lastNumber += 1
        var stored = row
        stored.number = contents.lastNumber
        contents.rows.append(stored)
        recordChange(from: nil, to: row)
    }

    func replace(number: Int64, with row: SealedRow) throws(KeychainFailure) {
        guard number < InMemoryLedger.firstCopyNumber else { return try replaceCopy(number: number, with: row) }
        try requireUnique(row, exceptNumber: number)
        let position = try position(of: number)
        recordChange(from: contents.rows[position], to: row)
        contents.rows[position] = row
        contents.rows[position].number = number
    }

    func remove(number: Int64) throws(KeychainFailure) {
        recordChange(from: contents.rows.remove(at: try position(of: number)), to: nil)
    }

    func quarantine(number: Int64, at seconds: Double) throws(KeychainFailure) {
        let row = contents.rows.remove(at: try position(of: number))
        recordChange(from: row, to: nil)
        contents.quarantine.append(QuarantinedRow(row: row, seconds: seconds))
        contents.quarantine.removeFirst(max(0, contents.quarantine.count - QuarantinedRow.capacity))
    }

    func purgeQuarantine() { contents.quarantine.removeAll() }

    func lockEpoch() -> LockEpoch { contents.lockEpoch }

    func rowCount(underPasscodeKeysBelow generation: UInt32) -> Int {
        rowsAndCopies.count { $0.header.isUnderPasscodeKey(below: generation) }
    }

    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        for row in rowsAndCopies where (row.number ?? 0) > number && row.header.isUnderPasscodeKey(below: generation) {
            guard try body(row) == .proceed else { return }
        }
    }

    func classKeysInUse() -> Set<ClassKeyID> {
        let headers = rowsAndCopies.map(\.header) + contents.quarantine.map(\.row.header)
        return Set(headers.map { ClassKeyID($0.accessibility, generation: $0.classKeyGeneration) })
    }

    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure) {
        guard generation > contents.keybag.generation else {
            throw KeychainFailure(.internal, "a keybag is replaced by one of a higher generation only")
        }
        contents.keybag = StoredKeybag(generation: generation, copies: [bytes, bytes])
    }

    /// All rows under class keys, in ascending order of number.
    private var rowsAndCopies: [SealedRow] {
        contents.rows + (contents.ledger?.copies.values.sorted { ($0.number ?? 0) < ($1.number ?? 0) } ?? [])
    }

    func position(of number: Int64) throws(KeychainFailure) -> Int {
        guard let position = contents.rows.firstIndex(where: { $0.number == number }) else {
            throw KeychainFailure(.internal, "a row that was just read is gone")
        }
        return position
    }

    private func requireUnique(_ row: SealedRow, exceptNumber: Int64?) throws(KeychainFailure) {
        let header = row.header
        let isTaken = contents.rows.contains { other in
            other.number != exceptNumber
                && (other.header.reference.id == header.reference.id
                    || (other.header.serviceDigest == header.serviceDigest && other.header.accountDigest == header.accountDigest
                        && other.header.remainingKeyDigest == header.remainingKeyDigest))
        }
        guard !isTaken else { throw KeychainFailure(.duplicateItem, "a row with this primary key is already there") }
    }
}

extension RowHeader {
    fileprivate func isUnderPasscodeKey(below generation: UInt32) -> Bool {
        accessibility.isPasscodeProtected && classKeyGeneration < generation
    }
}

extension RowQuery {
    /// The conditions that the database checks in SQL.
    fileprivate func matches(_ header: RowHeader) -> Bool {
        (itemClass ?? header.reference.itemClass) == header.reference.itemClass
            && (id ?? header.reference.id) == header.reference.id
            && (serviceDigest ?? header.serviceDigest) == header.serviceDigest
            && (accountDigest ?? header.accountDigest) == header.accountDigest
            && (remainingKeyDigest ?? header.remainingKeyDigest) == header.remainingKeyDigest
            && accessGroupDigests?.contains(header.accessGroupDigest) ?? true
            && attributeDigests.allSatisfy(header.attributeDigests.contains)
            && (accessibility ?? header.accessibility) == header.accessibility
            && (isSynchronizable ?? header.isSynchronizable) == header.isSynchronizable
            && (isTombstone ?? header.isTombstone) == header.isTombstone
    }
}
#endif
