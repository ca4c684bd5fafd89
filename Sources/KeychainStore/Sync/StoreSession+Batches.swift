// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The ledger's knowledge of logs: read batches, awaited versions, and marks.
extension StoreSession {
    // MARK: Logs

    /// Returns the number of the log of an origin; 0 for nil, and nil if the ledger has no such log.
    func logNumber(of origin: Origin?) throws(KeychainFailure) -> Int64? {
        guard let origin else { return 0 }
        return try logNumber(of: origin.log)
    }

    private func logNumber(of log: LogID) throws(KeychainFailure) -> Int64? {
        let statement = try connection.statement(.logNumber)
        defer { statement.reset() }
        statement.bind(log, at: 1)
        return try statement.step() ? statement.integer(at: 0) : nil
    }

    /// Returns the number of the log of an origin, which is inserted if the ledger has no such log; 0 for nil.
    func insertedLogNumber(of origin: Origin?) throws(KeychainFailure) -> Int64 {
        if let number = try logNumber(of: origin) { return number }
        guard let origin else { return 0 }
        let statement = try connection.statement(.insertLog)
        statement.bind(origin.log, at: 1)
        try statement.run()
        return connection.lastInsertedNumber
    }

    func logs() throws(KeychainFailure) -> [LogID] {
        let statement = try connection.statement(.logs)
        defer { statement.reset() }
        var logs: [LogID] = []
        while try statement.step() { logs.append(try statement.required(LogID.self, at: 0)) }
        return logs
    }

    // MARK: Awaited versions

    func isAwaited(_ reference: VersionReference) throws(KeychainFailure) -> Bool {
        guard let log = try logNumber(of: reference.origin) else { return false }
        let statement = try connection.statement(.hasAwaited)
        statement.bind(reference.id, at: 1)
        statement.bind(reference.origin, log: log, at: 2)
        return try statement.hasRow()
    }

    func awaitedVersions(after reference: VersionReference?, limit: Int) throws(KeychainFailure) -> [VersionReference] {
        let statement = try connection.statement(.awaitedFromID)
        defer { statement.reset() }
        statement.bind(reference?.id.value ?? Identifier128(high: 0, low: 0), at: 1)
        var found: [VersionReference] = []
        while found.count < limit, try statement.step() {
            let awaited = try statement.reference(at: 0)
            if let reference, awaited <= reference { continue }
            found.append(awaited)
        }
        return found
    }

    func insertAwaited(_ reference: VersionReference) throws(KeychainFailure) {
        let log = try insertedLogNumber(of: reference.origin)
        let statement = try connection.statement(.insertAwaited)
        statement.bind(reference.id, at: 1)
        statement.bind(reference.origin, log: log, at: 2)
        try statement.run()
    }

    func removeAwaited(_ origin: Origin) throws(KeychainFailure) { try run(.removeAwaited, origin) }

    // MARK: Permitted batches

    func isPermitted(_ origin: Origin) throws(KeychainFailure) -> Bool {
        guard let log = try logNumber(of: origin) else { return false }
        let statement = try connection.statement(.hasPermitted)
        statement.bind(origin, log: log, at: 1)
        return try statement.hasRow()
    }

    func insertPermitted(_ origin: Origin) throws(KeychainFailure) {
        let log = try insertedLogNumber(of: origin)
        let statement = try connection.statement(.insertPermitted)
        statement.bind(origin, log: log, at: 1)
        try statement.run()
    }

    func removePermitted(_ origin: Origin) throws(KeychainFailure) { try run(.removePermitted, origin) }

    // MARK: Read batches

    func isRead(_ origin: Origin) throws(KeychainFailure) -> Bool {
        guard let log = try logNumber(of: origin) else { return false }
        let statement = try connection.statement(.hasBatch)
        statement.bind(origin, log: log, at: 1)
        return try statement.hasRow()
    }

    func isAnyRead(_ number: UInt64, of log: LogID) throws(KeychainFailure) -> Bool {
        guard let logNumber = try logNumber(of: log) else { return false }
        let statement = try connection.statement(.hasBatchWithNumber)
        statement.bind(logNumber, at: 1)
        statement.bind(Int64(bitPattern: number), at: 2)
        return try statement.hasRow()
    }

    func readBatches(of log: LogID) throws(KeychainFailure) -> [ReadBatch] {
        var batches: [ReadBatch] = []
        try forEachRow(.batchesOfLog, of: log) { statement throws(KeychainFailure) in
            batches.append(
                ReadBatch(
                    log: log, device: try statement.required(DeviceID.self, at: 3), number: UInt64(bitPattern: statement.integer(at: 0)),
                    hash: try statement.hash(at: 1), versionCount: Int(clamping: statement.integer(at: 4))))
        }
        return batches
    }

    func insert(_ batch: ReadBatch) throws(KeychainFailure) {
        let log = try insertedLogNumber(of: batch.origin)
        let statement = try connection.statement(.insertBatch)
        statement.bind(batch.origin, log: log, at: 1)
        statement.bind(batch.hash.suffix, at: 4)
        statement.bind(batch.device, at: 5)
        statement.bind(Int64(clamping: batch.versionCount), at: 6)
        try statement.run()
    }

    // MARK: Marks

    func marks(of log: LogID) throws(KeychainFailure) -> [LogMark] {
        var marks: [LogMark] = []
        try forEachRow(.marksOfLog, of: log) { statement throws(KeychainFailure) in marks.append(try mark(statement, log)) }
        return marks
    }

    func mark(_ origin: Origin) throws(KeychainFailure) -> LogMark? {
        guard let log = try logNumber(of: origin) else { return nil }
        let statement = try connection.statement(.markOfOrigin)
        defer { statement.reset() }
        statement.bind(origin, log: log, at: 1)
        return try statement.step() ? try mark(statement, origin.log) : nil
    }

    func marksToReport(of device: DeviceID, limit: Int) throws(KeychainFailure) -> [LogMark] {
        let statement = try connection.statement(.marksToReport)
        defer { statement.reset() }
        statement.bind(device, at: 1)
        statement.bind(Int64(limit), at: 2)
        var marks: [LogMark] = []
        while try statement.step() { marks.append(try mark(statement, try statement.required(LogID.self, at: 6))) }
        return marks
    }

    private func mark(_ statement: SQLiteStatement, _ log: LogID) throws(KeychainFailure) -> LogMark {
        guard let previous = ObjectHash(statement.bytes(at: 4)) else { throw Self.ledgerDamaged }
        return LogMark(
            log: log, device: try statement.required(DeviceID.self, at: 3), number: UInt64(bitPattern: statement.integer(at: 0)),
            previous: previous, hash: try statement.hash(at: 1), signature: statement.bytes(at: 5))
    }

    func insert(_ mark: LogMark, isToReport: Bool) throws(KeychainFailure) {
        let log = try insertedLogNumber(of: mark.origin)
        let statement = try connection.statement(.insertMark)
        statement.bind(mark.origin, log: log, at: 1)
        statement.bind(mark.hash.suffix, at: 4)
        statement.bind(mark.device, at: 5)
        statement.bind(isToReport, at: 8)
        let blobs = [
            SQLiteStatement.Blob(index: 6, bytes: mark.previous.bytes), SQLiteStatement.Blob(index: 7, bytes: mark.signature),
        ]
        try statement.withBound(blobs[...]) { () throws(KeychainFailure) in try statement.run() }
    }

    func noteReported(_ origin: Origin) throws(KeychainFailure) { try run(.noteReported, origin) }
    func removeMark(_ origin: Origin) throws(KeychainFailure) { try run(.removeMark, origin) }

    // MARK: Shorthand

    private func run(_ name: SyncStatement, _ origin: Origin) throws(KeychainFailure) {
        guard let log = try logNumber(of: origin) else { return }
        let statement = try connection.statement(name)
        statement.bind(origin, log: log, at: 1)
        try statement.run()
    }

    private func forEachRow(
        _ name: SyncStatement, of log: LogID, _ body: (SQLiteStatement) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        guard let number = try logNumber(of: log) else { return }
        let statement = try connection.statement(name)
        defer { statement.reset() }
        statement.bind(number, at: 1)
        while try statement.step() { try body(statement) }
    }
}
